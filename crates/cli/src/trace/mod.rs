//! `pteros trace`: message latencies and causal chains.

mod chrome;
mod export;
mod record;
mod show;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `trace`.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Run a command and record the messages of every process that it starts
    Record(record::Record),
    /// Show latencies per topic, layer and chain
    Show(show::Show),
    /// Convert a trace for Chrome and Perfetto
    Export(export::Export),
}

impl TraceVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Record(verb) => verb.run(cli),
            Self::Show(verb) => verb.run(cli),
            Self::Export(verb) => verb.run(cli),
        }
    }
}
