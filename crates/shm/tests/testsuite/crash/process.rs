//! Child processes, and what this process has.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use pteros_shm::PeerName;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, WaitOptions};

use crate::crash::talker::Talker;

/// One story at a time: they count descriptors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A name that no other process and no other story has.
pub fn name() -> PeerName {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut name = *b"kill........";
    name[4..8].copy_from_slice(&std::process::id().to_le_bytes());
    name[8..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    name
}

pub fn to_text(name: &PeerName) -> String {
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn from_text(text: &str) -> PeerName {
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hex");
    std::array::from_fn(byte)
}

/// Open descriptors of this process.
pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

/// Mappings of shared memory in this process.
pub fn mappings() -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    let ours = maps.lines().filter(|line| line.contains("memfd:pteros"));
    ours.map(str::to_owned).collect()
}

/// A process of ours, killed when dropped.
pub struct Child {
    pub name: PeerName,
    child: std::process::Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Child {
    /// A talker that calls `partners` and stops at a label. Returns once it
    /// listens.
    pub fn talker(partners: &[PeerName], stop: Option<&str>, passes: u32) -> Self {
        let name = name();
        let partners: Vec<String> = partners.iter().map(to_text).collect();
        let (partners, stop) = (partners.join(","), stop.unwrap_or("-"));
        let line = format!("talker {} {partners} {stop} {passes}", to_text(&name));
        let mut child = Self::start(name, &line, Command::new(own_path()));
        assert_eq!(child.says(), "ready");
        child
    }

    /// This binary as `peer`, begun by `command`, told `line`.
    pub fn start(name: PeerName, line: &str, mut command: Command) -> Self {
        let mut child = command
            .args(["--exact", "crash::peer", "--ignored", "--nocapture"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut input = child.stdin.take().expect("piped");
        let _ = writeln!(input, "{line}");
        Self {
            name,
            input: Some(input),
            output: BufReader::new(child.stdout.take().expect("piped")),
            child,
        }
    }

    /// The next line that is meant for us; empty at the end.
    pub fn says(&mut self) -> String {
        for line in self.output.by_ref().lines() {
            let line = line.unwrap_or_default();
            if let Some((_, word)) = line.split_once("> ") {
                return word.to_owned();
            }
        }
        String::new()
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Whether it has stopped itself.
    pub fn is_stopped(&self) -> bool {
        let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
        match rustix::process::waitpid(Some(self.pid()), options) {
            Ok(Some((_, status))) if status.stopped() => true,
            Ok(Some((_, status))) => panic!("it ended by itself: {status:?}"),
            _ => false,
        }
    }

    /// Lets a talker end in good order; its last words.
    pub fn quit(&mut self, meanwhile: &mut Talker) -> String {
        drop(self.input.take());
        meanwhile.step_until(|_| matches!(self.child.try_wait(), Ok(Some(_))));
        self.says()
    }

    /// The sockets that a forked child would inherit. `None` where the system does
    /// not let us.
    pub fn sockets(&self) -> Option<Vec<OwnedFd>> {
        let it = rustix::process::pidfd_open(self.pid(), PidfdFlags::empty()).ok()?;
        let folder = format!("/proc/{}/fd", self.child.id());
        let mut sockets = Vec::new();
        for entry in std::fs::read_dir(folder).ok()?.flatten() {
            let what = std::fs::read_link(entry.path()).unwrap_or_default();
            if what.to_string_lossy().starts_with("socket:") {
                let number = entry
                    .file_name()
                    .to_string_lossy()
                    .parse()
                    .expect("a number");
                let copy = rustix::process::pidfd_getfd(&it, number, PidfdGetfdFlags::empty());
                sockets.push(copy.ok()?);
            }
        }
        Some(sockets)
    }

    /// Kills it, however it is; it is gone when this returns.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Not by its number, which is another's once it was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This program.
pub fn own_path() -> std::path::PathBuf {
    std::env::current_exe().expect("our own path")
}
