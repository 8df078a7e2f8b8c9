//! One running program of a contestant, its lines read as they come.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Its exit code: the stack has no such thing.
const EXIT_UNSUPPORTED: i32 = 5;

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

/// A running process. Killed when dropped, and by the kernel when whoever
/// started it dies.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    /// Starts it with its output piped; `name` is for errors.
    ///
    /// # Errors
    /// The system's, with the command.
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

    /// Its process id: setpriv, taskset and chrt become the program they start.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the line that begins with `prefix`.
    ///
    /// # Errors
    /// It did not say so in time, or ended: then why.
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

/// The value behind `key=` in a line of words.
pub fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split_whitespace()
        .find_map(|word| word.split_once('=').filter(|(name, _)| *name == key))
        .map(|(_, value)| value)
}
