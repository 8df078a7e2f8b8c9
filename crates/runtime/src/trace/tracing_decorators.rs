//! Tracing decorators: transports and messages that take time stamps. They wrap the
//! real ones in a traced context only, so that an untraced one checks nothing.

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
use pteros_shm::DiscoveryLog;

use super::Tracer;
use super::current_context;
use crate::instance::{KeyHash, KeyReader};
use crate::outbound::OutboundMessage;
use crate::platform::{DatagramSockets, InterfaceChange, ReceivedDatagram};
use crate::sample::SharedValue;
use crate::scheduler::ready_queue::ReadyQueue;
use crate::shm_transport::{
    Chunk, ConnectionCounts, ConnectionEvent, DisconnectReason, PoolExhausted, ReceivedMessage,
    SendRefusal, ShmScope, ShmTransport,
};

/// Sockets that record time stamps.
pub(crate) struct TracingSockets {
    pub inner: Box<dyn DatagramSockets>,
    pub tracer: Arc<Tracer>,
}

impl DatagramSockets for TracingSockets {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        self.tracer.note_first_datagram();
        self.inner.send(parts, to)
    }

    fn send_with_dscp(
        &self,
        parts: &[IoSlice<'_>],
        to: &Locator,
        code_point: u8,
    ) -> io::Result<()> {
        self.tracer.note_first_datagram();
        self.inner.send_with_dscp(parts, to, code_point)
    }

    fn send_segmented(
        &self,
        parts: &[IoSlice<'_>],
        segment_bytes: u16,
        to: &Locator,
    ) -> io::Result<()> {
        self.tracer.note_first_datagram();
        self.inner.send_segmented(parts, segment_bytes, to)
    }

    fn wait_writable(&self, span: Duration) -> bool {
        self.inner.wait_writable(span)
    }

    fn bound_ports(&self, ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        self.inner.bound_ports(ports)
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let received = self.inner.receive(buffer)?;
        current_context::set_arrived_at(self.tracer.now());
        Some(received)
    }

    fn check_readable(&self) {
        self.inner.check_readable();
    }

    fn sleep(&self, now: Instant, until: Instant) {
        self.inner.sleep(now, until);
    }

    fn sleep_queue(&self, queue: &Arc<ReadyQueue>, until: Instant) -> bool {
        self.inner.sleep_queue(queue, until)
    }

    fn wake(&self) {
        self.inner.wake();
    }

    fn shutdown_requested(&self) -> bool {
        self.inner.shutdown_requested()
    }

    fn discovery_log(&self) -> Option<&DiscoveryLog> {
        self.inner.discovery_log()
    }

    fn discovery_log_changed(&self) -> bool {
        self.inner.discovery_log_changed()
    }

    fn interfaces_changed(&self) -> bool {
        self.inner.interfaces_changed()
    }

    fn follow_interfaces(&self) -> Option<InterfaceChange> {
        self.inner.follow_interfaces()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inner.descriptor()
    }
}

/// A shared-memory transport that records time stamps.
pub(crate) struct TracingShmTransport {
    pub inner: Arc<dyn ShmTransport>,
    pub tracer: Arc<Tracer>,
}

impl ShmTransport for TracingShmTransport {
    fn scope(&self) -> ShmScope {
        self.inner.scope()
    }

    fn connect(&self, peer: GuidPrefix, now: Instant) -> Result<(), DisconnectReason> {
        self.inner.connect(peer, now)
    }

    fn disconnect(&self, peer: GuidPrefix) {
        self.inner.disconnect(peer);
    }

    fn is_due(&self) -> bool {
        self.inner.is_due()
    }

    fn poll(&self, now: Instant, events: &mut dyn FnMut(ConnectionEvent)) -> Option<Instant> {
        self.inner.poll(now, events)
    }

    fn send(&self, connection: u32, datagram: &Datagram<'_>) -> Result<(), SendRefusal> {
        self.tracer.note_first_datagram();
        self.inner.send(connection, datagram)
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<ReceivedMessage> {
        let record = self.inner.receive(head)?;
        current_context::set_arrived_at(self.tracer.now());
        Some(record)
    }

    fn chunk(&self, len: usize) -> Result<Chunk, PoolExhausted> {
        self.inner.chunk(len)
    }

    fn prefaulted_chunk(&self, len: usize) -> Option<Chunk> {
        self.inner.prefaulted_chunk(len)
    }

    fn prefault(&self, len: usize) {
        self.inner.prefault(len);
    }

    fn arm_doorbell(&self) -> bool {
        self.inner.arm_doorbell()
    }

    fn defer_doorbell(&self) -> bool {
        self.inner.defer_doorbell()
    }

    fn disarm_doorbell(&self) {
        self.inner.disarm_doorbell();
    }

    fn counts(&self) -> ConnectionCounts {
        self.inner.counts()
    }
}

/// A message that records when it is serialized.
pub(crate) struct TracingMessage<'m> {
    pub inner: &'m mut dyn OutboundMessage,
    pub tracer: &'m Tracer,
}

impl OutboundMessage for TracingMessage<'_> {
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
        current_context::with_publish(|publish| {
            let began = publish.serialized.map_or(began, |(before, _)| before);
            publish.serialized = Some((began, ended));
            publish.bytes = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            // Earlier datagrams belong to other messages.
            publish.handed = None;
        });
        bytes
    }

    fn wants_buffer(&self) -> bool {
        self.inner.wants_buffer()
    }

    fn offer_buffer(&mut self, memory: Chunk) {
        self.inner.offer_buffer(memory);
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

    fn directed_to(&self) -> Option<Guid> {
        self.inner.directed_to()
    }

    fn key_hash(&mut self, reader: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        self.inner.key_hash(reader)
    }

    fn key(&mut self, reader: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        self.inner.key(reader)
    }
}
