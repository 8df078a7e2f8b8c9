//! Steps at which a test stops this process.
//!
//! A process that called [`stop_at`] with the name of a step stops itself there with
//! SIGSTOP, as if the scheduler had taken the processor away for good. The test then
//! continues or kills it.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use crate::table::{BugKind, table};

/// The place in the table of the step where this process stops.
static STEP: AtomicUsize = AtomicUsize::new(usize::MAX);
static PASSES: AtomicU32 = AtomicU32::new(0);

/// Stops this process when it comes to the step `name` after `passes` earlier times.
/// Returns false for an unknown step.
pub fn stop_at(name: &str, passes: u32) -> bool {
    let is_step = |bug: &crate::SeededBug| bug.kind == BugKind::Stop && bug.name == name;
    let place = table().iter().position(is_step);
    PASSES.store(passes, Ordering::SeqCst);
    STEP.store(place.unwrap_or(usize::MAX), Ordering::SeqCst);
    place.is_some()
}

/// Stops the process if this is the step. Edits of the table call it.
pub fn stop(name: &str) {
    let place = STEP.load(Ordering::SeqCst);
    if place == usize::MAX || table().get(place).is_none_or(|bug| bug.name != name) {
        return;
    }
    let passes = PASSES.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1));
    if passes.is_err() {
        let _ = kill_process(getpid(), Signal::STOP);
        // The signal may stop another thread first; this one must not continue meanwhile.
        let a_second = rustix::thread::Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let _ = rustix::thread::nanosleep(&a_second);
    }
}
