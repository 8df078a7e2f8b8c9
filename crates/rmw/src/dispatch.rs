//! From a datagram to the machines it concerns, and from there to user code.
//!
//! Dispatches only: every rule of the protocol is in `pteros-rtps`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pteros_rtps::fault;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::reader::Reader;
use pteros_rtps::receiver::{MessageReader, Source};
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::Submessage;
use pteros_rtps::writer::Writer;

use crate::core::Core;
use crate::deadline::Machine;
use crate::env::Received;
use crate::links::Record;
use crate::publish::transmit;
use crate::reader::ReaderEndpoint;
use crate::sample::{Item, Popped};
use crate::security::Opening;
use crate::trace::On;
use crate::writer::WriterEndpoint;

/// The largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// How often a living peer's lease is renewed by its ordinary traffic.
const RENEWAL_PERIOD: Duration = Duration::from_millis(200);

/// Peers whose last renewal is remembered; beyond that all are forgotten and
/// renewed once more.
const RENEWALS_MAX: usize = 1024;

/// What receiving needs, reused for every datagram.
pub struct Inbox {
    pub(crate) buffer: Box<[u8]>,
    /// A link's message, but for what stayed where it was.
    pub(crate) head: Vec<u8>,
    readers: Vec<Arc<ReaderEndpoint>>,
    writers: Vec<Arc<WriterEndpoint>>,
    renewed: BTreeMap<GuidPrefix, Instant>,
    /// Of a secured context, once something came.
    opening: Option<Box<Opening>>,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice(),
            head: Vec::new(),
            readers: Vec::new(),
            writers: Vec::new(),
            renewed: BTreeMap::new(),
            opening: None,
        }
    }
}

impl Core {
    /// Handles one datagram. Never panics, whatever it holds.
    pub(crate) fn dispatch(&self, now: Instant, inbox: &mut Inbox, received: Received) {
        self.counters.received.fetch_add(1, Ordering::Relaxed);
        let Inbox {
            buffer,
            readers,
            writers,
            renewed,
            opening,
            ..
        } = inbox;
        let mut bytes = buffer.get(..received.len).unwrap_or_default();
        if let Some(shield) = &self.shield {
            self.note_addressed(now, bytes, &received);
            let opening = opening
                .get_or_insert_with(|| Box::new(Opening::new(DATAGRAM_BYTES_MAX)))
                .open(shield, bytes);
            let Some(clean) = opening else { return };
            bytes = clean;
        }
        let Ok(message) = MessageReader::new(bytes, self.prefix) else {
            self.counters.malformed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.catch_up(now, message.header().prefix);
        let mut builtin = false;
        let mut heard = None;
        for (source, submessage) in message {
            if source.prefix == self.prefix {
                continue;
            }
            if submessage.writer().is_some_and(EntityId::is_builtin) {
                let is_ours = source.vendor == VendorId::PTEROS;
                if !builtin && is_ours && self.is_becoming_neighbour(now, source.prefix) {
                    return;
                }
                let mut participant = self.participant.lock();
                participant.handle_submessage(now, Some(received.from), &source, &submessage);
                builtin = true;
            } else {
                self.route(now, &source, (&submessage, None), readers, writers);
                if heard.replace(source.prefix) != Some(source.prefix) {
                    builtin |= self.renew(now, source.prefix, renewed);
                }
            }
        }
        self.serve_touched(now, readers, writers);
        if builtin {
            self.serve_participant(now);
        }
    }

    /// Handles one message of a link: submessages between user endpoints of the
    /// peer and ours, and nothing else. Never panics, whatever it holds. False if
    /// something was for readers here and none of them knows its writer.
    pub(crate) fn dispatch_record(&self, now: Instant, inbox: &mut Inbox, record: &Record) -> bool {
        let Inbox {
            head,
            readers,
            writers,
            renewed,
            ..
        } = inbox;
        let peer = GuidPrefix(record.peer);
        let (head, tail) = head.split_at_checked(record.head_len).unwrap_or_default();
        let body = record.body.as_deref().unwrap_or_default();
        let Ok(message) = MessageReader::in_parts(head, body, tail, self.prefix) else {
            self.counters.malformed.fetch_add(1, Ordering::Relaxed);
            return true;
        };
        self.catch_up(now, peer);
        let mut is_known = true;
        for (source, submessage) in message {
            let is_user = !submessage.writer().is_some_and(EntityId::is_builtin);
            if is_user && source.prefix == peer {
                let submessage = (&submessage, record.body.as_ref());
                is_known &= self.route(now, &source, submessage, readers, writers);
            }
        }
        let renewed = self.renew(now, peer, renewed);
        self.serve_touched(now, readers, writers);
        if renewed {
            self.serve_participant(now);
        }
        is_known
    }

    fn serve_touched(
        &self,
        now: Instant,
        readers: &mut Vec<Arc<ReaderEndpoint>>,
        writers: &mut Vec<Arc<WriterEndpoint>>,
    ) {
        for reader in readers.drain(..) {
            self.serve_reader_that_heard(now, &reader);
        }
        for writer in writers.drain(..) {
            self.serve_writer(now, &writer);
        }
    }

    /// Tells the participant, now and then, that a peer is alive.
    fn renew(
        &self,
        now: Instant,
        prefix: GuidPrefix,
        renewed: &mut BTreeMap<GuidPrefix, Instant>,
    ) -> bool {
        let last = renewed.get(&prefix);
        if last.is_some_and(|last| now.since(*last) < RENEWAL_PERIOD) {
            return false;
        }
        if renewed.len() >= RENEWALS_MAX || fault!("renewals-forgotten") {
            renewed.clear();
        }
        renewed.insert(prefix, now);
        self.participant.lock().note_alive(prefix, now);
        true
    }

    /// Hands a submessage of a user endpoint to the machines it is for. False if
    /// it is for readers and none of them knows its writer.
    fn route(
        &self,
        now: Instant,
        source: &Source,
        (submessage, shared): (&Submessage<'_>, Option<&Bytes>),
        readers: &mut Vec<Arc<ReaderEndpoint>>,
        writers: &mut Vec<Arc<WriterEndpoint>>,
    ) -> bool {
        let mut is_known = true;
        let mut to_readers =
            |reader: EntityId, writer: EntityId, f: &mut dyn FnMut(&mut Reader)| {
                is_known = self.to_readers(source.prefix.with(writer), reader, readers, f);
            };
        let mut to_writer = |writer: EntityId, f: &mut dyn FnMut(&mut Writer)| {
            self.to_writer(writer, writers, f);
        };
        match submessage {
            Submessage::Data(data) => to_readers(data.reader, data.writer, &mut |machine| {
                machine.handle_shared_data(now, source, data, shared);
            }),
            Submessage::DataFrag(data) => to_readers(data.reader, data.writer, &mut |machine| {
                machine.handle_data_frag(now, source, data);
            }),
            Submessage::Heartbeat(beat) => to_readers(beat.reader, beat.writer, &mut |machine| {
                machine.handle_heartbeat(now, source, beat);
            }),
            Submessage::HeartbeatFrag(beat) => {
                to_readers(beat.reader, beat.writer, &mut |machine| {
                    machine.handle_heartbeat_frag(now, source, beat);
                });
            }
            Submessage::Gap(gap) => to_readers(gap.reader, gap.writer, &mut |machine| {
                machine.handle_gap(now, source, gap);
            }),
            Submessage::AckNack(ack) => to_writer(ack.writer, &mut |machine| {
                machine.handle_acknack(now, source.prefix, ack);
            }),
            Submessage::NackFrag(nack) => to_writer(nack.writer, &mut |machine| {
                machine.handle_nack_frag(now, source.prefix, nack);
            }),
            _ => {}
        }
        is_known
    }

    fn to_readers(
        &self,
        writer: Guid,
        reader: EntityId,
        touched: &mut Vec<Arc<ReaderEndpoint>>,
        f: &mut dyn FnMut(&mut Reader),
    ) -> bool {
        let table = self.table.read();
        let Some(matched) = table.readers_of.get(&writer) else {
            return false;
        };
        for endpoint in matched {
            if reader != EntityId::UNKNOWN && reader != endpoint.data.guid.entity {
                continue;
            }
            f(&mut endpoint.machine.lock());
            if !touched.iter().any(|t| Arc::ptr_eq(t, endpoint)) {
                touched.push(endpoint.clone());
            }
        }
        true
    }

    fn to_writer(
        &self,
        writer: EntityId,
        touched: &mut Vec<Arc<WriterEndpoint>>,
        f: &mut dyn FnMut(&mut Writer),
    ) {
        let Some(endpoint) = self.writer(writer) else {
            return;
        };
        f(&mut endpoint.state.lock().machine);
        if !touched.iter().any(|t| Arc::ptr_eq(t, &endpoint)) {
            touched.push(endpoint);
        }
    }

    /// Takes a reader's oldest sample. When that makes room, writers that were
    /// held back are asked for more, or woken. Never blocks for IO.
    pub fn take(&self, reader: &ReaderEndpoint) -> Option<Item> {
        let item = self.take_untraced(reader);
        if let (Some(tracer), Some(item)) = (&reader.tracer, &item) {
            tracer.note_taken(reader.data.guid.entity, &item.meta, item.weight());
        }
        item
    }

    /// As [`Core::take`], for somebody who keeps it for others: it is in the trace
    /// when they have noted it.
    pub(crate) fn take_untraced(&self, reader: &ReaderEndpoint) -> Option<Item> {
        if reader.group.is_none() {
            let popped = reader.pop(|| self.env.now());
            return self.note_popped(reader, popped);
        }
        // A judge may keep what is taken of a group.
        while let Some(popped) = reader.pop_of_group(|| self.env.now()) {
            let item = self.note_popped(reader, popped);
            if item.is_some() {
                return item;
            }
        }
        None
    }

    /// Does what was asked for when a sample was taken.
    pub(crate) fn note_popped(&self, reader: &ReaderEndpoint, popped: Popped) -> Option<Item> {
        if popped.resume && !fault!("held-back-for-ever") {
            self.serve_reader(self.env.now(), reader);
            let of_group = reader.group.as_ref().map(|m| m.group.take_resumed());
            for reader in of_group.into_iter().flatten() {
                self.serve_reader(self.env.now(), &reader);
            }
        }
        // What was held back is in, so that what comes after it has its turn.
        if popped.made_room || popped.resume {
            self.note_progress();
        }
        popped.item
    }

    /// Under the machine's lock: a later deadline must not be written over.
    pub(crate) fn schedule_reader(&self, reader: &ReaderEndpoint, machine: &Reader) {
        let next = reader.next_timeout(machine);
        self.schedule(Machine::Reader(reader.data.guid.entity), next);
    }

    /// Moves a reader's samples and events on and sends its acknowledgements.
    pub(crate) fn serve_reader(&self, now: Instant, reader: &ReaderEndpoint) {
        self.serve_reader_but(now, reader, false);
    }

    /// As [`Core::serve_reader`], after a message. User code goes first: what only
    /// confirms what has come, a system call that wakes its writer, is due at once, so
    /// the next turn does it.
    fn serve_reader_that_heard(&self, now: Instant, reader: &ReaderEndpoint) {
        self.serve_reader_but(now, reader, true);
    }

    fn serve_reader_but(&self, now: Instant, reader: &ReaderEndpoint, user_first: bool) {
        transmit(self, |outbox| {
            let mut machine = reader.machine.lock();
            let before = reader.received.load(Ordering::Relaxed);
            reader.collect(now, &mut machine, self.env.wall());
            let has_news = user_first && reader.received.load(Ordering::Relaxed) > before;
            let waits = has_news && machine.only_confirms();
            let more = !waits && machine.poll_transmit(now, outbox);
            self.schedule_reader(reader, &machine);
            more
        });
        if reader.is_graph() {
            self.absorb_graph(reader);
        }
        if let Some(attendant) = &reader.attendant {
            let _apart = reader.tracer.as_ref().map(|_| On::apart());
            while let Some(item) = self.take(reader) {
                attendant(&item);
            }
        }
    }
}
