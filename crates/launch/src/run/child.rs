//! One process that has been started, with its pipes and its descriptor.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::remnants::{MARK_VARIABLE, signal_of};
use crate::conductor::{Exit, Stop};
use crate::plan::Process;

/// Which of its two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A process that was started.
pub struct Child {
    child: std::process::Child,
    pid: Pid,
    descriptor: OwnedFd,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
}

impl Child {
    /// Starts a process in a group of its own, with `marks` in its environment.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(process: &Process, marks: &str) -> io::Result<Self> {
        let (program, arguments) = process.words.split_first().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the command has no words")
        })?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&process.environment)
            .env(MARK_VARIABLE, marks)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(folder) = &process.folder {
            command.current_dir(folder);
        }
        let mut child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let streams = [out.as_ref().map(AsFd::as_fd), err.as_ref().map(AsFd::as_fd)];
        for stream in streams.into_iter().flatten() {
            rustix::io::ioctl_fionbio(stream, true)?;
        }
        Ok(Self {
            descriptor: pidfd_open(pid, PidfdFlags::empty())?,
            child,
            pid,
            out,
            err,
        })
    }

    /// Its number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Readable when it has ended.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// A stream, until it has been closed.
    pub fn stream(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        match stream {
            Stream::Out => self.out.as_ref().map(AsFd::as_fd),
            Stream::Err => self.err.as_ref().map(AsFd::as_fd),
        }
    }

    /// Reads what is there, never waits: `None` when the stream is over.
    pub fn read(&mut self, stream: Stream, buffer: &mut [u8]) -> Option<usize> {
        let read = match stream {
            Stream::Out => self.out.as_mut()?.read(buffer),
            Stream::Err => self.err.as_mut()?.read(buffer),
        };
        match read {
            Ok(0) => {}
            Ok(count) => return Some(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Some(0),
            Err(_) => {}
        }
        match stream {
            Stream::Out => self.out = None,
            Stream::Err => self.err = None,
        }
        None
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Exit> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or(0)),
        })
    }

    /// Sends a signal to all of its group. It is our child and has not been waited
    /// for, so the number is still its own.
    pub fn signal(&self, stop: Stop) {
        let signal = signal_of(stop);
        if rustix::process::kill_process_group(self.pid, signal).is_err() {
            // It has left its group.
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }
}
