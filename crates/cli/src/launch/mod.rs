//! `pteros launch`.

mod python;
mod request;
mod run;
mod show;

pub use request::{launch_arguments, launch_files, packages};

use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use pteros::msg::regular_file;
use pteros_launch::{LaunchPlan, LaunchRequest};

/// Arguments of `launch`.
#[derive(Debug, Args)]
pub struct Launch {
    #[command(flatten)]
    pub target: request::LaunchTarget,
    /// Check the file and everything it refers to; start nothing
    #[arg(long, conflicts_with_all = ["dry_run", "show_args", "print"])]
    check: bool,
    /// Print what would be started; start nothing
    #[arg(long, conflicts_with_all = ["show_args", "print"])]
    dry_run: bool,
    /// Print the arguments of the file
    #[arg(
        short = 's',
        long,
        visible_alias = "show-arguments",
        conflicts_with = "print"
    )]
    show_args: bool,
    /// Same as --dry-run
    #[arg(short = 'p', long, visible_alias = "print-description")]
    print: bool,
    /// Print debug messages: signals, log_debug
    #[arg(short = 'd', long)]
    debug: bool,
    /// Accepted for compatibility with ros2: the command never asks the user
    #[arg(short = 'n', long)]
    noninteractive: bool,
    /// Show the output of all processes, whatever the file says
    #[arg(short = 'a', long)]
    show_all_subprocesses_output: bool,
    /// Command prefix of all processes (e.g. 'gdb -ex run --args')
    #[arg(long, value_name = "COMMAND")]
    launch_prefix: Option<String>,
    /// Prefix only programs whose names begin with this regular expression
    #[arg(long, value_name = "TEXT", requires = "launch_prefix")]
    launch_prefix_filter: Option<String>,
}

impl Launch {
    /// Runs a launch file, or prints what it would do.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let request = self.request()?;
        if request::is_python(&request.file) {
            return self.run_python(cli, &request);
        }
        let plan = match LaunchPlan::read(&request) {
            // A file that it includes is for Python.
            Ok(plan) if !plan.left_out.is_empty() => return self.run_python(cli, &request),
            _ if self.show_args => return show::print_arguments(cli, &request),
            Ok(plan) => plan,
            Err(errors) => return show::print_errors(cli, &request, &errors),
        };
        for note in &plan.notes {
            cli.console.note(format!("warning: {note}"));
        }
        if self.check {
            return show::print_checked(cli, &plan);
        }
        if self.dry_run || self.print {
            return show::print_plan(cli, &plan, &request);
        }
        refuse_ros_arguments(cli)?;
        run::run(cli, &plan, request, self.debug)
    }

    /// Hands the whole launch to Python. Returns only on error.
    fn run_python(&self, cli: &CliContext, request: &LaunchRequest) -> Result<()> {
        refuse_ros_arguments(cli)?;
        let file = request.file.display();
        regular_file::open(&request.file)
            .with_context(|| format!("cannot read launch file {file}"))?;
        let flags = [
            (self.check, "--check"),
            (self.dry_run || self.print, "--dry-run"),
            (self.show_args, "--show-args"),
            (self.debug, "--debug"),
            (self.noninteractive, "--noninteractive"),
            (
                self.show_all_subprocesses_output,
                "--show-all-subprocesses-output",
            ),
            (cli.console.json, "--json"),
        ];
        let flags = flags.into_iter();
        let flags = flags.filter_map(|(is_given, flag)| is_given.then_some(flag));
        python::run(request, &flags.collect::<Vec<_>>())
    }
}

fn refuse_ros_arguments(cli: &CliContext) -> Result<()> {
    if cli.arguments != pteros::args::Arguments::default() {
        bail!(
            "--ros-args are for nodes; write ros_args in the launch file, or set_parameter and set_remap"
        );
    }
    Ok(())
}
