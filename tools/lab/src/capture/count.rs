//! RTPS statistics of captured packets: submessages by kind and traffic class, and
//! the first and last packet of each message.
//!
//! Only writers of user topics with messages of the given size are followed.
//! `ros_discovery_info` of ROS 2 is a user topic for RTPS, and no message of a
//! test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::wire::{Cursor, Endianness, Header, Submessage, SubmessageHeader};

use super::frame::Datagram;

/// Minimum length of an encrypted RTPS message that counts as part of a user
/// message. Heartbeats, ACKNACKs and most of discovery are shorter, and fragments
/// of every stack are longer.
const ENCRYPTED_DATA_BYTES_MIN: usize = 1024;

/// Encrypted packets further apart belong to different messages. Measurements send
/// messages further apart than this.
const ENCRYPTED_PAUSE_NS: i64 = 8_000_000;

/// Maximum messages that are followed. Packets of later ones are only counted.
const MESSAGES_MAX: usize = 200_000;

/// Maximum writers that are followed. Others count as discovery.
const WRITERS_MAX: usize = 10_000;

/// Kind of a submessage (RTPS 2.5 §9.4.5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SubmessageKind {
    /// DATA: a whole change.
    Data,
    /// DATA_FRAG: a fragment of a change.
    DataFrag,
    /// HEARTBEAT: the available sequence numbers of a writer.
    Heartbeat,
    /// HEARTBEAT_FRAG: the available fragments of a writer.
    HeartbeatFrag,
    /// ACKNACK: received and missing sequence numbers of a reader.
    AckNack,
    /// NACK_FRAG: missing fragments of a reader.
    NackFrag,
    /// GAP: sequence numbers that a writer will not send.
    Gap,
    /// INFO_TS.
    InfoTimestamp,
    /// INFO_DST.
    InfoDestination,
    /// INFO_SRC.
    InfoSource,
    /// INFO_REPLY and INFO_REPLY_IP4.
    InfoReply,
    Pad,
    /// SEC_PREFIX and the other submessages of DDS Security.
    Secure,
    /// Any other.
    Unknown,
}

impl fmt::Display for SubmessageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Data => "DATA",
            Self::DataFrag => "DATA_FRAG",
            Self::Heartbeat => "HEARTBEAT",
            Self::HeartbeatFrag => "HEARTBEAT_FRAG",
            Self::AckNack => "ACKNACK",
            Self::NackFrag => "NACK_FRAG",
            Self::Gap => "GAP",
            Self::InfoTimestamp => "INFO_TS",
            Self::InfoDestination => "INFO_DST",
            Self::InfoSource => "INFO_SRC",
            Self::InfoReply => "INFO_REPLY",
            Self::Pad => "PAD",
            Self::Secure => "SECURE",
            Self::Unknown => "unknown",
        })
    }
}

/// Traffic class of a submessage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrafficClass {
    /// User topics.
    User,
    /// Builtin endpoints: discovery, liveliness.
    Builtin,
    /// Submessages without an endpoint, such as INFO_TS.
    None,
}

/// Number and bytes of packets or submessages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTally {
    /// The number.
    pub count: u64,
    /// Bytes: of packets from the IP header on, of submessages with their headers.
    pub bytes: u64,
}

impl PacketTally {
    fn add(&mut self, count: u64, bytes: u64) {
        self.count += count;
        self.bytes += bytes;
    }
}

/// The packets of one message, with retransmissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedMessage {
    /// Time of the first packet in nanoseconds since 1970.
    pub first_ns: i64,
    /// Time of the last packet.
    pub last_ns: i64,
    /// Packets with a part of the message.
    pub packets: u64,
    /// Payload bytes in these packets.
    pub bytes: u64,
}

impl CapturedMessage {
    fn begin(now_ns: i64) -> Self {
        Self {
            first_ns: now_ns,
            last_ns: now_ns,
            packets: 0,
            bytes: 0,
        }
    }

    fn add(&mut self, now_ns: i64, packets: u64, bytes: u64) {
        self.last_ns = self.last_ns.max(now_ns);
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// Counters of a capture. Every IPv4 packet is in exactly one of `user_data`,
/// `user_other`, `builtin` and `foreign`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Minimum message size of a writer that is followed.
    message_bytes_min: u64,
    /// Packets with a followed message or a part of one.
    pub user_data: PacketTally,
    /// Packets of followed writers without message data, from the first message of
    /// each. Of encrypted traffic everything that is not a message.
    pub user_other: PacketTally,
    /// Packets of discovery, liveliness and other topics only.
    pub builtin: PacketTally,
    /// Packets other than RTPS, and incomplete IP fragments.
    pub foreign: PacketTally,
    /// RTPS messages with an undecodable submessage. Submessages before it count.
    pub malformed: u64,
    /// Submessages by kind and class.
    pub submessages: BTreeMap<(SubmessageKind, TrafficClass), PacketTally>,
    followed: BTreeSet<Guid>,
    /// Messages of followed writers by sequence number.
    messages: BTreeMap<MessageKey, CapturedMessage>,
    /// Bursts of encrypted packets, which are taken as messages.
    bursts: Vec<CapturedMessage>,
    /// The burst before the first message, as long as it is too short for one.
    candidate: Option<BurstCandidate>,
    /// RTPS packets from the first to the last packet with a followed message.
    between: u64,
    since_last: u64,
}

/// A burst of encrypted packets that may become the first message.
#[derive(Clone, Copy, Debug)]
struct BurstCandidate {
    message: CapturedMessage,
    /// Its packets with their size on the network.
    tally: PacketTally,
    /// RTPS packets since its first packet.
    between: u64,
}

impl Counts {
    /// Empty counters that follow writers with messages of at least
    /// `message_bytes_min` serialized bytes.
    pub fn of_messages(message_bytes_min: u64) -> Self {
        Self {
            message_bytes_min,
            ..Self::default()
        }
    }

    /// Number of all packets.
    pub fn packets(&self) -> u64 {
        let parts = [self.user_data, self.user_other, self.builtin, self.foreign];
        parts.iter().map(|tally| tally.count).sum()
    }

    /// RTPS packets from the first to the last packet with a followed message: the
    /// "total packets" of Fernandez et al. 2020, IV-A.
    pub fn packets_between(&self) -> u64 {
        self.between
    }

    /// Percentage of [`Self::packets_between`] without message data.
    pub fn overhead_percent(&self) -> f64 {
        let other = self.between.saturating_sub(self.user_data.count);
        match self.between {
            0 => 0.0,
            all => other as f64 / all as f64 * 100.0,
        }
    }

    /// Followed messages, in the order of each writer.
    pub fn messages(&self) -> impl Iterator<Item = &CapturedMessage> {
        self.messages.values()
    }

    /// Encrypted bursts in order, which are taken as messages. Their bytes are
    /// those of the packets.
    pub fn bursts(&self) -> impl Iterator<Item = &CapturedMessage> {
        self.bursts.iter()
    }

    /// Number of submessages of a kind and class.
    pub fn of(&self, kind: SubmessageKind, class: TrafficClass) -> u64 {
        self.submessages.get(&(kind, class)).map_or(0, |t| t.count)
    }

    /// Counts packets that are not a complete datagram.
    pub(super) fn add_foreign(&mut self, packets: u64, bytes: u64) {
        self.foreign.add(packets, bytes);
    }

    /// Counts a datagram that was received at `now_ns`.
    pub(super) fn add(&mut self, datagram: &Datagram, now_ns: i64) {
        let Datagram { packets, bytes, .. } = *datagram;
        let Ok(header) = Header::parse(&datagram.payload) else {
            self.add_foreign(packets, bytes);
            return;
        };
        let mut content = DatagramContent::default();
        let rest = datagram.payload.get(Header::SIZE_BYTES..);
        let mut at = Cursor::new(rest.unwrap_or_default(), Endianness::Little);
        let mut route = SubmessageRoute {
            from: header.prefix,
            to: GuidPrefix::default(),
        };
        while !at.rest().is_empty() {
            let before = at.rest().len();
            let read = SubmessageHeader::parse(&mut at)
                .and_then(|header| Submessage::parse(header, header.body(&mut at)?));
            let Ok(submessage) = read else {
                self.malformed += 1;
                break;
            };
            match &submessage {
                Submessage::InfoSource(info) => route.from = info.prefix,
                Submessage::InfoDestination(prefix) => route.to = *prefix,
                _ => {}
            }
            let (kind, writer) = submessage_kind(&submessage);
            let class = writer.map_or(TrafficClass::None, traffic_class);
            let size = before - at.rest().len();
            let tally = self.submessages.entry((kind, class)).or_default();
            tally.add(1, size as u64);
            content.is_encrypted |= kind == SubmessageKind::Secure;
            if let (TrafficClass::User, Some(writer)) = (class, writer) {
                self.add_user_submessage(&submessage, writer, route, now_ns, packets, &mut content);
            }
        }
        if content.is_encrypted && !content.has_data {
            let is_long = datagram.payload.len() >= ENCRYPTED_DATA_BYTES_MIN;
            content.has_data = is_long && self.add_encrypted(now_ns, datagram);
            content.is_user = !self.bursts.is_empty();
        }
        let tally = match content {
            DatagramContent { has_data: true, .. } => &mut self.user_data,
            DatagramContent { is_user: true, .. } => &mut self.user_other,
            _ => &mut self.builtin,
        };
        tally.add(packets, bytes);
        self.extend_span(packets, content.has_data);
    }

    /// Counts a submessage of a user topic.
    fn add_user_submessage(
        &mut self,
        submessage: &Submessage<'_>,
        writer: EntityId,
        route: SubmessageRoute,
        now_ns: i64,
        packets: u64,
        content: &mut DatagramContent,
    ) {
        let Some(part) = part_of_message(submessage) else {
            content.is_user |= match submessage {
                Submessage::AckNack(_) | Submessage::NackFrag(_) => {
                    self.is_followed(route.to, writer)
                }
                _ => self.is_followed(route.from, writer),
            };
            return;
        };
        let writer = route.from.with(writer);
        if part.of_bytes >= self.message_bytes_min && self.followed.len() < WRITERS_MAX {
            self.followed.insert(writer);
        }
        if self.followed.contains(&writer) {
            content.is_user = true;
            content.has_data = true;
            let key = MessageKey {
                writer,
                sequence: part.sequence,
            };
            self.add_message_packet(key, now_ns, packets, part.bytes);
        }
    }

    /// Whether a writer is followed. With an unknown participant any writer of that
    /// entity id counts.
    fn is_followed(&self, prefix: GuidPrefix, writer: EntityId) -> bool {
        if prefix == GuidPrefix::default() {
            self.followed.iter().any(|guid| guid.entity == writer)
        } else {
            self.followed.contains(&prefix.with(writer))
        }
    }

    fn extend_span(&mut self, packets: u64, has_data: bool) {
        if let Some(candidate) = &mut self.candidate {
            candidate.between += packets;
        }
        if has_data {
            self.between += self.since_last + packets;
            self.since_last = 0;
        } else if self.between > 0 {
            self.since_last += packets;
        }
    }

    /// Adds an encrypted packet that is long enough for a part of a message.
    /// Returns whether it counts as one, which needs a first complete message.
    fn add_encrypted(&mut self, now_ns: i64, datagram: &Datagram) -> bool {
        let (packets, bytes) = (datagram.packets, datagram.payload.len() as u64);
        if !self.bursts.is_empty() {
            self.add_to_bursts(now_ns, packets, bytes);
            return true;
        }
        let of_one = |c: &BurstCandidate| now_ns - c.message.last_ns < ENCRYPTED_PAUSE_NS;
        let begin = self.candidate.take().filter(of_one);
        let mut candidate = begin.unwrap_or(BurstCandidate {
            message: CapturedMessage::begin(now_ns),
            tally: PacketTally::default(),
            between: 0,
        });
        candidate.message.add(now_ns, packets, bytes);
        if candidate.message.bytes < self.message_bytes_min {
            candidate.tally.add(packets, datagram.bytes);
            self.candidate = Some(candidate);
            return false;
        }
        // Packets counted otherwise so far were the beginning of the message.
        self.user_data
            .add(candidate.tally.count, candidate.tally.bytes);
        self.builtin.count -= candidate.tally.count;
        self.builtin.bytes -= candidate.tally.bytes;
        self.between += candidate.between;
        self.bursts.push(candidate.message);
        true
    }

    fn add_to_bursts(&mut self, now_ns: i64, packets: u64, bytes: u64) {
        let last = self.bursts.last_mut();
        if let Some(burst) = last.filter(|b| now_ns - b.last_ns < ENCRYPTED_PAUSE_NS) {
            burst.add(now_ns, packets, bytes);
        } else if self.bursts.len() < MESSAGES_MAX {
            let mut burst = CapturedMessage::begin(now_ns);
            burst.add(now_ns, packets, bytes);
            self.bursts.push(burst);
        }
    }

    fn add_message_packet(&mut self, key: MessageKey, now_ns: i64, packets: u64, bytes: u64) {
        if self.messages.len() >= MESSAGES_MAX && !self.messages.contains_key(&key) {
            return;
        }
        let message = self.messages.entry(key);
        message
            .or_insert(CapturedMessage::begin(now_ns))
            .add(now_ns, packets, bytes);
    }
}

/// Key of a followed message: its writer and sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageKey {
    writer: Guid,
    sequence: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct DatagramContent {
    is_user: bool,
    has_data: bool,
    is_encrypted: bool,
}

/// Source and destination of a submessage. The unknown prefix means every participant.
#[derive(Clone, Copy, Debug)]
struct SubmessageRoute {
    from: GuidPrefix,
    to: GuidPrefix,
}

/// A message or one of its fragments.
struct MessagePart {
    sequence: i64,
    /// Payload bytes in this submessage.
    bytes: u64,
    /// Payload bytes of the whole message.
    of_bytes: u64,
}

fn submessage_kind(submessage: &Submessage<'_>) -> (SubmessageKind, Option<EntityId>) {
    match submessage {
        Submessage::Data(s) => (SubmessageKind::Data, Some(s.writer)),
        Submessage::DataFrag(s) => (SubmessageKind::DataFrag, Some(s.writer)),
        Submessage::Heartbeat(s) => (SubmessageKind::Heartbeat, Some(s.writer)),
        Submessage::HeartbeatFrag(s) => (SubmessageKind::HeartbeatFrag, Some(s.writer)),
        Submessage::AckNack(s) => (SubmessageKind::AckNack, Some(s.writer)),
        Submessage::NackFrag(s) => (SubmessageKind::NackFrag, Some(s.writer)),
        Submessage::Gap(s) => (SubmessageKind::Gap, Some(s.writer)),
        Submessage::InfoTimestamp(_) => (SubmessageKind::InfoTimestamp, None),
        Submessage::InfoDestination(_) => (SubmessageKind::InfoDestination, None),
        Submessage::InfoSource(_) => (SubmessageKind::InfoSource, None),
        Submessage::InfoReply(_) => (SubmessageKind::InfoReply, None),
        Submessage::Pad => (SubmessageKind::Pad, None),
        Submessage::Secure(..) => (SubmessageKind::Secure, None),
        Submessage::Unknown(_) => (SubmessageKind::Unknown, None),
    }
}

/// The upper bits of the entity kind: 00 is a user endpoint, 11 a builtin one, 01 a
/// vendor's (RTPS 2.5 §9.3.1.2).
fn traffic_class(entity: EntityId) -> TrafficClass {
    match entity.kind & 0xc0 {
        0 => TrafficClass::User,
        _ => TrafficClass::Builtin,
    }
}

fn part_of_message(submessage: &Submessage<'_>) -> Option<MessagePart> {
    match submessage {
        Submessage::Data(data) => Some(MessagePart {
            sequence: data.sequence.0,
            bytes: data.payload.len() as u64,
            of_bytes: data.payload.len() as u64,
        }),
        Submessage::DataFrag(data) => Some(MessagePart {
            sequence: data.sequence.0,
            bytes: data.payload.len() as u64,
            of_bytes: u64::from(data.sample_size),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    /// A submessage: its id, and its body as sent.
    #[derive(Clone)]
    struct RawSubmessage {
        id: u8,
        body: Vec<u8>,
    }

    /// A datagram of `submessages`.
    fn datagram(submessages: &[RawSubmessage]) -> Datagram {
        let mut payload = b"RTPS\x02\x03\x01\x10".to_vec();
        payload.extend([7; 12]);
        for RawSubmessage { id, body } in submessages {
            payload.extend([*id, 1]);
            payload.extend((body.len() as u16).to_le_bytes());
            payload.extend(body);
        }
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 7411);
        Datagram {
            source: address,
            destination: address,
            packets: 2,
            bytes: payload.len() as u64 + 48,
            payload,
        }
    }

    /// DATA of `kind`'s writer with eight bytes.
    fn data(kind: u8, sequence: u32) -> RawSubmessage {
        let mut body = vec![0, 0, 16, 0];
        body.extend([0, 0, 1, kind + 1, 0, 0, 1, kind]);
        body.extend([0, 0, 0, 0]);
        body.extend(sequence.to_le_bytes());
        body.extend([0, 1, 0, 0, 1, 2, 3, 4]);
        // Flags: little endian and data.
        RawSubmessage { id: 0x15, body }
    }

    fn heartbeat(kind: u8) -> RawSubmessage {
        let mut body = vec![0, 0, 1, kind + 1, 0, 0, 1, kind];
        for word in [0_u32, 1, 0, 4, 9] {
            body.extend(word.to_le_bytes());
        }
        RawSubmessage { id: 0x07, body }
    }

    /// An encrypted submessage (SEC_BODY).
    fn secure(bytes: usize) -> RawSubmessage {
        RawSubmessage {
            id: 0x30,
            body: vec![0; bytes],
        }
    }

    fn with_data_flag(mut datagram: Datagram) -> Datagram {
        // The second byte of the first submessage holds its flags.
        datagram.payload[21] = 0x05;
        datagram
    }

    #[test]
    fn packets_are_classified_by_their_submessages() {
        let mut counts = Counts::default();
        counts.add(&with_data_flag(datagram(&[data(0xc2, 1)])), 1); // discovery
        counts.add(
            &with_data_flag(datagram(&[data(0x03, 1), heartbeat(0x03)])),
            10,
        );
        counts.add(&datagram(&[heartbeat(0x03)]), 20);
        counts.add(&with_data_flag(datagram(&[data(0x03, 1)])), 30); // again
        counts.add(&datagram(&[heartbeat(0x03)]), 40);
        let mut other = datagram(&[]);
        other.payload[0] = b'X';
        counts.add(&other, 50);
        let counted = [
            counts.user_data,
            counts.user_other,
            counts.builtin,
            counts.foreign,
        ];
        assert_eq!(counted.map(|tally| tally.count), [4, 4, 2, 2]);
        assert_eq!(counts.packets(), 12);
        // From the first message's packet to the last one's.
        assert_eq!(counts.packets_between(), 6);
        assert!((counts.overhead_percent() - 100.0 / 3.0).abs() < 1e-9);
        assert_eq!(counts.of(SubmessageKind::Heartbeat, TrafficClass::User), 3);
        assert_eq!(counts.of(SubmessageKind::Data, TrafficClass::Builtin), 1);
        let messages: Vec<&CapturedMessage> = counts.messages().collect();
        let [message] = messages.as_slice() else {
            panic!("{messages:?}");
        };
        assert_eq!(
            (message.first_ns, message.last_ns, message.packets),
            (10, 30, 4)
        );
        assert_eq!(counts.malformed, 0);
    }

    #[test]
    fn encrypted_packets_are_grouped_into_messages_by_size_and_pause() {
        let mut counts = Counts::default();
        let large = datagram(&[secure(1100)]);
        let answer = datagram(&[secure(60)]);
        for (datagram, ms) in [(&large, 1), (&large, 3), (&answer, 4), (&large, 30)] {
            counts.add(datagram, ms * 1_000_000);
        }
        let spans = counts.bursts().map(|b| (b.packets, b.last_ns - b.first_ns));
        assert_eq!(spans.collect::<Vec<_>>(), [(4, 2_000_000), (2, 0)]);
    }

    /// The same submessage of another user topic's writer.
    fn of_graph(mut submessage: RawSubmessage) -> RawSubmessage {
        let writer = match submessage.id {
            0x15 => 8..11,
            _ => 4..7,
        };
        submessage.body[writer].copy_from_slice(&[0, 0, 2]);
        submessage
    }

    /// ACKNACK for a writer of kind 3, addressed to `to`.
    fn acknack(writer: u8, to: u8) -> [RawSubmessage; 2] {
        let mut body = vec![0, 0, 1, 4, 0, 0, writer, 3];
        for word in [0_u32, 2, 0, 1] {
            body.extend(word.to_le_bytes());
        }
        let destination = RawSubmessage {
            id: 0x0e,
            body: vec![to; 12],
        };
        [destination, RawSubmessage { id: 0x06, body }]
    }

    #[test]
    fn graph_announcements_are_not_counted_as_test_messages() {
        let mut counts = Counts::of_messages(20);
        let mut message = data(0x03, 1);
        message.body.extend([0; 16]);
        // Discovery, and announcements of nodes with acknowledgements of both.
        counts.add(&datagram(&[heartbeat(0x03)]), 1);
        counts.add(&datagram(&acknack(1, 7)), 2);
        counts.add(&with_data_flag(datagram(&[of_graph(data(0x03, 1))])), 3);
        counts.add(&datagram(&acknack(2, 7)), 4);
        assert_eq!(counts.builtin.count, 8);
        assert_eq!(counts.packets_between(), 0);

        counts.add(&with_data_flag(datagram(&[message.clone()])), 10);
        counts.add(&datagram(&acknack(1, 7)), 11);
        counts.add(&datagram(&acknack(1, 9)), 12); // to another writer
        counts.add(&with_data_flag(datagram(&[of_graph(data(0x03, 2))])), 13);
        message.body[16] = 2; // the next
        counts.add(
            &with_data_flag(datagram(&[message, of_graph(heartbeat(0x03))])),
            14,
        );
        counts.add(&datagram(&acknack(1, 0)), 15); // to whom it may concern

        assert_eq!(counts.user_data.count, 4);
        assert_eq!(counts.user_other.count, 4);
        assert_eq!(counts.builtin.count, 8 + 4);
        assert_eq!(counts.packets_between(), 10);
        assert_eq!(counts.messages().count(), 2);
    }

    #[test]
    fn encrypted_packets_before_the_first_complete_message_are_ignored() {
        let mut counts = Counts::of_messages(2000);
        let large = datagram(&[secure(1100)]);
        let small = datagram(&[secure(60)]);
        let handshake = [(&large, 1), (&small, 2), (&large, 50), (&small, 51)];
        let messages = [(&large, 100), (&small, 101), (&large, 102), (&large, 130)];
        for (datagram, ms) in handshake.iter().chain(&messages) {
            counts.add(datagram, ms * 1_000_000);
        }
        let counted = [counts.user_data, counts.user_other, counts.builtin];
        assert_eq!(counted.map(|tally| tally.count), [6, 0, 10]);
        assert_eq!(counts.packets_between(), 8);
        let spans = counts.bursts().map(|b| (b.packets, b.last_ns - b.first_ns));
        assert_eq!(spans.collect::<Vec<_>>(), [(4, 2_000_000), (2, 0)]);
    }

    #[test]
    fn an_unreadable_submessage_ends_only_its_own_message() {
        let mut counts = Counts::default();
        let whole = with_data_flag(datagram(&[data(0x03, 1), heartbeat(0x03)]));
        for length in 20..whole.payload.len() {
            let mut cut = whole.clone();
            cut.payload.truncate(length);
            counts.add(&cut, 0);
        }
        assert!(counts.malformed > 0);
        let of_rtps = whole.payload.len() as u64 - 20;
        assert_eq!(counts.packets(), 2 * of_rtps);
    }
}
