//! `pteros security` of a program that is built without the feature `security`.

use std::ffi::OsString;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Any verb of `security`. Programs with the feature have SROS 2's.
#[derive(Debug, Subcommand)]
pub enum SecurityVerb {
    /// The verb and its arguments.
    #[command(external_subcommand)]
    Any(Vec<OsString>),
}

impl SecurityVerb {
    /// Refuses, and says how to build the program with the verbs.
    pub fn run(self, _cli: &CliContext) -> Result<()> {
        let Self::Any(arguments) = self;
        let verb = arguments.first().map(|verb| verb.to_string_lossy());
        anyhow::bail!(
            "security {}: this program is built without security; build it with: cargo build \
             --release -p pteros-cli --features full",
            verb.unwrap_or_default()
        )
    }
}
