//! Commands with a time limit: `nightly` and `mutants` run tests that may hang.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// A command's output, and how it ended.
pub struct Output {
    /// Both streams.
    pub text: String,
    /// It ended with success.
    pub succeeded: bool,
    /// It took too long and was killed.
    pub ended_early: bool,
}

impl Output {
    /// It ended by itself, without success.
    pub fn failed(&self) -> bool {
        !self.succeeded && !self.ended_early
    }
}

/// Runs a command at the root, keeps its output, prints it if `shows`, and ends it
/// with its children after `limit`.
pub fn run_limited(command: &mut Command, limit: Duration, shows: bool) -> Result<Output> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("run {:?}", command.get_program()))?;
    let group = nix::unistd::Pid::from_raw(-i32::try_from(child.id())?);
    let streams = (child.stdout.take(), child.stderr.take());
    let (succeeded, ended_early, text) = std::thread::scope(|scope| -> Result<_> {
        let out = scope.spawn(|| streams.0.map(|out| read(out, shows)).unwrap_or_default());
        let err = scope.spawn(|| streams.1.map(|err| read(err, shows)).unwrap_or_default());
        let began = Instant::now();
        let mut ended_early = false;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if began.elapsed() > limit {
                ended_early = true;
                let _ = nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let text = out.join().unwrap_or_default() + &err.join().unwrap_or_default();
        Ok((status.success(), ended_early, text))
    })?;
    Ok(Output {
        text,
        succeeded,
        ended_early,
    })
}

/// Reads a stream to its end.
fn read(stream: impl Read, shows: bool) -> String {
    let mut text = String::new();
    for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        if shows {
            println!("{line}");
        }
        text += &line;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_takes_too_long_is_ended_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo before; sleep 1000 & wait"]);
        let output = run_limited(&mut command, Duration::from_millis(100), false).unwrap();
        assert!(output.ended_early && !output.failed());
        assert_eq!(output.text, "before\n");
        let mut command = Command::new("sh");
        command.args(["-c", "echo boom >&2; exit 3"]);
        let output = run_limited(&mut command, Duration::from_secs(60), false).unwrap();
        assert!(output.failed());
        assert_eq!(output.text, "boom\n");
    }
}
