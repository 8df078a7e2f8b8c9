//! `pteros-lab`: measures Pteros beside other stacks. The command's noun `lab`
//! starts it.
//!
//! It is a program of its own, so that building the command compiles no
//! experiments, reports or packet captures.
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "reads its command line")]

mod command;

use pteros_lab::testbed::{frame_relay, network};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    // Tasks that a run starts with this binary.
    let rest = words.get(2..).unwrap_or_default();
    let done = match words.get(1).map(String::as_str) {
        Some(frame_relay::TASK) => frame_relay::run(rest),
        Some(network::INSIDE_TASK) => network::run_inside(rest).map(drop),
        _ => return command::main(words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
