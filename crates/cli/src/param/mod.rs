//! `pteros param`: shows and changes the parameters of running nodes.

mod delete;
mod describe;
mod dump;
mod get;
mod list;
mod load;
mod nodes;
mod set;
mod value_text;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `param`.
#[derive(Debug, Subcommand)]
pub enum ParamVerb {
    /// List the parameters of one node or of all nodes
    List(list::List),
    /// Print a parameter's value
    Get(get::Get),
    /// Set a parameter
    Set(set::Set),
    /// Print the descriptions, types and ranges of parameters
    Describe(describe::Describe),
    /// Print all parameters of a node as a parameter file
    Dump(dump::Dump),
    /// Set the parameters of a node from a parameter file
    Load(load::Load),
    /// Delete a parameter of dynamic type
    Delete(delete::Delete),
}

impl ParamVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Get(verb) => verb.run(cli),
            Self::Set(verb) => verb.run(cli),
            Self::Describe(verb) => verb.run(cli),
            Self::Dump(verb) => verb.run(cli),
            Self::Load(verb) => verb.run(cli),
            Self::Delete(verb) => verb.run(cli),
        }
    }
}
