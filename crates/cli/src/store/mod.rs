//! `pteros store`: stored samples of transient and persistent publishers.

mod clear;
mod folder_flags;
mod list;
mod show;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `store`.
#[derive(Debug, Subcommand)]
pub enum StoreVerb {
    /// List the stores: topic, type, samples, bytes
    List(list::List),
    /// Show publication time and size of each sample in a store
    Show(show::Show),
    /// Remove a store with all its samples
    Clear(clear::Clear),
}

impl StoreVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::List(verb) => verb.run(cli),
            Self::Show(verb) => verb.run(cli),
            Self::Clear(verb) => verb.run(cli),
        }
    }
}
