//! A program of the soak: its lines, and words to its standard input.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// Lines that are kept; programs repeat their counts.
const LINES_MAX: usize = 4_000;
/// The longest that the last lines of a program may take after its end.
const LAST_LINES_MAX: Duration = Duration::from_secs(5);

/// A running program. Killed when dropped.
pub struct Process {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Receiver<String>,
    lines: Vec<String>,
    problems: Vec<String>,
}

impl Process {
    /// Starts a program with words, of which the last but one is its name.
    pub fn start(mut command: Command, words: &[&str]) -> Result<Self> {
        let name = words.iter().rev().nth(1).copied().unwrap_or_default();
        let mut child = command
            .args(words)
            .env("PYTHONUNBUFFERED", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("run {:?}", command.get_program()))?;
        let output = child.stdout.take().context("standard output")?;
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines().map_while(Result::ok);
            // The process is read to its end, so that it does not block.
            for line in lines {
                let _ = sender.send(line);
            }
        });
        Ok(Self {
            name: name.into(),
            input: child.stdin.take(),
            child,
            output: receiver,
            lines: Vec::new(),
            problems: Vec::new(),
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    fn note(&mut self, line: String) {
        if line.starts_with("lost ") {
            self.problems.push(format!("{}: {line}", self.name));
        }
        if self.lines.len() >= LINES_MAX {
            self.lines.drain(..LINES_MAX / 2);
        }
        self.lines.push(line);
    }

    /// Takes in the lines that are there.
    pub fn read_lines(&mut self) {
        while let Ok(line) = self.output.try_recv() {
            self.note(line);
        }
    }

    /// Waits for the next line.
    pub fn wait_for_line(&mut self, timeout: Duration) {
        if let Ok(line) = self.output.recv_timeout(timeout) {
            self.note(line);
        }
    }

    /// Losses that it has reported since the last call.
    pub fn take_problems(&mut self) -> Vec<String> {
        std::mem::take(&mut self.problems)
    }

    /// The number behind the last line with this beginning.
    pub fn number(&self, prefix: &str) -> Option<u64> {
        let mut rest = self
            .lines
            .iter()
            .rev()
            .filter_map(|l| l.strip_prefix(prefix));
        rest.find_map(|number| number.parse().ok())
    }

    pub fn write(&mut self, word: &str) -> Result<()> {
        let input = self.input.as_mut().context("standard input")?;
        writeln!(input, "{word}").with_context(|| format!("{} has ended", self.name))
    }

    /// Whether it has ended. If so, all its lines are here.
    pub fn has_ended(&mut self) -> bool {
        let has_ended = matches!(self.child.try_wait(), Ok(Some(_)));
        if has_ended {
            let deadline = Instant::now() + LAST_LINES_MAX;
            // Until the thread has read to the end, and has ended as well.
            let left = || deadline.saturating_duration_since(Instant::now());
            while let Ok(line) = self.output.recv_timeout(left()) {
                self.note(line);
            }
        }
        has_ended
    }

    /// Its name, if it has ended.
    pub fn ended(&mut self) -> Option<String> {
        self.has_ended().then(|| self.name.clone())
    }

    /// Waits for its end by itself, with success.
    pub fn ends_within(&mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.child.try_wait() {
                return status.success();
            }
            self.wait_for_line(Duration::from_millis(20));
        }
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
