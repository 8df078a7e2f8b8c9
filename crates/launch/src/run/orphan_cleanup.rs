//! Orphan clean-up: finds and signals the descendants of ended processes.
//!
//! A process belongs to a launch if its environment holds the launch id, which
//! children inherit. Process groups alone would miss processes that call `setsid`.

use std::fs;
use std::io::Read;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::launch_state_machine::StopSignal;

/// Environment variable with the ids of the launches that a process belongs to, the
/// outer launches first, separated by colons.
pub const LAUNCH_ID_VARIABLE: &str = "PTEROS_LAUNCH";

/// The largest environment that is read.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// Pause before a second scan, and the largest number of scans. A process within
/// `exec` has no environment for a moment.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
const SCANS_MAX: usize = 20;

/// The processes with this launch id, except this process. Blocks for at most 0.1
/// s, and only if it finds none while a process has no environment yet.
pub fn find_orphans(launch_id: &str) -> Vec<Pid> {
    for _ in 1..SCANS_MAX {
        let (found, is_sure) = scan_processes(launch_id);
        if is_sure || !found.is_empty() {
            return found;
        }
        std::thread::sleep(RETRY_PAUSE);
    }
    scan_processes(launch_id).0
}

/// The processes found, and whether no other process can be a member.
fn scan_processes(launch_id: &str) -> (Vec<Pid>, bool) {
    let own = std::process::id();
    let mut is_sure = true;
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let numbers = entries.filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    let found = numbers.filter(|number| {
        let member = (*number != own).then(|| membership(*number, launch_id));
        is_sure &= member != Some(LaunchMembership::Unknown);
        member == Some(LaunchMembership::Yes)
    });
    let found = found.filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?));
    (found.collect(), is_sure)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LaunchMembership {
    Yes,
    No,
    /// The process has no environment yet.
    Unknown,
}

/// Sends a signal to each orphan and returns their number.
pub fn signal_orphans(launch_id: &str, stop: Option<StopSignal>) -> usize {
    let found = find_orphans(launch_id);
    if let Some(stop) = stop {
        for pid in &found {
            // The process id may be reused between scan and signal. The pidfd pins
            // the process, whose membership is checked again.
            let Ok(descriptor) = pidfd_open(*pid, PidfdFlags::empty()) else {
                continue;
            };
            let number = u32::try_from(pid.as_raw_nonzero().get()).unwrap_or(0);
            if membership(number, launch_id) == LaunchMembership::Yes {
                // The process may have ended meanwhile.
                let _ = pidfd_send_signal(&descriptor, signal_of(stop));
            }
        }
    }
    found.len()
}

/// The signal as the kernel numbers it.
pub fn signal_of(stop: StopSignal) -> Signal {
    match stop {
        StopSignal::Interrupt => Signal::INT,
        StopSignal::Terminate => Signal::TERM,
        StopSignal::Kill => Signal::KILL,
    }
}

/// Whether a process belongs to the launch. Ended processes, zombies and processes
/// of other users do not.
fn membership(number: u32, launch_id: &str) -> LaunchMembership {
    let Ok(file) = fs::File::open(format!("/proc/{number}/environ")) else {
        return LaunchMembership::No;
    };
    let mut bytes = Vec::new();
    if file
        .take(ENVIRONMENT_BYTES_MAX)
        .read_to_end(&mut bytes)
        .is_err()
    {
        return LaunchMembership::No;
    }
    if bytes.is_empty() {
        // Zombies and kernel threads have no executable either.
        return match fs::read_link(format!("/proc/{number}/exe")) {
            Ok(_) => LaunchMembership::Unknown,
            Err(_) => LaunchMembership::No,
        };
    }
    let start = format!("{LAUNCH_ID_VARIABLE}=");
    let mut variables = bytes.split(|byte| *byte == 0);
    let launch_ids = variables.find_map(|one| one.strip_prefix(start.as_bytes()));
    let is_ours = launch_ids.is_some_and(|launch_ids| {
        let mut launch_ids = launch_ids.split(|byte| *byte == b':');
        launch_ids.any(|one| one == launch_id.as_bytes())
    });
    if is_ours {
        LaunchMembership::Yes
    } else {
        LaunchMembership::No
    }
}
