//! `pteros component container`.

use super::program::container_program;
use crate::cli_context::CliContext;
use crate::value_parsers::{positive_count, positive_seconds};
use anyhow::{Context as _, Error, Result};
use clap::{Args, ValueEnum};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Arguments of `component container`.
#[derive(Debug, Args)]
pub struct Container {
    #[command(flatten)]
    pub flags: ContainerFlags,
}

/// Options of a container.
#[derive(Debug, Args)]
pub struct ContainerFlags {
    /// Which threads run the callbacks of components
    #[arg(long, value_enum, default_value = "single")]
    executor: ExecutorChoice,
    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "N", value_parser = positive_count)]
    threads: Option<usize>,
    /// Timeout of a constructor in seconds [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = positive_seconds)]
    load_timeout: Option<Duration>,
    /// The container program [default: pteros-container beside the component libraries]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Executor of a container.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExecutorChoice {
    /// One thread for all components
    Single,
    /// Several threads for all components
    Multi,
    /// A thread for each component
    Isolated,
}

impl Container {
    /// Replaces this process by the container.
    pub fn run(self, _: &CliContext) -> Result<()> {
        self.flags.become_container(&[])
    }
}

impl ContainerFlags {
    /// Replaces this process by the container program with its flags, `more`
    /// arguments and the `--ros-args` of this command. Returns only on error.
    pub fn become_container(self, more: &[String]) -> Result<()> {
        let mut command = Command::new(container_program(self.program)?);
        let executor = match self.executor {
            ExecutorChoice::Single => "single",
            ExecutorChoice::Multi => "multi",
            ExecutorChoice::Isolated => "isolated",
        };
        command.args(["--executor", executor]);
        if let Some(threads) = self.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        if let Some(time) = self.load_timeout {
            command.args(["--load-timeout", &time.as_secs_f64().to_string()]);
        }
        let error = command.args(more).args(ros_arguments()).exec();
        let program = command.get_program().to_string_lossy().into_owned();
        Err(Error::new(error)).with_context(|| format!("start {program}"))
    }
}

/// The arguments of this command from `--ros-args` on, for the container.
fn ros_arguments() -> Vec<std::ffi::OsString> {
    let words = std::env::args_os().skip(1);
    words.skip_while(|word| word != "--ros-args").collect()
}
