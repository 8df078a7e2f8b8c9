//! Execution of a launch plan. Only this module of the crate starts processes,
//! reads clocks and writes files.
#![allow(
    clippy::disallowed_methods,
    reason = "a launch runs in real time; its decisions are in `launch_state_machine`, which runs on any clock"
)]

mod child;
mod files;
mod launch_guard;
mod launch_node;
pub(crate) mod log_folder;
mod orphan_cleanup;
mod output_lines;
mod process_groups;
mod screen;
mod supervisor;
mod watchdog;

pub use launch_guard::LaunchGuard;
pub use log_folder::LogFolder;
pub use output_lines::OutputLines;
pub use process_groups::own_process_group;
pub use screen::{Screen, ScreenOptions};
pub use supervisor::{LaunchOutcome, RunError, RunOptions, Supervisor};
pub use watchdog::{WATCHDOG_ARGUMENT, run_watchdog};
