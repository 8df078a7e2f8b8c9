//! What RTPS the packets carry: submessages by kind, users' topics apart from
//! discovery, and for each message that is followed its first and last packet.
//!
//! Followed are writers of users' topics whose messages have the asked size: ROS 2's
//! own `ros_discovery_info` is a user's topic to RTPS, and no message of a test.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::wire::{Cursor, Endianness, Header, Submessage, SubmessageHeader};

use super::frame::Datagram;

/// A protected message does not show what it carries: one that is at least so long is
/// taken for a part of a user's message. Heartbeats, acknowledgements and most of discovery are
/// shorter, no stack's fragments of large messages are.
const HIDDEN_DATA_BYTES_MIN: usize = 1024;

/// Encrypted packets that are so far apart are of two messages; whoever measures sends
/// them further apart.
const HIDDEN_PAUSE_NS: i64 = 8_000_000;

/// Messages that are followed one by one; packets of later ones are only counted.
const MESSAGES_MAX: usize = 200_000;

/// Writers that are followed; messages of further ones count like discovery.
const WRITERS_MAX: usize = 10_000;

/// A kind of submessage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A whole change.
    Data,
    /// A part of one.
    DataFrag,
    /// What a writer has.
    Heartbeat,
    /// Which fragments a writer has.
    HeartbeatFrag,
    /// What a reader has and lacks.
    AckNack,
    /// Which fragments a reader lacks.
    NackFrag,
    /// What a writer will not send.
    Gap,
    /// INFO_TS.
    InfoTimestamp,
    /// INFO_DST.
    InfoDestination,
    /// INFO_SRC.
    InfoSource,
    /// INFO_REPLY and INFO_REPLY_IP4.
    InfoReply,
    /// Nothing.
    Pad,
    /// SEC_PREFIX and its kin.
    Secure,
    /// Any other.
    Unknown,
}

impl fmt::Display for Kind {
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

/// Whose business a submessage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// A topic of a user.
    User,
    /// The middleware's own endpoints: discovery, liveliness.
    Builtin,
    /// No endpoint's: INFO_TS and the like.
    None,
}

/// How many, and how many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many.
    pub count: u64,
    /// Bytes: of packets from the IP header on, of submessages with their headers.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, count: u64, bytes: u64) {
        self.count += count;
        self.bytes += bytes;
    }
}

/// The packets of one message, repetitions included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Nanoseconds since 1970 of the first packet.
    pub first_ns: i64,
    /// And of the last one.
    pub last_ns: i64,
    /// Packets with a part of it.
    pub packets: u64,
    /// Payload bytes in those.
    pub bytes: u64,
}

impl Message {
    fn begun(now_ns: i64) -> Self {
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

/// What was counted. Every IPv4 packet is in just one of `user_data`, `user_other`,
/// `builtin` and `foreign`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// From how many bytes on a message makes its writer one that is followed.
    message_bytes_min: u64,
    /// Packets with a message that is followed, or a part of it.
    pub user_data: Tally,
    /// Packets that are about followed writers and carry nothing of a message, from
    /// each one's first message on. Where all is encrypted: whatever is no message.
    pub user_other: Tally,
    /// Packets of discovery, liveliness and other topics alone.
    pub builtin: Tally,
    /// Packets that are no RTPS, or incomplete fragments.
    pub foreign: Tally,
    /// RTPS messages with a submessage that cannot be read; what came before it counts.
    pub malformed: u64,
    /// Submessages.
    pub submessages: BTreeMap<(Kind, Side), Tally>,
    followed: BTreeSet<Guid>,
    /// Messages of followed writers by number.
    messages: BTreeMap<(Guid, i64), Message>,
    /// Encrypted packets that follow each other like parts of one message.
    bursts: Vec<Message>,
    /// Those before the first that is long enough for a message.
    candidate: Option<Candidate>,
    /// From the first packet with a followed message to the last one: all of RTPS.
    between: u64,
    since_last: u64,
}

/// Encrypted packets that may be the first message.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    message: Message,
    /// Packets with a part of it as they lie on the network.
    tally: Tally,
    /// All of RTPS from its first packet on.
    between: u64,
}

impl Counts {
    /// Nothing yet. Followed will be what sends messages of `message_bytes_min` serialized
    /// bytes and more.
    pub fn of_messages(message_bytes_min: u64) -> Self {
        Self {
            message_bytes_min,
            ..Self::default()
        }
    }

    /// All packets.
    pub fn packets(&self) -> u64 {
        let parts = [self.user_data, self.user_other, self.builtin, self.foreign];
        parts.iter().map(|tally| tally.count).sum()
    }

    /// RTPS packets from the first one with a followed message to the last such: what
    /// Fernandez et al. 2020, IV-A, call total packets.
    pub fn packets_between(&self) -> u64 {
        self.between
    }

    /// Percent of [`Self::packets_between`] that carry nothing of a followed message.
    pub fn overhead_percent(&self) -> f64 {
        let other = self.between.saturating_sub(self.user_data.count);
        match self.between {
            0 => 0.0,
            all => other as f64 / all as f64 * 100.0,
        }
    }

    /// The messages that are followed, in each writer's order.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.values()
    }

    /// What must be messages among encrypted packets: large ones without a pause
    /// between them, in their order. Bytes are those of the packets.
    pub fn bursts(&self) -> impl Iterator<Item = &Message> {
        self.bursts.iter()
    }

    /// How many submessages of a kind there were, of users' topics or others.
    pub fn of(&self, kind: Kind, side: Side) -> u64 {
        self.submessages.get(&(kind, side)).map_or(0, |t| t.count)
    }

    /// Counts packets that are no (complete) datagram.
    pub(super) fn add_foreign(&mut self, packets: u64, bytes: u64) {
        self.foreign.add(packets, bytes);
    }

    /// Counts one datagram, which came at `now_ns`.
    pub(super) fn add(&mut self, datagram: &Datagram, now_ns: i64) {
        let Datagram { packets, bytes, .. } = *datagram;
        let Ok(header) = Header::parse(&datagram.payload) else {
            self.add_foreign(packets, bytes);
            return;
        };
        let mut seen = Seen::default();
        let rest = datagram.payload.get(Header::SIZE_BYTES..);
        let mut at = Cursor::new(rest.unwrap_or_default(), Endianness::Little);
        let mut way = Way {
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
                Submessage::InfoSource(info) => way.from = info.prefix,
                Submessage::InfoDestination(prefix) => way.to = *prefix,
                _ => {}
            }
            let (kind, writer) = kind_of(&submessage);
            let side = writer.map_or(Side::None, side_of);
            let size = before - at.rest().len();
            let tally = self.submessages.entry((kind, side)).or_default();
            tally.add(1, size as u64);
            seen.is_hidden |= kind == Kind::Secure;
            if let (Side::User, Some(writer)) = (side, writer) {
                self.add_of_user(&submessage, writer, way, (now_ns, packets), &mut seen);
            }
        }
        if seen.is_hidden && !seen.has_data {
            let is_long = datagram.payload.len() >= HIDDEN_DATA_BYTES_MIN;
            seen.has_data = is_long && self.note_hidden(now_ns, datagram);
            seen.is_user = !self.bursts.is_empty();
        }
        let tally = match seen {
            Seen { has_data: true, .. } => &mut self.user_data,
            Seen { is_user: true, .. } => &mut self.user_other,
            _ => &mut self.builtin,
        };
        tally.add(packets, bytes);
        self.add_to_span(packets, seen.has_data);
    }

    /// A submessage of a user's topic.
    fn add_of_user(
        &mut self,
        submessage: &Submessage<'_>,
        writer: EntityId,
        way: Way,
        (now_ns, packets): (i64, u64),
        seen: &mut Seen,
    ) {
        let Some(part) = part_of_message(submessage) else {
            seen.is_user |= match submessage {
                Submessage::AckNack(_) | Submessage::NackFrag(_) => {
                    self.is_followed(way.to, writer)
                }
                _ => self.is_followed(way.from, writer),
            };
            return;
        };
        let writer = way.from.with(writer);
        if part.of_bytes >= self.message_bytes_min && self.followed.len() < WRITERS_MAX {
            self.followed.insert(writer);
        }
        if self.followed.contains(&writer) {
            seen.is_user = true;
            seen.has_data = true;
            self.note((writer, part.sequence), now_ns, packets, part.bytes);
        }
    }

    /// Whether a writer is followed; of an unknown participant any will do.
    fn is_followed(&self, prefix: GuidPrefix, writer: EntityId) -> bool {
        match prefix == GuidPrefix::default() {
            true => self.followed.iter().any(|guid| guid.entity == writer),
            false => self.followed.contains(&prefix.with(writer)),
        }
    }

    fn add_to_span(&mut self, packets: u64, has_data: bool) {
        if let Some(candidate) = &mut self.candidate {
            candidate.between += packets;
        }
        match has_data {
            true => {
                self.between += self.since_last + packets;
                self.since_last = 0;
            }
            false if self.between > 0 => self.since_last += packets,
            false => {}
        }
    }

    /// Takes in an encrypted packet that is long enough for a part of a message; says
    /// whether it counts as one: not before the first whole message.
    fn note_hidden(&mut self, now_ns: i64, datagram: &Datagram) -> bool {
        let (packets, bytes) = (datagram.packets, datagram.payload.len() as u64);
        if !self.bursts.is_empty() {
            self.add_to_bursts(now_ns, packets, bytes);
            return true;
        }
        let of_one = |c: &Candidate| now_ns - c.message.last_ns < HIDDEN_PAUSE_NS;
        let begun = self.candidate.take().filter(of_one);
        let mut candidate = begun.unwrap_or(Candidate {
            message: Message::begun(now_ns),
            tally: Tally::default(),
            between: 0,
        });
        candidate.message.add(now_ns, packets, bytes);
        if candidate.message.bytes < self.message_bytes_min {
            candidate.tally.add(packets, datagram.bytes);
            self.candidate = Some(candidate);
            return false;
        }
        // What was counted as something else before was the message's beginning.
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
        if let Some(burst) = last.filter(|b| now_ns - b.last_ns < HIDDEN_PAUSE_NS) {
            burst.add(now_ns, packets, bytes);
        } else if self.bursts.len() < MESSAGES_MAX {
            let mut burst = Message::begun(now_ns);
            burst.add(now_ns, packets, bytes);
            self.bursts.push(burst);
        }
    }

    fn note(&mut self, key: (Guid, i64), now_ns: i64, packets: u64, bytes: u64) {
        if self.messages.len() >= MESSAGES_MAX && !self.messages.contains_key(&key) {
            return;
        }
        let message = self.messages.entry(key);
        message
            .or_insert(Message::begun(now_ns))
            .add(now_ns, packets, bytes);
    }
}

/// What is known of a datagram so far.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    is_user: bool,
    has_data: bool,
    is_hidden: bool,
}

/// Between whom a submessage goes; nobody's prefix is everybody.
#[derive(Clone, Copy, Debug)]
struct Way {
    from: GuidPrefix,
    to: GuidPrefix,
}

/// A message, or one of its fragments.
struct Part {
    sequence: i64,
    /// Payload here.
    bytes: u64,
    /// Payload of the whole message.
    of_bytes: u64,
}

fn kind_of(submessage: &Submessage<'_>) -> (Kind, Option<EntityId>) {
    match submessage {
        Submessage::Data(s) => (Kind::Data, Some(s.writer)),
        Submessage::DataFrag(s) => (Kind::DataFrag, Some(s.writer)),
        Submessage::Heartbeat(s) => (Kind::Heartbeat, Some(s.writer)),
        Submessage::HeartbeatFrag(s) => (Kind::HeartbeatFrag, Some(s.writer)),
        Submessage::AckNack(s) => (Kind::AckNack, Some(s.writer)),
        Submessage::NackFrag(s) => (Kind::NackFrag, Some(s.writer)),
        Submessage::Gap(s) => (Kind::Gap, Some(s.writer)),
        Submessage::InfoTimestamp(_) => (Kind::InfoTimestamp, None),
        Submessage::InfoDestination(_) => (Kind::InfoDestination, None),
        Submessage::InfoSource(_) => (Kind::InfoSource, None),
        Submessage::InfoReply(_) => (Kind::InfoReply, None),
        Submessage::Pad => (Kind::Pad, None),
        Submessage::Secure(..) => (Kind::Secure, None),
        Submessage::Unknown(_) => (Kind::Unknown, None),
    }
}

/// The two upper bits of the kind byte: 00 is a user's, 11 the specification's, 01 a
/// vendor's own endpoint (RTPS 2.5 §9.3.1.2).
fn side_of(entity: EntityId) -> Side {
    match entity.kind & 0xc0 {
        0 => Side::User,
        _ => Side::Builtin,
    }
}

fn part_of_message(submessage: &Submessage<'_>) -> Option<Part> {
    match submessage {
        Submessage::Data(data) => Some(Part {
            sequence: data.sequence.0,
            bytes: data.payload.len() as u64,
            of_bytes: data.payload.len() as u64,
        }),
        Submessage::DataFrag(data) => Some(Part {
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

    /// A datagram of `submessages`: id, body.
    fn datagram(submessages: &[(u8, Vec<u8>)]) -> Datagram {
        let mut payload = b"RTPS\x02\x03\x01\x10".to_vec();
        payload.extend([7; 12]);
        for (id, body) in submessages {
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
    fn data(kind: u8, sequence: u32) -> (u8, Vec<u8>) {
        let mut body = vec![0, 0, 16, 0];
        body.extend([0, 0, 1, kind + 1, 0, 0, 1, kind]);
        body.extend([0, 0, 0, 0]);
        body.extend(sequence.to_le_bytes());
        body.extend([0, 1, 0, 0, 1, 2, 3, 4]);
        // Flags: little endian and data.
        (0x15, body)
    }

    fn heartbeat(kind: u8) -> (u8, Vec<u8>) {
        let mut body = vec![0, 0, 1, kind + 1, 0, 0, 1, kind];
        for word in [0_u32, 1, 0, 4, 9] {
            body.extend(word.to_le_bytes());
        }
        (0x07, body)
    }

    fn with_data_flag(mut datagram: Datagram) -> Datagram {
        // The second byte of the first submessage holds its flags.
        datagram.payload[21] = 0x05;
        datagram
    }

    #[test]
    fn packets_are_told_apart_by_what_they_carry() {
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
        assert_eq!(counts.of(Kind::Heartbeat, Side::User), 3);
        assert_eq!(counts.of(Kind::Data, Side::Builtin), 1);
        let messages: Vec<&Message> = counts.messages().collect();
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
    fn encrypted_packets_are_messages_by_their_size_and_the_pauses_between() {
        let mut counts = Counts::default();
        let large = datagram(&[(0x30, vec![0; 1100])]);
        let answer = datagram(&[(0x30, vec![0; 60])]);
        for (datagram, ms) in [(&large, 1), (&large, 3), (&answer, 4), (&large, 30)] {
            counts.add(datagram, ms * 1_000_000);
        }
        let spans = counts.bursts().map(|b| (b.packets, b.last_ns - b.first_ns));
        assert_eq!(spans.collect::<Vec<_>>(), [(4, 2_000_000), (2, 0)]);
    }

    /// The same with the writer of another topic of a user's.
    fn of_graph((id, mut body): (u8, Vec<u8>)) -> (u8, Vec<u8>) {
        let writer = match id {
            0x15 => 8..11,
            _ => 4..7,
        };
        body[writer].copy_from_slice(&[0, 0, 2]);
        (id, body)
    }

    /// ACKNACK for a writer of kind 3, addressed to `to`.
    fn acknack(writer: u8, to: u8) -> [(u8, Vec<u8>); 2] {
        let mut body = vec![0, 0, 1, 4, 0, 0, writer, 3];
        for word in [0_u32, 2, 0, 1] {
            body.extend(word.to_le_bytes());
        }
        [(0x0e, vec![to; 12]), (0x06, body)]
    }

    #[test]
    fn the_graph_that_nodes_tell_of_is_no_message_of_the_test() {
        let mut counts = Counts::of_messages(20);
        let mut message = data(0x03, 1);
        message.1.extend([0; 16]);
        // They meet, and tell of their nodes; acknowledgements of both go to both.
        counts.add(&datagram(&[heartbeat(0x03)]), 1);
        counts.add(&datagram(&acknack(1, 7)), 2);
        counts.add(&with_data_flag(datagram(&[of_graph(data(0x03, 1))])), 3);
        counts.add(&datagram(&acknack(2, 7)), 4);
        assert_eq!(counts.builtin.count, 8);
        assert_eq!(counts.packets_between(), 0);

        counts.add(&with_data_flag(datagram(&[message.clone()])), 10);
        counts.add(&datagram(&acknack(1, 7)), 11);
        counts.add(&datagram(&acknack(1, 9)), 12); // to somebody else's writer
        counts.add(&with_data_flag(datagram(&[of_graph(data(0x03, 2))])), 13);
        message.1[16] = 2; // the next
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
    fn encrypted_packets_before_the_first_whole_message_are_no_message() {
        let mut counts = Counts::of_messages(2000);
        let large = datagram(&[(0x30, vec![0; 1100])]);
        let small = datagram(&[(0x30, vec![0; 60])]);
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
    fn what_cannot_be_read_ends_its_message_alone() {
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
