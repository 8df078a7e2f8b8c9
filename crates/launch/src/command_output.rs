//! Output of a command that a launch file runs while it is read: at most so many
//! bytes, within a time.
//!
//! The command belongs to the process group of the launch, so Ctrl-C reaches it.
#![allow(
    clippy::disallowed_methods,
    reason = "the limit of a command is real time"
)]

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Limits of a command: the bytes that it writes, and its time.
#[derive(Clone, Copy, Debug)]
pub struct CommandLimits {
    /// Bytes on standard output and standard error together.
    pub bytes_max: usize,
    /// Time until its end.
    pub timeout: Duration,
}

/// The output of a command.
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

/// Runs a command without input. Blocks until its end, or kills it at a limit.
///
/// # Errors
/// See [`CommandFailure`].
pub fn command_output(
    mut command: Command,
    limits: CommandLimits,
) -> Result<CommandOutput, CommandFailure> {
    let until = Instant::now() + limits.timeout;
    let (out, out_end) = io::pipe()?;
    let (err, err_end) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(out_end).stderr(err_end);
    let child = command.spawn()?;
    // The command holds the write ends. Only the child may keep them open.
    drop(command);
    let mut child = KilledChild(child);
    let ended = pidfd_open(Pid::from_child(&child.0), PidfdFlags::empty())?;
    let streams = [OwnedFd::from(out), err.into()].map(File::from);
    for stream in &streams {
        rustix::io::ioctl_fionbio(stream, true)?;
    }
    let mut streams = streams.map(Some);
    let mut written = [Vec::new(), Vec::new()];
    while streams.iter().any(Option::is_some) {
        let open: Vec<&File> = streams.iter().flatten().collect();
        wait_for(&open, until)?;
        for (stream, written) in streams.iter_mut().zip(&mut written) {
            if !take(stream, written, limits.bytes_max)? {
                *stream = None;
            }
        }
        if written.iter().map(Vec::len).sum::<usize>() > limits.bytes_max {
            return Err(CommandFailure::TooMuch);
        }
    }
    wait_for(&[&ended], until)?;
    let [stdout, stderr] = written;
    Ok(CommandOutput {
        status: child.0.wait()?,
        stdout,
        stderr,
    })
}

/// Blocks until one of the descriptors is ready.
fn wait_for<D: std::os::fd::AsFd>(open: &[&D], until: Instant) -> Result<(), CommandFailure> {
    let mut descriptors: Vec<PollFd<'_>> = open
        .iter()
        .map(|one| PollFd::new(*one, PollFlags::IN))
        .collect();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 0,
        });
        match poll(&mut descriptors, Some(&left)) {
            Ok(0) => return Err(CommandFailure::TooLong),
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads available bytes; false at the end of the stream.
fn take(stream: &mut Option<File>, written: &mut Vec<u8>, bytes_max: usize) -> io::Result<bool> {
    let Some(stream) = stream else {
        return Ok(false);
    };
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
