//! The program that is a container. `pteros component container` starts it.
#![allow(
    clippy::disallowed_methods,
    reason = "a program reads its command line and writes for people"
)]

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use pteros::args::Arguments;
use pteros::log::Severity;
use pteros::{Context, ContextOptions};
use tracing_subscriber::EnvFilter;

use crate::container::{Container, ContainerOptions, ExecutorKind};

/// What the program is called, so that it is found beside its libraries.
pub const PROGRAM: &str = "pteros-container";

const USAGE: &str = "\
usage: pteros-container [--executor single|multi|isolated] [--threads N] [--load-timeout SECONDS]
                        [--ros-args …]";

/// A container as the command line says, until Ctrl-C: the whole of a
/// container program's `main`. The program must be linked with `pteros-dylib`.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     pteros_component::main()
/// }
/// ```
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let (arguments, rest) = Arguments::from_process()?;
    let Some(options) = read(&rest)? else {
        println!("{USAGE}");
        return Ok(());
    };
    show_log(&arguments);
    let context = Context::with_options(ContextOptions {
        arguments,
        use_environment: true,
        ..ContextOptions::default()
    })?;
    let container = Container::new(&context, options)?;
    Ok(container.spin()?)
}

/// The options; `None` if only help is wanted.
fn read(words: &[String]) -> Result<Option<ContainerOptions>, String> {
    let mut options = ContainerOptions::default();
    let mut threads = None;
    let mut words = words.iter();
    while let Some(flag) = words.next() {
        let mut value = || {
            let value = words.next();
            value.ok_or_else(|| format!("{flag} needs a value after it\n{USAGE}"))
        };
        match flag.as_str() {
            "--executor" => options.executor = value()?.parse()?,
            "--threads" => threads = Some(count(flag, value()?)?),
            "--load-timeout" => {
                let text = value()?;
                let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
                let timeout = seconds.and_then(|s| Duration::try_from_secs_f64(s).ok());
                options.load_timeout = timeout.ok_or_else(|| {
                    format!("{flag} {text}: no number of seconds above zero; write {flag} 10")
                })?;
            }
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("{flag} is not known\n{USAGE}")),
        }
    }
    match (&mut options.executor, threads) {
        (_, None) => {}
        (ExecutorKind::Multi(number), Some(threads)) => *number = threads,
        (_, Some(threads)) => {
            return Err(format!(
                "--threads {threads}: only --executor multi has so many; add it, or leave --threads out"
            ));
        }
    }
    Ok(Some(options))
}

fn count(flag: &str, text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{flag} {text}: no number above zero; write {flag} 4"))
}

fn show_log(arguments: &Arguments) {
    let filter = EnvFilter::new(arguments.log.filter(Severity::Info));
    // Only fails where a subscriber is installed already; then that one stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
