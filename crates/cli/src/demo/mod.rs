//! `pteros demo`: a small robot graph to watch, and ROS 2's talker and listener.

mod domain;
mod flow;
mod listener;
mod part;
mod process;
mod robot;
mod show;
mod table;
mod talker;

use crate::shared::Shared;
use anyhow::Result;
use clap::{Args, Subcommand};
use std::time::Duration;

/// Arguments of `demo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Demo {
    /// How long to run
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = crate::values::positive_seconds)]
    seconds: Duration,
    #[command(subcommand)]
    verb: Option<DemoVerb>,
}

#[derive(Debug, Subcommand)]
enum DemoVerb {
    /// Publish "Hello World: N" on /chatter each second, as ROS 2's demo talker
    Talker(talker::Talker),
    /// Print what comes on /chatter, as ROS 2's demo listener
    Listener(listener::Listener),
    /// One of the processes that `demo` starts
    #[command(hide = true)]
    RobotPart(part::RobotPart),
}

impl Demo {
    /// Runs the demonstration.
    pub fn run(self, shared: &Shared) -> Result<()> {
        match self.verb {
            None => show::run(shared, self.seconds),
            Some(DemoVerb::Talker(verb)) => verb.run(shared),
            Some(DemoVerb::Listener(verb)) => verb.run(shared),
            Some(DemoVerb::RobotPart(verb)) => verb.run(),
        }
    }
}
