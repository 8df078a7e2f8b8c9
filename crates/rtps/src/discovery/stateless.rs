//! The topic on which participants talk before they trust each other: best
//! effort, without state, each message for one peer (DDS Security 1.1 §7.4.3.4).
//! Whoever speaks here repeats what is not answered. Messages are read in
//! whatever order they come: a forged number must not hide an honest one.

use alloc::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::defrag::{Assembly, DefragLimits, Defragmenter, Fragments, SampleHead};
use crate::history::ChangeKind;
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Route;
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::seq::SequenceNumber;
use crate::wire::{DataFrag, DataHead, Submessage};

/// The largest message: permissions of a few hundred topics. IP fragments it.
const MESSAGE_BYTES_MAX: usize = 62_000;
/// The largest datagram of discovery.
const DATAGRAM_BYTES: usize = 63_000;
/// Messages that wait to be sent, or to be read; beyond that the newest is
/// dropped, as on the network.
const WAITING_MAX: usize = 256;

/// Our writer and our reader.
pub(crate) struct Stateless {
    prefix: GuidPrefix,
    peers: BTreeMap<GuidPrefix, Peer>,
    last: SequenceNumber,
    outbound: VecDeque<(GuidPrefix, Bytes)>,
    inbound: VecDeque<(GuidPrefix, Bytes)>,
}

struct Peer {
    route: Route,
    pieces: Defragmenter,
}

impl Stateless {
    pub(crate) fn new(prefix: GuidPrefix) -> Self {
        Self {
            prefix,
            peers: BTreeMap::new(),
            last: SequenceNumber::ZERO,
            outbound: VecDeque::new(),
            inbound: VecDeque::new(),
        }
    }

    /// Speaks with a peer from now on, there.
    pub(crate) fn meet(&mut self, prefix: GuidPrefix, route: Route) {
        let limits = DefragLimits {
            sample_bytes_max: MESSAGE_BYTES_MAX,
            bytes_max: MESSAGE_BYTES_MAX.saturating_mul(4),
            ..DefragLimits::default()
        };
        let pieces = Defragmenter::new(limits, false);
        self.peers.insert(prefix, Peer { route, pieces });
    }

    /// Speaks with it no longer.
    pub(crate) fn part(&mut self, prefix: GuidPrefix) {
        self.peers.remove(&prefix);
        self.outbound.retain(|(to, _)| *to != prefix);
    }

    /// Tells a peer something, once. What is too large, or finds the queue full,
    /// is lost as on the network; false then.
    pub(crate) fn send(&mut self, to: GuidPrefix, payload: Bytes) -> bool {
        let has_room = self.outbound.len() < WAITING_MAX && payload.len() <= MESSAGE_BYTES_MAX;
        if has_room {
            self.outbound.push_back((to, payload));
        }
        has_room
    }

    /// Reads a submessage of this topic; false if it is of another.
    pub(crate) fn handle(&mut self, source: &Source, message: &Submessage) -> bool {
        if message.writer() != Some(EntityId::STATELESS_WRITER) {
            return false;
        }
        if source.destination != GuidPrefix::UNKNOWN && source.destination != self.prefix {
            return true;
        }
        let Some(peer) = self.peers.get_mut(&source.prefix) else {
            return true;
        };
        let whole = match message {
            Submessage::Data(data) if data.payload.len() <= MESSAGE_BYTES_MAX => {
                Some(Bytes::copy_from_slice(data.payload))
            }
            Submessage::DataFrag(data) => peer.put_together(data),
            _ => None,
        };
        if let Some(payload) = whole
            && self.inbound.len() < WAITING_MAX
        {
            self.inbound.push_back((source.prefix, payload));
        }
        true
    }

    /// The next message: of whom, and its payload.
    pub(crate) fn poll_message(&mut self) -> Option<(GuidPrefix, Bytes)> {
        self.inbound.pop_front()
    }

    /// True if there is more to send.
    pub(crate) fn poll_transmit(&mut self, out: &mut Outbox) -> bool {
        while !out.is_full()
            && let Some((to, payload)) = self.outbound.pop_front()
        {
            let Some(peer) = self.peers.get(&to) else {
                continue;
            };
            // The same words sent again are a change of their own, or readers
            // would take them for what they have.
            self.last = self.last.next();
            let head = DataHead {
                reader: EntityId::STATELESS_READER,
                writer: EntityId::STATELESS_WRITER,
                sequence: self.last,
                ..DataHead::default()
            };
            let mut message = out.begin(self.prefix, &peer.route.locators, DATAGRAM_BYTES);
            message.info_destination(to);
            message.data(&head, &payload);
            message.finish();
        }
        !self.outbound.is_empty()
    }
}

impl Peer {
    /// The message that these were the last fragments of.
    fn put_together(&mut self, data: &DataFrag<'_>) -> Option<Bytes> {
        let head = SampleHead {
            sequence: data.sequence,
            kind: ChangeKind::Alive,
            source_timestamp: None,
            by_link: false,
            key_only: false,
            key_hash: None,
            related: None,
            mark: None,
            original: None,
            passes: None,
        };
        let fragments = Fragments {
            first: data.first_fragment.0,
            count: data.fragment_count,
            fragment_size: data.fragment_size,
            sample_size: data.sample_size,
            payload: data.payload,
        };
        match self.pieces.handle(head, &fragments) {
            Assembly::Whole(_, payload) => Some(payload),
            _ => None,
        }
    }
}
