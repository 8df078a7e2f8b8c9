//! Further transports: announces endpoints on all transports, and applies what a transport beside
//! RTPS reports.
//!
//! A remote writer on such a transport is a best-effort writer of the reader's machine, like a
//! local writer. So filters, limits, DEADLINE and LIVELINESS apply to its samples as
//! well.

use std::sync::Arc;

use pteros_dcps::coherent::GroupDialect;
use pteros_msg::hash::TypeHash;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::{CacheChange, ChangeKind};
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::reader::WriterProxyConfig;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};

use crate::core::discovery::Discovery;
use crate::core::publish_path::PublishPath;
use crate::endpoints::Endpoints;
use crate::endpoints::mismatch;
use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::graph::NodeKey;
use crate::names::ros_topic;
use crate::sample::QueuedSample;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::transport::transports::Transports;
use crate::transport::{NodeName, SampleTransport, TransportEvent, TransportSample};

/// Prefix of the DDS topics of requests.
const REQUEST_PREFIX: &str = "rq/";

/// Polls of one transport, each with at most one sample, before user code runs. The same
/// number of datagrams is handled per poll of the sockets.
const POLLS_MAX: usize = 64;

impl Transports {
    /// Announces a local endpoint, or its changed data, on all transports.
    pub(crate) fn announce_endpoint(&self, now: Instant, endpoint: &Arc<EndpointData>) {
        for transport in self.iter() {
            let Some(reason) = transport.why_not(endpoint) else {
                transport.announce(now, endpoint);
                continue;
            };
            tracing::warn!(
                endpoint = %endpoint.guid,
                "topic \"{}\": the transport \"{}\" does not carry this endpoint: {reason}",
                ros_topic(&endpoint.topic), transport.name()
            );
        }
    }

    /// Notifies the further transports of the type hash of a service.
    pub(crate) fn note_service_hash(&self, endpoint: Guid, hash: Option<TypeHash>) {
        let Some(hash) = hash else { return };
        for transport in self.added() {
            transport.note_service_hash(endpoint, &hash);
        }
    }

    /// Notifies the further transports of the content filter of a reader.
    pub(crate) fn note_content_filter(&self, reader: Guid, filter: Option<&Arc<ContentFilter>>) {
        for transport in self.added() {
            transport.note_content_filter(reader, filter);
        }
    }

    /// The counters of the further transports: transport, counter, total. For diagnostics.
    pub fn counters(&self) -> Vec<(String, &'static str, u64)> {
        let transports = self.added().iter();
        let counters = transports.flat_map(|transport| {
            let name = transport.name().to_owned();
            let counters = transport.counters().into_iter();
            counters.map(move |(counter, total)| (name.clone(), counter, total))
        });
        counters.collect()
    }

    /// Withdraws a local endpoint from all transports.
    pub(crate) fn withdraw_endpoint(&self, now: Instant, endpoint: Guid) {
        for transport in self.iter() {
            transport.withdraw(now, endpoint);
        }
    }
}

impl Endpoints {
    fn readers_of(&self, writer: Guid) -> Vec<Arc<ReaderEndpoint>> {
        let table = self.read();
        let readers = table.readers_of_writer.get(&writer);
        readers.cloned().unwrap_or_default()
    }
}

impl PublishPath {
    /// Sends the messages that a publishing thread has queued on further transports. Takes no
    /// lock while it sends.
    pub(crate) fn flush_transports(&self, now: Instant, writer: &WriterEndpoint) {
        let transports = writer.state.lock().transports.transports();
        for transport in transports {
            transport.await_readiness(writer.guid());
            transport.flush(now, writer.guid());
        }
    }
}

impl Discovery {
    /// Notifies the further transports of a local endpoint's node, and applies their reports:
    /// a publisher may write at once.
    pub(crate) fn attach_endpoint_on_transports(&self, key: NodeKey, endpoint: Guid) {
        if self.transports.added().is_empty() {
            return;
        }
        let Some((namespace, name)) = self.graph.node_name(key) else {
            return;
        };
        let (namespace, name) = (&namespace, &name);
        let now = self.platform.now();
        let _order = self.endpoints.begin_match();
        for transport in self.transports.added() {
            transport.attach_endpoint(now, endpoint, &NodeName { namespace, name });
        }
        self.serve_transports(now);
    }

    /// Polls the further transports and applies their reports. Call under `MatchOrder`.
    pub(crate) fn serve_transports(&self, now: Instant) {
        for index in 0..self.transports.added().len() {
            self.serve_transport(now, index);
        }
    }

    /// Polls one of the further transports.
    pub(crate) fn serve_transport(&self, now: Instant, index: usize) {
        let Some(transport) = self.transports.added().get(index) else {
            return;
        };
        for _ in 0..POLLS_MAX {
            let mut events = Vec::new();
            transport.poll(now, &mut events);
            if events.is_empty() {
                return;
            }
            for event in events {
                self.apply_transport_event(now, transport, event);
            }
        }
        // The remaining events wait until user code has run.
        self.scheduler
            .schedule(TimeoutOwner::Transport(index), Some(now));
    }

    /// Applies the decisions of discovery by RTPS. Further transports leave a participant that
    /// RTPS reaches: their matches end before those of RTPS start.
    pub(crate) fn apply_rtps_event(&self, now: Instant, event: ParticipantEvent) {
        if self.transports.added().is_empty() {
            return self.apply(now, event);
        }
        let lost = match &event {
            ParticipantEvent::ParticipantDiscovered(data) => {
                self.note_rtps_participant(now, data.prefix, true);
                None
            }
            ParticipantEvent::ParticipantLost { prefix, .. } => Some(*prefix),
            _ => None,
        };
        self.apply(now, event);
        if let Some(prefix) = lost {
            self.note_rtps_participant(now, prefix, false);
        }
    }

    fn note_rtps_participant(&self, now: Instant, prefix: GuidPrefix, is_reached: bool) {
        for transport in self.transports.added() {
            transport.note_rtps_participant(now, prefix, is_reached);
        }
        self.serve_transports(now);
    }

    fn apply_transport_event(
        &self,
        now: Instant,
        transport: &Arc<dyn SampleTransport>,
        event: TransportEvent,
    ) {
        match event {
            TransportEvent::Discovery(ParticipantEvent::Matched { local, remote, .. }) => {
                self.apply_transport_match(now, transport, local, &remote);
            }
            TransportEvent::Discovery(ParticipantEvent::Unmatched { local, remote }) => {
                self.apply_transport_unmatch(now, local, remote);
            }
            // RTPS continues with it, so its nodes remain.
            TransportEvent::Discovery(ParticipantEvent::ParticipantLost { prefix, .. })
                if self.participant().lock().participant(prefix).is_some() => {}
            TransportEvent::Discovery(event) => self.apply(now, event),
            TransportEvent::Nodes { participant, nodes } => {
                self.graph.note_nodes(participant, &nodes)
            }
            TransportEvent::Sample(sample) => {
                self.receive_transport_sample(now, transport, *sample)
            }
            TransportEvent::WriterAsserted(writer) => {
                for reader in self.endpoints.readers_of(writer) {
                    let mut machine = reader.machine.lock();
                    machine.note_delivered_elsewhere(now, writer, false);
                    drop(machine);
                    self.serve_reader(now, &reader);
                }
            }
            TransportEvent::SamplesLost {
                writer,
                reader: only,
                count,
            } => {
                for reader in self.endpoints.readers_of(writer) {
                    if only.is_some_and(|only| only != reader.data.guid) {
                        continue;
                    }
                    let mut machine = reader.machine.lock();
                    machine.note_samples_lost(now, writer, count);
                    drop(machine);
                    self.serve_reader(now, &reader);
                }
            }
            TransportEvent::SpaceFreed => {}
            TransportEvent::WriterWanted { writer, is_wanted } => {
                if let Some(writer) = self.endpoints.writer(writer.entity) {
                    let mut state = writer.state.lock();
                    state.transports.set_wanted(transport, is_wanted);
                    writer.update_transport_routes(&state);
                }
            }
        }
        self.scheduler.wake_waiters();
    }

    fn receive_transport_sample(
        &self,
        now: Instant,
        transport: &Arc<dyn SampleTransport>,
        sample: TransportSample,
    ) {
        let TransportSample {
            mut change,
            readers,
        } = sample;
        change.carrier = transport.carrier();
        for reader in self.endpoints.readers_of(change.writer) {
            if !readers.is_empty() && !readers.contains(&reader.data.guid) {
                continue;
            }
            let mut machine = reader.machine.lock();
            machine.handle_whole_sample(now, change.clone());
            drop(machine);
            self.serve_reader(now, &reader);
            let qos = &reader.data.qos;
            if qos.history == History::KeepAll
                && qos.reliability == Reliability::Reliable
                && !reader.machine.lock().has_space()
                && is_reliable(&**transport, change.writer)
            {
                reader.transport_holds.hold(transport, change.writer);
                // Another thread may have made space meanwhile without seeing the held
                // writer.
                reader
                    .transport_holds
                    .release_if(|| reader.machine.lock().has_space());
            }
        }
    }

    fn apply_transport_match(
        &self,
        now: Instant,
        transport: &Arc<dyn SampleTransport>,
        local: Guid,
        remote: &Arc<EndpointData>,
    ) {
        if let Some(writer) = self.endpoints.writer(local.entity) {
            let mut state = writer.state.lock();
            self.publishing.write_deferred(now, &writer, &mut state);
            if !transport.keeps_history() {
                write_kept_samples(now, transport, &writer, &state, remote);
            }
            state.transports.add(transport, remote.guid);
            writer.update_transport_routes(&state);
            drop(state);
            transport.flush(now, writer.guid());
            writer.events.note_matched(remote.guid, 1);
            mismatch::warn_about_definitions(self.prefix, &writer.data, remote);
        } else if let Some(reader) = self.endpoints.reader(local.entity) {
            reader.note_writer(remote.guid, remote.qos.ownership_strength);
            reader.note_durable(remote.guid, &remote.qos);
            if reader.holds_samples() {
                // A member of a subscription group. No such transport carries marks of a group.
                reader.add_set_writer(remote.guid, remote.group, GroupDialect::default());
            }
            reader.machine.lock().match_writer(now, monitored(remote));
            let mut table = self.endpoints.write();
            let readers = table.readers_of_writer.entry(remote.guid).or_default();
            readers.push(reader.clone());
            drop(table);
            self.serve_reader(now, &reader);
            reader.events.note_matched(remote.guid, 1);
            mismatch::warn_about_definitions(self.prefix, &reader.data, remote);
        }
    }

    fn apply_transport_unmatch(&self, now: Instant, local: Guid, remote: Guid) {
        let Some(writer) = self.endpoints.writer(local.entity) else {
            if let Some(reader) = self.endpoints.reader(local.entity) {
                reader.transport_holds.forget(remote);
            }
            return self.apply_unmatch(now, local, remote);
        };
        let mut state = writer.state.lock();
        let was_matched = state.transports.remove(remote);
        writer.update_transport_routes(&state);
        drop(state);
        if was_matched {
            if writer.data.topic.starts_with(REQUEST_PREFIX) {
                writer.events.note_moved(remote);
            }
            writer.events.note_matched(remote, -1);
        }
    }
}

/// Writes the kept samples again for a late joiner, directed to it. Call under the
/// writer's lock, before it is a reader of the transport.
fn write_kept_samples(
    now: Instant,
    transport: &Arc<dyn SampleTransport>,
    writer: &WriterEndpoint,
    state: &WriterState,
    reader: &EndpointData,
) {
    let filter = writer.filter_of(reader);
    let machine = &state.machine;
    let passes = |item: &QueuedSample| writer.passes_filter(machine, item, filter.as_deref());
    let kept = state.history.for_reader(now, &reader.qos, passes);
    for item in kept.into_iter().filter(|item| !item.ends_set()) {
        let payload = writer.kept_payload(machine, item);
        let change = kept_change(writer.guid(), item, payload);
        let readers = vec![reader.guid];
        transport.write(now, &TransportSample { change, readers });
    }
}

fn kept_change(writer: Guid, item: &QueuedSample, payload: bytes::Bytes) -> CacheChange {
    let instance = item.instance.as_ref();
    let kind = instance.map_or(ChangeKind::Alive, |of| of.kind);
    CacheChange {
        kind,
        source_timestamp: item.meta.source,
        key_only: kind != ChangeKind::Alive,
        key_hash: instance.map(|of| of.info.key.0),
        original_writer_info: item.related_identity.as_ref().and_then(|of| of.original),
        ..CacheChange::new(writer, SequenceNumber(item.meta.sequence), payload)
    }
}

fn is_reliable(transport: &dyn SampleTransport, writer: Guid) -> bool {
    let mut reliable = false;
    transport.with_endpoint(writer, &mut |known| {
        reliable = known.to_data().qos.reliability == Reliability::Reliable;
    });
    reliable
}

/// Parameters of a remote writer that the reader's machine only monitors. It never sends
/// to the writer. The transport itself reports the end of a writer with AUTOMATIC liveliness.
fn monitored(writer: &EndpointData) -> WriterProxyConfig {
    let mut qos = EndpointQos {
        reliability: Reliability::BestEffort,
        durability: Durability::Volatile,
        ..EndpointQos::clone(&writer.qos)
    };
    if qos.liveliness == Liveliness::Automatic {
        qos.lease_duration = Duration::INFINITE;
    }
    WriterProxyConfig {
        guid: writer.guid,
        qos: qos.into(),
        route: Route::by_socket(&[], false),
        vendor: VendorId::PTEROS,
    }
}
