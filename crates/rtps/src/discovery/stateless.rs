//! Topic of the authentication handshake (ParticipantStatelessMessage, DDS Security
//! 1.1 §7.4.3.4): best effort, stateless, each message for one peer.
//!
//! The sender repeats unanswered messages. Messages are accepted in any order,
//! because a forged sequence number must not hide a genuine message.

use alloc::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::change::ChangeKind;
use crate::defrag::{DefragLimits, Defragmenter, Fragments, ReassemblyOutcome, SampleHead};
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Route;
use crate::outbox::Outbox;
use crate::receiver::Source;
use crate::seq::SequenceNumber;
use crate::time::Instant;
use crate::wire::{DataFrag, DataHead, Submessage};

/// The largest message: permissions of a few hundred topics. IP fragments it.
const MESSAGE_BYTES_MAX: usize = 62_000;
/// The largest datagram of discovery.
const DATAGRAM_BYTES: usize = 63_000;
/// Queued messages, sent and received; beyond that the newest is dropped, as on the
/// network.
const WAITING_MAX: usize = 256;

/// The writer and the reader of the topic.
pub(crate) struct Stateless {
    prefix: GuidPrefix,
    peers: BTreeMap<GuidPrefix, StatelessPeer>,
    last: SequenceNumber,
    outbound: VecDeque<(GuidPrefix, Bytes)>,
    inbound: VecDeque<(GuidPrefix, Bytes)>,
}

struct StatelessPeer {
    route: Route,
    defragmenter: Defragmenter,
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

    /// Adds a peer with its route.
    pub(crate) fn add_peer(&mut self, prefix: GuidPrefix, route: Route) {
        let limits = DefragLimits {
            sample_bytes_max: MESSAGE_BYTES_MAX,
            bytes_max: MESSAGE_BYTES_MAX.saturating_mul(4),
            ..DefragLimits::default()
        };
        let defragmenter = Defragmenter::new(limits, false);
        self.peers.insert(
            prefix,
            StatelessPeer {
                route,
                defragmenter,
            },
        );
    }

    /// Removes a peer.
    pub(crate) fn remove_peer(&mut self, prefix: GuidPrefix) {
        self.peers.remove(&prefix);
        self.outbound.retain(|(to, _)| *to != prefix);
    }

    /// Sends a message to a peer, once. False if it is too large or the queue is
    /// full: it is lost then, as on the network.
    pub(crate) fn send(&mut self, to: GuidPrefix, payload: Bytes) -> bool {
        let has_space = self.outbound.len() < WAITING_MAX && payload.len() <= MESSAGE_BYTES_MAX;
        if has_space {
            self.outbound.push_back((to, payload));
        }
        has_space
    }

    /// Handles a submessage of this topic; false if it belongs to another one.
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
            Submessage::DataFrag(data) => peer.reassemble(data),
            _ => None,
        };
        if let Some(payload) = whole
            && self.inbound.len() < WAITING_MAX
        {
            self.inbound.push_back((source.prefix, payload));
        }
        true
    }

    /// The next message: sender and payload.
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
            // A repeated message is a new change, or readers would drop it as a
            // duplicate.
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

impl StatelessPeer {
    /// The message, if these were its last fragments.
    fn reassemble(&mut self, data: &DataFrag<'_>) -> Option<Bytes> {
        let head = SampleHead {
            sequence: data.sequence,
            kind: ChangeKind::Alive,
            source_timestamp: None,
            via_shared_memory: false,
            key_only: false,
            key_hash: None,
            related_sample_identity: None,
            coherent_mark: None,
            original_writer_info: None,
            filter_result: None,
        };
        let fragments = Fragments {
            first: data.first_fragment.0,
            count: data.fragment_count,
            fragment_size: data.fragment_size,
            sample_size: data.sample_size,
            payload: data.payload,
        };
        // Handshake messages are bounded by count and size alone; age plays no part.
        match self.defragmenter.handle(Instant::ZERO, head, &fragments) {
            ReassemblyOutcome::Complete(_, payload, _) => Some(payload),
            _ => None,
        }
    }
}
