//! `pteros lifecycle`: shows and changes the states of managed nodes.

mod get;
mod list;
mod lookup;
mod nodes;
mod set;
mod supervise;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `lifecycle`.
#[derive(Debug, Subcommand)]
pub enum LifecycleVerb {
    /// List the managed nodes
    Nodes(nodes::Nodes),
    /// Print the state of a managed node, or of all
    Get(get::Get),
    /// List the available transitions of a managed node
    List(list::List),
    /// Trigger a transition of a managed node
    Set(set::Set),
    /// Bring managed nodes up in order and keep them up
    Supervise(supervise::Supervise),
}

impl LifecycleVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Nodes(verb) => verb.run(cli),
            Self::Get(verb) => verb.run(cli),
            Self::List(verb) => verb.run(cli),
            Self::Set(verb) => verb.run(cli),
            Self::Supervise(verb) => verb.run(cli),
        }
    }
}
