//! `pteros launch`.

mod request;
mod run;
mod show;

pub use request::packages;

use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;
use pteros_launch::LaunchPlan;

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
    /// Prefix only programs whose names contain this text
    #[arg(long, value_name = "TEXT", requires = "launch_prefix")]
    launch_prefix_filter: Option<String>,
}

impl Launch {
    /// Runs a launch file, or prints what it would do.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let request = self.request()?;
        if self.show_args {
            return show::print_arguments(cli, &request);
        }
        let plan = match LaunchPlan::read(&request) {
            Ok(plan) => plan,
            Err(errors) => return show::print_errors(cli, &request, &errors),
        };
        for note in &plan.notes {
            cli.console.note(format!("warning: {note}"));
        }
        if !plan.left_out.is_empty() && !self.check && !self.dry_run && !self.print {
            bail!(
                "{}\nnothing was started; --check and --dry-run go on with the rest",
                plan.left_out.join("\n")
            );
        }
        for left_out in &plan.left_out {
            cli.console.note(format!("warning: {left_out}"));
        }
        if self.check {
            return show::print_checked(cli, &plan);
        }
        if self.dry_run || self.print {
            return show::print_plan(cli, &plan, &request);
        }
        if cli.arguments != pteros::args::Arguments::default() {
            bail!(
                "--ros-args are for nodes; write ros_args in the launch file, or set_parameter and set_remap"
            );
        }
        run::run(cli, &plan, request, self.debug)
    }
}
