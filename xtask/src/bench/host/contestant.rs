//! The programs that `bench host` compares, and one running process of them.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::bench::contestant::CYCLONE_TUNED;

/// Its exit code: the stack has no such thing.
const EXIT_UNSUPPORTED: i32 = 5;

/// What of the caller's environment no contestant sees.
const SET_BY_US: [&str; 4] = [
    "CYCLONEDDS_URI",
    "PTEROS_SHARED_MEMORY",
    "ROS_DOMAIN_ID",
    "ROS_LOCALHOST_ONLY",
];

/// The name of the floor, which answers some rows only.
pub const FLOOR: &str = "floor";
/// Ours.
pub const PTEROS: &str = "pteros";

/// One stack in one configuration.
pub struct Contestant {
    pub name: &'static str,
    program: PathBuf,
    /// What its environment says, beside what everybody's does.
    environment: &'static [(&'static str, &'static str)],
    /// What it is, for the report's head.
    pub about: &'static str,
}

/// One of the list: name, program, settings and a word about it.
struct Entry(
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
);

/// In the order of the report.
#[rustfmt::skip]
const LIST: &[Entry] = &[
    Entry(FLOOR, "floor", &[], "futex, eventfd, UDP and memcpy without any middleware"),
    Entry("cyclone", "cyclone-host", &[], "Cyclone DDS 0.10.2 (Debian), default; UDP, it has no shared memory"),
    Entry("cyclone-tuned", "cyclone-host", &[("CYCLONEDDS_URI", CYCLONE_TUNED)], "the same with large datagrams, buffers and write cache"),
    Entry("fastdds", "fastdds-host", &[], "Fast DDS 2.9.1 (Debian), default: shared-memory transport"),
    Entry("fastdds-sharing", "fastdds-host", &[("HOST_DATA_SHARING", "on")], "the same with types of fixed size and data sharing"),
    Entry("iceoryx2", "iceoryx2-host", &[], "iceoryx2 0.10, with its event service where the reader sleeps"),
    Entry("zenoh", "zenoh-host", &[], "Zenoh 1.10 peers over TCP, with shared memory for what is large or lent"),
    Entry("zenoh-low", "zenoh-host", &[("HOST_LOWLATENCY", "on")], "the same with its low-latency transport"),
    Entry(PTEROS, "host-peer", &[], "this stack, by the path that it chooses"),
    Entry("pteros-udp", "host-peer", &[("PTEROS_SHARED_MEMORY", "off")], "the same with shared memory switched off"),
];

/// All names, for `--contestants`.
pub fn names() -> Vec<&'static str> {
    LIST.iter().map(|entry| entry.0).collect()
}

/// All of them; ours is in `ours`, the others' programs are in `peers`.
pub fn all(peers: &Path, ours: &Path) -> Vec<Contestant> {
    let entry = |&Entry(name, program, environment, about): &Entry| Contestant {
        name,
        program: if name.starts_with(PTEROS) {
            ours
        } else {
            peers
        }
        .join(program),
        environment,
        about,
    };
    LIST.iter().map(entry).collect()
}

/// A measurement that brought nothing.
#[derive(Debug)]
pub enum Failure {
    /// The stack has no such thing, it says why.
    Unsupported(String),
    /// It should have worked.
    Failed(String),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(format!("{error:#}"))
    }
}

impl Contestant {
    /// Whether its program could be built.
    pub fn is_there(&self) -> bool {
        self.program.exists()
    }

    /// Starts one process, on `cpu` if given, without the right to exceed the
    /// kernel's limits of buffers. `line` is split at blanks.
    pub fn start(&self, line: &str, cpu: Option<u32>) -> Result<Process> {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-net_admin", "--"]);
        if let Some(cpu) = cpu {
            command.args(["taskset", "-c", &cpu.to_string()]);
        }
        for variable in SET_BY_US {
            command.env_remove(variable);
        }
        command.envs(self.environment.iter().copied());
        command.arg(&self.program).args(line.split_whitespace());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        let output = child.stdout.take().context("its output is piped")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Process {
            name: self.name,
            child,
            lines,
        })
    }
}

/// A running process. Ended when dropped.
pub struct Process {
    name: &'static str,
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Its process id: setpriv and taskset become the program they start.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the line that begins with `prefix`.
    pub fn expect(&mut self, prefix: &str, patience: Duration) -> Result<String, Failure> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.starts_with(prefix) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let why = format!("{} said no {prefix:?} in {patience:?}", self.name);
                    return Err(Failure::Failed(why));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.end()),
            }
        }
    }

    /// Why it has ended.
    fn end(&mut self) -> Failure {
        let mut said = String::new();
        let _ = self
            .child
            .stderr
            .take()
            .map(|mut errors| errors.read_to_string(&mut said));
        let code = self.child.wait().ok().and_then(|status| status.code());
        let last = said.trim().lines().next_back().unwrap_or("").to_owned();
        match code {
            Some(EXIT_UNSUPPORTED) => {
                let (_, why) = last.split_once("unsupported: ").unwrap_or(("", &last));
                Failure::Unsupported(why.to_owned())
            }
            _ => Failure::Failed(format!("{} ended ({code:?}): {last}", self.name)),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Picks contestants by name, all of them when none is named.
pub fn chosen(all: Vec<Contestant>, wanted: &[String]) -> Result<Vec<Contestant>> {
    for name in wanted {
        if !names().contains(&name.as_str()) {
            bail!("--contestants {name}: expected {}", names().join(", "));
        }
    }
    let is_wanted = |c: &Contestant| wanted.is_empty() || wanted.iter().any(|w| w == c.name);
    Ok(all.into_iter().filter(is_wanted).collect())
}
