//! `pteros param`: look at and change the parameters of running nodes.

mod delete;
mod describe;
mod dump;
mod get;
mod list;
mod load;
mod nodes;
mod set;
mod text;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `param`.
#[derive(Debug, Subcommand)]
pub enum ParamVerb {
    /// List the parameters of a node, or of all
    List(list::List),
    /// Print a parameter's value
    Get(get::Get),
    /// Set a parameter
    Set(set::Set),
    /// Print what parameters are for and which values they take
    Describe(describe::Describe),
    /// Print all parameters of a node as a parameter file
    Dump(dump::Dump),
    /// Set the parameters that a file has for a node
    Load(load::Load),
    /// Delete a parameter of dynamic type
    Delete(delete::Delete),
}

impl ParamVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(shared),
            Self::Get(verb) => verb.run(shared),
            Self::Set(verb) => verb.run(shared),
            Self::Describe(verb) => verb.run(shared),
            Self::Dump(verb) => verb.run(shared),
            Self::Load(verb) => verb.run(shared),
            Self::Delete(verb) => verb.run(shared),
        }
    }
}
