//! `pteros demo`: a small robot graph, and ROS 2's talker and listener.

mod child_process;
mod domain;
mod flow_statistics;
mod listener;
mod live_display;
mod robot;
mod robot_process;
mod table;
mod talker;

use crate::cli_context::CliContext;
use anyhow::Result;
use clap::{Args, Subcommand};
use std::time::Duration;

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Demo {
    /// How long to run
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = crate::value_parsers::positive_seconds)]
    seconds: Duration,
    #[command(subcommand)]
    verb: Option<DemoVerb>,
}

#[derive(Debug, Subcommand)]
enum DemoVerb {
    /// Publish "Hello World: N" on /chatter every second, as ROS 2's demo talker
    Talker(talker::Talker),
    /// Print the messages of /chatter, as ROS 2's demo listener
    Listener(listener::Listener),
    /// Run one of the processes that `demo` starts
    #[command(hide = true)]
    RobotPart(robot_process::RobotPart),
}

impl Demo {
    /// Runs the demo.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self.verb {
            None => live_display::run(cli, self.seconds),
            Some(DemoVerb::Talker(verb)) => verb.run(cli),
            Some(DemoVerb::Listener(verb)) => verb.run(cli),
            Some(DemoVerb::RobotPart(verb)) => verb.run(),
        }
    }
}
