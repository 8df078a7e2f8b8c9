//! Processes of the benchmark of bags: publishers at a rate, a recorder, a subscription
//! that measures delivery, and a player beside a bare timer.
//!
//! Each prints `ready` when the others may go on, and one line with its figures. A
//! publisher and a recorder stay until they are killed or interrupted, so that no end of
//! a process is part of a figure.

mod listen;
mod play;
mod process;
mod publish;
mod record;

use anyhow::Result;
use clap::Parser;

/// Runs a process of the benchmark.
pub fn run(arguments: &[String]) -> Result<()> {
    match Task::try_parse_from(arguments)? {
        Task::Publish(task) => task.run(),
        Task::Record(task) => task.run(),
        Task::Listen(task) => task.run(),
        Task::Play(task) => task.run(),
    }
}

/// A process.
#[derive(Debug, Parser)]
enum Task {
    /// Publishes to topics at a rate
    Publish(publish::Publish),
    /// Records topics until SIGINT
    Record(record::Record),
    /// Measures the delivery of messages of a topic
    Listen(listen::Listen),
    /// Plays a bag that it wrote, and measures the spacing beside a bare timer
    Play(play::Play),
}
