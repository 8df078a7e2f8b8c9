//! Whether the process at the other end of a socket lives.
//!
//! A socket ends when the last process that has it is gone. A child that its
//! owner forked has it too, and may live on; so we also hold a descriptor of
//! the owner itself (`pidfd_open(2)`), by the number that the kernel noted when
//! it called or listened.
//!
//! While the owner lives, that number is its own, so nobody alive is taken for
//! dead. If it died before we asked, the number may be another's: then, as
//! where there is no such descriptor (an older kernel, a process namespace that
//! we do not see into), the socket's end alone counts. A context belongs to the
//! process that opened it; it does not survive in a fork.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::PidfdFlags;

/// A process, readable when it has ended.
#[derive(Debug)]
pub(crate) struct Life(OwnedFd);

impl Life {
    /// That of the process which called or listened at the other end.
    pub(crate) fn of(socket: BorrowedFd<'_>) -> Option<Self> {
        let owner = rustix::net::sockopt::socket_peercred(socket).ok()?;
        let life = rustix::process::pidfd_open(owner.pid, PidfdFlags::empty());
        life.ok().map(Self)
    }

    pub(crate) fn is_over(&self) -> bool {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut look = [PollFd::new(&self.0, PollFlags::IN)];
        matches!(rustix::event::poll(&mut look, Some(&now)), Ok(1..))
    }
}

impl AsFd for Life {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
