//! Driver of a peer program in tests: starts it, waits for its lines, ends it.
//!
//! It uses only std. Every wait has a timeout, and a dropped peer is killed.
//! `verify/interop/README.md` describes the lines.
#![allow(clippy::disallowed_methods, reason = "other vendors' programs")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Environment variable with the folder of the peer programs; set by
/// `cargo xtask test`.
pub const FOLDER_VARIABLE: &str = "PTEROS_PEERS";

/// Environment variable by which `cargo xtask namespace` describes its network.
const NETWORK_VARIABLE: &str = "PTEROS_PRIVATE_NETWORK";

/// Cyclone 0.10 finds peers on loopback by unicast itself; Cyclone 11 needs this
/// setting.
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

/// The program of a peer (`cyclone-peer`, `fastdds-peer`, `python-peer`), or why it
/// is missing.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::var_os(FOLDER_VARIABLE)
        .ok_or_else(|| format!("{FOLDER_VARIABLE} is not set; run cargo xtask test"))?;
    let path = PathBuf::from(folder).join(name);
    if path.exists() {
        return Ok(path);
    }
    Err(format!(
        "{name} is not built; cargo xtask peers gives the reason"
    ))
}

impl Peer {
    /// Starts `program` with options separated by spaces.
    pub fn start(program: &std::path::Path, options: &str) -> Self {
        Self::start_with(program, options, &[])
    }

    /// As [`Peer::start`], with environment variables.
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
    /// If the peer ends or the timeout expires first; shows its output.
    pub fn expect(&mut self, prefix: &str, timeout: Duration) -> String {
        self.wait_for(prefix, timeout).unwrap_or_else(|why| {
            panic!(
                "{}: no line {prefix:?}: {why}; output:\n{}",
                self.name,
                self.seen.join("\n")
            )
        })
    }

    /// As [`Peer::expect`], but returns the error.
    pub fn wait_for(&mut self, prefix: &str, timeout: Duration) -> Result<String, String> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.starts_with(prefix) {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Err(format!("waited {timeout:?}")),
                Err(RecvTimeoutError::Disconnected) => return Err("the peer has ended".into()),
            }
        }
    }

    /// Whether a line with this prefix has arrived. Never blocks.
    pub fn has(&mut self, prefix: &str) -> bool {
        self.seen.extend(self.lines.try_iter());
        self.seen.iter().any(|line| line.starts_with(prefix))
    }

    /// All lines received so far, matching or not.
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Sends the line that `--start stdin` waits for.
    pub fn release(&mut self) {
        self.send_line("");
    }

    /// Sends a line to its standard input.
    pub fn send_line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("stdin is piped");
        writeln!(input, "{line}")
            .and_then(|()| input.flush())
            .expect("the peer reads its stdin");
    }

    /// Waits until it ends by itself. Returns its exit status; its last lines are
    /// in [`Peer::seen`].
    pub fn finish(&mut self, timeout: Duration) -> Result<ExitStatus, String> {
        let end = Instant::now() + timeout;
        // The channel of lines closes when the peer ends.
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

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The process id, to send signals.
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
