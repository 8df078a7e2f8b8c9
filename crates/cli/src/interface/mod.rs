//! `pteros interface`: definitions of message, service and action types. It opens
//! no network, except for `show --from`.

mod generate;
mod kinds;
mod list;
mod own_packages;
mod package;
mod packages;
mod proto;
mod remote;
mod show;
pub mod type_names;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;
pub use own_packages::own_packages;

/// Show information about interfaces (messages, services, actions)
#[derive(Debug, Subcommand)]
pub enum InterfaceVerb {
    /// List all interface types available
    List(list::List),
    /// Output the definition of an interface
    Show(show::Show),
    /// Output the interface types of one package
    Package(package::Package),
    /// List the packages that provide interfaces
    Packages(packages::Packages),
    /// Output an interface's default values as YAML, ready to be edited
    Proto(proto::Proto),
    /// Write structs for another language, to be used with its library
    Generate(generate::Generate),
}

impl InterfaceVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Show(verb) => verb.run(cli),
            Self::Package(verb) => verb.run(cli),
            Self::Packages(verb) => verb.run(cli),
            Self::Proto(verb) => verb.run(cli),
            Self::Generate(verb) => verb.run(cli),
        }
    }
}
