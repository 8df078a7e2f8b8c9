//! `pteros pkg`: lists packages and their programs.

mod executables;
mod list;
mod prefix;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `pkg`.
#[derive(Debug, Subcommand)]
pub enum PkgVerb {
    /// List the packages: installed ones and those of the surrounding Cargo
    /// workspace
    List(list::List),
    /// Print the installation prefix of a package
    Prefix(prefix::Prefix),
    /// List the programs of packages
    Executables(executables::Executables),
}

impl PkgVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Prefix(verb) => verb.run(cli),
            Self::Executables(verb) => verb.run(cli),
        }
    }
}
