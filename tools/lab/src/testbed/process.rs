//! A running process of an implementation, with its output read line by line.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Exit code for a feature that the stack does not have.
const EXIT_UNSUPPORTED: i32 = 5;

/// A measurement without result.
#[derive(Debug)]
pub enum MeasurementFailure {
    /// The stack does not have the feature; with the reason.
    Unsupported(String),
    /// The measurement failed.
    Failed(String),
}

impl From<anyhow::Error> for MeasurementFailure {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(format!("{error:#}"))
    }
}

/// A running process. Killed when dropped, and by the kernel when its starter dies.
#[derive(Debug)]
pub struct PeerProcess {
    name: String,
    child: Child,
    lines: Receiver<String>,
}

impl PeerProcess {
    /// Starts a process with piped output. `name` is for errors.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(name: &str, command: &mut Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {name}: {:?}", command.get_program()))?;
        let output = child.stdout.take().context("its output is piped")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            name: name.to_owned(),
            child,
            lines,
        })
    }

    /// Its process id. setpriv, taskset and chrt execute the program in place.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Blocks until a line that begins with `prefix`, for at most `timeout`.
    ///
    /// # Errors
    /// No such line in time, or why the process ended.
    pub fn expect(
        &mut self,
        prefix: &str,
        timeout: Duration,
    ) -> Result<String, MeasurementFailure> {
        self.expect_line(prefix, |line| line.starts_with(prefix), timeout)
    }

    /// Blocks until a line that `is_it` selects. `what` names it in errors.
    ///
    /// # Errors
    /// As [`expect`](Self::expect).
    pub fn expect_line(
        &mut self,
        what: &str,
        is_it: impl Fn(&str) -> bool,
        timeout: Duration,
    ) -> Result<String, MeasurementFailure> {
        let end = Instant::now() + timeout;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if is_it(&line) => return Ok(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let why = format!("{} printed no {what:?} in {timeout:?}", self.name);
                    return Err(MeasurementFailure::Failed(why));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.end()),
            }
        }
    }

    /// Why the process ended.
    fn end(&mut self) -> MeasurementFailure {
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
                MeasurementFailure::Unsupported(why.to_owned())
            }
            _ => MeasurementFailure::Failed(format!("{} ended ({code:?}): {last}", self.name)),
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The value after `key=` in a line of words.
pub fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace()
        .find_map(|word| word.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}
