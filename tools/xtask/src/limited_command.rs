//! Commands with a time limit: `nightly` and `mutants` run tests that may hang.
//!
//! A command has a process group of its own, so that its children end with it. A signal
//! to the group of xtask does not reach it. A watchdog process ends it then.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
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
/// with its children after `limit`, or if this process is killed.
pub fn run_limited(command: &mut Command, limit: Duration, shows: bool) -> Result<Output> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("run {:?}", command.get_program()))?;
    let group = nix::unistd::Pid::from_raw(-i32::try_from(child.id())?);
    let watchdog = Watchdog::start(child.id())?;
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
    watchdog.finish();
    Ok(Output {
        text,
        succeeded,
        ended_early,
    })
}

/// A shell that ends a process group when this process ends without a word, as by
/// SIGKILL. The kernel closes the pipe between them then.
struct Watchdog {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Watches over the process group with this leader.
    fn start(group: u32) -> Result<Self> {
        let mut shell = Command::new("sh")
            .args([
                "-c",
                r#"read -r word; [ "$word" = done ] || kill -KILL "-$1""#,
            ])
            .args(["watchdog".into(), group.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("run sh, which ends the command if this process is killed")?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// Ends the watchdog: the command has ended.
    fn finish(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // The shell may have been killed.
            let _ = pipe.write_all(b"done\n");
        }
        let _ = self.shell.wait();
    }
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

    #[test]
    fn a_command_ends_with_the_process_that_started_it() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & wait"]).process_group(0);
        let mut child = command.spawn().unwrap();
        let mut watchdog = Watchdog::start(child.id()).unwrap();
        // As the kernel does when the process is killed.
        drop(watchdog.pipe.take());
        assert!(watchdog.shell.wait().unwrap().success());
        assert!(!child.wait().unwrap().success());
    }

    #[test]
    fn a_watchdog_that_is_told_of_the_end_kills_nothing() {
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        Watchdog::start(child.id()).unwrap().finish();
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
