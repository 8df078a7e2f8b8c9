//! Processes of the benchmark of bags: publishers at a rate, a recorder, a subscription
//! that measures delivery, and a player beside a bare timer.
//!
//! Each prints `ready` when the others may go on, and one line with its figures. A
//! publisher and a recorder stay until they are killed or interrupted, so that no end of
//! a process is part of a figure.

mod listen;
mod play;
mod publish;
mod record;

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Parser;
use pteros::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// Time limit for processes to match, and for the last messages to arrive.
const TIMEOUT: Duration = Duration::from_secs(20);

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

/// The context and a node without services.
fn open(name: &str) -> Result<(Context, Node, SingleThreadedExecutor)> {
    let context = Context::with_options(ContextOptions::from_process()?)?;
    let node = node(&context, name)?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node)?;
    Ok((context, node, executor))
}

fn node(context: &Context, name: &str) -> Result<Node> {
    let options = NodeOptions::new(name)
        .start_parameter_services(false)
        .start_type_description_service(false)
        .start_parameter_event_publisher(false);
    context.create_node(options).context("create a node")
}

/// Names of the topics with a prefix.
fn topic_names(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}_{number}"))
        .collect()
}

fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// CPU time of all threads of this process, those that have ended too.
fn cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Sleeps until a moment of the monotonic clock, unless it has passed.
fn sleep_until(moment: u64) {
    let left = moment.saturating_sub(monotonic_ns());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// The figures of durations in nanoseconds, in microseconds: `p50=… p95=… p99=… max=…`.
fn quantiles_text(mut durations: Vec<u64>) -> String {
    durations.sort_unstable();
    let at = |share: f64| {
        let last = durations.len().saturating_sub(1);
        let index = (share * last as f64).round() as usize;
        durations.get(index).copied().unwrap_or(0) as f64 / 1e3
    };
    format!(
        "p50={:.2} p95={:.2} p99={:.2} max={:.2}",
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_microseconds() {
        let durations = (0..=100).rev().map(|number| number * 1000).collect();
        let text = "p50=50.00 p95=95.00 p99=99.00 max=100.00";
        assert_eq!(quantiles_text(durations), text);
        assert!(quantiles_text(Vec::new()).starts_with("p50=0.00"));
    }
}
