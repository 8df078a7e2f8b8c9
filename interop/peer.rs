//! Drives one peer program from a test: starts it, waits for its lines, ends it.
//!
//! Plain std, so that any test can include it by path. Every wait has a
//! deadline; a peer that is dropped is killed. The lines are in README.md here.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::disallowed_methods,
    reason = "other people's programs run in real time"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Where the peers' programs are; set by `cargo xtask test`.
pub const FOLDER_VARIABLE: &str = "PTEROS_PEERS";

/// What `cargo xtask namespace` says of the network it made.
const NETWORK_VARIABLE: &str = "PTEROS_PRIVATE_NETWORK";

/// Cyclone 0.10 finds unicast on loopback by itself, Cyclone 11 must be told.
const CYCLONE_WITHOUT_MULTICAST: &str = "<General><AllowMulticast>false</AllowMulticast></General>\
     <Discovery><ParticipantIndex>auto</ParticipantIndex>\
     <MaxAutoParticipantIndex>32</MaxAutoParticipantIndex>\
     <Peers><Peer Address=\"127.0.0.1\"/></Peers></Discovery>";

/// A running peer.
pub struct Peer {
    name: String,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// The program of a peer (`cyclone-peer`, `fastdds-peer`, `python-peer`), or
/// why there is none.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var_os(FOLDER_VARIABLE)
        .ok_or_else(|| format!("{FOLDER_VARIABLE} is not set; run cargo xtask test"))?;
    let path = PathBuf::from(folder).join(name);
    if path.exists() {
        return Ok(path);
    }
    Err(format!("{name} is not built; cargo xtask peers says why"))
}

impl Peer {
    /// Starts `program` with options as in a shell, divided by spaces.
    pub fn start(program: &std::path::Path, options: &str) -> Self {
        Self::start_with(program, options, &[])
    }

    /// As [`Peer::start`], with variables of its environment.
    pub fn start_with(
        program: &std::path::Path,
        options: &str,
        variables: &[(&str, String)],
    ) -> Self {
        let name = program
            .file_name()
            .map_or_else(String::new, |n| n.to_string_lossy().into());
        let mut command = Command::new(program);
        if std::env::var(NETWORK_VARIABLE).is_ok_and(|kind| kind == "no-multicast")
            && std::env::var_os("CYCLONEDDS_URI").is_none()
        {
            command.env("CYCLONEDDS_URI", CYCLONE_WITHOUT_MULTICAST);
        }
        let mut child = command
            .args(options.split_whitespace())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| panic!("start {}: {e}", program.display()));
        let output = child.stdout.take().expect("stdout is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            name: format!("{name} {options}"),
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Waits for the next line that begins with `prefix` and returns it.
    ///
    /// # Panics
    /// When the peer ends or `patience` is over before; shows what it said.
    pub fn expect(&mut self, prefix: &str, patience: Duration) -> String {
        self.wait_for(prefix, patience).unwrap_or_else(|why| {
            panic!(
                "{}: no line {prefix:?}: {why}; it said:\n{}",
                self.name,
                self.seen.join("\n")
            )
        })
    }

    /// As [`Peer::expect`], giving the reason instead of panicking.
    pub fn wait_for(&mut self, prefix: &str, patience: Duration) -> Result<String, String> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.starts_with(prefix) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(format!("waited {patience:?}")),
                Err(RecvTimeoutError::Disconnected) => return Err("the peer has ended".into()),
            }
        }
    }

    /// Whether it has said a line that begins with `prefix`. Never blocks.
    pub fn has(&mut self, prefix: &str) -> bool {
        self.seen.extend(self.lines.try_iter());
        self.seen.iter().any(|line| line.starts_with(prefix))
    }

    /// All lines waited through so far, matching or not.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Gives the line that `--start stdin` waits for.
    pub fn go(&mut self) {
        self.tell("");
    }

    /// Gives it a line on its standard input.
    pub fn tell(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .expect("the peer reads its stdin");
    }

    /// Waits until it ends by itself; returns its status and its last lines are
    /// in [`Peer::seen`].
    pub fn finish(&mut self, patience: Duration) -> Result<ExitStatus, String> {
        let end = Instant::now() + patience;
        // The line channel closes when the peer does.
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => return Err(format!("{} did not end", self.name)),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.child.wait().map_err(|e| format!("{}: {e}", self.name))
    }

    /// Ends it without a goodbye, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The process id, for those who send signals.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The value of `key=` in a line such as `received seq=1 size=14`.
pub fn value<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let at = line.find(&format!(" {key}="))? + key.len() + 2;
    let rest = &line[at..];
    if key == "text" {
        return Some(rest);
    }
    rest.split(' ').next()
}
