//! Sockets, links and messages with stamps: put around the real ones where a
//! context is traced, so that nothing looks for a tracer where none is.

use std::any::TypeId;
use std::io::{self, IoSlice};
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bytes::Bytes;
use pteros_msg::cdr::DecodeError;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::{Duration, Instant};
use pteros_shm::Board;

use super::Tracer;
use super::here;
use crate::env::{Received, Transport};
use crate::instance::{KeyHash, KeyReader};
use crate::links::{
    Chunk, Exhausted, LinkCounts, LinkEvent, Links, Realm, Reason, Record, Refused,
};
use crate::ready::ReadyQueue;
use crate::sample::SharedValue;
use crate::writer::Outgoing;

/// Sockets that stamp.
pub(crate) struct StampedTransport {
    pub inner: Box<dyn Transport>,
    pub tracer: Arc<Tracer>,
}

impl Transport for StampedTransport {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        self.tracer.note_handed();
        self.inner.send(parts, to)
    }

    fn send_marked(&self, parts: &[IoSlice<'_>], to: &Locator, code_point: u8) -> io::Result<()> {
        self.tracer.note_handed();
        self.inner.send_marked(parts, to, code_point)
    }

    fn send_segmented(
        &self,
        parts: &[IoSlice<'_>],
        segment_bytes: u16,
        to: &Locator,
    ) -> io::Result<()> {
        self.tracer.note_handed();
        self.inner.send_segmented(parts, segment_bytes, to)
    }

    fn wait_for_room(&self, span: Duration) -> bool {
        self.inner.wait_for_room(span)
    }

    fn bound_ports(&self, ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        self.inner.bound_ports(ports)
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<Received> {
        let received = self.inner.receive(buffer)?;
        here::set_arrived(self.tracer.now());
        Some(received)
    }

    fn look(&self) {
        self.inner.look();
    }

    fn sleep(&self, now: Instant, until: Instant) {
        self.inner.sleep(now, until);
    }

    fn rest(&self, queue: &Arc<ReadyQueue>, until: Instant) -> bool {
        self.inner.rest(queue, until)
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn shutdown_requested(&self) -> bool {
        self.inner.shutdown_requested()
    }

    fn board(&self) -> Option<&Board> {
        self.inner.board()
    }

    fn board_stirs(&self) -> bool {
        self.inner.board_stirs()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}

/// Links that stamp.
pub(crate) struct StampedLinks {
    pub inner: Arc<dyn Links>,
    pub tracer: Arc<Tracer>,
}

impl Links for StampedLinks {
    fn realm(&self) -> Realm {
        self.inner.realm()
    }

    fn connect(&self, peer: GuidPrefix, now: Instant) -> Result<(), Reason> {
        self.inner.connect(peer, now)
    }

    fn disconnect(&self, peer: GuidPrefix) {
        self.inner.disconnect(peer);
    }

    fn is_due(&self) -> bool {
        self.inner.is_due()
    }

    fn turn(&self, now: Instant, events: &mut dyn FnMut(LinkEvent)) -> Option<Instant> {
        self.inner.turn(now, events)
    }

    fn send(&self, link: u32, datagram: &Datagram<'_>) -> Result<(), Refused> {
        self.tracer.note_handed();
        self.inner.send(link, datagram)
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<Record> {
        let record = self.inner.receive(head)?;
        here::set_arrived(self.tracer.now());
        Some(record)
    }

    fn chunk(&self, len: usize) -> Result<Chunk, Exhausted> {
        self.inner.chunk(len)
    }

    fn warm_chunk(&self, len: usize) -> Option<Chunk> {
        self.inner.warm_chunk(len)
    }

    fn warm_ahead(&self, len: usize) {
        self.inner.warm_ahead(len);
    }

    fn before_sleep(&self) -> bool {
        self.inner.before_sleep()
    }

    fn awake(&self) {
        self.inner.awake();
    }

    fn counts(&self) -> LinkCounts {
        self.inner.counts()
    }
}

/// A message that stamps when it is serialized.
pub(super) struct StampedMessage<'m> {
    pub inner: &'m mut dyn Outgoing,
    pub tracer: &'m Tracer,
}

impl Outgoing for StampedMessage<'_> {
    fn message_type(&self) -> TypeId {
        self.inner.message_type()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        self.inner.shared()
    }

    fn serialized(&mut self) -> Bytes {
        let began = self.tracer.now();
        let bytes = self.inner.serialized();
        let ended = self.tracer.now();
        here::with_draft(|draft| {
            let began = draft.serialized.map_or(began, |(before, _)| before);
            draft.serialized = Some((began, ended));
            draft.bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            // What was sent before was something else.
            draft.handed = None;
        });
        bytes
    }

    fn wants_memory(&self) -> bool {
        self.inner.wants_memory()
    }

    fn offer_memory(&mut self, memory: Chunk) {
        self.inner.offer_memory(memory);
    }

    fn serialized_len(&mut self) -> usize {
        self.inner.serialized_len()
    }

    fn kind(&self) -> ChangeKind {
        self.inner.kind()
    }

    fn related(&self) -> Option<SampleIdentity> {
        self.inner.related()
    }

    fn only_for(&self) -> Option<Guid> {
        self.inner.only_for()
    }

    fn key_hash(&mut self, reader: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        self.inner.key_hash(reader)
    }

    fn key(&mut self, reader: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        self.inner.key(reader)
    }
}
