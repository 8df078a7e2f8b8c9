//! `pteros component`: component containers and their components.

mod container;
mod list;
mod load;
mod load_flags;
mod lookup;
mod program;
mod standalone;
mod types;
mod unload;

pub use lookup::all_containers;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `component`.
#[derive(Debug, Subcommand)]
pub enum ComponentVerb {
    /// List the components that can be loaded
    Types(types::Types),
    /// List the containers and their components
    List(list::List),
    /// Load a component into a container
    Load(load::Load),
    /// Unload components from a container
    Unload(unload::Unload),
    /// Run a component in its own container
    Standalone(standalone::Standalone),
    /// Run a container until Ctrl-C
    Container(container::Container),
}

impl ComponentVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Types(verb) => verb.run(cli),
            Self::List(verb) => verb.run(cli),
            Self::Load(verb) => verb.run(cli),
            Self::Unload(verb) => verb.run(cli),
            Self::Standalone(verb) => verb.run(cli),
            Self::Container(verb) => verb.run(cli),
        }
    }
}
