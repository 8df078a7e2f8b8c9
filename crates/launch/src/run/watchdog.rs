//! Watchdog process: ends all processes of a launch if the launcher is killed, and deletes
//! its temporary files.
//!
//! It holds the read end of a pipe. The kernel closes the other end when the
//! launcher ends, whatever the reason.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use super::orphan_cleanup::{LaunchProcesses, ORPHAN_ESCALATION};
use super::process_groups::GroupMember;
use crate::launch_state_machine::StopSignal;

/// First argument of a program that runs as watchdog. The second is the launch id.
pub const WATCHDOG_ARGUMENT: &str = "__launch-watchdog";

/// How long processes have after SIGINT.
const INTERRUPT_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the watchdog has to end. One that was stopped is killed then.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// Period between two looks for its end.
const END_POLL_PERIOD: Duration = Duration::from_millis(5);

/// A message of the launcher: a word, its values, and a zero byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchdogMessage {
    /// A member of a process group.
    Added(GroupMember),
    /// It has ended.
    Removed(GroupMember),
    /// The folder of temporary files.
    Folder(PathBuf),
    /// The launch has ended properly.
    Done,
}

impl WatchdogMessage {
    fn encode(&self) -> Vec<u8> {
        let member = |word: &str, GroupMember { pid, start, group }: &GroupMember| {
            format!("{word} {pid} {start} {group}\0").into_bytes()
        };
        match self {
            Self::Added(one) => member("added", one),
            Self::Removed(one) => member("removed", one),
            Self::Folder(path) => [b"folder ", path.as_os_str().as_bytes(), b"\0"].concat(),
            Self::Done => b"done\0".to_vec(),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        if let Some(path) = bytes.strip_prefix(b"folder ") {
            let path = std::ffi::OsString::from_vec(path.to_vec());
            return Some(Self::Folder(path.into()));
        }
        let mut words = std::str::from_utf8(bytes).ok()?.split(' ');
        let word = words.next()?;
        if word == "done" {
            return Some(Self::Done);
        }
        let member = GroupMember {
            pid: words.next()?.parse().ok()?,
            start: words.next()?.parse().ok()?,
            group: words.next()?.parse().ok()?,
        };
        match word {
            "added" => Some(Self::Added(member)),
            "removed" => Some(Self::Removed(member)),
            _ => None,
        }
    }
}

/// Body of the watchdog: waits until the launcher ends or reports the end of the
/// launch. Then it ends all processes of the launch by SIGINT, SIGTERM and SIGKILL
/// within five seconds, and deletes the folder of temporary files.
pub fn run_watchdog(launch_id: &str, launcher: impl Read) {
    let mut processes = LaunchProcesses::new(launch_id);
    let mut folder = None;
    // A read error is an end of the stream as well.
    let messages = BufReader::new(launcher).split(0).map_while(Result::ok);
    for message in messages {
        match WatchdogMessage::decode(&message) {
            Some(WatchdogMessage::Done) => return,
            Some(WatchdogMessage::Added(member)) => processes.groups.add(member),
            Some(WatchdogMessage::Removed(member)) => processes.groups.remove(member),
            Some(WatchdogMessage::Folder(path)) => folder = Some(path),
            None => {}
        }
    }
    processes.end(&[(StopSignal::Interrupt, INTERRUPT_TIMEOUT)]);
    processes.end(&ORPHAN_ESCALATION);
    if let Some(folder) = folder {
        // The launcher may have deleted it.
        let _ = fs::remove_dir_all(folder);
    }
}

/// Handle of the launcher to its watchdog.
#[derive(Debug)]
pub struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Starts the command of the watchdog.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C in the terminal must not reach it.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        if let Some(pipe) = &pipe {
            // One that was stopped does not read.
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Self { child, pipe })
    }

    /// Sends a message, unless the watchdog was killed or stopped.
    pub fn tell(&mut self, message: &WatchdogMessage) {
        if let Some(pipe) = &mut self.pipe {
            // The kernel writes so few bytes as a whole, or nothing.
            let _ = pipe.write(&message.encode());
        }
    }

    /// Ends the watchdog after the launch has ended. Blocks for at most 2 s.
    pub fn finish(&mut self) {
        self.tell(&WatchdogMessage::Done);
        self.pipe = None;
        let until = Instant::now() + END_TIMEOUT;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(END_POLL_PERIOD);
        }
        // It has been stopped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let member = GroupMember {
            pid: 7,
            start: u64::MAX,
            group: i32::MAX,
        };
        for message in [
            WatchdogMessage::Added(member),
            WatchdogMessage::Removed(member),
            WatchdogMessage::Folder("/tmp/a b\nc".into()),
            WatchdogMessage::Done,
        ] {
            let bytes = message.encode();
            let (end, bytes) = bytes.split_last().unwrap();
            assert_eq!(*end, 0);
            assert_eq!(WatchdogMessage::decode(bytes), Some(message));
        }
        for bytes in [
            &b""[..],
            b"added 1 2",
            b"lost 1 2 3",
            b"added x 2 3",
            b"\xff",
        ] {
            assert_eq!(WatchdogMessage::decode(bytes), None);
        }
    }
}
