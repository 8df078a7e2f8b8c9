//! Measurement of one executor in its own process, for
//! `cargo xtask bench executor`.
//!
//! It measures callback overhead, share of work in the time, dropped messages, and
//! latency of an urgent callback.
//!
//! `executor-load KIND QUESTION [--subscriptions N] [--work-us N] [--timers N] [--load-percent N] [--millis N]`
//! It prints `name value` lines.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark with threads reads the clock"
)]

mod epoll_baseline;
mod executor_kind;
mod load;
mod overhead;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use executor_kind::ExecutorKind;
use rustix::time::{ClockId, clock_gettime};

/// The command line options.
pub struct Options {
    kind: ExecutorKind,
    question: Measurement,
    subscriptions: usize,
    work: Duration,
    timers: usize,
    load_percent: u32,
    span: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Measurement {
    /// Overhead of a callback.
    Overhead,
    /// Throughput under this load.
    Load,
    /// Latency of an urgent callback under this load.
    Urgent,
}

const USAGE: &str = "usage: executor-load floor|single|multi|isolated|static|chain overhead|load|urgent\n\
     [--subscriptions N] [--work-us N] [--timers N] [--load-percent N] [--millis N]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(options) = Options::parse(&arguments) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&options) {
        Ok(figures) => {
            for (name, value) in figures {
                println!("{name} {value:.3}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Names and values.
type Figures = Vec<(&'static str, f64)>;

fn run(options: &Options) -> Result<Figures, Box<dyn Error>> {
    match (options.question, options.kind) {
        (Measurement::Overhead, ExecutorKind::Floor) => epoll_baseline::overhead(options),
        (Measurement::Overhead, _) => overhead::measure(options),
        (_, ExecutorKind::Floor) => Err("the epoll baseline measures only the overhead".into()),
        (Measurement::Load, _) => load::measure(options),
        (Measurement::Urgent, _) => load::measure_urgent(options),
    }
}

impl Options {
    fn parse(arguments: &[String]) -> Option<Self> {
        let [kind, question, flags @ ..] = arguments else {
            return None;
        };
        let mut options = Self {
            kind: ExecutorKind::parse(kind)?,
            question: match question.as_str() {
                "overhead" => Measurement::Overhead,
                "load" => Measurement::Load,
                "urgent" => Measurement::Urgent,
                _ => return None,
            },
            subscriptions: 1,
            work: Duration::ZERO,
            timers: 0,
            load_percent: 90,
            span: Duration::from_secs(1),
        };
        for flag in flags.chunks(2) {
            let [name, value] = flag else { return None };
            let value: u64 = value.parse().ok()?;
            match name.as_str() {
                "--subscriptions" => options.subscriptions = usize::try_from(value).ok()?.max(1),
                "--work-us" => options.work = Duration::from_micros(value),
                "--timers" => options.timers = usize::try_from(value).ok()?,
                "--load-percent" => options.load_percent = u32::try_from(value).ok()?.max(1),
                "--millis" => options.span = Duration::from_millis(value),
                _ => return None,
            }
        }
        Some(options)
    }
}

/// Works for this CPU time, so that preemption does not count. Returns the actual
/// time.
fn work_for(span: Duration) -> Duration {
    if span.is_zero() {
        return span;
    }
    let start = cpu_time(ClockId::ThreadCPUTime);
    loop {
        let worked = cpu_time(ClockId::ThreadCPUTime).saturating_sub(start);
        if worked >= span {
            return worked;
        }
    }
}

/// CPU time of the process or of this thread so far.
fn cpu_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
