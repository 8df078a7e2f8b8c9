//! One built-in topic: our reliable, transient-local writer and our reader of
//! it, over the same machines as user data. The history keeps one change per
//! key, so a late joiner gets the present state and not its past.

use bytes::Bytes;

use crate::discovery::data::ParticipantData;
use crate::history::{CacheChange, ChangeKind};
use crate::id::{EntityId, GuidPrefix};
use crate::locator::Route;
use crate::outbox::Outbox;
use crate::qos::{Durability, EndpointQos, History};
use crate::reader::{Reader, ReaderConfig, ReaderEvent, WriterProxyConfig};
use crate::receiver::Source;
use crate::shared_qos::SharedQos;
use crate::time::{Duration, Instant};
use crate::wire::{DataHead, Heartbeat, Submessage};
use crate::writer::{NewChange, ReaderProxyConfig, Writer, WriterConfig, WriterEvent};

/// The largest of them: the TypeLookup service's largest reply, with room for
/// names and headers.
const MESSAGE_BYTES_MAX: usize = 192 << 10;

/// A pair of built-in endpoints.
pub(crate) struct Channel {
    writer: Writer,
    reader: Reader,
    writer_id: EntityId,
    reader_id: EntityId,
    /// Bits of a peer's built-in endpoint set for its writer and its reader.
    bits: (u32, u32),
    qos: SharedQos,
}

impl Channel {
    pub(crate) fn new(
        prefix: GuidPrefix,
        writer_id: EntityId,
        reader_id: EntityId,
        bits: (u32, u32),
    ) -> Self {
        Self {
            writer: Writer::new(WriterConfig::new(prefix.with(writer_id), qos())),
            reader: Reader::new(ReaderConfig::new(prefix.with(reader_id), qos())),
            writer_id,
            reader_id,
            bits,
            qos: qos().into(),
        }
    }

    /// The same, which sees that a peer's reader is another one with the GUID
    /// of one that is gone; ask [`Self::poll_began_anew`].
    pub(crate) fn doubting(
        prefix: GuidPrefix,
        writer_id: EntityId,
        reader_id: EntityId,
        bits: (u32, u32),
    ) -> Self {
        let mut config = WriterConfig::new(prefix.with(writer_id), qos());
        config.doubts_readers = true;
        Self {
            writer: Writer::new(config),
            ..Self::new(prefix, writer_id, reader_id, bits)
        }
    }

    /// A channel of messages without key, each for one peer, that nobody gets
    /// who comes later. `messages_max` are kept until they are acknowledged, and
    /// no more than a sixteenth of them of the largest size; then the oldest goes.
    pub(crate) fn volatile(
        prefix: GuidPrefix,
        (writer_id, reader_id): (EntityId, EntityId),
        bits: (u32, u32),
        messages_max: u32,
    ) -> Self {
        let qos = EndpointQos {
            durability: Durability::Volatile,
            history: History::KeepLast(messages_max),
            ..qos()
        };
        let mut writer = WriterConfig::new(prefix.with(writer_id), qos.clone());
        writer.limits.sample_bytes_max = MESSAGE_BYTES_MAX;
        writer.limits.history_bytes_max =
            MESSAGE_BYTES_MAX.saturating_mul((messages_max / 16) as usize);
        let mut reader = ReaderConfig::new(prefix.with(reader_id), qos.clone());
        reader.limits.defrag.sample_bytes_max = MESSAGE_BYTES_MAX;
        reader.limits.defrag.bytes_max = 2 * MESSAGE_BYTES_MAX;
        reader.limits.reorder_bytes_max = 2 * MESSAGE_BYTES_MAX;
        // Most peers never say anything here. What one says comes with a
        // heartbeat, which is introduction enough.
        reader.nack.introductions = 0;
        Self {
            writer: Writer::new(writer),
            reader: Reader::new(reader),
            writer_id,
            reader_id,
            bits,
            qos: qos.into(),
        }
    }

    /// Starts talking to a peer, as far as it has the endpoints.
    pub(crate) fn meet(&mut self, now: Instant, peer: &ParticipantData, route: &Route) {
        let (writes, reads) = self.bits;
        if peer.builtin_endpoints & reads != 0 {
            self.writer.match_reader(
                now,
                ReaderProxyConfig {
                    guid: peer.prefix.with(self.reader_id),
                    qos: self.qos.clone(),
                    route: route.clone(),
                    expects_inline_qos: peer.expects_inline_qos,
                    content_filter: None,
                    vendor: peer.vendor,
                },
            );
        }
        if peer.builtin_endpoints & writes != 0 {
            self.reader.match_writer(
                now,
                WriterProxyConfig {
                    guid: peer.prefix.with(self.writer_id),
                    qos: self.qos.clone(),
                    route: route.clone(),
                    vendor: peer.vendor,
                },
            );
        }
    }

    /// Stops talking to a peer.
    pub(crate) fn part(&mut self, prefix: GuidPrefix) {
        self.writer.unmatch_reader(prefix.with(self.reader_id));
        self.reader.unmatch_writer(prefix.with(self.writer_id));
    }

    /// Keeps what is gone for those who may come back and still believe in it.
    pub(crate) fn hold_endings(&mut self, hold: bool) {
        self.writer.hold_endings(hold);
    }

    /// The peer is reached elsewhere now.
    pub(crate) fn reroute(&mut self, prefix: GuidPrefix, route: &Route) {
        self.writer
            .update_route(prefix.with(self.reader_id), route.clone());
        self.reader
            .update_route(prefix.with(self.writer_id), route.clone());
    }
}

impl Channel {
    /// Tells the present state of one instance.
    pub(crate) fn put(&mut self, now: Instant, key: [u8; 16], payload: Bytes) {
        self.write(now, key, payload, ChangeKind::Alive);
    }

    /// Tells that an instance is gone. The key goes along both as hash (Fast
    /// DDS reads that) and as key-only payload (Cyclone does).
    pub(crate) fn dispose(&mut self, now: Instant, key: [u8; 16], key_only: Bytes) {
        self.write(now, key, key_only, ChangeKind::DisposedUnregistered);
    }

    /// How the next change is headed.
    pub(crate) fn next_head(&self) -> DataHead<'static> {
        DataHead {
            reader: self.reader_id,
            writer: self.writer_id,
            sequence: self.writer.next_sequence(),
            ..DataHead::default()
        }
    }

    /// Tells one peer something. Beyond 64 messages that are on their way, the
    /// oldest is dropped; one that is too large is not sent.
    pub(crate) fn send(&mut self, now: Instant, to: GuidPrefix, payload: Bytes) {
        let change = NewChange {
            payload,
            only_for: Some(to.with(self.reader_id)),
            ..NewChange::default()
        };
        let _ = self.writer.write(now, change);
    }

    /// Whether all who are met have all that they were told.
    pub(crate) fn is_acked(&self) -> bool {
        self.writer.is_acked_by_all()
    }

    fn write(&mut self, now: Instant, key: [u8; 16], payload: Bytes, kind: ChangeKind) {
        let change = NewChange {
            payload,
            kind,
            key_hash: Some(key),
            ..NewChange::default()
        };
        // Keep-last per key never blocks and discovery data is far below the
        // size limit, so refusal would be our bug; a peer must not see a panic.
        let written = self.writer.write(now, change);
        debug_assert!(written.is_ok(), "built-in writer refused: {written:?}");
    }

    /// Gives a submessage to the machine that it concerns; false if it is of
    /// another topic.
    pub(crate) fn handle(&mut self, now: Instant, source: &Source, message: &Submessage) -> bool {
        let from = source.prefix;
        let ours = |writer: EntityId| writer == self.writer_id;
        match message {
            Submessage::Data(m) if ours(m.writer) => self.reader.handle_data(now, source, m),
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

    /// The next change a peer told, in its order.
    pub(crate) fn poll_change(&mut self) -> Option<CacheChange> {
        self.reader.poll_sample()
    }

    /// A participant whose writer or reader began anew with the same GUID.
    pub(crate) fn poll_began_anew(&mut self) -> Option<GuidPrefix> {
        while let Some(event) = self.writer.poll_event() {
            if let WriterEvent::ReaderBeganAnew { reader } = event {
                return Some(reader.prefix);
            }
        }
        // Losses and deadlines of built-in topics are of no interest.
        while let Some(event) = self.reader.poll_event() {
            if let ReaderEvent::WriterBeganAnew { writer } = event {
                return Some(writer.prefix);
            }
        }
        None
    }

    /// A heartbeat that asks for an answer, to see whether a peer is there.
    pub(crate) fn probe(&mut self) -> Heartbeat {
        self.writer.probe()
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.writer.handle_timeout(now);
        self.reader.handle_timeout(now);
        // Deadlines and losses of built-in topics are of no interest.
        while self.writer.poll_event().is_some() {}
        while self.reader.poll_event().is_some() {}
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        earliest(self.writer.next_timeout(), self.reader.next_timeout())
    }

    /// True if there is more to send.
    pub(crate) fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        let writer = self.writer.poll_transmit(now, out);
        let reader = self.reader.poll_transmit(now, out);
        writer || reader
    }
}

/// The earlier of two deadlines that may not exist.
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What RTPS 2.5 §8.5.4.2 asks of the SEDP and WLP endpoints, except that the
/// reader takes everything kept: the writer keeps one change per key.
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
    use super::*;
    use crate::id::VendorId;
    use crate::locator::Locator;
    use crate::receiver::MessageReader;

    #[test]
    fn counts_go_on_when_a_peer_is_met_again_since_it_may_never_have_forgotten_us() {
        let (us, them) = (GuidPrefix([1; 12]), GuidPrefix([2; 12]));
        let ids = (
            EntityId::SEDP_PUBLICATIONS_WRITER,
            EntityId::SEDP_PUBLICATIONS_READER,
        );
        let mut channel = Channel::new(us, ids.0, ids.1, (1, 2));
        let mut peer = ParticipantData::new(them);
        peer.builtin_endpoints = 3;
        peer.vendor = VendorId::FAST_DDS;
        let route = Route::by_socket(&[Locator::udp_v4([10, 0, 0, 2], 7410)], false);
        let mut last = 0;
        for round in 0..4 {
            let now = Instant::ZERO + Duration::from_secs(round);
            channel.meet(now, &peer, &route);
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
            channel.part(them);
        }
        assert_eq!(last, 4);
    }
}
