//! Forgery: an attacker who speaks in the name of a living participant, whose GUID
//! prefix is public.
//!
//! From an address of its own (`forgery`) it changes nothing, so all invariants hold
//! as without it. Single claims far from the truth change nothing either, even from
//! the participant's address, so they are part of `forgery`. If it spoofs the
//! participant's address for long (`spoofed-forgery`), it can disturb a flow while
//! it goes on. Then the rule *recovery* (I18) holds: two seconds after the last
//! forged packet every flow is whole. If networks change as well, that is due as long
//! after the last change as without forgery.

use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::{MessageBuilder, Outbox};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::wire::{
    AckNack, DataHead, Gap, Heartbeat, InlineQosHead, SequenceSet, StatusInfo,
};

use super::fault_injection::{ATTACKER, replace};
use super::message::Message;
use super::model::Model;
use super::model::matching::{MatchDecision, is_reliable, match_decision};
use super::model::records::{ReaderRecord, WriterRecord, is_matched};
use super::schedule::SimEvent;
use super::world::GraphWorld;
use crate::harness::options::Fault;

const SECOND: u64 = 1_000_000_000;

/// The bound of the rule *recovery*, with a second for the round trips of a slow
/// link.
const RECOVERY: u64 = 2 * SECOND;

/// Messages that each writer sends after that, and how many of them must arrive at
/// each reader at least. A forged sample that was delivered takes the place of the
/// true one with its number. A best-effort reader follows lower numbers when they have
/// advanced for 0.4 s, half of the messages, because late ones may be repeats.
const MESSAGES: u64 = 16;
const ARRIVE_MIN: u64 = 4;
/// Of a reliable flow: up to four numbers may have been taken by forged samples.
const RELIABLE_ARRIVE_MIN: u64 = MESSAGES - 4;

/// Pause between two claims that unsent samples have arrived. Within a second they
/// confirm each other.
const ACK_CLAIM_PAUSE: u64 = SECOND * 3 / 2;

/// Mean time between forged packets.
const FORGERY_PAUSE: u64 = 30_000_000;

impl GraphWorld {
    /// Sends a packet in the name of a living participant, and schedules the next.
    pub fn forge(&self, spoofs_address: bool) {
        let now = self.sim.now();
        let (next, from, to, jump, kind, count) = {
            let mut schedule = self.schedule.lock();
            let processes = self.plan.hosts.len();
            let next = now + schedule.around(FORGERY_PAUSE);
            schedule.forged += 1;
            let random = &mut schedule.random;
            let far = [1, 3, 300, 1 << 20, 1 << 40];
            let counts = [1 << 8, 1 << 12, 1 << 30, (1 << 31) - 1, u32::MAX];
            let jump = far[random.usize(0..far.len())];
            let count = counts[random.usize(0..counts.len())];
            let kind = random.u8(0..12);
            let (from, to) = (random.usize(0..processes), random.usize(0..processes));
            (next, from, to, jump, kind, count)
        };
        let event = SimEvent::Forge(spoofs_address);
        self.schedule.lock().add(next, event);
        if from == to {
            return;
        }
        let socket_of = |process: usize| {
            let processes = self.sim.processes();
            let running = processes[process].running.as_ref()?;
            Some((running.core.prefix(), processes[process].socket?))
        };
        let (Some((prefix, own)), Some((_, target))) = (socket_of(from), socket_of(to)) else {
            return;
        };
        if !spoofs_address && self.plan.is_calm() && kind % 2 == 0 {
            if let Some(bytes) = self.far_claim(from, to) {
                let source = self.address_to_spoof(from, own);
                self.sim.network().inject(now, source, target, bytes);
                let check = SimEvent::CheckAcknowledgements(to, from);
                self.schedule.lock().add(now + 1, check);
            }
            return;
        }
        let forged = self.forged_packet(from, to, (jump, kind, count));
        let address = self.address_to_spoof(from, own);
        let source = if spoofs_address {
            address
        } else {
            let port = self.schedule.lock().random.u16(1..);
            Locator::udp_v4(ATTACKER, port)
        };
        let bytes = match forged {
            Some(bytes) => bytes,
            None => {
                // A true packet of it, sent again with other numbers.
                let mut schedule = self.schedule.lock();
                let network = self.sim.network();
                // Who forges the first announcement of a participant is believed until
                // the true one comes: that breaks invariants.
                let announces = |bytes: &Bytes| {
                    let writer = EntityId::SPDP_WRITER.to_bytes();
                    bytes.windows(writer.len()).any(|word| word == writer)
                };
                let of_it =
                    |bytes: &&Bytes| bytes.get(8..20) == Some(&prefix.0[..]) && !announces(bytes);
                let captured: Vec<&Bytes> = network.captured.iter().filter(of_it).collect();
                if captured.is_empty() {
                    return;
                }
                let mut bytes = captured[schedule.random.usize(0..captured.len())].to_vec();
                if bytes.len() > 24 {
                    let at = schedule.random.usize(20..bytes.len());
                    bytes[at] ^= schedule.random.u8(1..);
                }
                if !spoofs_address {
                    // Replies go to the attacker.
                    let (own, other) = (&address.address[12..], &source.address[12..]);
                    let (own, other) = (own.to_vec(), other.to_vec());
                    replace(&mut bytes, &own, &other);
                }
                bytes
            }
        };
        self.sim.trace_line(format_args!(
            "forged kind {kind} by {jump} in the name of p{from} to p{to}"
        ));
        let mut network = self.sim.network();
        network.inject(now, source, target, Bytes::from(bytes));
    }

    /// An address of a socket of a process: one of those that its host has now.
    fn address_to_spoof(&self, process: usize, socket: usize) -> Locator {
        let (own, addresses) = {
            let network = self.sim.network();
            let interfaces = network.topology.interfaces(self.plan.hosts[process]);
            let addresses: Vec<[u8; 4]> = interfaces.iter().map(|own| own.ip).collect();
            (network.sockets[socket].address, addresses)
        };
        if addresses.is_empty() {
            return own;
        }
        let chosen = self.schedule.lock().random.usize(0..addresses.len());
        let port = u16::try_from(own.port).unwrap_or(0);
        Locator::udp_v4(addresses[chosen], port)
    }

    /// A packet that claims something false of an endpoint of `from`, to `to`.
    fn forged_packet(
        &self,
        from: usize,
        to: usize,
        (jump, kind, count): (i64, u8, u32),
    ) -> Option<Vec<u8>> {
        let (source, destination) = (self.sim.core(from)?.prefix(), self.sim.core(to)?.prefix());
        let model = self.model.lock();
        let writer = model
            .living_writers()
            .find(|(_, w)| w.location.process == from);
        let writer = writer.map(|(_, w)| (w.endpoint.guid(), w.written, w.endpoint.data.clone()));
        let own = model
            .living_writers()
            .find(|(_, w)| w.location.process == to);
        let reader = model
            .living_readers()
            .find(|(_, r)| r.location.process == from);
        let pair = own.zip(reader);
        let pair = pair.map(|((_, w), (_, r))| (w.endpoint.guid(), r.endpoint.data.guid));
        drop(model);
        let nowhere: Arc<[Locator]> = Arc::from([Locator::udp_v4(ATTACKER, 1)]);
        let mut out = Outbox::new();
        let mut message = out.begin(source, &nowhere, 60_000);
        message.info_destination(destination);
        match kind {
            0..=4 => {
                let (guid, written, _) = writer?;
                let next = i64::try_from(written).ok()? + 1;
                write_user(&mut message, guid.entity, next, (jump, kind, count));
            }
            5 => {
                let (writer, reader) = pair?;
                message.acknack(&AckNack {
                    reader: reader.entity,
                    writer: writer.entity,
                    state: SequenceSet::empty(SequenceNumber(jump)),
                    count,
                    is_final: true,
                });
            }
            6..=8 => {
                let (guid, _, data) = writer?;
                write_sedp(&mut message, guid, &data, (jump, kind));
            }
            9 => {
                let key = ParticipantData::encode_key(source);
                let guid = source.with(EntityId::PARTICIPANT);
                let head = dispose(EntityId::SPDP_WRITER, jump, guid);
                message.data(&head, &key);
            }
            10 => {
                message.heartbeat(&heartbeat(
                    EntityId::SEDP_PUBLICATIONS_WRITER,
                    (jump, jump),
                    count,
                ));
            }
            _ => return None,
        }
        message.finish();
        Some(out.iter().next()?.parts.concat())
    }

    /// A claim about a flow from `from` to `to`, or back, that is so far from the
    /// truth that it costs nothing. No claim confirms an earlier one.
    fn far_claim(&self, from: usize, to: usize) -> Option<Bytes> {
        let serial = self.schedule.lock().forged;
        let (source, destination) = (self.sim.core(from)?.prefix(), self.sim.core(to)?.prefix());
        let far = (1 << 40) - serial;
        let now = self.sim.now();
        let claimed_at = self.schedule.lock().acknowledged_at;
        let model = self.model.lock();
        // An acknowledgement does harm while something is outstanding.
        let unacknowledged = (claimed_at + ACK_CLAIM_PAUSE <= now)
            .then(|| {
                let mut flows = flows(&model, to, from);
                flows.find(|(w, reader)| !w.endpoint.is_acknowledged_by(*reader))
            })
            .flatten();
        let acknowledges = unacknowledged.is_some();
        let (writer, reader) = unacknowledged.or_else(|| flows(&model, from, to).next())?;
        let (writer, reader) = (writer.endpoint.guid().entity, reader.entity);
        if acknowledges {
            self.schedule.lock().acknowledged_at = now;
        }
        let nowhere: Arc<[Locator]> = Arc::from([Locator::udp_v4(ATTACKER, 1)]);
        let mut out = Outbox::new();
        let mut message = out.begin(source, &nowhere, 60_000);
        message.info_destination(destination);
        let (first, last) = (SequenceNumber(1), SequenceNumber(far));
        if acknowledges {
            message.acknack(&AckNack {
                reader,
                writer,
                state: SequenceSet::empty(last),
                count: 60_000,
                is_final: true,
            });
        } else {
            match serial % 3 {
                0 => message.gap(&Gap::range(reader, writer, first, last)),
                1 => message.data(
                    &DataHead {
                        reader,
                        writer,
                        sequence: last,
                        ..DataHead::default()
                    },
                    &Bytes::from_static(b"forged"),
                ),
                _ => message.heartbeat(&Heartbeat {
                    reader,
                    ..heartbeat(writer, (far, far), 60_000)
                }),
            };
        }
        message.finish();
        Some(Bytes::from(out.iter().next()?.parts.concat()))
    }

    /// I18, recovery: after the last forged packet all compatible endpoints are
    /// matched, nothing forged is left, and what is written arrives.
    pub fn check_recovery(&self) -> Vec<String> {
        if !self.plan.has(Fault::SpoofedForgery) {
            return Vec::new();
        }
        let healed_at = self.schedule.lock().healed_at;
        self.sim.run_until(healed_at + RECOVERY);
        let mut wrong = self.unmatched_pairs();
        let mut expected: Vec<(usize, u64)> = Vec::new();
        let mut writers = Vec::new();
        {
            let model = self.model.lock();
            for (r, reader) in model.living_readers() {
                let own = &reader.endpoint.data;
                let matched = model.living_writers().filter(|(_, writer)| {
                    match_decision(&writer.endpoint.data, own) == Some(MatchDecision::Compatible)
                });
                let least = matched.map(|(_, writer)| {
                    if is_reliable(&writer.endpoint.data.qos, &own.qos) {
                        RELIABLE_ARRIVE_MIN
                    } else {
                        ARRIVE_MIN
                    }
                });
                let received = reader.endpoint.counts().received;
                expected.push((r, received + least.sum::<u64>()));
            }
            for (w, writer) in model.living_writers() {
                let known = (w, writer.endpoint.clone(), writer.location.process);
                writers.push((known, writer.written, writer.bytes));
            }
        }
        for turn in 1..=MESSAGES {
            for ((w, endpoint, process), written, bytes) in &writers {
                let Some(core) = self.sim.core(*process) else {
                    continue;
                };
                let mut message = Message::new(*w as u32, written + turn, *bytes);
                let sent = core.publish(endpoint, &mut message, core.platform.wall_clock());
                if let Err(error) = sent {
                    wrong.push(format!("I18 w{w} cannot write after the forgery: {error}"));
                }
                self.model.lock().writers[*w].written += 1;
                self.sim.poll_process(*process);
            }
            self.sim.run_until(self.sim.now() + SECOND / 20);
        }
        self.sim.run_until(self.sim.now() + SECOND);
        let model = self.model.lock();
        for (r, wanted) in expected {
            let received = model.readers[r].endpoint.counts().received;
            if received < wanted {
                wrong.push(format!(
                    "I18 r{r} has received {received} messages after the forgery, not {wanted}"
                ));
            }
        }
        wrong
    }

    fn unmatched_pairs(&self) -> Vec<String> {
        let model = self.model.lock();
        let mut wrong = Vec::new();
        for (w, writer) in model.living_writers() {
            let own = &writer.endpoint.data;
            let compatible = model.living_readers().filter(|(_, reader)| {
                match_decision(own, &reader.endpoint.data) == Some(MatchDecision::Compatible)
            });
            let wanted: Vec<Guid> = compatible.map(|(_, r)| r.endpoint.data.guid).collect();
            let mut matched = writer.endpoint.matched();
            matched.sort();
            let mut sorted = wanted.clone();
            sorted.sort();
            if matched != sorted {
                wrong.push(format!(
                    "I18 w{w} is matched with {matched:?} after the forgery, not {sorted:?}"
                ));
            }
        }
        wrong
    }
}

/// The reliable flows between two processes of which something has arrived.
pub(super) fn flows(
    model: &Model,
    from: usize,
    to: usize,
) -> impl Iterator<Item = (&WriterRecord, Guid)> {
    let writers = model
        .living_writers()
        .filter(move |(_, w)| w.location.process == from);
    writers.flat_map(move |(_, w)| {
        let guid = w.endpoint.guid();
        let hears = move |r: &ReaderRecord| {
            r.location.process == to
                && is_reliable(&w.endpoint.data.qos, &r.endpoint.data.qos)
                && is_matched(&r.peers, guid)
                && r.samples.contains_key(&guid)
        };
        let readers = model.living_readers().filter(move |(_, r)| hears(r));
        readers.map(move |(_, r)| (w, r.endpoint.data.guid))
    })
}

fn heartbeat(writer: EntityId, (first, last): (i64, i64), count: u32) -> Heartbeat {
    Heartbeat {
        reader: EntityId::UNKNOWN,
        writer,
        first: SequenceNumber(first),
        last: SequenceNumber(last),
        count,
        is_final: count.is_multiple_of(2),
        liveliness: false,
        group_info: None,
    }
}

fn dispose(writer: EntityId, sequence: i64, of: Guid) -> DataHead<'static> {
    DataHead {
        writer,
        sequence: SequenceNumber(sequence),
        inline_qos: InlineQosHead {
            status_info: Some(StatusInfo::DISPOSED_UNREGISTERED),
            key_hash: Some(of.to_bytes()),
            ..InlineQosHead::NONE
        },
        key_only: true,
        ..DataHead::default()
    }
}

/// Claims about the numbers of a user writer whose next number is `next`.
fn write_user(
    message: &mut MessageBuilder<'_>,
    writer: EntityId,
    next: i64,
    (jump, kind, count): (i64, u8, u32),
) {
    let far = next.saturating_add(jump);
    match kind {
        0 => {
            message.heartbeat(&heartbeat(writer, (far, far), count));
        }
        1 => {
            let (first, last) = (SequenceNumber(1), SequenceNumber(far));
            message.gap(&Gap::range(EntityId::UNKNOWN, writer, first, last));
        }
        2 => {
            let head = DataHead {
                writer,
                sequence: SequenceNumber(far),
                ..DataHead::default()
            };
            message.data(&head, &Bytes::from_static(b"forged"));
        }
        3 => {
            message.heartbeat(&heartbeat(writer, (1, far), count));
        }
        _ => {
            message.heartbeat(&heartbeat(writer, (1, 0), count));
        }
    }
}

/// SEDP of a writer: its end, another type, or another writer on its topic.
fn write_sedp(
    message: &mut MessageBuilder<'_>,
    guid: Guid,
    data: &EndpointData,
    (jump, kind): (i64, u8),
) {
    let writer = EntityId::SEDP_PUBLICATIONS_WRITER;
    let sequence = SequenceNumber(jump.min(300));
    match kind {
        6 => {
            let head = dispose(writer, sequence.0, guid);
            message.data(&head, &EndpointData::encode_key(guid));
        }
        _ => {
            let head = DataHead {
                writer,
                sequence,
                ..DataHead::default()
            };
            let mut forged = data.clone();
            if kind == 7 {
                forged.type_name.push('x');
            } else {
                let entity = EntityId::new([0xee, 0xee, 0xee], EntityId::KIND_WRITER_NO_KEY);
                forged.guid = guid.prefix.with(entity);
            }
            message.data(&head, &forged.encode());
        }
    }
}
