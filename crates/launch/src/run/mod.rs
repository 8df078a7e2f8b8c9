//! A plan, run: the one place of this crate that starts processes, reads clocks and
//! writes files.
#![allow(
    clippy::disallowed_methods,
    reason = "a launch runs in real time; what it decides is in `conductor`, on any time"
)]

mod child;
mod files;
mod guard;
pub(crate) mod log_folder;
mod remnants;
mod ros;
mod screen;
mod supervisor;

pub use guard::{GUARD_WORD, guard};
pub use log_folder::LogFolder;
pub use screen::{Screen, ScreenOptions};
pub use supervisor::{Outcome, RunError, RunOptions, Supervisor};
