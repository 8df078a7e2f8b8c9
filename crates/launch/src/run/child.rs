//! Child process: a started process with its output streams and its pidfd.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

use super::orphan_cleanup::signal_of;
use crate::launch_state_machine::{ProcessExit, StopSignal};
use crate::plan::ProcessSpec;

/// An output stream of a child process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A started child process.
pub struct Child {
    child: std::process::Child,
    pid: Pid,
    descriptor: OwnedFd,
    /// Standard output and standard error, while a writer has them open.
    streams: [Option<File>; 2],
}

impl Child {
    /// Starts a process in its own process group. The environment gets the mark of the
    /// launch.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn start(process: &ProcessSpec, mark: (&str, String)) -> io::Result<Self> {
        let (program, arguments) = process
            .command
            .split_first()
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"))?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(&process.environment)
            .env(mark.0, mark.1)
            .stdin(Stdio::null())
            .process_group(0);
        if let Some(folder) = &process.working_folder {
            command.current_dir(folder);
        }
        let terminals = if process.emulate_tty {
            Some([open_terminal()?, open_terminal()?])
        } else {
            None
        };
        let (mut child, streams) = match terminals {
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
        // The command holds the write ends. Only the child may keep them open.
        drop(command);
        let streams = streams.map(File::from);
        for stream in &streams {
            rustix::io::ioctl_fionbio(stream, true)?;
        }
        let pid = Pid::from_child(&child);
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
            // Nobody would see its end. It may have ended meanwhile.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let _ = child.wait();
        })?;
        Ok(Self {
            descriptor,
            child,
            pid,
            streams: streams.map(Some),
        })
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The pidfd, readable when the process has ended.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }

    /// The descriptor of a stream, until the stream is closed.
    pub fn stream(&self, stream: Stream) -> Option<BorrowedFd<'_>> {
        self.streams[stream as usize].as_ref().map(AsFd::as_fd)
    }

    /// Whether no process can write to the streams any more.
    pub fn is_closed(&self) -> bool {
        self.streams.iter().all(Option::is_none)
    }

    /// Reads available bytes without blocking. `None` is the end of the stream.
    pub fn read(&mut self, stream: Stream, buffer: &mut [u8]) -> Option<usize> {
        let open = &mut self.streams[stream as usize];
        match open.as_mut()?.read(buffer) {
            Ok(0) => {}
            Ok(count) => return Some(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Some(0),
            // A pseudo-terminal without writers returns EIO.
            Err(_) => {}
        }
        *open = None;
        None
    }

    /// Exit status of the process; `None` while it runs. Never blocks.
    pub fn try_wait(&mut self) -> Option<ProcessExit> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(match (status.code(), status.signal()) {
            (Some(code), _) => ProcessExit::Code(code),
            (None, signal) => ProcessExit::Signal(signal.unwrap_or(0)),
        })
    }

    /// Sends a signal to the process group. The child has not been waited for, so
    /// its process id cannot have been reused.
    pub fn signal(&self, stop: StopSignal) {
        let signal = signal_of(stop);
        if rustix::process::kill_process_group(self.pid, signal).is_err() {
            // The process has left its group.
            let _ = rustix::process::kill_process(self.pid, signal);
        }
    }
}

/// Opens a pseudo-terminal: the end to read and the child's end. It is no
/// controlling terminal, so a process that outlives the launcher gets no SIGHUP.
fn open_terminal() -> io::Result<(OwnedFd, OwnedFd)> {
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
