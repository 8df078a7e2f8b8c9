//! `pteros bag`: records topics into MCAP files, and plays, shows and copies them.

mod cat;
mod check;
mod convert;
mod info;
mod play;
mod record;
mod recover;
mod reindex;
mod selection;
mod topics;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `bag`.
#[derive(Debug, Subcommand)]
pub enum BagVerb {
    /// Record topics into a new bag, and account for every message that is lost
    Record(Box<record::Record>),
    /// Publish the messages of a bag with their spacing in time
    Play(Box<play::Play>),
    /// Show files, topics, times and losses of a bag
    Info(info::Info),
    /// List the topics of a bag
    Topics(topics::Topics),
    /// Print the messages of a bag
    Cat(cat::Cat),
    /// Copy bags into a new one: choose topics and times, merge, split, compress
    Convert(Box<convert::Convert>),
    /// Copy what can be read of a damaged or torn bag into a new one
    Recover(recover::Recover),
    /// Write the metadata.yaml of a bag whose recorder was stopped
    Reindex(reindex::Reindex),
    /// Read a whole bag and report what cannot be read
    Check(check::Check),
}

impl BagVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Record(verb) => verb.run(cli),
            Self::Play(verb) => verb.run(cli),
            Self::Info(verb) => verb.run(cli),
            Self::Topics(verb) => verb.run(cli),
            Self::Cat(verb) => verb.run(cli),
            Self::Convert(verb) => verb.run(cli),
            Self::Recover(verb) => verb.run(cli),
            Self::Reindex(verb) => verb.run(cli),
            Self::Check(verb) => verb.run(cli),
        }
    }
}
