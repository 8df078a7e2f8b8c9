//! `pteros component`: containers, and what is in them.

mod container;
mod known;
mod list;
mod load;
mod load_flags;
mod program;
mod standalone;
mod types;
mod unload;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `component`.
#[derive(Debug, Subcommand)]
pub enum ComponentVerb {
    /// List the components that can be loaded
    Types(types::Types),
    /// List the containers and what they have loaded
    List(list::List),
    /// Load a component into a container
    Load(load::Load),
    /// Unload components from a container
    Unload(unload::Unload),
    /// Run a component in a container of its own
    Standalone(standalone::Standalone),
    /// Run a container until Ctrl-C
    Container(container::Container),
}

impl ComponentVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Types(verb) => verb.run(shared),
            Self::List(verb) => verb.run(shared),
            Self::Load(verb) => verb.run(shared),
            Self::Unload(verb) => verb.run(shared),
            Self::Standalone(verb) => verb.run(shared),
            Self::Container(verb) => verb.run(shared),
        }
    }
}
