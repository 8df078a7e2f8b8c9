//! Container program, started by `pteros component container`.
#![allow(clippy::disallowed_methods, reason = "reads its command line")]

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use pteros::args::Arguments;
use pteros::component::ComponentClass;
use pteros::interfaces::composition_interfaces::srv::LoadNodeRequest;
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::log::{LogSettings, Severity};
use pteros::parameter::ParameterText;
use pteros::{Context, ContextOptions};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::container::{Container, ContainerOptions, ExecutorKind};
use crate::index::{BUILT_IN_SWITCH, are_built_in_nodes_on};
use crate::log_format::RosLogFormat;

/// Name of the container program. It is searched beside the component libraries.
pub const PROGRAM: &str = "pteros-container";

const USAGE: &str = "\
usage: pteros-container [--executor single|multi|isolated] [--threads N] [--load-timeout SECONDS]
                        [--load PACKAGE CLASS [-n NAME] [--node-namespace NAMESPACE] [-r RULE]
                         [-p NAME:=VALUE] [-e NAME:=VALUE] [--log-level LEVEL]] …
                        [--ros-args …]";

/// Runs a container with the options of the command line until Ctrl-C. This is the
/// whole `main` of a container program. The program must be linked with
/// `pteros-dylib`.
///
/// `--load PACKAGE CLASS` loads a component at the start, with the flags that
/// follow it. If that fails, the program fails.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     pteros_container::main()
/// }
/// ```
pub fn main() -> ExitCode {
    main_with(&[])
}

/// [`main`] of a program that has component classes for packages which are not installed.
/// The variable [`BUILT_IN_SWITCH`] leaves them out.
pub fn main_with(substitutes: &'static [ComponentClass]) -> ExitCode {
    let switch = std::env::var_os(BUILT_IN_SWITCH);
    let is_on = are_built_in_nodes_on(switch.as_deref());
    match run(if is_on { substitutes } else { &[] }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(substitutes: &'static [ComponentClass]) -> Result<(), Box<dyn Error>> {
    let (arguments, rest) = Arguments::from_process()?;
    let Some(mut container_arguments) = ContainerArguments::read(&rest)? else {
        println!("{USAGE}");
        return Ok(());
    };
    container_arguments.options.substitutes = substitutes;
    install_log(&arguments);
    let context = Context::with_options(ContextOptions {
        arguments,
        use_environment: true,
        ..ContextOptions::default()
    })?;
    let container = Container::new(&context, container_arguments.options)?;
    for request in &container_arguments.load {
        container.load(request)?;
    }
    tracing::info!(
        "container {} is ready",
        container.node().fully_qualified_name()
    );
    Ok(container.spin()?)
}

/// The parsed command line.
#[derive(Default)]
struct ContainerArguments {
    options: ContainerOptions,
    threads: Option<usize>,
    load: Vec<LoadNodeRequest>,
}

impl ContainerArguments {
    /// Parses the command line; `None` if it asks for help.
    fn read(words: &[String]) -> Result<Option<Self>, String> {
        let mut arguments = Self::default();
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            let mut value = || {
                let value = words.next();
                value.ok_or_else(|| format!("{flag} needs a value after it\n{USAGE}"))
            };
            match flag.as_str() {
                "--executor" => arguments.options.executor = value()?.parse()?,
                "--threads" => arguments.threads = Some(count(flag, value()?)?),
                "--load-timeout" => arguments.options.load_timeout = seconds(flag, value()?)?,
                "--load" => arguments.load.push(LoadNodeRequest {
                    package_name: value()?.clone(),
                    plugin_name: value()?.clone(),
                    ..LoadNodeRequest::default()
                }),
                "--help" | "-h" => return Ok(None),
                _ => arguments.component_flag(flag, value)?,
            }
        }
        match (&mut arguments.options.executor, arguments.threads) {
            (_, None) => {}
            (ExecutorKind::Multi(number), Some(threads)) => *number = threads,
            (_, Some(threads)) => {
                return Err(format!(
                    "--threads {threads}: only --executor multi has a number of threads; add it, or leave --threads out"
                ));
            }
        }
        Ok(Some(arguments))
    }

    /// Parses a flag of the component that the last `--load` named.
    fn component_flag<'w>(
        &mut self,
        flag: &str,
        value: impl FnOnce() -> Result<&'w String, String>,
    ) -> Result<(), String> {
        let known = ["-n", "--node-namespace", "-r", "-p", "-e", "--log-level"];
        if !known.contains(&flag) {
            return Err(format!("unknown flag {flag}\n{USAGE}"));
        }
        let Some(request) = self.load.last_mut() else {
            return Err(format!(
                "{flag} applies to a component; write --load PACKAGE CLASS before it"
            ));
        };
        let value = value()?;
        match flag {
            "-n" => request.node_name.clone_from(value),
            "--node-namespace" => request.node_namespace.clone_from(value),
            "-r" => request.remap_rules.push(value.clone()),
            "-p" => request.parameters.push(assignment(flag, value)?),
            "-e" => request.extra_arguments.push(assignment(flag, value)?),
            _ => request.log_level = value.parse::<Severity>().map_err(|e| e.to_string())? as u8,
        }
        Ok(())
    }
}

fn assignment(flag: &str, text: &str) -> Result<Parameter, String> {
    let parts = text.split_once(":=").filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("{flag} {text}: write NAME:=VALUE"))?;
    let value = ParameterText::lenient(value).value().clone();
    Ok(Parameter {
        name: name.into(),
        value: value.into_message(),
    })
}

fn seconds(flag: &str, text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| *seconds > 0.0);
    let timeout = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    timeout.ok_or_else(|| {
        format!("{flag} {text}: not a number of seconds above zero; write {flag} 10")
    })
}

fn count(flag: &str, text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("{flag} {text}: not a number above zero; write {flag} 4"))
}

/// Installs the log output with the level of `--log-level`.
fn install_log(arguments: &Arguments) {
    let filter = log_filter(&arguments.log);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .event_format(RosLogFormat);
    // This fails if another subscriber is installed already. That one is kept.
    let _ = tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .try_init();
}

/// Lines from the level of the options on. Of Zenoh it has errors alone, unless a level is
/// asked for: what else Zenoh says at its start is usual.
fn log_filter(options: &LogSettings) -> Targets {
    let mut directives = options.filter(Severity::Info);
    if options.level.is_none() {
        directives += ",zenoh=error";
    }
    // Directives that Pteros generates are valid.
    directives.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn only_errors_of_zenoh_are_printed_unless_a_level_is_asked_for() {
        let mut options = LogSettings::default();
        let prints = |options: &LogSettings, target: &str, level: Level| {
            log_filter(options).would_enable(target, &level)
        };
        assert!(prints(&options, "pteros_container::program", Level::INFO));
        assert!(!prints(&options, "zenoh::net::runtime", Level::INFO));
        assert!(prints(&options, "zenoh::net::runtime", Level::ERROR));
        options.level = Some(Severity::Info);
        assert!(prints(&options, "zenoh::net::runtime", Level::INFO));
    }
}
