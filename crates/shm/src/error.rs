//! What can be refused, and why a link is not there or not there any more.

use std::fmt;
use std::io;

use crate::layout::VERSION;

/// A participant's prefix as RTPS writes it: what a hub is called.
pub type Name = [u8; 12];

/// Why there is no link to a peer, or none any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Nobody of that name listens where we can reach: another container or
    /// network namespace, or switched off there.
    Unreachable,
    /// The other process belongs to another user.
    OtherUser {
        /// Whose it is, as our user namespace sees it.
        uid: u32,
    },
    /// It speaks another version of this protocol.
    OtherVersion {
        /// Its version; ours is [`VERSION`].
        theirs: u16,
    },
    /// There is a link to a process of that name already.
    AlreadyLinked,
    /// One of both has as many links or handshakes as it may.
    TooManyLinks,
    /// Ended links still hold too much of one side's pool.
    MemoryHeld,
    /// No answer in time.
    TimedOut,
    /// What it handed over cannot be used.
    Unfit(&'static str),
    /// It wrote what no correct peer writes.
    Nonsense(&'static str),
    /// It does not share a secret with us, so it may be anybody; or it lives in
    /// another PID namespace. See [`Warrant`](crate::Warrant).
    Unproven,
    /// The system refused a call.
    System(&'static str),
    /// The other side refused for a reason that this version does not know.
    Refused {
        /// The number it gave.
        code: u32,
    },
    /// We closed it.
    Disconnected,
    /// The peer closed it and said so.
    Closed,
    /// The peer's end vanished without a word: its process has ended.
    Ended,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => {
                f.write_str("other container or network namespace, or switched off there")
            }
            Self::OtherUser { uid } => write!(f, "other user {uid}"),
            Self::OtherVersion { theirs } => write!(f, "version {theirs}, ours is {VERSION}"),
            Self::AlreadyLinked => f.write_str("linked already"),
            Self::TooManyLinks => f.write_str("too many links"),
            Self::MemoryHeld => f.write_str("ended links hold too much memory"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Unfit(what) => write!(f, "handed over what {what}"),
            Self::Nonsense(what) => write!(f, "broken peer: {what}"),
            Self::Unproven => f.write_str("not proven to be who it says"),
            Self::System(what) => write!(f, "the system refused to {what}"),
            Self::Refused { code } => write!(f, "refused there, reason {code}"),
            Self::Disconnected => f.write_str("closed here"),
            Self::Closed => f.write_str("closed there"),
            Self::Ended => f.write_str("the process ended"),
        }
    }
}

impl Reason {
    /// As a refusal says it to the other side: a code and a value.
    pub(crate) fn to_wire(self) -> (u32, u32) {
        match self {
            Self::OtherUser { uid } => (1, uid),
            Self::OtherVersion { .. } => (2, u32::from(VERSION)),
            Self::AlreadyLinked => (3, 0),
            Self::TooManyLinks => (4, 0),
            Self::MemoryHeld => (5, 0),
            Self::Unfit(_) => (6, 0),
            Self::Unproven => (8, 0),
            _ => (7, 0),
        }
    }

    /// What the other side's refusal means here.
    pub(crate) fn from_wire(code: u32, value: u32) -> Self {
        match code {
            // Its view of us: we are the other user.
            1 => Self::OtherUser { uid: value },
            2 => Self::OtherVersion {
                theirs: value as u16,
            },
            3 => Self::AlreadyLinked,
            4 => Self::TooManyLinks,
            5 => Self::MemoryHeld,
            6 => Self::Unfit("it could not use"),
            8 => Self::Unproven,
            code => Self::Refused { code },
        }
    }
}

/// A hub cannot be opened, or cannot reach a peer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// The system refused what every hub needs. Go on without shared memory.
    #[error("no shared memory: cannot {0}")]
    Open(#[source] io::Error),
    /// An option is out of its range.
    #[error("shared memory option {name}: {value} is not {allowed}")]
    Option {
        /// Which.
        name: &'static str,
        /// What was asked for.
        value: usize,
        /// What may be asked for.
        allowed: &'static str,
    },
    /// There is no link to that peer and there will be none for now.
    #[error("no shared memory to {}: {reason}", hex(peer))]
    Refused {
        /// The peer.
        peer: Name,
        /// Why not.
        reason: Reason,
    },
}

/// Why a message was not sent on a link. Each is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The link is not there any more.
    #[error("the link is down")]
    Down,
    /// The reader is behind by a whole ring.
    #[error("the link's ring is full; the reader is behind")]
    Full,
    /// Longer than the ring, or a body beyond 4 GiB.
    #[error("the message does not fit the link's ring; raise the ring's size")]
    TooLong,
    /// The reader holds half of the pool.
    #[error("the reader holds half of the pool; raise the pool's limit or keep fewer samples")]
    Share,
    /// The reader holds as many chunks as a link can lend.
    #[error(
        "the reader holds {} chunks, as many as a link can lend",
        crate::LOANS_MAX
    )]
    Loans,
    /// A body outside the pool found no chunk.
    #[error(transparent)]
    Exhausted(#[from] crate::Exhausted),
    /// The system would not take the descriptor of a new segment just now.
    #[error("a new segment could not be handed over now")]
    Segment,
}

/// A name as text.
pub(crate) fn hex(name: &Name) -> String {
    name.iter().map(|byte| format!("{byte:02x}")).collect()
}
