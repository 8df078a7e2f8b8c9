//! Dispatch of received RTPS messages to protocol machines, and of their output to
//! user code.
//!
//! Dispatching only: every protocol rule is in `pteros-rtps`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{IpAddress, Locator};
use pteros_rtps::reader::Reader;
use pteros_rtps::receiver::{MessageReader, Source};
use pteros_rtps::time::Instant;
use pteros_rtps::wire::{Heartbeat, Submessage};
use pteros_rtps::writer::Writer;

use crate::core::discovery::Discovery;
use crate::core::ends::{DeferredEnds, is_participant_dispose};
use crate::core::rate_limiter::DiscoveryRateLimiter;
use crate::core::receive_path::ReceivePath;
use crate::core::source_check::{SourceCheck, SourceChecks};
use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::writer::WriterEndpoint;
use crate::platform::ReceivedDatagram;
use crate::send::datagram_protection::DecodeBuffer;
use crate::shm_transport::ReceivedMessage;

/// The largest UDP payload over IPv4.
const DATAGRAM_BYTES_MAX: usize = 65_507;

/// Receive buffers, reused for every datagram.
pub struct ReceiveBuffers {
    pub(crate) buffer: Box<[u8]>,
    /// The bytes of a shared-memory message, except for a body that stays in its
    /// chunk.
    pub(crate) shm_message: Vec<u8>,
    readers: Vec<Arc<ReaderEndpoint>>,
    writers: Vec<Arc<WriterEndpoint>>,
    sources: SourceChecks,
    rate_limiter: DiscoveryRateLimiter,
    pub(crate) ends: DeferredEnds,
    /// Buffer for decoding, in a secured context that has received something.
    decode_buffer: Option<Box<DecodeBuffer>>,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; DATAGRAM_BYTES_MAX].into_boxed_slice(),
            shm_message: Vec::new(),
            readers: Vec::new(),
            writers: Vec::new(),
            sources: SourceChecks::default(),
            rate_limiter: DiscoveryRateLimiter::new(),
            ends: DeferredEnds::default(),
            decode_buffer: None,
        }
    }
}

impl Discovery {
    /// Advances a reader's samples and events, and sends its acknowledgements.
    pub(crate) fn serve_reader(&self, now: Instant, reader: &ReaderEndpoint) {
        self.taking.serve_reader(now, reader);
        if reader.is_graph() {
            self.handle_graph_samples(reader);
        }
    }
}

impl ReceivePath {
    /// Handles one datagram. Never panics, whatever it holds.
    pub(crate) fn dispatch(
        &self,
        now: Instant,
        inbox: &mut ReceiveBuffers,
        received: ReceivedDatagram,
    ) {
        self.counters.received.fetch_add(1, Ordering::Relaxed);
        let ReceiveBuffers {
            buffer,
            readers,
            writers,
            sources,
            rate_limiter,
            ends,
            decode_buffer: opening,
            ..
        } = inbox;
        let mut bytes = buffer.get(..received.len).unwrap_or_default();
        if let Some(crypto_transform) = self.send.crypto_transform() {
            self.discovery
                .note_unprotected_datagram(now, bytes, &received);
            let opening = opening
                .get_or_insert_with(|| Box::new(DecodeBuffer::new(DATAGRAM_BYTES_MAX)))
                .open(crypto_transform, bytes);
            let Some(clean) = opening else { return };
            bytes = clean;
        }
        let Ok(message) = MessageReader::new(bytes, self.prefix) else {
            self.counters.malformed.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.discovery
            .catch_up_with_peer(now, message.header().prefix);
        let (mut builtin, mut has_discovery) = (false, false);
        // Nearly always, all submessages of a datagram have one source.
        let mut checked = None;
        for (source, submessage) in message {
            if source.prefix == self.prefix || is_interpreter(&submessage) {
                continue;
            }
            if submessage.writer().is_some_and(EntityId::is_builtin) {
                let is_ours = source.vendor == VendorId::PTEROS;
                if !builtin && is_ours && self.discovery.is_connecting_peer(now, source.prefix) {
                    return;
                }
                let is_first = !std::mem::replace(&mut has_discovery, true);
                let address = received.from.to_udp().map(|(ip, _)| ip).unwrap_or_default();
                if is_first && !rate_limiter.admits(now, address) {
                    self.note_rate_limited(now, address, rate_limiter);
                    break;
                }
                if is_participant_dispose(&submessage)
                    && self.awaits_messages(source.prefix, received.from)
                    && ends.defer_dispose(now, received.from, bytes)
                {
                    continue;
                }
                builtin = true;
                let mut participant = self.discovery.participant().lock();
                participant.handle_submessage(now, Some(received.from), &source, &submessage);
                if is_first {
                    let has_peer = participant.has_proven(source.prefix, address);
                    rate_limiter.note_source(address, has_peer);
                }
            } else {
                let accepted = match checked {
                    Some((prefix, accepted)) if prefix == source.prefix => accepted,
                    _ => {
                        let check = self.check_source(now, source.prefix, received.from, sources);
                        builtin |= check.is_new;
                        checked = Some((source.prefix, check.accepted));
                        check.accepted
                    }
                };
                if accepted {
                    self.route(now, &source, &submessage, None, readers, writers);
                }
            }
        }
        self.serve_affected(now, readers, writers);
        if builtin {
            self.discovery.serve_participant(now);
        }
    }

    /// Handles one shared-memory message: submessages between user endpoints of the peer
    /// and of this participant. Never panics, whatever the content.
    ///
    /// Returns false if it is for local readers and none of them knows its writer.
    pub(crate) fn dispatch_shm_message(
        &self,
        now: Instant,
        inbox: &mut ReceiveBuffers,
        record: &ReceivedMessage,
    ) -> bool {
        let ReceiveBuffers {
            shm_message: head,
            readers,
            writers,
            sources,
            ..
        } = inbox;
        let peer = GuidPrefix(record.peer);
        let (head, tail) = head.split_at_checked(record.head_len).unwrap_or_default();
        let body = record.body.as_deref().unwrap_or_default();
        let Ok(message) = MessageReader::in_parts(head, body, tail, self.prefix) else {
            self.counters.malformed.fetch_add(1, Ordering::Relaxed);
            return true;
        };
        self.discovery.catch_up_with_peer(now, peer);
        let mut is_known = true;
        for (source, submessage) in message {
            let is_user = !submessage.writer().is_some_and(EntityId::is_builtin);
            if is_user && source.prefix == peer {
                let shared = record.body.as_ref();
                is_known &= self.route(now, &source, &submessage, shared, readers, writers);
            }
        }
        let renewed = sources.renews(now, peer);
        if renewed {
            self.discovery.shm_connections.note_traffic_of(peer);
            self.discovery.participant().lock().renew_lease(peer, now);
        }
        self.serve_affected(now, readers, writers);
        if renewed {
            self.discovery.serve_participant(now);
        }
        is_known
    }

    fn note_rate_limited(
        &self,
        now: Instant,
        address: IpAddress,
        rate_limiter: &mut DiscoveryRateLimiter,
    ) {
        self.counters.rate_limited.fetch_add(1, Ordering::Relaxed);
        *self.counters.most_limited.lock() = rate_limiter.most_limited();
        if rate_limiter.is_report_due(now) {
            tracing::warn!(
                "{address} sends more discovery messages than are handled; those beyond the \
                 limit are dropped, from other addresses too (told at most once a minute)"
            );
        }
    }

    fn serve_affected(
        &self,
        now: Instant,
        readers: &mut Vec<Arc<ReaderEndpoint>>,
        writers: &mut Vec<Arc<WriterEndpoint>>,
    ) {
        for reader in readers.drain(..) {
            self.discovery
                .taking
                .serve_reader_after_message(now, &reader);
            if reader.is_graph() {
                self.discovery.handle_graph_samples(&reader);
            }
        }
        for writer in writers.drain(..) {
            self.discovery.publishing.serve_writer(now, &writer);
            self.discovery.report_stalls(now, &writer);
        }
    }

    /// Whether user traffic from this address is accepted for a participant: the
    /// participant has the address, and does not send by shared memory. If so, its lease
    /// is renewed. Refusals are counted.
    fn check_source(
        &self,
        now: Instant,
        prefix: GuidPrefix,
        from: Locator,
        sources: &mut SourceChecks,
    ) -> SourceCheck {
        let peers_changed = self.discovery.peers_changed.load(Ordering::Relaxed);
        let check = sources.check(now, peers_changed, (prefix, from), || {
            let mut participant = self.discovery.participant().lock();
            let accepted = participant.accepts_source(now, prefix, Some(from));
            if !accepted {
                return false;
            }
            drop(participant);
            if self.discovery.shm_connections.refuses_datagrams_of(prefix) {
                return false;
            }
            let mut participant = self.discovery.participant().lock();
            participant.renew_lease(prefix, now);
            participant.note_heard(now, from, prefix);
            true
        });
        if !check.accepted {
            let refused = &self.counters.foreign_sources;
            refused.fetch_add(1, Ordering::Relaxed);
        }
        check
    }

    /// Whether a dispose from this address ends a participant whose messages may be
    /// unread, because a local reader is matched with one of its writers. The ROS graph
    /// needs no last messages.
    fn awaits_messages(&self, prefix: GuidPrefix, from: Locator) -> bool {
        let table = self.discovery.endpoints.read();
        let from_first = table
            .readers_of_writer
            .range(prefix.with(EntityId::UNKNOWN)..);
        let mut writers = from_first.take_while(|(writer, _)| writer.prefix == prefix);
        let is_matched =
            writers.any(|(_, readers)| readers.iter().any(|reader| !reader.is_graph()));
        drop(table);
        is_matched
            && self
                .discovery
                .participant()
                .lock()
                .is_disposable_from(prefix, from)
    }

    /// Passes a submessage of a user endpoint to its protocol machines. Returns false if
    /// it is for readers and none of them knows its writer.
    fn route(
        &self,
        now: Instant,
        source: &Source,
        submessage: &Submessage<'_>,
        shared: Option<&Bytes>,
        readers: &mut Vec<Arc<ReaderEndpoint>>,
        writers: &mut Vec<Arc<WriterEndpoint>>,
    ) -> bool {
        let mut is_known = true;
        let mut route_to_readers =
            |reader: EntityId, writer: EntityId, f: &mut dyn FnMut(&mut Reader)| {
                is_known = self.route_to_readers(source.prefix.with(writer), reader, readers, f);
            };
        let mut route_to_writer = |writer: EntityId, f: &mut dyn FnMut(&mut Writer)| {
            self.route_to_writer(writer, writers, f);
        };
        match submessage {
            Submessage::Data(data) => route_to_readers(data.reader, data.writer, &mut |machine| {
                machine.handle_data_shared(now, source, data, shared);
            }),
            Submessage::DataFrag(data) => {
                route_to_readers(data.reader, data.writer, &mut |machine| {
                    machine.handle_data_frag(now, source, data);
                })
            }
            Submessage::Heartbeat(heartbeat) => {
                route_to_readers(heartbeat.reader, heartbeat.writer, &mut |machine| {
                    machine.handle_heartbeat(now, source, heartbeat);
                });
                self.acknowledge_refused(now, source.prefix, heartbeat);
            }
            Submessage::HeartbeatFrag(heartbeat) => {
                route_to_readers(heartbeat.reader, heartbeat.writer, &mut |machine| {
                    machine.handle_heartbeat_frag(now, source, heartbeat);
                });
            }
            Submessage::Gap(gap) => route_to_readers(gap.reader, gap.writer, &mut |machine| {
                machine.handle_gap(now, source, gap);
            }),
            Submessage::AckNack(ack) => route_to_writer(ack.writer, &mut |machine| {
                machine.handle_acknack(now, source.prefix, ack);
            }),
            Submessage::NackFrag(nack) => route_to_writer(nack.writer, &mut |machine| {
                machine.handle_nack_frag(now, source.prefix, nack);
            }),
            _ => {}
        }
        is_known
    }

    /// Answers a heartbeat of a writer for the readers that refused it, see
    /// [`Participant::refused_writer`](pteros_rtps::participant::Participant::refused_writer).
    fn acknowledge_refused(&self, now: Instant, source: GuidPrefix, heartbeat: &Heartbeat) {
        if heartbeat.is_final || !self.discovery.refuses_writers.load(Ordering::Relaxed) {
            return;
        }
        let writer = source.with(heartbeat.writer);
        let Some(refused) = self
            .discovery
            .participant()
            .lock()
            .refused_writer(now, writer)
        else {
            return;
        };
        for reader in refused.readers {
            let Some(reader) = self.discovery.endpoints.reader(reader) else {
                continue;
            };
            self.send.transmit(|outbox| {
                let mut machine = reader.machine.lock();
                machine.acknowledge_refused(source, heartbeat, &refused.route, outbox);
                false
            });
        }
    }

    fn route_to_readers(
        &self,
        writer: Guid,
        reader: EntityId,
        touched: &mut Vec<Arc<ReaderEndpoint>>,
        f: &mut dyn FnMut(&mut Reader),
    ) -> bool {
        let table = self.discovery.endpoints.read();
        let Some(matched) = table.readers_of_writer.get(&writer) else {
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

    fn route_to_writer(
        &self,
        writer: EntityId,
        touched: &mut Vec<Arc<WriterEndpoint>>,
        f: &mut dyn FnMut(&mut Writer),
    ) {
        let Some(endpoint) = self.discovery.endpoints.writer(writer) else {
            return;
        };
        f(&mut endpoint.state.lock().machine);
        if !touched.iter().any(|t| Arc::ptr_eq(t, &endpoint)) {
            touched.push(endpoint);
        }
    }
}

/// Whether a submessage only controls the interpretation of later ones (RTPS 2.5 §8.3.8).
/// Counted as user traffic, the one before a path question would prove the path.
fn is_interpreter(submessage: &Submessage<'_>) -> bool {
    matches!(
        submessage,
        Submessage::InfoTimestamp(_)
            | Submessage::InfoDestination(_)
            | Submessage::InfoSource(_)
            | Submessage::InfoReply(_)
            | Submessage::Pad
            | Submessage::Unknown(_)
    )
}
