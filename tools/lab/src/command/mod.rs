//! Command line of `pteros-lab`: the verbs, errors and exit codes. `pteros lab …` starts this program with the same arguments.

mod compare;
mod console;
mod list;
mod report;
mod run;
mod setting;
mod topology;

use clap::{Parser, Subcommand};
use console::Console;
use setting::{Ending, Setting};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Repeat published ROS 2 measurements, with other stacks for comparison
#[derive(Debug, Parser)]
#[command(
    name = "pteros-lab",
    version,
    propagate_version = true,
    arg_required_else_help = true
)]
pub struct CommandLine {
    /// Print JSON: one document per verb
    #[arg(long, global = true, help_heading = "Everywhere")]
    json: bool,
    /// Folder with further interface definitions (package/msg/Name.msg …); may be repeated
    #[arg(long, global = true, value_name = "DIR", help_heading = "Everywhere")]
    interfaces: Vec<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List the experiments
    List(list::List),
    /// Measure experiments beside other stacks, and report
    Run(run::Run),
    /// Write the report of a run again, and print its summary
    Report(report::Report),
    /// Show what became better or worse between two runs; exit code 1 if anything
    /// became worse
    Compare(compare::Compare),
    /// Run a graph of nodes from ros2-performance's JSON files, and measure it
    #[command(arg_required_else_help = true)]
    Topology(topology::TopologyVerb),
}

const FAILED: u8 = 1;
const USAGE: u8 = 2;
/// The exit code that shells use after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Parses the words and runs the verb. An error becomes one line on standard error
/// and an exit code. A closed pipe (`| head`) is not an error.
pub fn main(words: Vec<String>) -> ExitCode {
    let json = words.iter().any(|word| word == "--json");
    let CommandLine {
        json,
        interfaces,
        verb,
    } = match CommandLine::try_parse_from(words) {
        Ok(parsed) => parsed,
        Err(error) if json && error.use_stderr() => {
            let text = error.to_string();
            return Console { json }.error(text.trim_start_matches("error: "), USAGE);
        }
        Err(error) => error.exit(),
    };
    let setting = Setting {
        console: Console { json },
        interface_folders: interfaces,
    };
    let ended = match verb {
        Verb::List(verb) => verb.run(&setting),
        Verb::Run(verb) => verb.run(&setting),
        Verb::Report(verb) => verb.run(&setting),
        Verb::Compare(verb) => verb.run(&setting),
        Verb::Topology(verb) => verb.run(&setting),
    };
    match ended {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Failed) => ExitCode::from(FAILED),
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => setting.console.error(&error_text(&error), FAILED),
    }
}

/// The error and its causes in one line. A cause that the error text contains
/// already is not repeated.
fn error_text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Whether the error is a closed standard output.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    })
}
