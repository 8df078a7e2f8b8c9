//! The door to links: what carries messages between processes of one host
//! through shared memory.
//!
//! Production's links are a hub of `pteros-shm` ([`shared_memory`](crate::shared_memory)),
//! a simulator brings its own. A link carries the datagrams of user endpoints
//! in order; it may refuse one, and may end. What it refuses is lost as on any
//! network, and the protocol sends it again.

use std::fmt;
use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::{Datagram, Outbox};
use pteros_rtps::time::Instant;

pub use pteros_shm::{
    ChunkMut, Exhausted, LinkEvent, Reason, Record, Refused, ShmCounts as LinkCounts, ShmError,
};

/// Payloads above this are written into a chunk while some reader has a link;
/// smaller ones travel beside their headers.
pub const CHUNK_MIN_BYTES: usize = Outbox::INLINE_PAYLOAD_MAX_BYTES;

/// The links of one participant. Thread-safe: any thread sends and takes chunks,
/// the one that drives does the rest. Nothing here waits for a peer.
pub trait Links: Send + Sync {
    /// Who can be linked with.
    fn realm(&self) -> Realm;

    /// Asks a peer for a link; how that ends comes from [`Links::turn`]. Nothing
    /// happens if there is a link or a handshake already.
    ///
    /// # Errors
    /// Why there will be no link.
    fn connect(&self, peer: GuidPrefix, now: Instant) -> Result<(), Reason>;

    /// Ends the link to a peer, if there is one. No event follows.
    fn disconnect(&self, peer: GuidPrefix);

    /// Whether [`Links::turn`] has something to do before its deadline.
    fn is_due(&self) -> bool;

    /// Does what is due and tells what happened; returns when to call it next.
    fn turn(&self, now: Instant, events: &mut dyn FnMut(LinkEvent)) -> Option<Instant>;

    /// Sends one message. A body that lies in a chunk of ours is not copied. One
    /// that waits need not wake the peer.
    ///
    /// # Errors
    /// [`Refused`]: the peer sees nothing of it. Counted.
    fn send(&self, link: u32, datagram: &Datagram<'_>) -> Result<(), Refused>;

    /// Takes the next message, from the links in turn. `head` gets its bytes,
    /// but for a body that stayed where it was.
    fn receive(&self, head: &mut Vec<u8>) -> Option<Record>;

    /// Memory for a payload of `len` bytes that peers can read.
    ///
    /// # Errors
    /// [`Exhausted`]; when that is for now only, [`LinkEvent::Room`] follows.
    fn chunk(&self, len: usize) -> Result<Chunk, Exhausted>;

    /// The same, if its memory was used before: fresh memory costs more than
    /// writing it. If not, [`LinkEvent::Room`] follows when one has come back.
    fn warm_chunk(&self, len: usize) -> Option<Chunk> {
        self.chunk(len).ok()
    }

    /// Brings in the memory of the next chunk for `len` bytes, if there is any. Who
    /// will not ask for one soon wastes it.
    fn warm_ahead(&self, _len: usize) {}

    /// From now on peers wake us. True: nothing waits, so the caller may sleep.
    fn before_sleep(&self) -> bool;

    /// Peers need not wake us.
    fn awake(&self);

    /// What was sent, received and refused.
    fn counts(&self) -> LinkCounts;
}

/// What the links of a process have carried and refused since it began, as it
/// tells its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkTotals {
    /// Links that are up.
    pub links: u64,
    /// Messages sent, repeats and acknowledgements included.
    pub sent: u64,
    /// Messages received.
    pub received: u64,
    /// Not sent, since the ring was full; a reliable publisher repeats it.
    pub ring_full: u64,
    /// Not sent, since the pool or the reader's share of it was used up; a
    /// reliable publisher repeats it.
    pub pool_exhausted: u64,
    /// Not sent, since it is larger than what the link carries.
    pub too_large: u64,
    /// Not sent, since the link had ended.
    pub link_down: u64,
}

impl LinkTotals {
    /// In the order in which a board has them. What comes later follows.
    pub(crate) fn to_words(self) -> [u64; 8] {
        let Self {
            links,
            sent,
            received,
            ring_full,
            pool_exhausted,
            too_large,
            link_down,
        } = self;
        [
            links,
            sent,
            received,
            ring_full,
            pool_exhausted,
            too_large,
            link_down,
            0,
        ]
    }

    pub(crate) fn of_words(words: [u64; 8]) -> Self {
        let [
            links,
            sent,
            received,
            ring_full,
            pool_exhausted,
            too_large,
            link_down,
            _,
        ] = words;
        Self {
            links,
            sent,
            received,
            ring_full,
            pool_exhausted,
            too_large,
            link_down,
        }
    }
}

impl From<&LinkCounts> for LinkTotals {
    fn from(counts: &LinkCounts) -> Self {
        Self {
            links: counts.links as u64,
            sent: counts.sent,
            received: counts.received,
            ring_full: counts.refused_full,
            pool_exhausted: counts.refused_share
                + counts.refused_loans
                + counts.refused_exhausted
                + counts.refused_segment,
            too_large: counts.refused_too_long,
            link_down: counts.refused_down,
        }
    }
}

/// Memory of one payload while it is written, of just the size asked for.
#[derive(Debug)]
pub enum Chunk {
    /// Shared with peers.
    Shared(ChunkMut),
    /// Of this process alone, for a simulation.
    Plain(Vec<u8>),
}

impl Chunk {
    /// Ends writing. All of it was written.
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

/// The name of the participant property (PID_PROPERTY_LIST) that tells it.
pub(crate) const PROPERTY: &str = "pteros.shared_memory";

/// Announced by a participant that has links switched off.
pub(crate) const OFF: &str = "off";

/// Where a participant lives, as far as links can reach: those of one realm can
/// be linked. Announced as `version host network user`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Realm {
    /// Version of the link protocol.
    pub version: u16,
    /// The host, this start of it: a hash of its boot id.
    pub host: u64,
    /// The network namespace, in which links are named.
    pub network: u64,
    /// The user.
    pub user: u32,
}

impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            version,
            host,
            network,
            user,
        } = self;
        write!(f, "{version} {host:016x} {network:x} {user}")
    }
}

impl Realm {
    /// Reads what [`Realm`]'s `Display` writes. Later versions may append words.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Self {
            version: words.next()?.parse().ok()?,
            host: u64::from_str_radix(words.next()?, 16).ok()?,
            network: u64::from_str_radix(words.next()?, 16).ok()?,
            user: words.next()?.parse().ok()?,
        })
    }

    /// Why there is no link between this and what a peer announces; `None` where
    /// there should be one.
    pub(crate) fn apart_from(&self, announced: Option<&str>) -> Option<String> {
        let Some(announced) = announced else {
            return Some("its stack does not offer it".into());
        };
        if announced == OFF {
            return Some("switched off there".into());
        }
        let Some(other) = Self::parse(announced) else {
            return Some(format!(
                "it offers \"{announced}\", which is not understood"
            ));
        };
        if other.host != self.host {
            return Some("other host".into());
        }
        if other.version != self.version {
            let theirs = other.version;
            return Some(format!("version {theirs}, ours is {}", self.version));
        }
        if other.user != self.user {
            return Some(Reason::OtherUser { uid: other.user }.to_string());
        }
        (other.network != self.network).then(|| "other container or network namespace".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Realm = Realm {
        version: 1,
        host: 0xfeed,
        network: 4_026_531_840,
        user: 1000,
    };

    #[test]
    fn those_of_one_realm_can_be_linked_and_others_are_told_why_not() {
        let announced = HERE.to_string();
        assert_eq!(announced, "1 000000000000feed f0000000 1000");
        assert_eq!(HERE.apart_from(Some(&announced)), None);
        assert_eq!(HERE.apart_from(Some(&format!("{announced} more"))), None);
        let reason = |other: Realm| HERE.apart_from(Some(&other.to_string())).unwrap();
        assert_eq!(reason(Realm { host: 1, ..HERE }), "other host");
        assert_eq!(reason(Realm { user: 0, ..HERE }), "other user 0");
        assert_eq!(reason(Realm { version: 2, ..HERE }), "version 2, ours is 1");
        let network = Realm { network: 1, ..HERE };
        assert_eq!(reason(network), "other container or network namespace");
        assert_eq!(HERE.apart_from(Some(OFF)).unwrap(), "switched off there");
        assert!(HERE.apart_from(None).unwrap().contains("does not offer"));
        assert!(HERE.apart_from(Some("1 x")).unwrap().contains("\"1 x\""));
    }
}
