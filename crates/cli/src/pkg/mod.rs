//! `pteros pkg`: which packages there are, and what is in them.

mod executables;
mod list;
mod prefix;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `pkg`.
#[derive(Debug, Subcommand)]
pub enum PkgVerb {
    /// List the packages: installed, and of the Cargo workspace around
    List(list::List),
    /// Print where a package is installed
    Prefix(prefix::Prefix),
    /// List the programs of packages
    Executables(executables::Executables),
}

impl PkgVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Prefix(verb) => verb.run(shared),
            Self::Executables(verb) => verb.run(shared),
        }
    }
}
