//! `pteros service`: list and call services.

mod call;
mod echo;
mod find;
mod list;
mod lookup;
mod type_of;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `service`.
#[derive(Debug, Subcommand)]
pub enum ServiceVerb {
    /// List the services that have servers or clients
    List(list::List),
    /// Call a service and print the response
    Call(call::Call),
    /// Print requests and responses from service introspection events
    Echo(Box<echo::Echo>),
    /// List the services of a type
    Find(find::Find),
    /// Print a service's type
    Type(type_of::TypeOf),
}

impl ServiceVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Call(verb) => verb.run(cli),
            Self::Echo(verb) => verb.run(cli),
            Self::Find(verb) => verb.run(cli),
            Self::Type(verb) => verb.run(cli),
        }
    }
}
