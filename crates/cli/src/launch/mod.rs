//! `pteros launch`.

mod request;
mod run;
mod show;

pub use request::packages;

use crate::shared::Shared;
use anyhow::{Result, bail};
use clap::Args;
use pteros_launch::Plan;

/// Arguments of `launch`.
#[derive(Debug, Args)]
pub struct Launch {
    #[command(flatten)]
    pub what: request::What,
    /// Look everything up, say what is wrong, start nothing
    #[arg(long, conflicts_with_all = ["dry_run", "show_args", "print"])]
    check: bool,
    /// Say what would be started, and start nothing
    #[arg(long, conflicts_with_all = ["show_args", "print"])]
    dry_run: bool,
    /// Say which arguments the file has
    #[arg(
        short = 's',
        long,
        visible_alias = "show-arguments",
        conflicts_with = "print"
    )]
    show_args: bool,
    /// As --dry-run
    #[arg(short = 'p', long, visible_alias = "print-description")]
    print: bool,
    /// Say more: signals, log_debug
    #[arg(short = 'd', long)]
    debug: bool,
    /// Accepted for the sake of ros2 scripts: nothing here asks the user
    #[arg(short = 'n', long)]
    noninteractive: bool,
    /// Show the output of all processes, whatever the file says
    #[arg(short = 'a', long)]
    show_all_subprocesses_output: bool,
    /// Words before the commands of all processes (e.g. 'gdb -ex run --args')
    #[arg(long, value_name = "COMMAND")]
    launch_prefix: Option<String>,
    /// Only before programs whose names have this in them
    #[arg(long, value_name = "TEXT", requires = "launch_prefix")]
    launch_prefix_filter: Option<String>,
}

impl Launch {
    /// Runs a launch file, or says what it would do.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let request = self.request()?;
        if self.show_args {
            return show::arguments(shared, &request);
        }
        let plan = match Plan::read(&request) {
            Ok(plan) => plan,
            Err(faults) => return show::faults(shared, &request, &faults),
        };
        for remark in &plan.remarks {
            shared.console.remark(format!("warning: {remark}"));
        }
        if self.check {
            return show::checked(shared, &plan);
        }
        if self.dry_run || self.print {
            return show::plan(shared, &plan, &request);
        }
        if shared.arguments != pteros::args::Arguments::default() {
            bail!(
                "--ros-args are for nodes; write ros_args in the launch file, or set_parameter and set_remap"
            );
        }
        run::run(shared, &plan, request, self.debug)
    }
}
