//! Watchdog process: ends all processes of a launch if the launcher is killed.
//!
//! It holds the read end of a pipe. The kernel closes the other end when the
//! launcher ends, whatever the reason.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::orphan_cleanup;
use crate::launch_state_machine::{ORPHAN_KILL_TIMEOUT, ORPHAN_TERM_TIMEOUT, StopSignal};

/// First argument of a program that runs as watchdog. The second is the launch id.
pub const WATCHDOG_ARGUMENT: &str = "__launch-watchdog";

/// Written by the launcher when the launch has ended properly.
const DONE: &[u8] = b"done";
/// Period between two counts of the processes.
const POLL_PERIOD: Duration = Duration::from_millis(20);

/// Body of the watchdog: waits until the launcher ends or reports the end of the
/// launch. Then it ends all processes of the launch by SIGINT, SIGTERM and SIGKILL
/// within five seconds.
pub fn run_watchdog(launch_id: &str, mut launcher: impl Read) {
    let mut said = Vec::new();
    // A read error is an end of the stream as well.
    let _ = launcher.read_to_end(&mut said);
    if said == DONE {
        return;
    }
    for (stop, timeout) in [
        (StopSignal::Interrupt, Duration::from_secs(1)),
        (StopSignal::Terminate, ORPHAN_TERM_TIMEOUT),
        (StopSignal::Kill, ORPHAN_KILL_TIMEOUT),
    ] {
        let until = Instant::now() + timeout;
        if orphan_cleanup::signal_orphans(launch_id, Some(stop)) == 0 {
            return;
        }
        while Instant::now() < until {
            std::thread::sleep(POLL_PERIOD);
            // A process forked meanwhile gets SIGKILL at once.
            let again = (stop == StopSignal::Kill).then_some(stop);
            if orphan_cleanup::signal_orphans(launch_id, again) == 0 {
                return;
            }
        }
    }
}

/// Handle of the launcher to its watchdog.
pub struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts `program` with the watchdog arguments.
    pub fn start(program: &std::path::Path, launch_id: &str) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args([WATCHDOG_ARGUMENT, launch_id])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal must not reach it.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Ends the watchdog after the launch has ended.
    pub fn finish(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // The watchdog may have been killed.
            let _ = io::Write::write_all(&mut pipe, DONE);
        }
        let _ = self.child.wait();
    }
}
