//! Topic of the authentication handshake (ParticipantStatelessMessage, DDS Security
//! 1.1 §7.4.3.4): best effort, stateless, each message for one peer.
//!
//! The sender repeats unanswered messages. Messages are accepted in any order,
//! because a forged sequence number must not hide a genuine message.

use alloc::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::change::{Carrier, ChangeKind};
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
            carrier: Carrier::Datagrams,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locator::Locator;
    use crate::receiver::MessageReader;
    use alloc::vec;
    use alloc::vec::Vec;

    const OWN: GuidPrefix = GuidPrefix([1; 12]);
    const PEER: GuidPrefix = GuidPrefix([2; 12]);
    const OTHER: GuidPrefix = GuidPrefix([3; 12]);

    fn met(own: GuidPrefix, peers: &[GuidPrefix]) -> Stateless {
        let mut machine = Stateless::new(own);
        for peer in peers {
            let at = Locator::udp_v4([10, 0, 0, peer.0[0]], 7410);
            machine.add_peer(*peer, Route::by_socket(&[at], false));
        }
        machine
    }

    fn payload(number: usize) -> Bytes {
        Bytes::from(number.to_le_bytes().to_vec())
    }

    /// Sends everything; the datagrams.
    fn datagrams(from: &mut Stateless) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        loop {
            let mut out = Outbox::new();
            let more = from.poll_transmit(&mut out);
            sent.extend(out.iter().map(|datagram| datagram.to_vec()));
            if !more {
                return sent;
            }
        }
    }

    fn receive(to: &mut Stateless, own: GuidPrefix, datagram: &[u8]) {
        for (source, message) in MessageReader::new(datagram, own).unwrap() {
            to.handle(&source, &message);
        }
    }

    #[test]
    fn a_queue_takes_messages_up_to_its_limit_and_none_that_is_too_large() {
        let mut machine = met(OWN, &[PEER]);
        assert!(!machine.send(PEER, vec![0; MESSAGE_BYTES_MAX + 1].into()));
        assert!(machine.send(PEER, vec![0; MESSAGE_BYTES_MAX].into()));
        for number in 1..WAITING_MAX {
            assert!(machine.send(PEER, payload(number)), "{number}");
        }
        assert!(!machine.send(PEER, payload(0)));
        assert_eq!(datagrams(&mut machine).len(), WAITING_MAX);
        assert!(machine.send(PEER, payload(0)));
    }

    #[test]
    fn received_messages_wait_up_to_the_limit_in_their_order() {
        let mut sender = met(OWN, &[PEER]);
        let mut receiver = met(PEER, &[OWN]);
        for number in 0..=WAITING_MAX {
            sender.send(PEER, payload(number));
            for datagram in datagrams(&mut sender) {
                receive(&mut receiver, PEER, &datagram);
            }
        }
        for number in 0..WAITING_MAX {
            assert_eq!(receiver.poll_message(), Some((OWN, payload(number))));
        }
        assert_eq!(receiver.poll_message(), None, "the newest was dropped");
    }

    #[test]
    fn only_messages_of_known_peers_to_us_are_received() {
        let mut sender = met(OWN, &[PEER, OTHER]);
        sender.send(PEER, payload(1));
        sender.send(OTHER, payload(2));
        let all = datagrams(&mut sender);
        let mut receiver = met(PEER, &[OWN]);
        let mut stranger = met(PEER, &[OTHER]);
        for datagram in &all {
            receive(&mut receiver, PEER, datagram);
            receive(&mut stranger, PEER, datagram);
        }
        assert_eq!(receiver.poll_message(), Some((OWN, payload(1))));
        assert_eq!(receiver.poll_message(), None);
        assert_eq!(stranger.poll_message(), None);
        // Nothing is sent to a peer that left, or was never there.
        sender.send(PEER, payload(3));
        sender.send(OTHER, payload(4));
        sender.remove_peer(PEER);
        assert_eq!(datagrams(&mut sender).len(), 1);
    }
}
