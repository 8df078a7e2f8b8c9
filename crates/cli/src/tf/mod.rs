//! `pteros tf`: where frames are, how they hang together and how late they come.

mod echo;
mod monitor;
mod tree;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `tf`.
#[derive(Debug, Subcommand)]
pub enum TfVerb {
    /// Print where one frame is, seen from another, again and again
    Echo(echo::Echo),
    /// Print all frames as a tree, as YAML or for Graphviz
    Tree(tree::Tree),
    /// Measure how often and how late transforms come
    Monitor(monitor::Monitor),
}

impl TfVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Echo(verb) => verb.run(shared),
            Self::Tree(verb) => verb.run(shared),
            Self::Monitor(verb) => verb.run(shared),
        }
    }
}
