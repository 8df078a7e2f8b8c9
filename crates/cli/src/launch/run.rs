//! Execution of a launch plan in the foreground.

use crate::cli_context::CliContext;
use crate::exit_errors::Failed;
use anyhow::{Context as _, Result};
use pteros_launch::run::{LogFolder, RunOptions, Screen, ScreenOptions, Supervisor};
use pteros_launch::{LaunchPlan, LaunchRequest};

/// Runs until all processes have ended, or Ctrl-C.
pub fn run(cli: &CliContext, plan: &LaunchPlan, request: LaunchRequest, debug: bool) -> Result<()> {
    let console = cli.console;
    let stdout = anstream::stdout();
    let colour = console.is_terminal() || forced_colour(&request);
    let screen = ScreenOptions {
        colour,
        json: console.json,
        debug,
        status: console.is_terminal(),
    };
    let guard = std::env::current_exe().context("find this program, for the watchdog")?;
    let options = RunOptions {
        watchdog: Some(guard),
        log_folder: LogFolder::at(request.log_folder),
        screen: Screen::new(screen, Box::new(stdout)),
    };
    let outcome = Supervisor::new(plan, options)?.run()?;
    if outcome.orphans > 0 {
        console.note(format!(
            "{} processes of this launch could not be ended; find them with: ps -ef",
            outcome.orphans
        ));
    }
    if outcome.is_failed || outcome.orphans > 0 {
        Err(Failed.into())
    } else {
        Ok(())
    }
}

/// Whether colours are forced, as in rcutils' console.
fn forced_colour(request: &LaunchRequest) -> bool {
    let set = request.environment.get("RCUTILS_COLORIZED_OUTPUT");
    set.is_some_and(|value| value == "1")
}
