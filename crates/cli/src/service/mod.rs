//! `pteros service`: list and call services.

mod call;
mod echo;
mod find;
mod known;
mod list;
mod type_of;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `service`.
#[derive(Debug, Subcommand)]
pub enum ServiceVerb {
    /// List the services that are served or called
    List(list::List),
    /// Call a service and print the answer
    Call(call::Call),
    /// Print requests and replies as their services and clients tell of them
    Echo(Box<echo::Echo>),
    /// List the services of a type
    Find(find::Find),
    /// Print a service's type
    Type(type_of::TypeOf),
}

impl ServiceVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Call(verb) => verb.run(shared),
            Self::Echo(verb) => verb.run(shared),
            Self::Find(verb) => verb.run(shared),
            Self::Type(verb) => verb.run(shared),
        }
    }
}
