//! Orphan clean-up: finds and signals the descendants of ended processes.
//!
//! A process belongs to a launch if its environment holds the launch id, which
//! children inherit, or if it is in a process group of the launch. Either alone would miss
//! some: processes that call `setsid`, or those that start without an environment.

use std::fs;
use std::io::Read;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::process_groups::{ProcessGroups, process_ids};
use crate::launch_state_machine::{ORPHAN_KILL_TIMEOUT, ORPHAN_TERM_TIMEOUT, StopSignal};

/// Environment variable with the ids of the launches that a process belongs to, the
/// outer launches first, separated by colons.
pub const LAUNCH_ID_VARIABLE: &str = "PTEROS_LAUNCH";

/// The largest environment that is read.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// Pause before a second scan, and the largest number of scans. A process within
/// `exec` has no environment for a moment.
const RETRY_PAUSE: Duration = Duration::from_millis(5);
const SCANS_MAX: usize = 20;
/// Period between two counts of the processes.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// The signals that end orphans, each with the time that they have then.
pub const ORPHAN_ESCALATION: [(StopSignal, Duration); 2] = [
    (StopSignal::Terminate, ORPHAN_TERM_TIMEOUT),
    (StopSignal::Kill, ORPHAN_KILL_TIMEOUT),
];

/// The processes of a launch, except this process.
#[derive(Debug)]
pub struct LaunchProcesses {
    launch_id: String,
    /// The known process groups.
    pub groups: ProcessGroups,
}

impl LaunchProcesses {
    /// The processes with this launch id.
    pub fn new(launch_id: &str) -> Self {
        Self {
            launch_id: launch_id.to_owned(),
            groups: ProcessGroups::default(),
        }
    }

    /// The launch id.
    pub fn launch_id(&self) -> &str {
        &self.launch_id
    }

    /// Their ids. Blocks for at most 0.1 s, and only if it finds none while a process has
    /// no environment yet.
    fn find(&mut self) -> Vec<i32> {
        let mut found = Vec::new();
        for scan in 0..SCANS_MAX {
            if scan > 0 {
                std::thread::sleep(RETRY_PAUSE);
            }
            let is_sure;
            (found, is_sure) = scan_processes(&self.launch_id);
            if is_sure || !found.is_empty() {
                break;
            }
        }
        found.append(&mut self.groups.find());
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Sends a signal to each and returns their number.
    pub fn signal(&mut self, stop: Option<StopSignal>) -> usize {
        let found = self.find();
        if let Some(stop) = stop {
            for number in &found {
                // The process id may be reused between scan and signal. The pidfd pins
                // the process, whose membership is checked again.
                let pid = Pid::from_raw(*number);
                let Some(Ok(pinned)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
                    continue;
                };
                if membership(*number, &self.launch_id) == LaunchMembership::Yes
                    || self.groups.has(*number)
                {
                    // The process may have ended meanwhile.
                    let _ = pidfd_send_signal(&pinned, signal_of(stop));
                }
            }
        }
        found.len()
    }

    /// Ends them and returns how many are left. Blocks for the sum of the times at most.
    pub fn end(&mut self, escalation: &[(StopSignal, Duration)]) -> usize {
        for (stop, timeout) in escalation.iter().copied() {
            let until = Instant::now() + timeout;
            let mut again = Some(stop);
            while Instant::now() < until {
                if self.signal(again) == 0 {
                    return 0;
                }
                // A process forked meanwhile gets SIGKILL at once.
                again = again.filter(|stop| *stop == StopSignal::Kill);
                std::thread::sleep(POLL_PERIOD);
            }
        }
        self.signal(None)
    }
}

/// The processes found, and whether no other process can be a member.
fn scan_processes(launch_id: &str) -> (Vec<i32>, bool) {
    let own = std::process::id();
    let mut is_sure = true;
    let found = process_ids().filter(|number| {
        let is_other = u32::try_from(*number) != Ok(own);
        let member = is_other.then(|| membership(*number, launch_id));
        is_sure &= member != Some(LaunchMembership::Unknown);
        member == Some(LaunchMembership::Yes)
    });
    (found.collect(), is_sure)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum LaunchMembership {
    Yes,
    No,
    /// The process has no environment yet.
    Unknown,
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
fn membership(number: i32, launch_id: &str) -> LaunchMembership {
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
