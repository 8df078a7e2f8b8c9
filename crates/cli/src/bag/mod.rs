//! `pteros bag`: records topics into MCAP files, and plays, shows and copies them.

mod burst;
mod cat;
mod check;
mod convert;
mod copy_progress;
mod filter;
mod info;
mod keyboard;
mod list;
mod merge;
mod play;
mod progress;
mod record;
mod recover;
mod reindex;
mod selection;
mod split;
mod topics;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;
use pteros::log::Severity;

/// Verbs of `bag`.
#[derive(Debug, Subcommand)]
pub enum BagVerb {
    /// Record topics into a new bag, and account for every message that is lost
    Record(Box<record::Record>),
    /// Publish the messages of a bag with their spacing in time
    Play(Box<play::Play>),
    /// Publish a number of messages as fast as possible
    Burst(Box<burst::Burst>),
    /// Show files, topics, times and losses of a bag
    Info(info::Info),
    /// List the topics of a bag
    Topics(topics::Topics),
    /// Print the messages of a bag
    Cat(cat::Cat),
    /// Copy bags into a new one: choose topics and times, merge, split, compress
    Convert(Box<convert::Convert>),
    /// Copy a part of a bag: topics and times
    Filter(Box<filter::Filter>),
    /// Copy several bags into one, in the order of time
    Merge(Box<merge::Merge>),
    /// Copy a bag into files of a size or a duration
    Split(Box<split::Split>),
    /// Copy what can be read of a damaged or torn bag into a new one
    Recover(recover::Recover),
    /// Write the metadata.yaml of a bag whose recorder was stopped
    Reindex(reindex::Reindex),
    /// Read a whole bag and report what cannot be read
    Check(check::Check),
    /// List the formats that bags are read from and written to
    List(list::List),
}

impl BagVerb {
    /// The value of `--log-level`, where a verb has the option.
    pub fn log_level(&self) -> Option<Severity> {
        match self {
            Self::Record(verb) => verb.log_level,
            Self::Play(verb) => verb.shared.log_level,
            Self::Burst(verb) => verb.shared.log_level,
            _ => None,
        }
    }

    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Record(verb) => verb.run(cli),
            Self::Play(verb) => verb.run(cli),
            Self::Burst(verb) => verb.run(cli),
            Self::Info(verb) => verb.run(cli),
            Self::Topics(verb) => verb.run(cli),
            Self::Cat(verb) => verb.run(cli),
            Self::Convert(verb) => verb.run(cli),
            Self::Recover(verb) => verb.run(cli),
            Self::Reindex(verb) => verb.run(cli),
            Self::Check(verb) => verb.run(cli),
            Self::Filter(verb) => verb.run(cli),
            Self::Merge(verb) => verb.run(cli),
            Self::Split(verb) => verb.run(cli),
            Self::List(verb) => verb.run(cli),
        }
    }
}
