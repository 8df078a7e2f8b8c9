//! `pteros tf`: transforms between frames, the frame tree and transform delays.

mod echo;
mod monitor;
mod tree;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `tf`.
#[derive(Debug, Subcommand)]
pub enum TfVerb {
    /// Print the transform between two frames repeatedly
    Echo(echo::Echo),
    /// Print all frames as a tree, as YAML or for Graphviz
    Tree(tree::Tree),
    /// Measure the rates and delays of transforms
    Monitor(monitor::Monitor),
}

impl TfVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Echo(verb) => verb.run(cli),
            Self::Tree(verb) => verb.run(cli),
            Self::Monitor(verb) => verb.run(cli),
        }
    }
}
