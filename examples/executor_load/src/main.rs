//! Measurement of one executor in its own process, for
//! `cargo xtask bench executor`.
//!
//! It measures callback overhead, share of work in the time, dropped messages, and
//! latency of an urgent callback.
//!
//! `executor-load KIND QUESTION [--subscriptions N] [--work-us N] [--timers N] [--load-percent N] [--millis N]`
//! It prints `name value` lines.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod epoll_baseline;
mod executor_kind;
mod load;
mod measurement;
mod overhead;

use std::error::Error;
use std::process::ExitCode;

use executor_kind::ExecutorKind;
use measurement::{Figures, Measurement, Options};

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

fn run(options: &Options) -> Result<Figures, Box<dyn Error>> {
    match (options.question, options.kind) {
        (Measurement::Overhead, ExecutorKind::Floor) => epoll_baseline::overhead(options),
        (Measurement::Overhead, _) => overhead::measure(options),
        (_, ExecutorKind::Floor) => Err("the epoll baseline measures only the overhead".into()),
        (Measurement::Load, _) => load::measure(options),
        (Measurement::Urgent, _) => load::measure_urgent(options),
    }
}
