//! `pteros interface`: what is known about message, service and action types.
//! Opens no network, but where `show` asks a node.

mod kinds;
mod list;
pub mod named;
mod package;
mod packages;
mod proto;
mod show;
mod told;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Show information about interfaces (messages, services, actions)
#[derive(Debug, Subcommand)]
pub enum InterfaceVerb {
    /// List all interface types available
    List(list::List),
    /// Output the definition of an interface and its type hash
    Show(show::Show),
    /// Output the interface types of one package
    Package(package::Package),
    /// List the packages that provide interfaces
    Packages(packages::Packages),
    /// Output an interface's default values as YAML, ready to be edited
    Proto(proto::Proto),
}

impl InterfaceVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Show(verb) => verb.run(shared),
            Self::Package(verb) => verb.run(shared),
            Self::Packages(verb) => verb.run(shared),
            Self::Proto(verb) => verb.run(shared),
        }
    }
}
