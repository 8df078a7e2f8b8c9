//! The packets of a flood, by kind.

use bytes::Bytes;
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::discovery::spdp;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::MessageBuilder;
use pteros_rtps::seq::{FragmentNumber, SequenceNumber};
use pteros_rtps::wire::{DataFragHead, DataHead, Gap, Heartbeat, InlineQosHead};

use super::super::attacker::{acknack, datagram};

/// A forged fragment, and the sample that it is to be of.
const FRAGMENT_BYTES: u16 = 1_000;
const LARGE_SAMPLE_BYTES: u32 = 1 << 20;
/// The highest number that a request of a flood names.
const REQUESTED: i64 = 20;

/// A kind of packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Random bytes, half of them behind the head of an RTPS message.
    Garbage,
    /// DATA of participants that nobody knows.
    UnknownData,
    /// Announcements, each of another participant that does not exist.
    Announcements,
    /// The same announcement again and again.
    Duplicates,
    /// Announcements in the talker's name: from its address as they are, and from the
    /// attackers with their addresses.
    LivingAnnouncements,
    /// Requests for the whole history in the listener's name.
    Requests,
    /// Heartbeats in the talker's name, far ahead of it.
    Heartbeats,
    /// GAPs in the talker's name, over everything.
    Gaps,
    /// First fragments of large samples, in the talker's name and in a stranger's.
    Fragments,
    /// Heartbeats of a matched writer of an accepted peer, each wants an answer.
    PeerHeartbeats,
    /// Requests of a matched reader of an accepted peer.
    PeerRequests,
    /// Samples of a matched writer of an accepted peer.
    PeerData,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Garbage,
        Self::UnknownData,
        Self::Announcements,
        Self::Duplicates,
        Self::LivingAnnouncements,
        Self::Requests,
        Self::Heartbeats,
        Self::Gaps,
        Self::Fragments,
        Self::PeerHeartbeats,
        Self::PeerRequests,
        Self::PeerData,
    ];

    /// Whether an accepted peer sends it from its own address.
    pub fn is_of_peer(self) -> bool {
        matches!(
            self,
            Self::PeerHeartbeats | Self::PeerRequests | Self::PeerData
        )
    }
}

/// The endpoints that packets name.
#[derive(Clone, Copy, Debug)]
pub struct Endpoints {
    /// The talker's writer and the listener's reader of the flow.
    pub writer: Guid,
    pub reader: Guid,
    /// The accepted peer's writer of noise, and its reader of the flow.
    pub peer_writer: Guid,
    pub peer_reader: Guid,
    /// The talker's address.
    pub talker: Locator,
}

impl Endpoints {
    /// The `serial`-th packet, from this address, with a random number.
    pub fn packet(&self, kind: Kind, from: Locator, number: u64, serial: u32) -> Bytes {
        let (talker, listener) = (self.writer.prefix, self.reader.prefix);
        let peer = self.peer_writer.prefix;
        let stranger = stranger(number);
        let count = 50_000 + serial;
        let far = 1 << 40;
        match kind {
            Kind::Garbage => garbage(number),
            Kind::UnknownData => datagram(stranger, talker, |message| {
                let writer = EntityId::new([0, 0, 3], EntityId::KIND_WRITER_NO_KEY);
                data(message, writer, 1, &Bytes::from_static(&[0; 100]));
            }),
            Kind::Announcements => announcement(stranger, from),
            Kind::Duplicates => announcement(GuidPrefix([0xdd; 12]), from),
            Kind::LivingAnnouncements => announcement(talker, from),
            Kind::Requests => request(self.reader, self.writer, count),
            Kind::PeerRequests => request(self.peer_reader, self.writer, count),
            Kind::Heartbeats => datagram(talker, listener, |message| {
                message.heartbeat(&heartbeat(self.writer.entity, far, far, count));
            }),
            Kind::PeerHeartbeats => datagram(peer, listener, |message| {
                let last = i64::from(serial);
                let entity = self.peer_writer.entity;
                message.heartbeat(&heartbeat(entity, last, last, count));
            }),
            Kind::PeerData => datagram(peer, listener, |message| {
                let entity = self.peer_writer.entity;
                let sample = Bytes::from_static(&[0, 1, 0, 0, 7, 0, 0, 0]);
                data(message, entity, i64::from(serial), &sample);
            }),
            Kind::Gaps => datagram(talker, listener, |message| {
                let (reader, writer) = (EntityId::UNKNOWN, self.writer.entity);
                let first = SequenceNumber::FIRST;
                message.gap(&Gap::range(reader, writer, first, SequenceNumber(far)));
            }),
            Kind::Fragments => {
                let sender = if number.is_multiple_of(2) {
                    talker
                } else {
                    stranger
                };
                datagram(sender, listener, |message| {
                    fragment(message, self.writer.entity, serial);
                })
            }
        }
    }
}

fn garbage(number: u64) -> Bytes {
    let length = 1 + usize::try_from(number % 180).unwrap_or(0);
    let mut random = fastrand::Rng::with_seed(number);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    if random.bool() {
        bytes.splice(0..0, *b"RTPS\x02\x05\x01\x50");
    }
    bytes.into()
}

fn data(message: &mut MessageBuilder<'_>, writer: EntityId, number: i64, payload: &Bytes) {
    let head = DataHead {
        writer,
        sequence: SequenceNumber(number),
        ..DataHead::default()
    };
    message.data(&head, payload);
}

fn fragment(message: &mut MessageBuilder<'_>, writer: EntityId, serial: u32) {
    let head = DataFragHead {
        reader: EntityId::UNKNOWN,
        writer,
        sequence: SequenceNumber(1 + i64::from(serial)),
        first_fragment: FragmentNumber(1),
        fragment_count: 1,
        fragment_size: FRAGMENT_BYTES,
        sample_size: LARGE_SAMPLE_BYTES,
        inline_qos: InlineQosHead::NONE,
        key_only: false,
    };
    message.data_frag(&head, Bytes::from_static(&[0; FRAGMENT_BYTES as usize]));
}

fn request(reader: Guid, writer: Guid, count: u32) -> Bytes {
    datagram(reader.prefix, writer.prefix, |message| {
        let all: Vec<i64> = (1..=REQUESTED).collect();
        message.acknack(&acknack(reader.entity, writer.entity, &all, 1, count));
    })
}

fn heartbeat(writer: EntityId, first: i64, last: i64, count: u32) -> Heartbeat {
    Heartbeat {
        reader: EntityId::UNKNOWN,
        writer,
        first: SequenceNumber(first),
        last: SequenceNumber(last),
        count,
        is_final: false,
        liveliness: false,
        group_info: None,
    }
}

/// A participant that does not exist.
pub fn stranger(number: u64) -> GuidPrefix {
    let mut prefix = GuidPrefix([0x01, 0x50, 0xee, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    prefix.0[4..].copy_from_slice(&number.to_be_bytes());
    prefix
}

/// The announcement of a participant at this address.
pub fn announcement(prefix: GuidPrefix, at: Locator) -> Bytes {
    let mut data = ParticipantData::new(prefix);
    data.metatraffic_unicast = vec![at];
    data.default_unicast = vec![at];
    data.builtin_endpoints = spdp::OUR_ENDPOINTS;
    let head = DataHead {
        reader: EntityId::SPDP_READER,
        writer: EntityId::SPDP_WRITER,
        sequence: SequenceNumber::FIRST,
        ..DataHead::default()
    };
    datagram(prefix, GuidPrefix::UNKNOWN, |message| {
        message.data(&head, &data.encode());
    })
}
