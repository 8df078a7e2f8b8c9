//! Commands that run while a launch file is read: the output of one, and the answers
//! of one that reads requests. Their bytes and their time have limits.
//!
//! The command of an XML or YAML file belongs to the process group of the launch, so
//! Ctrl-C reaches it. That of a Python launch file leads a group of its own.
#![allow(
    clippy::disallowed_methods,
    reason = "the limit of a command is real time"
)]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

/// Limits of a command: the bytes that it writes, and its time.
#[derive(Clone, Copy, Debug)]
pub struct CommandLimits {
    /// Bytes on standard output and standard error together.
    pub bytes_max: usize,
    /// Time until its end.
    pub timeout: Duration,
}

/// Where a command's standard error goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandardError {
    /// To a stream of its own.
    Separate,
    /// To standard output, in the order of writing.
    Merged,
}

/// Output of a command until its end or its limit.
#[derive(Debug)]
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

/// Why there is no output.
#[derive(Debug)]
pub enum CommandFailure {
    /// It could not be run.
    System(io::Error),
    /// It wrote too much and was killed.
    TooMuch,
    /// It took too long and was killed.
    TooLong,
}

impl From<io::Error> for CommandFailure {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<rustix::io::Errno> for CommandFailure {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// Runs a command without input. Blocks until its end, or ends it at a limit.
///
/// # Errors
/// See [`CommandFailure`].
pub fn command_output(
    command: Command,
    limits: CommandLimits,
    stderr: StandardError,
) -> Result<CommandOutput, CommandFailure> {
    let mut running = RunningCommand::start(command, limits, stderr)?;
    loop {
        if let Some(output) = running.wait(limits.timeout)? {
            return Ok(output);
        }
    }
}

/// A command that runs without input. It ends with this value.
#[derive(Debug)]
pub struct RunningCommand {
    child: KilledChild,
    ended: OwnedFd,
    streams: [Option<File>; 2],
    written: [Vec<u8>; 2],
    bytes_max: usize,
    until: Instant,
}

impl RunningCommand {
    /// Starts the command; its time begins.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        mut command: Command,
        limits: CommandLimits,
        stderr: StandardError,
    ) -> Result<Self, CommandFailure> {
        let until = Instant::now() + limits.timeout;
        let (out, out_end) = io::pipe()?;
        let (err, mut err_end) = io::pipe()?;
        if stderr == StandardError::Merged {
            err_end = out_end.try_clone()?;
        }
        command.stdin(Stdio::null()).stdout(out_end).stderr(err_end);
        let child = command.spawn()?;
        // The command holds the write ends. Only the child may keep them open.
        drop(command);
        let child = KilledChild(child);
        let streams = [OwnedFd::from(out), err.into()].map(File::from);
        for stream in &streams {
            rustix::io::ioctl_fionbio(stream, true)?;
        }
        Ok(Self {
            ended: pidfd_open(Pid::from_child(&child.0), PidfdFlags::empty())?,
            child,
            streams: streams.map(Some),
            written: [Vec::new(), Vec::new()],
            bytes_max: limits.bytes_max,
            until,
        })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Blocks until the command has ended and its output is closed, `most` at most. `None`
    /// if that takes longer. After an error or an output, the value is of no further use.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn wait(&mut self, most: Duration) -> Result<Option<CommandOutput>, CommandFailure> {
        let pause = (Instant::now() + most).min(self.until);
        while self.streams.iter().any(Option::is_some) {
            let open = self.streams.iter().flatten();
            let mut open: Vec<PollFd<'_>> =
                open.map(|one| PollFd::new(one, PollFlags::IN)).collect();
            if !wait_for(&mut open, pause)? {
                return self.paused();
            }
            for (stream, written) in self.streams.iter_mut().zip(&mut self.written) {
                let is_open = match stream {
                    Some(stream) => take(stream, written, self.bytes_max)?,
                    None => false,
                };
                if !is_open {
                    *stream = None;
                }
            }
            if self.written.iter().map(Vec::len).sum::<usize>() > self.bytes_max {
                return Err(CommandFailure::TooMuch);
            }
        }
        if !wait_for(&mut [PollFd::new(&self.ended, PollFlags::IN)], pause)? {
            return self.paused();
        }
        let [stdout, stderr] = std::mem::take(&mut self.written);
        Ok(Some(CommandOutput {
            status: self.child.0.wait()?,
            stdout,
            stderr,
        }))
    }

    fn paused(&self) -> Result<Option<CommandOutput>, CommandFailure> {
        if Instant::now() >= self.until {
            return Err(CommandFailure::TooLong);
        }
        Ok(None)
    }

    /// Ends the command and its process group, which it must lead: SIGTERM, and SIGKILL
    /// after `timeout`. Blocks so long at most.
    pub fn end_group(&mut self, timeout: Duration) {
        let group = Pid::from_child(&self.child.0);
        if matches!(self.child.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // It may have ended meanwhile.
        let _ = kill_process_group(group, Signal::TERM);
        let ended = &mut [PollFd::new(&self.ended, PollFlags::IN)];
        if !wait_for(ended, Instant::now() + timeout).unwrap_or(false) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.0.wait();
    }
}

/// A command that answers each line on its standard input with a line. It ends with
/// this value.
#[derive(Debug)]
pub struct AnsweringCommand {
    _child: KilledChild,
    requests: File,
    answers: File,
}

impl AnsweringCommand {
    /// Starts the command. Its standard error goes nowhere.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (requests_end, requests) = io::pipe()?;
        let (answers, answers_end) = io::pipe()?;
        command.stdin(requests_end).stdout(answers_end);
        let child = command.stderr(Stdio::null()).spawn()?;
        let files = [OwnedFd::from(requests), answers.into()].map(File::from);
        for file in &files {
            rustix::io::ioctl_fionbio(file, true)?;
        }
        let [requests, answers] = files;
        Ok(Self {
            _child: KilledChild(child),
            requests,
            answers,
        })
    }

    /// Sends a line, and returns the answer without its end. Blocks for the limit's
    /// time at most. After an error the command may be in any state; drop it then.
    ///
    /// # Errors
    /// See [`CommandFailure`].
    pub fn answer(
        &mut self,
        mut line: &[u8],
        limits: CommandLimits,
    ) -> Result<Vec<u8>, CommandFailure> {
        let until = Instant::now() + limits.timeout;
        let mut answer = Vec::new();
        loop {
            match self.requests.write(line) {
                Ok(count) => line = &line[count..],
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(ended().into());
                }
                Err(error) if is_retried(&error) => {}
                Err(error) => return Err(error.into()),
            }
            if !take(&mut self.answers, &mut answer, limits.bytes_max)? {
                return Err(ended().into());
            }
            if answer.last() == Some(&b'\n') {
                answer.pop();
                return Ok(answer);
            }
            if answer.len() > limits.bytes_max {
                return Err(CommandFailure::TooMuch);
            }
            let mut open = vec![PollFd::new(&self.answers, PollFlags::IN)];
            if !line.is_empty() {
                open.push(PollFd::new(&self.requests, PollFlags::OUT));
            }
            if !wait_for(&mut open, until)? {
                return Err(CommandFailure::TooLong);
            }
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "ended without an answer")
}

fn is_retried(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Blocks until one of the descriptors is ready; false if that takes longer than `until`.
fn wait_for(descriptors: &mut [PollFd<'_>], until: Instant) -> io::Result<bool> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        match poll(descriptors, Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads available bytes; false at the end of the stream.
fn take(stream: &mut File, written: &mut Vec<u8>, bytes_max: usize) -> io::Result<bool> {
    let mut buffer = [0; 1 << 16];
    while written.len() <= bytes_max {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => written.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// A child that does not outlive this value.
#[derive(Debug)]
struct KilledChild(Child);

impl Drop for KilledChild {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            // It may have ended meanwhile.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
