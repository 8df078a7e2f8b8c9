//! What processes of a launch have left behind, however it was detached: every
//! process that has the launch's mark in its environment, which children inherit.
//!
//! Process groups alone would miss whoever calls `setsid`.

use std::fs;
use std::io::Read;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::conductor::Stop;

/// The environment variable with the marks of the launches that a process is of, the
/// outer ones first, apart by colons.
pub const MARK_VARIABLE: &str = "PTEROS_LAUNCH";

/// The largest environment looked at.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// The processes with that mark, this one left out.
pub fn find(mark: &str) -> Vec<Pid> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    numbers
        .filter(|number| *number != own && has_mark(*number, mark))
        .filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?))
        .collect()
}

/// Sends a signal to each, and says how many there are.
pub fn signal(mark: &str, stop: Option<Stop>) -> usize {
    let found = find(mark);
    if let Some(stop) = stop {
        for pid in &found {
            // Between look and signal a number may come to another process: the
            // descriptor holds on to the one that is looked at once more.
            let Ok(descriptor) = pidfd_open(*pid, PidfdFlags::empty()) else {
                continue;
            };
            let number = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0);
            if has_mark(number, mark) {
                // It may have ended meanwhile.
                let _ = pidfd_send_signal(&descriptor, signal_of(stop));
            }
        }
    }
    found.len()
}

/// The kernel's number.
pub fn signal_of(stop: Stop) -> Signal {
    match stop {
        Stop::Interrupt => Signal::INT,
        Stop::Terminate => Signal::TERM,
        Stop::Kill => Signal::KILL,
    }
}

/// Whether a process has the mark; one that is gone, of others or a zombie has none.
fn has_mark(number: u32, mark: &str) -> bool {
    let Ok(file) = fs::File::open(format!("/proc/{number}/environ")) else {
        return false;
    };
    let mut bytes = Vec::new();
    if file
        .take(ENVIRONMENT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .is_err()
    {
        return false;
    }
    let start = format!("{MARK_VARIABLE}=");
    let mut variables = bytes.split(|byte| *byte == 0);
    let marks = variables.find_map(|one| one.strip_prefix(start.as_bytes()));
    marks.is_some_and(|marks| {
        let mut marks = marks.split(|byte| *byte == b':');
        marks.any(|one| one == mark.as_bytes())
    })
}
