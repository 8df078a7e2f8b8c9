//! Calling a neighbour and being called.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::log::OwnLog;
use super::names::PREFIX;
use crate::error::{Name, Reason, hex};
use crate::handshake;
use crate::packet::Packet;

pub(crate) use crate::handshake::accept;

/// Callers that the kernel keeps until we accept them; a host may start some
/// hundred processes at once.
const BACKLOG: i32 = 1024;

fn address(domain: u32, name: &Name) -> Result<SocketAddrUnix, Errno> {
    let text = format!("{PREFIX}{domain}-{}", hex(name));
    SocketAddrUnix::new_abstract_name(text.as_bytes())
}

/// Opens the door.
pub(crate) fn listen(domain: u32, name: &Name) -> Result<OwnedFd, Errno> {
    let listener = handshake::socket()?;
    rustix::net::bind(&listener, &address(domain, name)?)?;
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// What shows our board.
pub(crate) fn board_packet(name: Name, log: &OwnLog) -> Packet {
    Packet::Board {
        name,
        bytes: log.bytes() as u64,
    }
}

/// A connection on which no board has been shown yet.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) socket: OwnedFd,
    /// Whom we called.
    pub(crate) peer: Option<Name>,
    pub(crate) is_incoming: bool,
    /// When it is given up.
    pub(crate) deadline: u64,
    /// When to call again, while the kernel has no room for the connection.
    pub(crate) retry_at: Option<u64>,
    is_connecting: bool,
    /// It has been shown our board, and has yet to be handed a later one.
    pub(crate) is_shown: bool,
    pub(crate) is_owed: bool,
}

impl Call {
    pub(crate) fn outgoing(domain: u32, peer: Name, deadline: u64) -> Result<Self, Reason> {
        let socket = handshake::socket().map_err(|_| Reason::System("make a socket"))?;
        let mut call = Self {
            socket,
            peer: Some(peer),
            is_incoming: false,
            deadline,
            retry_at: None,
            is_connecting: true,
            is_shown: false,
            is_owed: false,
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
            is_shown: false,
            is_owed: false,
        }
    }

    pub(crate) fn is_connecting(&self) -> bool {
        self.is_connecting
    }

    /// True when connected, false when the other's door is crowded.
    pub(crate) fn connect(&mut self, domain: u32) -> Result<bool, Reason> {
        let Some(peer) = self.peer.filter(|_| self.is_connecting) else {
            return Ok(true);
        };
        let address = address(domain, &peer).map_err(|_| Reason::Unreachable)?;
        match rustix::net::connect(&self.socket, &address) {
            Ok(()) => {}
            Err(Errno::AGAIN) => return Ok(false),
            Err(_) => return Err(Reason::Unreachable),
        }
        handshake::same_user(self.borrow())?;
        self.is_connecting = false;
        Ok(true)
    }

    fn borrow(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.socket)
    }
}
