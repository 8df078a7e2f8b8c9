//! One process that has been started, with its output and its descriptor.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

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
    /// Standard output and standard error, until nobody has them open any more.
    streams: [Option<File>; 2],
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
            .process_group(0);
        if let Some(folder) = &process.folder {
            command.current_dir(folder);
        }
        let terminals = match process.emulate_tty {
            true => Some([terminal()?, terminal()?]),
            false => None,
        };
        let (child, streams) = match terminals {
            Some([(out, out_end), (err, err_end)]) => {
                let child = command.stdout(out_end).stderr(err_end).spawn()?;
                (child, [out, err])
            }
            None => {
                let (out, out_end) = io::pipe()?;
                let (err, err_end) = io::pipe()?;
                let child = command.stdout(out_end).stderr(err_end).spawn()?;
                (child, [OwnedFd::from(out), err.into()])
            }
        };
        // The command has the far ends, and nobody is to have them but the child.
        drop(command);
        let streams = streams.map(File::from);
        for stream in &streams {
            rustix::io::ioctl_fionbio(stream, true)?;
        }
        let pid = Pid::from_child(&child);
        Ok(Self {
            descriptor: pidfd_open(pid, PidfdFlags::empty())?,
            child,
            pid,
            streams: streams.map(Some),
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
        self.streams[stream as usize].as_ref().map(AsFd::as_fd)
    }

    /// Whether nobody can write to its streams any more.
    pub fn is_silent(&self) -> bool {
        self.streams.iter().all(Option::is_none)
    }

    /// Reads what is there, never waits: `None` when the stream is over.
    pub fn read(&mut self, stream: Stream, buffer: &mut [u8]) -> Option<usize> {
        let open = &mut self.streams[stream as usize];
        match open.as_mut()?.read(buffer) {
            Ok(0) => {}
            Ok(count) => return Some(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Some(0),
            // A terminal that nobody has open any more says EIO.
            Err(_) => {}
        }
        *open = None;
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

/// A terminal: what is read here, and the child's end. It controls no process, so
/// whoever outlives the launcher gets no SIGHUP.
fn terminal() -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let open = || {
        let near = openpt(flags)?;
        unlockpt(&near)?;
        let far = ioctl_tiocgptpeer(&near, flags)?;
        Ok((near, far))
    };
    open().map_err(|error: rustix::io::Errno| {
        let error = io::Error::from(error);
        let said = format!(
            "emulate_tty: open a terminal (/dev/ptmx): {error}; mount devpts, or leave emulate_tty out"
        );
        io::Error::new(error.kind(), said)
    })
}
