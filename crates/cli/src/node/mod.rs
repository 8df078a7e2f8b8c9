//! `pteros node`: lists nodes and shows their topics, services and actions.

mod info;
pub mod list;

pub use list::node_names;

use crate::cli_context::CliContext;
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
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Info(verb) => verb.run(cli),
        }
    }
}
