//! `pteros pkg`: lists packages and their programs, and creates packages.

mod create;
mod executables;
mod list;
pub mod manifest;
mod prefix;
mod xml;

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
    /// Create a package with one node and a package.xml, in Rust or Python
    Create(Box<create::Create>),
    /// Print the package.xml of a package, or one tag of it
    Xml(xml::Xml),
}

impl PkgVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Prefix(verb) => verb.run(cli),
            Self::Executables(verb) => verb.run(cli),
            Self::Create(verb) => verb.run(cli),
            Self::Xml(verb) => verb.run(cli),
        }
    }
}
