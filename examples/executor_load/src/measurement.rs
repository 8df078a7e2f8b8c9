//! One measurement: its options, its figures, and CPU time.

use std::time::Duration;

use crate::executor_kind::ExecutorKind;
use rustix::time::{ClockId, clock_gettime};

/// The command line options.
pub struct Options {
    pub kind: ExecutorKind,
    pub question: Measurement,
    pub subscriptions: usize,
    pub work: Duration,
    pub timers: usize,
    pub load_percent: u32,
    pub span: Duration,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Measurement {
    /// Overhead of a callback.
    Overhead,
    /// Throughput under this load.
    Load,
    /// Latency of an urgent callback under this load.
    Urgent,
}

/// Names and values.
pub type Figures = Vec<(&'static str, f64)>;

impl Options {
    /// The options of a command line.
    pub fn parse(arguments: &[String]) -> Option<Self> {
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
pub fn work_for(span: Duration) -> Duration {
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
pub fn cpu_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

/// Microseconds.
pub fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
