//! `pteros action`: list actions and send goals.

mod find;
mod info;
mod list;
pub mod lookup;
mod send_goal;
mod type_of;

pub use lookup::all_actions;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `action`.
#[derive(Debug, Subcommand)]
pub enum ActionVerb {
    /// List the actions that have servers or clients
    List(list::List),
    /// Show the servers and clients of an action
    Info(info::Info),
    /// Print an action's type
    Type(type_of::TypeOf),
    /// List the actions of a type
    Find(find::Find),
    /// Send a goal and print its result
    #[command(name = "send_goal")]
    SendGoal(send_goal::SendGoal),
}

impl ActionVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Info(verb) => verb.run(cli),
            Self::Type(verb) => verb.run(cli),
            Self::Find(verb) => verb.run(cli),
            Self::SendGoal(verb) => verb.run(cli),
        }
    }
}
