//! What RTPS the packets carry: submessages by kind, users' topics apart from
//! discovery, and for each message of a user's topic its first and last packet.

use std::collections::BTreeMap;
use std::fmt;

use pteros_rtps::id::EntityId;
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

/// What was counted. Every IPv4 packet is in just one of `user_data`, `user_other`,
/// `builtin` and `foreign`.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Packets with a message of a user's topic, or a part of it.
    pub user_data: Tally,
    /// Packets that are about users' topics and carry nothing of a message.
    pub user_other: Tally,
    /// Packets of discovery and liveliness alone.
    pub builtin: Tally,
    /// Packets that are no RTPS, or incomplete fragments.
    pub foreign: Tally,
    /// RTPS messages with a submessage that cannot be read; what came before it counts.
    pub malformed: u64,
    /// Submessages.
    pub submessages: BTreeMap<(Kind, Side), Tally>,
    /// Messages of users' topics by writer (16 bytes of its GUID) and number.
    messages: BTreeMap<([u8; 16], i64), Message>,
    /// Encrypted packets that follow each other like parts of one message.
    bursts: Vec<Message>,
    /// From the first packet with a user's message to the last one: all of RTPS.
    between: u64,
    since_last: u64,
}

impl Counts {
    /// All packets.
    pub fn packets(&self) -> u64 {
        let parts = [self.user_data, self.user_other, self.builtin, self.foreign];
        parts.iter().map(|tally| tally.count).sum()
    }

    /// RTPS packets from the first one with a user's message to the last such: what
    /// Fernandez et al. 2020, IV-A, call total packets.
    pub fn packets_between(&self) -> u64 {
        self.between
    }

    /// Percent of [`Self::packets_between`] that carry nothing of a user's message.
    pub fn overhead_percent(&self) -> f64 {
        let other = self.between.saturating_sub(self.user_data.count);
        match self.between {
            0 => 0.0,
            all => other as f64 / all as f64 * 100.0,
        }
    }

    /// The messages of users' topics, in each writer's order.
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
        let mut is_user = false;
        let mut has_data = false;
        let mut is_hidden = false;
        let rest = datagram.payload.get(Header::SIZE_BYTES..);
        let mut at = Cursor::new(rest.unwrap_or_default(), Endianness::Little);
        let mut prefix = header.prefix;
        while !at.rest().is_empty() {
            let before = at.rest().len();
            let read = SubmessageHeader::parse(&mut at)
                .and_then(|header| Submessage::parse(header, header.body(&mut at)?));
            let Ok(submessage) = read else {
                self.malformed += 1;
                break;
            };
            if let Submessage::InfoSource(info) = &submessage {
                prefix = info.prefix;
            }
            let (kind, writer) = kind_of(&submessage);
            let side = writer.map_or(Side::None, side_of);
            let size = before - at.rest().len();
            let tally = self.submessages.entry((kind, side)).or_default();
            tally.add(1, size as u64);
            is_user |= side == Side::User;
            is_hidden |= kind == Kind::Secure;
            if side == Side::User
                && let Some((sequence, payload)) = part_of_message(&submessage)
            {
                has_data = true;
                let writer = writer.unwrap_or(EntityId::from_bytes([0; 4]));
                let mut key = [0; 16];
                let (left, right) = key.split_at_mut(12);
                left.copy_from_slice(&prefix.0);
                right.copy_from_slice(&writer.to_bytes());
                self.note((key, sequence), now_ns, packets, payload as u64);
            }
        }
        if is_hidden && !has_data {
            is_user = true;
            has_data = datagram.payload.len() >= HIDDEN_DATA_BYTES_MIN;
            if has_data {
                self.note_hidden(now_ns, packets, datagram.payload.len() as u64);
            }
        }
        let tally = match (is_user, has_data) {
            (_, true) => &mut self.user_data,
            (true, false) => &mut self.user_other,
            (false, false) => &mut self.builtin,
        };
        tally.add(packets, bytes);
        self.add_to_span(packets, has_data);
    }

    fn add_to_span(&mut self, packets: u64, has_data: bool) {
        match has_data {
            true => {
                self.between += self.since_last + packets;
                self.since_last = 0;
            }
            false if self.between > 0 => self.since_last += packets,
            false => {}
        }
    }

    fn note_hidden(&mut self, now_ns: i64, packets: u64, bytes: u64) {
        let last = self.bursts.last_mut();
        if let Some(burst) = last.filter(|b| now_ns - b.last_ns < HIDDEN_PAUSE_NS) {
            burst.last_ns = burst.last_ns.max(now_ns);
            burst.packets += packets;
            burst.bytes += bytes;
        } else if self.bursts.len() < MESSAGES_MAX {
            self.bursts.push(Message {
                first_ns: now_ns,
                last_ns: now_ns,
                packets,
                bytes,
            });
        }
    }

    fn note(&mut self, key: ([u8; 16], i64), now_ns: i64, packets: u64, bytes: u64) {
        if self.messages.len() >= MESSAGES_MAX && !self.messages.contains_key(&key) {
            return;
        }
        let message = self.messages.entry(key).or_insert(Message {
            first_ns: now_ns,
            last_ns: now_ns,
            packets: 0,
            bytes: 0,
        });
        message.last_ns = message.last_ns.max(now_ns);
        message.packets += packets;
        message.bytes += bytes;
    }
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

fn part_of_message(submessage: &Submessage<'_>) -> Option<(i64, usize)> {
    match submessage {
        Submessage::Data(data) => Some((data.sequence.0, data.payload.len())),
        Submessage::DataFrag(data) => Some((data.sequence.0, data.payload.len())),
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
