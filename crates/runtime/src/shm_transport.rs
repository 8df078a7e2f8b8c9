//! Shared-memory transport between processes of one host: the trait and its
//! announcements.
//!
//! The real implementation wraps `pteros-shm` ([`shared_memory`](crate::shared_memory));
//! a simulator implements its own. A connection carries the datagrams of user endpoints
//! in order (zero-copy for large payloads). It may refuse a datagram, and it may end. A
//! refused datagram is lost as on any network, and the protocol retransmits it.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use pteros_msg::cdr::Endian;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::{Datagram, Outbox};
use pteros_rtps::time::Instant;

pub use pteros_shm::{
    ChunkMut, ConnectionEvent, DisconnectReason, PoolExhausted, ReceivedMessage, SendRefusal,
    ShmCounts as ConnectionCounts, ShmError,
};

/// Larger payloads are written into a chunk while some reader is connected. Smaller
/// ones travel with their headers.
pub const CHUNK_MIN_BYTES: usize = Outbox::INLINE_PAYLOAD_MAX_BYTES;

/// The shared-memory connections of one participant.
///
/// Thread-safe: any thread sends and takes chunks, the driver does everything else. No
/// call waits for a peer.
pub trait ShmTransport: Send + Sync {
    /// The scope in which participants can connect.
    fn scope(&self) -> ShmScope;

    /// Requests a connection to a peer; the outcome is an event of
    /// [`ShmTransport::poll`]. Does nothing if there is a connection or a handshake
    /// already.
    ///
    /// # Errors
    /// Why there will be no connection.
    fn connect(&self, peer: GuidPrefix, now: Instant) -> Result<(), DisconnectReason>;

    /// Ends the connection to a peer, if there is one. No event follows.
    fn disconnect(&self, peer: GuidPrefix);

    /// Whether [`ShmTransport::poll`] has work before its timeout.
    fn is_due(&self) -> bool;

    /// Handles due work and reports events. Returns when to call it next.
    fn poll(&self, now: Instant, events: &mut dyn FnMut(ConnectionEvent)) -> Option<Instant>;

    /// Sends one message. A body in a local chunk is not copied (zero-copy). A
    /// message may wait without a wake-up of the peer.
    ///
    /// Why it was refused: the peer receives no part of it. Counted.
    fn send(&self, connection: u32, datagram: &Datagram<'_>) -> Result<(), SendRefusal>;

    /// Takes the next message, from the connections in turn. `head` receives its bytes,
    /// except for a body that remains in its chunk.
    fn receive(&self, head: &mut Vec<u8>) -> Option<ReceivedMessage>;

    /// Allocates a chunk for a payload of `len` bytes that peers can read.
    ///
    /// # Errors
    /// [`PoolExhausted`]; if only for now, [`ConnectionEvent::ChunkAvailable`]
    /// follows.
    fn chunk(&self, len: usize) -> Result<Chunk, PoolExhausted>;

    /// As `chunk`, but only memory that was used before: page faults on fresh
    /// memory cost more than writing it. If there is none,
    /// [`ConnectionEvent::ChunkAvailable`] follows when a chunk is free again.
    fn prefaulted_chunk(&self, len: usize) -> Option<Chunk> {
        self.chunk(len).ok()
    }

    /// Prefaults the memory of the next chunk of `len` bytes. Wasted if no such
    /// chunk is taken soon.
    fn prefault(&self, _len: usize) {}

    /// Arms the doorbell: from now on peers wake this process. True if nothing
    /// waits, so the caller may sleep.
    fn arm_doorbell(&self) -> bool;

    /// Defers the doorbell before a sleep with a timer: from now on peers wake this
    /// process only for many messages. Returns false if a message is waiting already.
    fn defer_doorbell(&self) -> bool {
        true
    }

    /// Disarms the doorbell: peers no longer signal this process.
    fn disarm_doorbell(&self);

    /// Messages sent, received and refused.
    fn counts(&self) -> ConnectionCounts;
}

/// Totals of a process's connections since its start, as published to same-host
/// peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionTotals {
    /// Connections that are up.
    pub connections: u64,
    /// Messages sent, retransmissions and acknowledgements included.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Not sent because the descriptor ring was full; a reliable publisher
    /// retransmits.
    pub ring_full: u64,
    /// Not sent because the chunk pool or the reader's share of it was exhausted; a
    /// reliable publisher retransmits.
    pub pool_exhausted: u64,
    /// Not sent because it is larger than a connection carries.
    pub too_large: u64,
    /// Not sent because the connection had ended.
    pub connection_down: u64,
    /// Samples that the process's reliable subscriptions have permanently lost, on any
    /// transport.
    pub samples_lost: u64,
}

impl ConnectionTotals {
    /// In the order of the discovery log. Later fields are appended.
    pub(crate) fn to_words(self) -> [u64; 8] {
        [
            self.connections,
            self.sent,
            self.received,
            self.ring_full,
            self.pool_exhausted,
            self.too_large,
            self.connection_down,
            self.samples_lost,
        ]
    }

    pub(crate) fn from_words(words: [u64; 8]) -> Self {
        let [
            connections,
            sent,
            received,
            ring_full,
            pool_exhausted,
            too_large,
            connection_down,
            samples_lost,
        ] = words;
        Self {
            connections,
            sent,
            received,
            ring_full,
            pool_exhausted,
            too_large,
            connection_down,
            samples_lost,
        }
    }
}

impl From<&ConnectionCounts> for ConnectionTotals {
    fn from(counts: &ConnectionCounts) -> Self {
        Self {
            connections: counts.connections as u64,
            sent: counts.sent,
            received: counts.received,
            ring_full: counts.refused_ring_full,
            pool_exhausted: counts.refused_pool_share
                + counts.refused_loans
                + counts.refused_pool_exhausted
                + counts.refused_segment,
            too_large: counts.refused_too_long,
            connection_down: counts.refused_disconnected,
            samples_lost: 0,
        }
    }
}

/// The memory of one payload while it is written, exactly as large as requested.
#[derive(Debug)]
pub enum Chunk {
    /// Shared with peers.
    Shared(ChunkMut),
    /// Private memory, for a simulation.
    Plain(Vec<u8>),
}

impl Chunk {
    /// Ends writing. Every byte must have been written.
    pub fn freeze(self) -> Bytes {
        match self {
            Self::Shared(chunk) => {
                let len = chunk.len();
                chunk.freeze(len)
            }
            Self::Plain(bytes) => bytes.into(),
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Shared(chunk) => chunk,
            Self::Plain(bytes) => bytes,
        }
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Shared(chunk) => chunk,
            Self::Plain(bytes) => bytes,
        }
    }
}

/// The name of the participant property (PID_PROPERTY_LIST) that announces shared
/// memory.
pub(crate) const PARTICIPANT_PROPERTY: &str = "pteros.shared_memory";

/// Announced by a participant with shared memory switched off.
pub(crate) const OFF: &str = "off";

/// The fifth word of the scope of a big-endian process.
const BIG_ENDIAN: &str = "big";

/// The scope of shared memory: participants with equal scope can connect. Announced
/// as `version host network user`, and `big` behind it by a big-endian process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShmScope {
    /// Version of the shared-memory protocol.
    pub version: u16,
    /// The host since its boot: a hash of the boot id.
    pub host: u64,
    /// The network namespace, in which abstract sockets are named.
    pub network: u64,
    /// The user id.
    pub user: u32,
    /// Byte order of the numbers in the memory: that of the process. A host has
    /// processes of both while an emulator runs there.
    pub byte_order: Endian,
}

impl fmt::Display for ShmScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            version,
            host,
            network,
            user,
            byte_order,
        } = self;
        write!(f, "{version} {host:016x} {network:x} {user}")?;
        match byte_order {
            Endian::Little => Ok(()),
            Endian::Big => write!(f, " {BIG_ENDIAN}"),
        }
    }
}

impl ShmScope {
    /// Parses what [`ShmScope`]'s `Display` writes. Later versions may append
    /// words.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            version: words.next()?.parse().ok()?,
            host: u64::from_str_radix(words.next()?, 16).ok()?,
            network: u64::from_str_radix(words.next()?, 16).ok()?,
            user: words.next()?.parse().ok()?,
            byte_order: match words.next() {
                Some(BIG_ENDIAN) => Endian::Big,
                _ => Endian::Little,
            },
        })
    }

    /// Why a peer with this announcement cannot be connected; `None` if it can.
    pub(crate) fn unreachable_reason(&self, announced: Option<&str>) -> Option<String> {
        let Some(announced) = announced else {
            return Some("its stack does not offer it".into());
        };
        if announced == OFF {
            return Some("switched off there".into());
        }
        let Some(other) = Self::parse(announced) else {
            return Some(format!(
                "it announces \"{announced}\", which is not understood"
            ));
        };
        if other.host != self.host {
            return Some("other host".into());
        }
        if other.version != self.version {
            let theirs = other.version;
            return Some(format!("version {theirs}, ours is {}", self.version));
        }
        if other.byte_order != self.byte_order {
            return Some("a process of the other byte order".into());
        }
        if other.user != self.user {
            return Some(DisconnectReason::OtherUser { uid: other.user }.to_string());
        }
        (other.network != self.network).then(|| "other container or network namespace".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: ShmScope = ShmScope {
        version: 1,
        host: 0xfeed,
        network: 4_026_531_840,
        user: 1000,
        byte_order: Endian::Little,
    };

    #[test]
    fn equal_scopes_can_connect_and_others_get_a_reason() {
        let announced = HERE.to_string();
        assert_eq!(announced, "1 000000000000feed f0000000 1000");
        assert_eq!(HERE.unreachable_reason(Some(&announced)), None);
        assert_eq!(
            HERE.unreachable_reason(Some(&format!("{announced} more"))),
            None
        );
        let reason = |other: ShmScope| HERE.unreachable_reason(Some(&other.to_string())).unwrap();
        assert_eq!(reason(ShmScope { host: 1, ..HERE }), "other host");
        assert_eq!(reason(ShmScope { user: 0, ..HERE }), "other user 0");
        assert_eq!(
            reason(ShmScope { version: 2, ..HERE }),
            "version 2, ours is 1"
        );
        let big = ShmScope {
            byte_order: Endian::Big,
            ..HERE
        };
        assert_eq!(big.to_string(), "1 000000000000feed f0000000 1000 big");
        assert_eq!(reason(big), "a process of the other byte order");
        assert_eq!(
            big.unreachable_reason(Some(&announced)).unwrap(),
            "a process of the other byte order"
        );
        assert_eq!(big.unreachable_reason(Some(&format!("{big} more"))), None);
        let network = ShmScope { network: 1, ..HERE };
        assert_eq!(reason(network), "other container or network namespace");
        assert_eq!(
            HERE.unreachable_reason(Some(OFF)).unwrap(),
            "switched off there"
        );
        assert!(
            HERE.unreachable_reason(None)
                .unwrap()
                .contains("does not offer")
        );
        assert!(
            HERE.unreachable_reason(Some("1 x"))
                .unwrap()
                .contains("\"1 x\"")
        );
    }

    #[test]
    fn a_message_that_was_not_sent_counts_under_its_reason() {
        let mut counts = ConnectionCounts::default();
        counts.connections = 1;
        (counts.sent, counts.received) = (2, 3);
        counts.refused_ring_full = 4;
        // Four reasons for which there was no chunk.
        (counts.refused_pool_share, counts.refused_loans) = (10, 20);
        (counts.refused_pool_exhausted, counts.refused_segment) = (30, 40);
        (counts.refused_too_long, counts.refused_disconnected) = (5, 6);
        let totals = ConnectionTotals {
            connections: 1,
            sent: 2,
            received: 3,
            ring_full: 4,
            pool_exhausted: 100,
            too_large: 5,
            connection_down: 6,
            samples_lost: 0,
        };
        assert_eq!(ConnectionTotals::from(&counts), totals);
        assert_eq!(ConnectionTotals::from_words(totals.to_words()), totals);
    }
}
