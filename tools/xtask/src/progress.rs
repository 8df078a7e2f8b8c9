//! Builds that show how far they are.
//!
//! On a terminal cargo draws its own bar. Elsewhere (a log, a pipe) it is silent for
//! minutes, so this prints a line every [`EVERY`]: how many units are built, of how
//! many, and the one in work. Warnings and errors pass; the lines of single crates do
//! not.

use std::io::{self, BufReader, IsTerminal, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// Pause between two lines of progress.
const EVERY: Duration = Duration::from_secs(15);
/// Longest line that is kept of cargo's output; the rest of a longer one is left out.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Lines that wait to be shown; then cargo waits.
const LINES_MAX: usize = 256;

/// Runs a cargo command that builds, without `--quiet`. Blocks until it ends.
///
/// # Errors
/// Cargo could not be started, or its output not read.
pub fn run_build(cargo: &mut Command) -> io::Result<ExitStatus> {
    if io::stderr().is_terminal() {
        return cargo.status();
    }
    let mut child = cargo
        .env("CARGO_TERM_PROGRESS_WHEN", "always")
        .env("CARGO_TERM_PROGRESS_WIDTH", "200")
        .stderr(Stdio::piped())
        .spawn()?;
    let mut progress = ProgressLines::new(Instant::now());
    let Some(stderr) = child.stderr.take() else {
        return child.wait();
    };
    // A crate that builds for long changes nothing of the bar, so that no line comes.
    let (sender, lines) = mpsc::sync_channel(LINES_MAX);
    thread::spawn(move || send_lines(stderr, &sender));
    loop {
        let shown = match lines.recv_timeout(EVERY) {
            Ok(line) => progress.next(&line?, Instant::now()),
            Err(RecvTimeoutError::Timeout) => progress.repeat(Instant::now()),
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if let Some(shown) = shown {
            eprintln!("{shown}");
        }
    }
    child.wait()
}

/// Sends the lines of cargo's output, until it ends or nobody reads them.
fn send_lines(output: impl Read, lines: &SyncSender<io::Result<String>>) {
    let mut line = Vec::new();
    for byte in BufReader::new(output).bytes() {
        let sent = match byte {
            Ok(b'\r' | b'\n') => {
                let text = String::from_utf8_lossy(&line).into_owned();
                line.clear();
                lines.send(Ok(text))
            }
            Ok(byte) if line.len() < LINE_BYTES_MAX => {
                line.push(byte);
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) => lines.send(Err(error)),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// What of cargo's output is shown, and when.
struct ProgressLines {
    began: Instant,
    shown: Instant,
    /// What the bar said last.
    done: String,
}

impl ProgressLines {
    fn new(now: Instant) -> Self {
        Self {
            began: now,
            shown: now,
            done: String::new(),
        }
    }

    /// The line to show when cargo has been silent, once its bar has come.
    fn repeat(&mut self, now: Instant) -> Option<String> {
        self.shown = now;
        let seconds = now.duration_since(self.began).as_secs();
        (!self.done.is_empty()).then(|| format!("building, {seconds} s: {}", self.done))
    }

    /// The line to show for one of cargo's, if any.
    fn next(&mut self, line: &str, now: Instant) -> Option<String> {
        let line = line.replace("\x1b[K", "");
        let words = line.trim_start();
        // Cargo writes the word and the bar apart, so that either may come alone.
        let bar = words.strip_prefix("Building").unwrap_or(words).trim_start();
        if bar.is_empty() {
            return None;
        }
        if let Some(progress) = bar.strip_prefix('[').filter(|bar| bar.contains("] ")) {
            let (_, done) = progress.split_once("] ")?;
            done.trim_end().clone_into(&mut self.done);
            let is_due = now.duration_since(self.shown) >= EVERY;
            return is_due.then(|| self.repeat(now)).flatten();
        }
        let verb = words.split(' ').next().unwrap_or_default();
        let is_step = [
            "Compiling",
            "Checking",
            "Downloading",
            "Downloaded",
            "Fresh",
            "Blocking",
            "Finished",
            "Executable",
            "Running",
            "Locking",
            "Adding",
            "Updating",
        ];
        (!words.trim().is_empty() && !is_step.contains(&verb)).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_every_fifteen_seconds_and_warnings_at_once() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut lines = ProgressLines::new(now);
        let bar = "    Building [====>   ] 120/431: pteros-rtps, syn\x1b[K";
        assert_eq!(lines.next(bar, at(3)), None);
        assert_eq!(
            lines.next(bar, at(16)).as_deref(),
            Some("building, 16 s: 120/431: pteros-rtps, syn")
        );
        assert_eq!(lines.next(bar, at(20)), None);
        assert_eq!(lines.next("[=====>  ] 121/431: pteros-dcps", at(20)), None);
        assert_eq!(lines.next("    Building ", at(20)), None);
        assert_eq!(lines.next("   Compiling syn v2.0.1", at(21)), None);
        assert_eq!(
            lines.next("warning: unused variable", at(22)).as_deref(),
            Some("warning: unused variable")
        );
        assert_eq!(lines.next("\x1b[K", at(23)), None);
        // The last crate builds on, and nothing of the bar changes.
        assert_eq!(
            lines.repeat(at(38)).as_deref(),
            Some("building, 38 s: 121/431: pteros-dcps")
        );
    }
}
