//! `pteros daemon`: the verbs of ros2's daemon. Pteros has none: every command
//! discovers the graph by itself in less than half a second.

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, Subcommand};
use serde_json::json;

/// Verbs of `daemon`.
#[derive(Debug, Subcommand)]
pub enum DaemonVerb {
    /// Succeed: there is nothing to start
    Start(Start),
    /// Succeed: there is nothing to stop
    Stop(Stop),
    /// Say that no daemon runs
    Status(Status),
}

/// Arguments of `daemon start`.
#[derive(Debug, Args)]
pub struct Start {
    /// Accepted for compatibility with ros2: there is no daemon
    #[arg(short = 'd', long)]
    debug: bool,
}

/// Arguments of `daemon stop`.
#[derive(Debug, Args)]
pub struct Stop {}

/// Arguments of `daemon status`.
#[derive(Debug, Args)]
pub struct Status {}

impl DaemonVerb {
    /// Prints that there is no daemon. Scripts for ros2 that start, stop or restart
    /// it go on.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if cli.console.json {
            return Ok(cli.console.json(&json!({ "running": false }))?);
        }
        let text = match self {
            Self::Start(Start { .. }) => {
                "There is no daemon to start: every command discovers the graph by itself"
            }
            // ros2's words, which scripts look for.
            Self::Stop(Stop {}) | Self::Status(Status {}) => "The daemon is not running",
        };
        Ok(cli.console.line(text)?)
    }
}
