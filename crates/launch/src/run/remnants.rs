//! What processes of a launch have left behind, however it was detached: every
//! process that has the launch's mark in its environment, which children inherit.
//!
//! Process groups alone would miss whoever calls `setsid`.

use std::fs;
use std::io::Read;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::conductor::Stop;

/// The environment variable with the marks of the launches that a process is of, the
/// outer ones first, apart by colons.
pub const MARK_VARIABLE: &str = "PTEROS_LAUNCH";

/// The largest environment looked at.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// A process in the middle of `exec` has no environment for a moment: whoever might be
/// one is looked at again after this, so often at most.
const AGAIN: Duration = Duration::from_millis(5);
const LOOKS_MAX: usize = 20;

/// The processes with that mark, this one left out. Blocks for at most 0.1 s, and only
/// where it finds none and somebody has no environment.
pub fn find(mark: &str) -> Vec<Pid> {
    for _ in 1..LOOKS_MAX {
        let (found, is_sure) = look(mark);
        if is_sure || !found.is_empty() {
            return found;
        }
        std::thread::sleep(AGAIN);
    }
    look(mark).0
}

/// Those found, and whether nobody else may be one.
fn look(mark: &str) -> (Vec<Pid>, bool) {
    let own = std::process::id();
    let mut is_sure = true;
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let found = numbers.filter(|number| {
        let mark = (*number != own).then(|| has_mark(*number, mark));
        is_sure &= mark != Some(Marked::Unclear);
        mark == Some(Marked::Yes)
    });
    let found = found.filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?));
    (found.collect(), is_sure)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Marked {
    Yes,
    No,
    /// It has no environment, or none yet.
    Unclear,
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
            if has_mark(number, mark) == Marked::Yes {
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
fn has_mark(number: u32, mark: &str) -> Marked {
    let Ok(file) = fs::File::open(format!("/proc/{number}/environ")) else {
        return Marked::No;
    };
    let mut bytes = Vec::new();
    if file
        .take(ENVIRONMENT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .is_err()
    {
        return Marked::No;
    }
    if bytes.is_empty() {
        // Zombies and threads of the kernel have no program either.
        return match fs::read_link(format!("/proc/{number}/exe")) {
            Ok(_) => Marked::Unclear,
            Err(_) => Marked::No,
        };
    }
    let start = format!("{MARK_VARIABLE}=");
    let mut variables = bytes.split(|byte| *byte == 0);
    let marks = variables.find_map(|one| one.strip_prefix(start.as_bytes()));
    let is_ours = marks.is_some_and(|marks| {
        let mut marks = marks.split(|byte| *byte == b':');
        marks.any(|one| one == mark.as_bytes())
    });
    if is_ours { Marked::Yes } else { Marked::No }
}
