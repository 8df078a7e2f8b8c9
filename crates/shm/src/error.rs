//! Errors of the shared-memory transport, and the reasons why a connection is
//! refused or closed.

use std::fmt;
use std::io;

use crate::layout::VERSION;

/// Name of a transport: the GUID prefix of its participant (RTPS 2.5 §9.3.1.5).
pub type PeerName = [u8; 12];

/// Why there is no connection to a peer, or no longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// No transport with that name listens within reach: the peer is in another
    /// container or network namespace, or its shared memory is switched off.
    Unreachable,
    /// The other process belongs to another user.
    OtherUser {
        /// The peer's user id, as our user namespace sees it.
        uid: u32,
    },
    /// The peer uses another version of this protocol.
    OtherVersion {
        /// Its version; ours is [`VERSION`].
        theirs: u16,
    },
    /// There is a connection to a process with that name already.
    AlreadyConnected,
    /// One side has reached its limit of connections or handshakes.
    TooManyConnections,
    /// Closed connections still hold too much of one side's pool.
    MemoryHeld,
    /// The peer did not answer in time.
    TimedOut,
    /// A descriptor that the peer handed over cannot be used.
    UnusableDescriptor(&'static str),
    /// The peer wrote data that no correct peer writes.
    ProtocolViolation(&'static str),
    /// The peer does not share a secret with us, or it is in another PID namespace.
    /// See [`PeerAuthenticator`](crate::PeerAuthenticator).
    Unauthenticated,
    /// The system refused a call.
    SystemCall(&'static str),
    /// The peer refused for a reason that this version does not know.
    Refused {
        /// The code it sent.
        code: u32,
    },
    /// This side closed the connection.
    ClosedLocally,
    /// The peer closed the connection.
    ClosedByPeer,
    /// The peer's socket closed without a bye packet: its process has exited.
    ProcessEnded,
}

impl fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => {
                f.write_str("other container or network namespace, or switched off there")
            }
            Self::OtherUser { uid } => write!(f, "other user {uid}"),
            Self::OtherVersion { theirs } => write!(f, "version {theirs}, ours is {VERSION}"),
            Self::AlreadyConnected => f.write_str("already connected"),
            Self::TooManyConnections => f.write_str("too many connections"),
            Self::MemoryHeld => f.write_str("closed connections hold too much memory"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::UnusableDescriptor(what) => write!(f, "handed over a descriptor that {what}"),
            Self::ProtocolViolation(what) => write!(f, "protocol violation: {what}"),
            Self::Unauthenticated => f.write_str("not authenticated"),
            Self::SystemCall(what) => write!(f, "the system refused to {what}"),
            Self::Refused { code } => write!(f, "refused by the peer, reason {code}"),
            Self::ClosedLocally => f.write_str("closed here"),
            Self::ClosedByPeer => f.write_str("closed by the peer"),
            Self::ProcessEnded => f.write_str("the process exited"),
        }
    }
}

impl DisconnectReason {
    /// Code and value in a refuse packet.
    pub(crate) fn to_wire(self) -> (u32, u32) {
        match self {
            Self::OtherUser { uid } => (1, uid),
            Self::OtherVersion { .. } => (2, u32::from(VERSION)),
            Self::AlreadyConnected => (3, 0),
            Self::TooManyConnections => (4, 0),
            Self::MemoryHeld => (5, 0),
            Self::UnusableDescriptor(_) => (6, 0),
            Self::Unauthenticated => (8, 0),
            _ => (7, 0),
        }
    }

    /// The reason for a peer's refuse packet.
    pub(crate) fn from_wire(code: u32, value: u32) -> Self {
        match code {
            // From the peer's view: we are the other user.
            1 => Self::OtherUser { uid: value },
            2 => Self::OtherVersion {
                theirs: value as u16,
            },
            3 => Self::AlreadyConnected,
            4 => Self::TooManyConnections,
            5 => Self::MemoryHeld,
            6 => Self::UnusableDescriptor("it could not use"),
            8 => Self::Unauthenticated,
            code => Self::Refused { code },
        }
    }
}

/// A transport cannot be opened, or cannot reach a peer.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// The system refused what every transport needs. The caller goes on without
    /// shared memory.
    #[error("no shared memory: cannot {0}")]
    Open(#[source] io::Error),
    /// An option is out of its range.
    #[error("shared memory option {name}: {value} is not {allowed}")]
    Option {
        /// The field of the options.
        name: &'static str,
        /// The given value.
        value: usize,
        /// The allowed range.
        allowed: &'static str,
    },
    /// There is no connection to that peer for now.
    #[error("no shared memory to {}: {reason}", hex(peer))]
    Refused {
        /// The participant at the other end.
        peer: PeerName,
        /// Why not.
        reason: DisconnectReason,
    },
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for ShmError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Why a message was not sent on a connection. Each is counted.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendRefusal {
    /// The connection is closed.
    #[error("the connection is down")]
    Disconnected,
    /// The ring is full: the reader is behind by a whole ring.
    #[error("the connection's ring is full; the reader is behind")]
    RingFull,
    /// Longer than the ring, or a body beyond 4 GiB.
    #[error("the message does not fit the connection's ring; raise the ring's size")]
    TooLong,
    /// The reader holds half of the pool.
    #[error("the reader holds half of the pool; raise the pool's limit or keep fewer samples")]
    PoolShareExceeded,
    /// The reader holds as many chunks as a connection may have on loan.
    #[error(
        "the reader holds {} chunks, as many as a connection may have on loan",
        crate::LOANS_MAX
    )]
    TooManyLoans,
    /// A body outside the pool found no chunk.
    #[error(transparent)]
    Exhausted(#[from] crate::PoolExhausted),
    /// The system refused to send the descriptor of a new segment.
    #[error("the descriptor of a new segment could not be sent now; retry")]
    SegmentNotSent,
}

// The plain text: what `main` prints of a returned error.
impl fmt::Debug for SendRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// A name in hexadecimal.
pub(crate) fn hex(name: &PeerName) -> String {
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}
