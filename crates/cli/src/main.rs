//! The `pteros` command.
//!
//! `main` cuts out `--ros-args`, lets `clap` read the rest, runs the verb and
//! turns errors into one line on standard error and an exit code: 0 done,
//! 1 failed, 2 the command line was wrong. A reader that goes away (`| head`)
//! is no failure.

#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    reason = "a tool for people: it runs in real time and reads its environment"
)]

mod action;
mod arguments;
mod completion;
mod component;
mod console;
mod dds_flags;
mod demo;
mod doctor;
mod interface;
mod lab;
mod launch;
mod lifecycle;
mod log_line;
mod new;
mod node;
mod outcome;
mod param;
mod pkg;
mod python_repr;
mod qos_flags;
mod run;
mod security;
mod service;
mod service_flags;
mod session;
mod shared;
mod store;
mod tf;
mod told;
mod topic;
mod trace;
mod values;

use crate::arguments::CommandLine;
use crate::console::Console;
use crate::shared::Shared;
use pteros::args::Arguments;
use pteros::suggest;
use pteros_launch::run::{GUARD_WORD, guard};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    if let [_, word, mark] = words.as_slice()
        && word == GUARD_WORD
    {
        guard(mark, std::io::stdin());
        return ExitCode::SUCCESS;
    }
    match words.get(1).map(String::as_str) {
        // What the lab runs of this very binary.
        Some(pteros_lab::lab::WORKER) => {
            return pteros_lab::worker::main(words.into_iter().skip(2));
        }
        Some(pteros_testbed::relay::TASK) => {
            let rest = words.get(2..).unwrap_or_default();
            return match pteros_testbed::relay::run(rest) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => report(false, &error, FAILED),
            };
        }
        Some(pteros_testbed::network::INSIDE_TASK) => {
            let rest = words.get(2..).unwrap_or_default();
            return match pteros_testbed::network::run_inside(rest) {
                Ok(_) => ExitCode::SUCCESS,
                Err(error) => report(false, &error, FAILED),
            };
        }
        _ => {}
    }
    let json = words.iter().any(|word| word == "--json");
    // What stands behind `run` and `trace record` is for another program, which may
    // know more.
    let noun = words.iter().skip(1).find(|word| !word.starts_with('-'));
    let parsed = match noun.is_some_and(|noun| noun == "run" || noun == "trace") {
        true => Ok((Arguments::default(), words)),
        false => Arguments::parse(words),
    };
    let (arguments, rest) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return report(json, &error.into(), USAGE),
    };
    let command_line = match CommandLine::read(rest) {
        Ok(parsed) => parsed,
        Err(error) if json && error.use_stderr() => {
            let said = error.to_string();
            let said = said.trim_start_matches("error: ").to_string();
            return report(json, &anyhow::anyhow!(said), USAGE);
        }
        Err(error) => error.exit(),
    };
    let console = Console {
        json: command_line.global.json,
    };
    let shared = Shared {
        console,
        interface_folders: command_line.global.interfaces,
        arguments,
        dds_names: false,
    };
    match log_line::install(&shared).and_then(|()| command_line.noun.run(&shared)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if reader_left(&error) => ExitCode::SUCCESS,
        Err(error) if error.is::<outcome::Unmatched>() || error.is::<outcome::Failed>() => {
            ExitCode::from(FAILED)
        }
        Err(error) if error.is::<outcome::Interrupted>() => ExitCode::from(INTERRUPTED),
        Err(error) => report(console.json, &error, FAILED),
    }
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// What shells give for a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Says what went wrong in the form asked for.
fn report(json: bool, error: &anyhow::Error, code: u8) -> ExitCode {
    let mut stderr = anstream::stderr().lock();
    // Nobody is left to tell if standard error is closed too.
    let _ = if json {
        writeln!(stderr, "{}", serde_json::json!({ "error": text(error) }))
    } else {
        writeln!(stderr, "\x1b[1;31merror:\x1b[0m {}", text(error))
    };
    ExitCode::from(code)
}

/// The error and its causes in one line. Some errors quote their cause
/// themselves; then it is not said again.
fn text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text.trim().to_string()
}

/// Whether the error is only that nobody reads standard output any more.
fn reader_left(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}
