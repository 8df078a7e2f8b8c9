//! The attacker of the secured workload. It hears every datagram, has no key, and
//! sends from any address in any name.

use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::wire::{DataHead, Gap, Heartbeat};
use pteros_runtime::Core;

use super::super::attacker::{acknack, contains, datagram, replace, sender};
use super::super::world::NodeWorld;
use super::flood::Kind;
use super::{LISTENER, MEMBERS};

/// Datagrams that it keeps.
const RECORDED_MAX: usize = 400;
/// Addresses of the flood.
const ADDRESSES: u32 = 10;
/// The class of handshake messages and of announcements before them.
const HANDSHAKE: &[u8] = b"dds.sec.auth";

#[derive(Default)]
pub struct Attacker {
    recorded: Vec<Bytes>,
    /// Of these, handshake messages.
    handshakes: Vec<Bytes>,
    /// The last announcement of the talker.
    announcement: Option<Bytes>,
    claims: u32,
    count: u32,
}

impl Attacker {
    /// Keeps what was sent lately.
    pub fn record(&mut self, world: &NodeWorld, talker: Option<Arc<Core>>) {
        let talker = talker.map(|core| core.prefix());
        let network = world.sim.event_loop().network();
        for bytes in network.captured.iter().rev().take(8) {
            if contains(bytes, HANDSHAKE) {
                push(&mut self.handshakes, bytes);
            }
            if talker.is_some() && sender(bytes) == talker && is_announcement(bytes) {
                self.announcement = Some(bytes.clone());
            }
            push(&mut self.recorded, bytes);
        }
    }

    /// One attack on the process `to`.
    pub fn strike(
        &mut self,
        world: &NodeWorld,
        random: &mut Rng,
        to: usize,
        writer: Option<Guid>,
        number: i64,
    ) {
        self.count += 1;
        let victim = world.sim.event_loop().core(to).map(|core| core.prefix());
        let Some(victim) = victim else { return };
        let kind = random.u32(0..7);
        let bytes = match kind {
            0 | 1 => draw(random, &self.recorded),
            2 => draw(random, &self.recorded).map(|bytes| changed(random, &bytes)),
            3 => draw(random, &self.handshakes).map(|bytes| changed(random, &bytes)),
            4 => writer.map(|writer| forged_data(random, writer, victim, number)),
            5 => writer.map(|writer| self.forged_state(random, writer, victim, number)),
            _ => {
                let name = world.sim.event_loop().core(random.usize(MEMBERS));
                name.map(|core| goodbye(core.prefix()))
            }
        };
        let Some(bytes) = bytes else { return };
        let named = sender(&bytes);
        let true_address = MEMBERS.into_iter().find(|process| {
            let core = world.sim.event_loop().core(*process);
            core.map(|core| core.prefix()) == named
        });
        let from = match true_address {
            Some(process) if random.bool() => world.sim.address(process),
            _ => stranger(random.u32(0..ADDRESSES)),
        };
        world
            .sim
            .trace_line(format_args!("  attack {kind} on p{to} from {from}"));
        world.sim.inject(from, to, bytes);
    }

    /// One packet of a flood at the process `to`.
    pub fn flood(
        &mut self,
        world: &NodeWorld,
        random: &mut Rng,
        kind: Kind,
        to: usize,
        writer: Option<Guid>,
        number: i64,
    ) {
        let victim = world.sim.event_loop().core(to).map(|core| core.prefix());
        let (Some(victim), Some(writer)) = (victim, writer) else {
            return;
        };
        let bytes = match kind {
            Kind::PlainData => Some(forged_data(random, writer, victim, number)),
            Kind::Replays => draw(random, &self.recorded),
            _ => draw(random, &self.recorded).map(|bytes| changed(random, &bytes)),
        };
        // Half of them spoof the address of the other end.
        let from = match random.bool() {
            true => world.sim.address(LISTENER - to),
            false => stranger(random.u32(0..ADDRESSES)),
        };
        if let Some(bytes) = bytes {
            world.sim.inject(from, to, bytes);
        }
    }

    /// A claim of the talker's identity under another name, and a proof that the
    /// claimant receives answers.
    pub fn claim(&mut self, world: &NodeWorld, to: usize) {
        let (Some(announcement), Some(victim)) =
            (&self.announcement, world.sim.event_loop().core(to))
        else {
            return;
        };
        let Some(own) = sender(announcement) else {
            return;
        };
        self.claims += 1;
        let mut name = own;
        name.0[8..12].copy_from_slice(&self.claims.to_be_bytes());
        let from = stranger(self.claims % ADDRESSES);
        let mut claim = announcement.to_vec();
        replace(&mut claim, &own.0, &name.0);
        let address = world.sim.address(to).address;
        replace(&mut claim, &address, &from.address);
        world.sim.inject(from, to, claim.into());
        let answer = acknack(EntityId::SPDP_READER, EntityId::SPDP_WRITER, &[], 1, 1);
        let proof = datagram(name, victim.prefix(), |message| {
            message.acknack(&answer);
        });
        world.sim.inject(from, to, proof);
    }

    /// A HEARTBEAT, GAP or ACKNACK in the name of the talker or of its reader.
    fn forged_state(&self, random: &mut Rng, writer: Guid, to: GuidPrefix, number: i64) -> Bytes {
        let most = 1_i64 << random.u32(1..40);
        let far = SequenceNumber(number + random.i64(1..=most));
        let kind = random.u32(0..3);
        datagram(writer.prefix, to, |message| match kind {
            0 => {
                message.heartbeat(&Heartbeat {
                    reader: EntityId::UNKNOWN,
                    writer: writer.entity,
                    first: far,
                    last: far,
                    count: 1 << 20 | self.count,
                    is_final: false,
                    liveliness: false,
                    group_info: None,
                });
            }
            1 => {
                message.gap(&Gap::range(
                    EntityId::UNKNOWN,
                    writer.entity,
                    SequenceNumber::FIRST,
                    far,
                ));
            }
            _ => {
                let reader = EntityId::new(writer.entity.key, EntityId::KIND_READER_NO_KEY);
                let base = far.0;
                message.acknack(&acknack(reader, writer.entity, &[], base, 1 << 20));
            }
        })
    }
}

fn push(kept: &mut Vec<Bytes>, bytes: &Bytes) {
    if kept.len() == RECORDED_MAX {
        kept.remove(0);
    }
    kept.push(bytes.clone());
}

fn draw(random: &mut Rng, recorded: &[Bytes]) -> Option<Bytes> {
    random.choice(recorded).cloned()
}

/// An address where nobody is.
fn stranger(number: u32) -> Locator {
    let host = u8::try_from(100 + number).unwrap_or(255);
    Locator::udp_v4([10, 0, 0, host], 7410)
}

/// A copy with one changed byte. The place does not depend on the length, because
/// that of a signature is random.
fn changed(random: &mut Rng, bytes: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    let place = random.usize(0..256);
    let place = if random.bool() {
        place.min(bytes.len() - 1)
    } else {
        bytes.len().saturating_sub(1 + place)
    };
    bytes[place] ^= random.u8(1..=255);
    bytes.into()
}

fn is_announcement(bytes: &[u8]) -> bool {
    let Ok(mut message) = MessageReader::new(bytes, GuidPrefix::UNKNOWN) else {
        return false;
    };
    message.any(|(_, submessage)| submessage.writer() == Some(EntityId::SPDP_WRITER))
}

/// The next message of the talker, or a later one, without protection.
fn forged_data(random: &mut Rng, writer: Guid, to: GuidPrefix, number: i64) -> Bytes {
    let head = DataHead {
        reader: EntityId::UNKNOWN,
        writer: writer.entity,
        sequence: SequenceNumber(number + random.i64(1..3)),
        ..DataHead::default()
    };
    let payload = Bytes::from_static(b"\0\x01\0\0forged");
    datagram(writer.prefix, to, |message| {
        message.data(&head, &payload);
    })
}

/// The disposal of a participant, as anybody can write it.
fn goodbye(prefix: GuidPrefix) -> Bytes {
    let guid = prefix.with(EntityId::PARTICIPANT).to_bytes();
    let mut body = vec![0, 0, 16, 0];
    body.extend(EntityId::UNKNOWN.to_bytes());
    body.extend(EntityId::SPDP_WRITER.to_bytes());
    body.extend([0, 0, 0, 0, 0, 4, 0, 0]);
    // KEY_HASH; STATUS_INFO: disposed and unregistered; the end.
    body.extend([&[0x70, 0, 16, 0], &guid[..]].concat());
    body.extend([0x71, 0, 4, 0, 0, 0, 0, 3, 1, 0, 0, 0]);
    // The key: PARTICIPANT_GUID.
    body.extend([&[0, 3, 0, 0, 0x50, 0, 16, 0], &guid[..], &[1, 0, 0, 0]].concat());
    let mut bytes = b"RTPS\x02\x03\x01\x50".to_vec();
    bytes.extend(prefix.0);
    let length = u16::try_from(body.len()).unwrap_or_default().to_le_bytes();
    // Little-endian, inline QoS, a key.
    bytes.extend([0x15, 0x0b, length[0], length[1]]);
    bytes.extend(body);
    bytes.into()
}
