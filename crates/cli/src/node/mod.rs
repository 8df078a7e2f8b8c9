//! `pteros node`: list nodes and show what they offer.

mod info;
pub mod list;

pub use list::node_names;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `node`.
#[derive(Debug, Subcommand)]
pub enum NodeVerb {
    /// List the nodes of the graph
    List(list::List),
    /// Show a node's topics, services and actions
    Info(info::Info),
}

impl NodeVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Info(verb) => verb.run(shared),
        }
    }
}
