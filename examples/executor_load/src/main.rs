//! What `cargo xtask bench executor` measures of one executor, in a process of
//! its own: what a callback costs beyond its work, how much of the time is work,
//! what is dropped, and how long an urgent callback waits.
//!
//! `executor-load KIND QUESTION [--subscriptions N] [--work-us N] [--timers N]
//! [--load-percent N] [--millis N]`; prints `name value` lines.
#![allow(
    clippy::disallowed_methods,
    reason = "a stopwatch with threads: reading the clock is what it is for"
)]

mod floor;
mod kind;
mod load;
mod overhead;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use kind::Kind;
use rustix::time::{ClockId, clock_gettime};

/// What is asked.
pub struct Options {
    kind: Kind,
    question: Question,
    subscriptions: usize,
    work: Duration,
    timers: usize,
    load_percent: u32,
    span: Duration,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Question {
    /// What a callback costs.
    Overhead,
    /// What comes through at so much load.
    Load,
    /// How long an urgent callback waits at so much load.
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
        (Question::Overhead, Kind::Floor) => floor::overhead(options),
        (Question::Overhead, _) => overhead::measure(options),
        (_, Kind::Floor) => Err("the floor is asked for its overhead alone".into()),
        (Question::Load, _) => load::measure(options),
        (Question::Urgent, _) => load::measure_urgent(options),
    }
}

impl Options {
    fn parse(arguments: &[String]) -> Option<Self> {
        let [kind, question, flags @ ..] = arguments else {
            return None;
        };
        let mut options = Self {
            kind: Kind::parse(kind)?,
            question: match question.as_str() {
                "overhead" => Question::Overhead,
                "load" => Question::Load,
                "urgent" => Question::Urgent,
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

/// Works for so long, by the processor's time: whoever is preempted has not
/// worked meanwhile. Returns how long it was in fact.
fn work_for(span: Duration) -> Duration {
    if span.is_zero() {
        return span;
    }
    let begun = spent(ClockId::ThreadCPUTime);
    loop {
        let worked = spent(ClockId::ThreadCPUTime).saturating_sub(begun);
        if worked >= span {
            return worked;
        }
    }
}

/// What the process, or this thread, has spent on processors so far.
fn spent(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}
