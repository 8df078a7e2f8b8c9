//! Listener of the discovery log: connects to same-host peers and accepts them.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::log::LogWriter;
use super::socket_diag::PREFIX;
use crate::error::{DisconnectReason, PeerName, hex};
use crate::handshake;
use crate::packet::Packet;

pub(crate) use crate::handshake::accept;

/// Connections that the kernel queues until they are accepted. A host may start
/// some hundred processes at once.
const BACKLOG: i32 = 1024;

fn address(domain: u32, name: &PeerName) -> Result<SocketAddrUnix, Errno> {
    let text = format!("{PREFIX}{domain}-{}", hex(name));
    SocketAddrUnix::new_abstract_name(text.as_bytes())
}

/// Opens the listening socket.
pub(crate) fn listen(domain: u32, name: &PeerName) -> Result<OwnedFd, Errno> {
    let listener = handshake::socket()?;
    rustix::net::bind(&listener, &address(domain, name)?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// The packet that hands our log over.
pub(crate) fn log_packet(name: PeerName, log: &LogWriter) -> Packet {
    Packet::DiscoveryLog {
        name,
        bytes: log.bytes() as u64,
    }
}

/// A connection whose peer has not sent its log yet.
#[derive(Debug)]
pub(crate) struct PendingPeer {
    pub(crate) socket: OwnedFd,
    /// The peer that this side connected to.
    pub(crate) peer: Option<PeerName>,
    pub(crate) is_incoming: bool,
    /// When it times out.
    pub(crate) deadline: u64,
    /// When to retry the connect, while the kernel's queue is full.
    pub(crate) retry_at: Option<u64>,
    is_connecting: bool,
    /// Our log was sent. `needs_log`: a newer one is still to be sent.
    pub(crate) log_sent: bool,
    pub(crate) needs_log: bool,
}

impl PendingPeer {
    pub(crate) fn outgoing(
        domain: u32,
        peer: PeerName,
        deadline: u64,
    ) -> Result<Self, DisconnectReason> {
        let socket =
            handshake::socket().map_err(|_| DisconnectReason::SystemCall("create a socket"))?;
        let mut call = Self {
            socket,
            peer: Some(peer),
            is_incoming: false,
            deadline,
            retry_at: None,
            is_connecting: true,
            log_sent: false,
            needs_log: false,
        };
        call.connect(domain)?;
        Ok(call)
    }

    pub(crate) fn incoming(socket: OwnedFd, deadline: u64) -> Self {
        Self {
            socket,
            peer: None,
            is_incoming: true,
            deadline,
            retry_at: None,
            is_connecting: false,
            log_sent: false,
            needs_log: false,
        }
    }

    pub(crate) fn is_connecting(&self) -> bool {
        self.is_connecting
    }

    /// Returns true when connected, false when the peer's listen queue is full.
    pub(crate) fn connect(&mut self, domain: u32) -> Result<bool, DisconnectReason> {
        let Some(peer) = self.peer.filter(|_| self.is_connecting) else {
            return Ok(true);
        };
        let address = address(domain, &peer).map_err(|_| DisconnectReason::Unreachable)?;
        match rustix::net::connect(&self.socket, &address) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(_) => return Err(DisconnectReason::Unreachable),
        }
        handshake::same_user(self.borrow())?;
        self.is_connecting = false;
        Ok(true)
    }

    fn borrow(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.socket)
    }
}
