//! Interface watch: the kernel's notices about network interfaces (netlink,
//! `NETLINK_ROUTE`, RFC 3549).
//!
//! A notice says only that something changed: an address came or went, a link lost
//! its carrier, an interface appeared. The runtime then lists the
//! [`interfaces`](crate::interfaces) again, so a lost notice costs nothing.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, socket,
};

/// Groups of rtnetlink: links, IPv4 and IPv6 addresses.
const RTMGRP_LINK: u32 = 0x1;
const RTMGRP_IPV4_IFADDR: u32 = 0x10;
const RTMGRP_IPV6_IFADDR: u32 = 0x100;

/// Bytes read of a notice. The rest of a longer one is dropped unread.
const NOTICE_BYTES: usize = 512;

/// Notices that are read at a time. The socket stays readable if there are more.
const NOTICES_MAX: usize = 256;

/// A socket that is readable after interfaces changed. Thread-safe.
#[derive(Debug)]
pub struct InterfaceWatch {
    socket: OwnedFd,
}

impl InterfaceWatch {
    /// Watches the interfaces of this network namespace from now on, and their IPv6
    /// addresses if `with_v6`. Needs no privilege.
    ///
    /// # Errors
    /// The operating system's, where a sandbox forbids netlink sockets.
    pub fn new(with_v6: bool) -> io::Result<Self> {
        let named = |e: Errno| {
            io::Error::new(
                io::Error::from(e).kind(),
                format!("watch network interfaces (netlink): {e}"),
            )
        };
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            flags,
            SockProtocol::NetlinkRoute,
        )
        .map_err(named)?;
        let of_v6 = if with_v6 { RTMGRP_IPV6_IFADDR } else { 0 };
        let groups = NetlinkAddr::new(0, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | of_v6);
        bind(socket.as_raw_fd(), &groups).map_err(named)?;
        Ok(Self { socket })
    }

    /// Reads the waiting notices; true if there was one, or if some were lost. Never
    /// blocks and allocates nothing.
    pub fn drain(&self) -> bool {
        let mut changed = false;
        let mut notice = [0; NOTICE_BYTES];
        for _ in 0..NOTICES_MAX {
            match recv(self.socket.as_raw_fd(), &mut notice, MsgFlags::MSG_DONTWAIT) {
                // The buffer of the socket overflowed.
                Ok(_) | Err(Errno::ENOBUFS) => changed = true,
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        changed
    }
}

impl AsFd for InterfaceWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_without_a_change_reports_none() {
        // Where a sandbox has no netlink there is nothing to watch.
        let Ok(watch) = InterfaceWatch::new(false) else {
            return;
        };
        assert!(!watch.drain());
    }
}
