//! `pteros lifecycle`: look at and change the states of managed nodes.

mod get;
mod known;
mod list;
mod nodes;
mod set;
mod supervise;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `lifecycle`.
#[derive(Debug, Subcommand)]
pub enum LifecycleVerb {
    /// List the managed nodes
    Nodes(nodes::Nodes),
    /// Print the state of a managed node, or of all
    Get(get::Get),
    /// List the transitions that a managed node can make
    List(list::List),
    /// Ask a managed node for a transition
    Set(set::Set),
    /// Bring managed nodes up in order and keep them up
    Supervise(supervise::Supervise),
}

impl LifecycleVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Nodes(verb) => verb.run(shared),
            Self::Get(verb) => verb.run(shared),
            Self::List(verb) => verb.run(shared),
            Self::Set(verb) => verb.run(shared),
            Self::Supervise(verb) => verb.run(shared),
        }
    }
}
