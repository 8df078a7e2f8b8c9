//! Built-in topic: our reliable, transient-local writer and our reader of it (RTPS
//! 2.5 §8.5.4.2), with the same state machines as user data.
//!
//! The history keeps one change per key, so a late joiner gets the present state,
//! not its past.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use core::hash::{Hash, Hasher};

use bytes::Bytes;

use crate::change::{CacheChange, ChangeKind};
use crate::discovery::data::ParticipantData;
use crate::id::{EntityId, GuidPrefix, VendorId};
use crate::locator::Route;
use crate::memory_budget::MemoryAccount;
use crate::outbox::Outbox;
use crate::qos::{Durability, EndpointQos, History};
use crate::reader::{Reader, ReaderConfig, ReaderEvent, WriterProxyConfig};
use crate::receiver::Source;
use crate::retransmission_window::RetransmissionWindow;
use crate::seq::{SampleIdentity, SequenceNumber};
use crate::shared_qos::SharedQos;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, DataHead, Heartbeat, Submessage};
use crate::writer::{NewChange, ReaderProxyConfig, Writer, WriterConfig, WriterEvent};

/// The largest message: a TypeLookup reply, with names and headers.
const MESSAGE_BYTES_MAX: usize = 192 << 10;

/// The two built-in endpoints of one topic.
pub(crate) struct BuiltinTopic {
    writer: Writer,
    reader: Reader,
    endpoints: BuiltinEndpoints,
    qos: SharedQos,
    /// The last changes received, to notice another one with the same number.
    recent: RecentChanges,
    /// Whether each change names itself, as discovery servers require.
    names_samples: bool,
}

/// A peer that contradicts what was received in its name.
pub(crate) enum TopicReset {
    /// Its reader restarted with the same GUID.
    Restarted(GuidPrefix),
    /// Its writer counts from 1 again: it restarted with the same GUID, or counts were forged.
    CountsAnew(GuidPrefix),
    /// Everything that its writer has is requested again.
    Reread(GuidPrefix),
}

/// Entity ids of the two endpoints of one topic, and their bits in
/// PID_BUILTIN_ENDPOINT_SET.
#[derive(Clone, Copy)]
pub(crate) struct BuiltinEndpoints {
    pub(crate) writer: EntityId,
    pub(crate) reader: EntityId,
    pub(crate) writer_bit: u32,
    pub(crate) reader_bit: u32,
}

impl BuiltinTopic {
    pub(crate) fn new(prefix: GuidPrefix, endpoints: BuiltinEndpoints) -> Self {
        let mut reader = ReaderConfig {
            rereads_history: true,
            ..ReaderConfig::new(prefix.with(endpoints.reader), qos())
        };
        // A peer that does not know of our match sends nothing by itself, and all
        // requests may be lost in an outage. Its lease ends them.
        reader.nack.preemptive_acknacks = u32::MAX;
        Self {
            writer: Writer::new(WriterConfig::new(prefix.with(endpoints.writer), qos())),
            reader: Reader::new(reader),
            endpoints,
            qos: qos().into(),
            recent: RecentChanges::default(),
            names_samples: false,
        }
    }

    /// As [`Self::new`], but it detects a restarted peer with the same GUID, see
    /// [`Self::poll_reset`].
    pub(crate) fn with_reset_detection(prefix: GuidPrefix, endpoints: BuiltinEndpoints) -> Self {
        let mut config = WriterConfig::new(prefix.with(endpoints.writer), qos());
        config.detects_reader_reset = true;
        Self {
            writer: Writer::new(config),
            ..Self::new(prefix, endpoints)
        }
    }

    /// A volatile topic without keys, for messages to one peer each. Late joiners
    /// get nothing.
    ///
    /// `messages_max` are kept until they are acknowledged, but no more than a
    /// sixteenth of them of the largest size. Beyond that the oldest is dropped.
    pub(crate) fn volatile(
        prefix: GuidPrefix,
        endpoints: BuiltinEndpoints,
        messages_max: u32,
    ) -> Self {
        let qos = EndpointQos {
            durability: Durability::Volatile,
            history: History::KeepLast(messages_max),
            ..qos()
        };
        let mut writer = WriterConfig::new(prefix.with(endpoints.writer), qos.clone());
        writer.limits.sample_bytes_max = MESSAGE_BYTES_MAX;
        writer.limits.history_bytes_max =
            MESSAGE_BYTES_MAX.saturating_mul((messages_max / 16) as usize);
        let mut reader = ReaderConfig::new(prefix.with(endpoints.reader), qos.clone());
        reader.limits.defrag.sample_bytes_max = MESSAGE_BYTES_MAX;
        reader.limits.defrag.bytes_max = 2 * MESSAGE_BYTES_MAX;
        reader.limits.reorder_bytes_max = 2 * MESSAGE_BYTES_MAX;
        // Most peers never send anything here, and a heartbeat comes with the first
        // message. So no preemptive ACKNACK is needed.
        reader.nack.preemptive_acknacks = 0;
        Self {
            writer: Writer::new(writer),
            reader: Reader::new(reader),
            endpoints,
            qos: qos.into(),
            recent: RecentChanges::default(),
            names_samples: false,
        }
    }

    /// Names each change in PID_RELATED_SAMPLE_IDENTITY: discovery servers relay no others.
    pub(crate) fn name_samples(&mut self) {
        self.names_samples = true;
    }

    /// Matches the endpoints that a peer announces.
    pub(crate) fn match_peer(&mut self, now: Instant, peer: &ParticipantData, route: &Route) {
        let BuiltinEndpoints {
            writer_bit,
            reader_bit,
            ..
        } = self.endpoints;
        if peer.builtin_endpoints & reader_bit != 0 {
            self.writer.match_reader(
                now,
                ReaderProxyConfig {
                    guid: peer.prefix.with(self.endpoints.reader),
                    qos: self.qos.clone(),
                    route: route.clone(),
                    expects_inline_qos: peer.expects_inline_qos,
                    content_filter: None,
                    payload_form: None,
                    vendor: peer.vendor,
                },
            );
        }
        if peer.builtin_endpoints & writer_bit != 0 {
            self.reader.match_writer(
                now,
                WriterProxyConfig {
                    guid: peer.prefix.with(self.endpoints.writer),
                    qos: self.qos.clone(),
                    route: route.clone(),
                    vendor: peer.vendor,
                },
            );
        }
    }

    /// Charges what a matched peer leaves incomplete here to its account.
    pub(crate) fn limit_memory(&mut self, prefix: GuidPrefix, account: &Arc<MemoryAccount>) {
        let writer = prefix.with(self.endpoints.writer);
        self.reader.limit_discovery_memory(writer, account.clone());
    }

    /// Lets the writer share the peer's retransmission window with the other writers.
    pub(crate) fn share_retransmission_window(
        &mut self,
        prefix: GuidPrefix,
        window: &Arc<RetransmissionWindow>,
    ) {
        self.writer
            .readers_mut()
            .share_retransmission_window(prefix, window);
    }

    /// Unmatches the endpoints of a peer.
    pub(crate) fn unmatch_peer(&mut self, prefix: GuidPrefix) {
        self.writer
            .unmatch_reader(prefix.with(self.endpoints.reader));
        self.reader
            .unmatch_writer(prefix.with(self.endpoints.writer));
        self.recent.remove_participant(prefix);
    }

    /// Keeps dispose changes for peers that may return with stale state
    /// (tombstones).
    pub(crate) fn retain_disposed(&mut self, hold: bool) {
        self.writer.retain_disposed(hold);
    }

    /// Changes the route to a peer.
    pub(crate) fn reroute(&mut self, prefix: GuidPrefix, route: &Route) {
        self.writer
            .update_route(prefix.with(self.endpoints.reader), route.clone());
        self.reader
            .update_route(prefix.with(self.endpoints.writer), route.clone());
    }
}

impl BuiltinTopic {
    /// Publishes the present state of one instance.
    pub(crate) fn publish(&mut self, now: Instant, key: [u8; 16], payload: Bytes) {
        self.write(now, key, payload, ChangeKind::Alive);
    }

    /// Disposes of an instance. The key is sent both as hash (read by Fast DDS) and
    /// as key-only payload (read by Cyclone DDS).
    pub(crate) fn dispose(&mut self, now: Instant, key: [u8; 16], key_only: Bytes) {
        self.write(now, key, key_only, ChangeKind::DisposedUnregistered);
    }

    /// The DATA fields of the next change.
    pub(crate) fn next_data_head(&self) -> DataHead<'static> {
        DataHead {
            reader: self.endpoints.reader,
            writer: self.endpoints.writer,
            sequence: self.writer.next_sequence(),
            ..DataHead::default()
        }
    }

    /// Sends a message to one peer. Beyond the limit of unacknowledged messages the
    /// oldest is dropped; a message that is too large is not sent.
    pub(crate) fn send(&mut self, now: Instant, to: GuidPrefix, payload: Bytes) {
        let change = NewChange {
            payload,
            directed_to: Some(to.with(self.endpoints.reader)),
            ..NewChange::default()
        };
        let _ = self.writer.write(now, change);
    }

    /// Whether all matched peers have acknowledged everything.
    pub(crate) fn is_acked(&self) -> bool {
        self.writer.readers().is_acked_by_all()
    }

    /// Whether a peer has acknowledged a change of ours.
    pub(crate) fn has_acknowledged(&self, prefix: GuidPrefix) -> bool {
        let reader = prefix.with(self.endpoints.reader);
        self.writer.readers().has_acknowledged_a_change(reader)
    }

    /// Whether an ACKNACK acknowledges everything announced here, and there is something.
    pub(crate) fn is_acknowledged_by(&self, acknack: &AckNack) -> bool {
        acknack.writer == self.endpoints.writer
            && !self.has_no_announcement()
            && acknack.state.base() >= self.writer.next_sequence()
    }

    /// Requests everything that a peer's writer has, again. [`Self::poll_reset`] reports it.
    pub(crate) fn reread(&mut self, now: Instant, prefix: GuidPrefix) {
        self.reader.reread(now, prefix.with(self.endpoints.writer));
    }

    /// Whether nothing was ever announced.
    pub(crate) fn has_no_announcement(&self) -> bool {
        self.writer.next_sequence() == SequenceNumber::FIRST
    }

    fn write(&mut self, now: Instant, key: [u8; 16], payload: Bytes, kind: ChangeKind) {
        let identity = || SampleIdentity {
            writer: self.writer.guid(),
            sequence: self.writer.next_sequence(),
        };
        let change = NewChange {
            payload,
            kind,
            key_hash: Some(key),
            related_sample_identity: self.names_samples.then(identity),
            ..NewChange::default()
        };
        // Keep-last per key never blocks, and discovery data is far below the size
        // limit. So a refusal would be our bug, and a peer must not cause a panic.
        let written = self.writer.write(now, change);
        debug_assert!(
            written.is_ok(),
            "the writer of a built-in topic refused a write: {written:?}"
        );
    }

    /// Passes a submessage to the writer or the reader; false if it belongs to
    /// another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        let from = source.prefix;
        let ours = |writer: EntityId| writer == self.endpoints.writer;
        match message {
            Submessage::Data(m) if ours(m.writer) => {
                let content = RecentChanges::hash(m.payload, m.key_only, m.inline_qos.key_hash());
                let rereads = self.reader.rereads_history();
                if rereads && self.recent.contradicts(now, (from, m.sequence), content) {
                    // One of the two is forged. Neither counts; the true one comes again.
                    self.reader.reread(now, from.with(m.writer));
                } else {
                    self.reader.handle_data(now, source, m);
                }
            }
            Submessage::DataFrag(m) if ours(m.writer) => {
                self.reader.handle_data_frag(now, source, m);
            }
            Submessage::Heartbeat(m) if ours(m.writer) => {
                self.reader.handle_heartbeat(now, source, m);
            }
            Submessage::HeartbeatFrag(m) if ours(m.writer) => {
                self.reader.handle_heartbeat_frag(now, source, m);
            }
            Submessage::Gap(m) if ours(m.writer) => self.reader.handle_gap(now, source, m),
            Submessage::AckNack(m) if ours(m.writer) => self.writer.handle_acknack(now, from, m),
            Submessage::NackFrag(m) if ours(m.writer) => {
                self.writer.handle_nack_frag(now, from, m);
            }
            _ => return false,
        }
        true
    }

    /// The next change of a peer, in order.
    pub(crate) fn poll_change(&mut self) -> Option<CacheChange> {
        let change = self.reader.poll_sample()?;
        if self.reader.rereads_history() {
            // It may have come in fragments.
            let content = RecentChanges::hash(&change.payload, change.key_only, change.key_hash);
            let of = (change.writer.prefix, change.sequence);
            self.recent.note(of, content);
        }
        Some(change)
    }

    /// The next participant whose writer or reader restarted with the same GUID, or
    /// is read again.
    pub(crate) fn poll_reset(&mut self) -> Option<TopicReset> {
        while let Some(event) = self.writer.poll_event() {
            if let WriterEvent::ReaderReset { reader } = event {
                return Some(TopicReset::Restarted(reader.prefix));
            }
        }
        // Losses and deadlines of built-in topics are ignored.
        while let Some(event) = self.reader.poll_event() {
            match event {
                ReaderEvent::WriterReset { writer } => {
                    return Some(TopicReset::CountsAnew(writer.prefix));
                }
                ReaderEvent::Resynchronised { writer } => {
                    self.recent.remove_participant(writer.prefix);
                    return Some(TopicReset::Reread(writer.prefix));
                }
                _ => {}
            }
        }
        None
    }

    /// Whether everything that a peer's writer has announced was received.
    pub(crate) fn has_everything_of(&self, prefix: GuidPrefix) -> bool {
        self.reader
            .has_everything_of(prefix.with(self.endpoints.writer))
    }

    /// A heartbeat that requests an answer, to probe a peer.
    pub(crate) fn probe(&mut self, prefix: GuidPrefix) -> Heartbeat {
        self.writer.probe(prefix.with(self.endpoints.reader))
    }

    /// An ACKNACK that requests a HEARTBEAT of a peer's writer, to probe it.
    pub(crate) fn probe_writer(&mut self, prefix: GuidPrefix, vendor: VendorId) -> AckNack {
        let writer = prefix.with(self.endpoints.writer);
        self.reader.probe(writer, vendor)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.writer.handle_timeout(now);
        self.reader.handle_timeout(now);
        // Losses and deadlines of built-in topics are ignored. Resets follow from
        // messages, not from timeouts.
        while self.writer.poll_event().is_some() {}
        while self.reader.poll_event().is_some() {}
        for prefix in self.recent.take_postponed(now) {
            self.reread(now, prefix);
        }
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let own = earliest(self.writer.next_timeout(), self.reader.next_timeout());
        earliest(own, self.recent.next_timeout())
    }

    /// True if there is more to send.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let writer = self.writer.poll_transmit(now, out);
        let reader = self.reader.poll_transmit(now, out);
        writer || reader
    }
}

/// The participant of a built-in writer, and the number of its change.
type ChangeId = (GuidPrefix, SequenceNumber);

/// Hashes of the last changes received from all peers.
///
/// A writer never gives two changes one number. A second content for a number means
/// that one of the two is forged.
#[derive(Default)]
struct RecentChanges {
    /// Oldest first.
    list: VecDeque<(ChangeId, u64)>,
    /// When a contradiction last was found, so that an attacker cannot cause more
    /// than two repetitions a second.
    found_at: Option<Instant>,
    /// Participants that contradicted themselves in the pause after that. They are
    /// read again at its end.
    postponed: BTreeSet<GuidPrefix>,
}

/// Changes remembered, over all peers.
const RECENT_CHANGES_MAX: usize = 256;
const CONTRADICTION_PAUSE: Duration = Duration::from_millis(500);

impl RecentChanges {
    /// Notes a change. True if another one had its number.
    fn contradicts(&mut self, now: Instant, of: ChangeId, hash: u64) -> bool {
        let from = of.0;
        if let Some(before) = self.find(of) {
            let is_paused = self
                .found_at
                .is_some_and(|at| now.since(at) < CONTRADICTION_PAUSE);
            let contradicts = before != hash;
            if contradicts && is_paused {
                // As many as there are participants in the list.
                self.postponed.insert(from);
            } else if contradicts {
                self.found_at = Some(now);
            }
            return contradicts && !is_paused;
        }
        self.note(of, hash);
        false
    }

    /// The hash of a change. The payload names the key if there is one, and the key hash
    /// may be in one fragment only.
    fn hash(payload: &[u8], key_only: bool, key_hash: Option<[u8; 16]>) -> u64 {
        let mut hasher = Fnv1a::default();
        (payload, key_only).hash(&mut hasher);
        key_hash.filter(|_| payload.is_empty()).hash(&mut hasher);
        hasher.finish()
    }

    fn find(&self, of: ChangeId) -> Option<u64> {
        let mut all = self.list.iter();
        all.find(|(known, _)| *known == of).map(|(_, hash)| *hash)
    }

    /// Notes a change that is not noted yet.
    fn note(&mut self, of: ChangeId, hash: u64) {
        if self.find(of).is_some() {
            return;
        }
        if self.list.len() >= RECENT_CHANGES_MAX {
            self.list.pop_front();
        }
        self.list.push_back((of, hash));
    }

    /// The participants to read again, when the pause has ended.
    fn take_postponed(&mut self, now: Instant) -> BTreeSet<GuidPrefix> {
        if self.next_timeout().is_none_or(|due| due > now) {
            return BTreeSet::new();
        }
        self.found_at = Some(now);
        core::mem::take(&mut self.postponed)
    }

    fn next_timeout(&self) -> Option<Instant> {
        let ends_at = self.found_at?.after(CONTRADICTION_PAUSE);
        (!self.postponed.is_empty()).then_some(ends_at)
    }

    fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.list.retain(|((from, _), _)| *from != prefix);
        self.postponed.remove(&prefix);
    }
}

/// The FNV-1a hash, which needs no state of the process.
struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv1a {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The earlier of two deadlines that may not exist.
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The QoS of SEDP and WLP endpoints (RTPS 2.5 §8.5.4.2), except that the reader
/// takes the whole history: the writer keeps one change per key.
fn qos() -> EndpointQos {
    EndpointQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        max_blocking_time: Duration::ZERO,
        ..EndpointQos::default()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::locator::Locator;
    use crate::receiver::MessageReader;

    /// Found in review: a probe named first = 1, and the peer took that for a
    /// contradiction to the other heartbeats.
    #[test]
    fn probes_name_the_first_number_of_the_other_heartbeats() {
        let (us, them) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let endpoints = BuiltinEndpoints {
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            reader: EntityId::SEDP_PUBLICATIONS_READER,
            writer_bit: 1,
            reader_bit: 2,
        };
        let mut peer = ParticipantData::new(them);
        peer.builtin_endpoints = 3;
        let route = Route::by_socket(&[Locator::udp_v4([10, 0, 0, 2], 7410)], false);
        for (published, disposed, first) in [(0, 0, 1), (1, 0, 1), (3, 2, 3), (3, 3, 7)] {
            let now = Instant::ZERO;
            let mut channel = BuiltinTopic::new(us, endpoints);
            for key in 0..published {
                channel.publish(now, [key; 16], Bytes::from_static(b"data"));
            }
            for key in 0..disposed {
                channel.dispose(now, [key; 16], Bytes::from_static(b"key"));
            }
            let unmatched = channel.probe(them);
            channel.match_peer(now, &peer, &route);
            let mut out = Outbox::new();
            channel.poll_transmit(now, &mut out);
            let mut heartbeats = Vec::new();
            for datagram in out.iter() {
                let bytes = datagram.to_vec();
                for (_, message) in MessageReader::new(&bytes, them).unwrap() {
                    if let Submessage::Heartbeat(heartbeat) = message {
                        heartbeats.push((heartbeat.first, heartbeat.last));
                    }
                }
            }
            let probe = channel.probe(them);
            assert_eq!(probe.first, SequenceNumber(first), "{published} {disposed}");
            assert_eq!(probe.first, unmatched.first);
            assert!(!heartbeats.is_empty());
            assert!(
                heartbeats.iter().all(|of| of.0 == probe.first),
                "{heartbeats:?}"
            );
        }
    }

    #[test]
    fn acknack_counts_continue_when_a_peer_is_matched_again() {
        let (us, them) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let endpoints = BuiltinEndpoints {
            writer: EntityId::SEDP_PUBLICATIONS_WRITER,
            reader: EntityId::SEDP_PUBLICATIONS_READER,
            writer_bit: 1,
            reader_bit: 2,
        };
        let mut channel = BuiltinTopic::new(us, endpoints);
        let mut peer = ParticipantData::new(them);
        peer.builtin_endpoints = 3;
        peer.vendor = VendorId::FAST_DDS;
        let route = Route::by_socket(&[Locator::udp_v4([10, 0, 0, 2], 7410)], false);
        let mut last = 0;
        for round in 0..4 {
            let now = Instant::ZERO + Duration::from_secs(round);
            channel.match_peer(now, &peer, &route);
            let mut out = Outbox::new();
            channel.poll_transmit(now, &mut out);
            for datagram in out.iter() {
                let bytes = datagram.to_vec();
                for (_, message) in MessageReader::new(&bytes, them).unwrap() {
                    if let Submessage::AckNack(acknack) = message {
                        assert!(acknack.count > last, "{} after {last}", acknack.count);
                        last = acknack.count;
                    }
                }
            }
            channel.unmatch_peer(them);
        }
        assert_eq!(last, 4);
    }
}
