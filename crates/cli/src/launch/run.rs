//! A plan, run in the foreground.

use crate::outcome::Failed;
use crate::shared::Shared;
use anyhow::{Context as _, Result};
use pteros_launch::run::{LogFolder, RunOptions, Screen, ScreenOptions, Supervisor};
use pteros_launch::{Plan, Request};

/// Runs until all processes have ended, or Ctrl-C.
pub fn run(shared: &Shared, plan: &Plan, request: Request, debug: bool) -> Result<()> {
    let console = shared.console;
    let stdout = anstream::stdout();
    let colour = console.is_terminal() || forced_colour(&request);
    let screen = ScreenOptions {
        colour,
        json: console.json,
        debug,
        status: console.is_terminal(),
    };
    let guard = std::env::current_exe().context("find this program, to guard the launch")?;
    let options = RunOptions {
        guard: Some(guard),
        log_folder: LogFolder::at(request.log_folder),
        screen: Screen::new(screen, Box::new(stdout)),
    };
    let outcome = Supervisor::new(plan, options)?.run()?;
    if outcome.left > 0 {
        console.remark(format!(
            "{} processes of this launch could not be ended; look for them with: ps -ef",
            outcome.left
        ));
    }
    match outcome.is_failed || outcome.left > 0 {
        true => Err(Failed.into()),
        false => Ok(()),
    }
}

/// As rcutils' console has it.
fn forced_colour(request: &Request) -> bool {
    let set = request.environment.get("RCUTILS_COLORIZED_OUTPUT");
    set.is_some_and(|value| value == "1")
}
