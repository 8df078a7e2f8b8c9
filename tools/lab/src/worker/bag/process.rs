//! What the processes of the benchmark of bags share: context and node, clocks, and the
//! text of their figures.

use std::time::Duration;

use anyhow::{Context as _, Result};
use pteros::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// Time limit for processes to match, and for the last messages to arrive.
pub const TIMEOUT: Duration = Duration::from_secs(20);

/// The send time at the start of each payload.
pub const STAMP_BYTES: usize = 8;

/// The context and a node without services.
pub fn open(name: &str) -> Result<(Context, Node, SingleThreadedExecutor)> {
    open_with(name, Duration::ZERO)
}

/// The same with that latency budget.
pub fn open_with(
    name: &str,
    latency_budget: Duration,
) -> Result<(Context, Node, SingleThreadedExecutor)> {
    let mut options = ContextOptions::from_process()?;
    options.shared_memory.latency_budget = latency_budget;
    let context = Context::with_options(options)?;
    let node = node(&context, name)?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node)?;
    Ok((context, node, executor))
}

pub fn node(context: &Context, name: &str) -> Result<Node> {
    let options = NodeOptions::new(name)
        .start_parameter_services(false)
        .start_type_description_service(false)
        .start_parameter_event_publisher(false);
    context.create_node(options).context("create a node")
}

/// Names of the topics with a prefix.
pub fn topic_names(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}_{number}"))
        .collect()
}

pub fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// CPU time of all threads of this process, those that have ended too.
pub fn cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

pub fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Sleeps until a moment of the monotonic clock, unless it has passed.
pub fn sleep_until(moment: u64) {
    let left = moment.saturating_sub(monotonic_ns());
    if left > 0 {
        std::thread::sleep(Duration::from_nanos(left));
    }
}

/// The figures of durations in nanoseconds, in microseconds: `p50=… p95=… p99=… max=…`.
pub fn quantiles_text(mut durations: Vec<u64>) -> String {
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
