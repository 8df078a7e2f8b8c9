//! `pteros rmw`: the middleware plug-in that runs rclcpp and rclpy on Pteros.

mod check;
mod install;
mod overlay;
mod talker;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::Subcommand;

/// Verbs of `rmw`.
#[derive(Debug, Subcommand)]
pub enum RmwVerb {
    /// Write an overlay with the plug-in, and start a talker on it
    Install(install::Install),
    /// Check the plug-in and the environment, and start a talker on it
    Check(check::Check),
}

impl RmwVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Install(verb) => verb.run(cli),
            Self::Check(verb) => verb.run(cli),
        }
    }
}
