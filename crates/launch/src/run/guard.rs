//! A second process that outlives the launcher if that is killed, and then ends all
//! that the launch has started: it holds the reading end of a pipe, and the kernel
//! closes the other end when the launcher goes, however it goes.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::remnants;
use crate::conductor::{SWEEP_KILL, SWEEP_TERM, Stop};

/// The first word behind a program that is to be a guard; the second is the mark.
pub const GUARD_WORD: &str = "__guard-launch";

/// What the launcher writes when there is nothing left to do.
const DONE: &[u8] = b"done";
/// How often it is looked whether all have gone.
const LOOK: Duration = Duration::from_millis(20);

/// The guard's own work: waits until the launcher is gone or done, then ends whatever
/// has the mark, by SIGINT, SIGTERM and SIGKILL, within five seconds.
pub fn guard(mark: &str, mut launcher: impl Read) {
    let mut said = Vec::new();
    // An error is an end as well.
    let _ = launcher.read_to_end(&mut said);
    if said == DONE {
        return;
    }
    for (stop, patience) in [
        (Stop::Interrupt, Duration::from_secs(1)),
        (Stop::Terminate, SWEEP_TERM),
        (Stop::Kill, SWEEP_KILL),
    ] {
        let until = Instant::now() + patience;
        if remnants::signal(mark, Some(stop)) == 0 {
            return;
        }
        while Instant::now() < until {
            std::thread::sleep(LOOK);
            // Who has been forked since gets a hard signal at once.
            let again = (stop == Stop::Kill).then_some(stop);
            if remnants::signal(mark, again) == 0 {
                return;
            }
        }
    }
}

/// The guard, seen from the launcher.
pub struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts it: `program` with the guard's words.
    pub fn start(program: &std::path::Path, mark: &str) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args([GUARD_WORD, mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal is not for it.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Everything has ended: so does the guard.
    pub fn end(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // A guard that was killed needs no word.
            let _ = io::Write::write_all(&mut pipe, DONE);
        }
        let _ = self.child.wait();
    }
}
