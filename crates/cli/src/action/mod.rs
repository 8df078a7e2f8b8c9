//! `pteros action`: look at actions and ask for goals.

mod find;
mod info;
mod known;
mod list;
mod send_goal;
mod type_of;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `action`.
#[derive(Debug, Subcommand)]
pub enum ActionVerb {
    /// List the actions that are served or asked for
    List(list::List),
    /// Show who serves an action and who asks for its goals
    Info(info::Info),
    /// Print an action's type
    Type(type_of::TypeOf),
    /// List the actions of a type
    Find(find::Find),
    /// Ask for a goal and print its result
    #[command(name = "send_goal")]
    SendGoal(send_goal::SendGoal),
}

impl ActionVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Info(verb) => verb.run(shared),
            Self::Type(verb) => verb.run(shared),
            Self::Find(verb) => verb.run(shared),
            Self::SendGoal(verb) => verb.run(shared),
        }
    }
}
