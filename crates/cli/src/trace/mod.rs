//! `pteros trace`: where the time of messages goes, and what came of what.

mod chrome;
mod export;
mod record;
mod show;

use crate::shared::Shared;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Run a command and record the messages of every process that it starts
    Record(record::Record),
    /// Show latencies per topic, layer and chain
    Show(show::Show),
    /// Write a trace as Chrome and Perfetto read it
    Export(export::Export),
}

impl TraceVerb {
    /// Runs the verb.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self {
            Self::Record(verb) => verb.run(shared),
            Self::Show(verb) => verb.run(shared),
            Self::Export(verb) => verb.run(shared),
        }
    }
}
