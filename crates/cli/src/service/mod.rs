//! `pteros service`: list and call services.

mod call;
mod echo;
mod find;
mod info;
mod list;
mod lookup;
mod type_of;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, Subcommand};

/// The noun `service` with the flags of all its verbs.
#[derive(Debug, Args)]
pub struct Service {
    /// List and find hidden services too, such as those of actions; the other verbs
    /// always accept them
    #[arg(long, global = true)]
    include_hidden_services: bool,
    #[command(subcommand)]
    verb: ServiceVerb,
}

impl Service {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        self.verb.run(&CliContext {
            include_hidden: self.include_hidden_services,
            ..cli.clone()
        })
    }
}

/// Verbs of `service`.
#[derive(Debug, Subcommand)]
pub enum ServiceVerb {
    /// List the services that have servers or clients
    List(list::List),
    /// Show a service's type and the numbers of its clients and servers
    Info(info::Info),
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
    fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Info(verb) => verb.run(cli),
            Self::Call(verb) => verb.run(cli),
            Self::Echo(verb) => verb.run(cli),
            Self::Find(verb) => verb.run(cli),
            Self::Type(verb) => verb.run(cli),
        }
    }
}
