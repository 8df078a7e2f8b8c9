//! The `pteros` command.
//!
//! `main` removes `--ros-args`, lets `clap` parse the rest and runs the verb.
//! Errors become one line on standard error and an exit code: 0 success, 1 failure,
//! 2 invalid command line. A closed pipe (`| head`) is not an error.

#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "real time and environment")]

mod action;
mod arguments;
mod bag;
mod bridge;
#[cfg(feature = "nodes")]
mod built_in_node;
#[cfg(not(feature = "nodes"))]
#[path = "without_nodes.rs"]
mod built_in_node;
mod cli_context;
#[cfg(all(test, feature = "full"))]
mod command_table;
mod completion;
mod component;
mod console;
mod daemon;
mod dds_flags;
mod demo;
mod doctor;
mod durability_service_flags;
mod exit_errors;
mod interface;
mod lab;
mod launch;
mod lifecycle;
mod log_line;
#[cfg(feature = "man")]
mod man;
mod misspelt;
mod multicast;
mod network_paths;
mod new;
mod node;
mod pace;
mod param;
mod pkg;
mod plug_in;
mod python_program;
mod python_repr;
mod qos_flags;
mod remote_types;
mod rmw;
mod ros2_installation;
mod router;
mod run;
#[cfg(feature = "security")]
mod security;
#[cfg(not(feature = "security"))]
#[path = "without_security.rs"]
mod security;
mod server_type;
mod service;
mod session;
mod sim_time;
mod store;
mod tf;
mod topic;
mod trace;
mod value_parsers;
mod view;

use crate::arguments::CommandLine;
use crate::cli_context::CliContext;
use crate::console::Console;
use pteros::args::Arguments;
use pteros::log::{escape_json, escape_lines};
use pteros::msg::suggest;
use pteros_launch::run::{WATCHDOG_ARGUMENT, run_watchdog};
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Paths need not be UTF-8.
    let words: Vec<OsString> = std::env::args_os().collect();
    if let [_, word, launch_id] = words.as_slice()
        && word == WATCHDOG_ARGUMENT
    {
        run_watchdog(&launch_id.to_string_lossy(), std::io::stdin());
        return ExitCode::SUCCESS;
    }
    completion::answer_shell();
    let json = words.iter().any(|word| word == "--json");
    if let Err(error) = pteros_net::report_file_size_errors() {
        return report(json, &error.into(), FAILED);
    }
    // The arguments after `run`, `lab` and `trace record` are for another program, so
    // they are not checked here.
    let of_others = ["run", "lab", "trace"];
    let noun = words.iter().skip(1).find(|word| !arguments::is_flag(word));
    let parsed = if noun.is_some_and(|noun| of_others.iter().any(|other| noun == other)) {
        Ok((Arguments::default(), words))
    } else {
        Arguments::parse_os(words)
    };
    let (mut arguments, rest) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return report(json, &error.into(), USAGE),
    };
    let command_line = match CommandLine::read(rest) {
        Ok(parsed) => parsed,
        Err(error) if json && error.use_stderr() => {
            let message = error.to_string();
            let message = message.trim_start_matches("error: ").to_string();
            return report(json, &anyhow::anyhow!(message), USAGE);
        }
        Err(error) => error.exit(),
    };
    if let Some(level) = command_line.noun.log_level() {
        arguments.log.level = Some(level);
    }
    let console = Console {
        json: command_line.global.json,
    };
    let cli = CliContext {
        console,
        interface_folders: command_line.global.interfaces,
        arguments,
        dds_names: false,
        include_hidden: false,
    };
    match log_line::install(&cli).and_then(|()| command_line.noun.run(&cli)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error)
            if error.is::<exit_errors::EndpointsUnmatched>()
                || error.is::<exit_errors::Failed>() =>
        {
            ExitCode::from(FAILED)
        }
        Err(error) => match error.downcast_ref::<exit_errors::Interrupted>() {
            Some(interrupted) => ExitCode::from(interrupted.exit_code()),
            None => report(console.json, &error, FAILED),
        },
    }
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// Prints an error in the requested format.
fn report(json: bool, error: &anyhow::Error, code: u8) -> ExitCode {
    let mut stderr = anstream::stderr().lock();
    // Standard error may be closed too.
    let _ = if json {
        writeln!(
            stderr,
            "{}",
            escape_json(&serde_json::json!({ "error": error_text(error) }).to_string())
        )
    } else {
        writeln!(
            stderr,
            "\x1b[1;31merror:\x1b[0m {}",
            escape_lines(&error_text(error))
        )
    };
    ExitCode::from(code)
}

/// The error and its causes in one line. A cause that the error text contains
/// already is not repeated.
fn error_text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    without_codes(text.trim())
}

/// The text without the operating system's error numbers, which say nothing to users.
fn without_codes(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(')') {
            Some((number, rest)) if number.bytes().all(|byte| byte.is_ascii_digit()) => out += rest,
            _ => {
                out += " (os error ";
                out += part;
            }
        }
    }
    out
}

/// Whether the error is a closed standard output.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_numbers_of_the_operating_system_are_left_out() {
        assert_eq!(
            without_codes("a: No such file (os error 2); b: denied (os error 13)"),
            "a: No such file; b: denied"
        );
        assert_eq!(without_codes("x (os error ?) y"), "x (os error ?) y");
    }
}
