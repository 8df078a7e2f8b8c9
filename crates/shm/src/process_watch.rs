//! Process watch: detects that the process at the other end of a socket has exited.
//!
//! A socket closes when the last process that holds it exits. A child that its
//! owner forked holds it too, and may live on. Therefore this also holds a pidfd of
//! the owner (`pidfd_open(2)`), by the process id that the kernel stored when it
//! connected or listened.
//!
//! While the owner lives, that process id is its own, so no living process is taken
//! for dead. If it died before the pidfd was opened, the id may belong to another
//! process. Then, and without a pidfd (an older kernel, an invisible PID
//! namespace), only the end of the socket counts. A context belongs to the process
//! that opened it and does not survive in a fork.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::PidfdFlags;

/// A pidfd, readable when the process has exited.
#[derive(Debug)]
pub(crate) struct ProcessWatch(OwnedFd);

impl ProcessWatch {
    /// The process that connected or listened at the other end.
    pub(crate) fn of_peer(socket: BorrowedFd<'_>) -> Option<Self> {
        let owner = rustix::net::sockopt::socket_peercred(socket).ok()?;
        let life = rustix::process::pidfd_open(owner.pid, PidfdFlags::empty());
        life.ok().map(Self)
    }

    pub(crate) fn has_exited(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut look = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(rustix::event::poll(&mut look, Some(&now)), Ok(1..))
    }
}

impl AsFd for ProcessWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
