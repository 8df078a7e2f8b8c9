//! Endpoint matching: creates and announces local endpoints, matches them with each
//! other, and applies what discovery (SEDP) decides about remote ones.
//!
//! Everything here happens under `match_order`, so that a match and its end reach
//! an endpoint in the order of discovery.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::participant::{LostReason, ParticipantEvent};
use pteros_rtps::qos::{EndpointQos, History, Liveliness, XCDR1, XCDR2};
use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
use pteros_rtps::shared_qos::SharedQos;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::writer::{FragmentSize, ReaderProxyConfig, Writer, WriterConfig};

use crate::core::Core;
use crate::core::discovery::Discovery;
use crate::core::peers::SilentParticipant;
use crate::core::table_fill::warn_about_full_table;
use crate::endpoints::coherent_delivery::changes_publishers;
use crate::endpoints::content_filter::{
    FilterSpec, FilterableType, IntraProcessFilter, MessageType,
};
use crate::endpoints::durable_store;
use crate::endpoints::local_route::has_manual_lease;
use crate::endpoints::mismatch;
use crate::endpoints::publisher_group::PublisherGroup;
use crate::endpoints::reader::{DeliveryForm, InlineListener, ReaderEndpoint};
use crate::endpoints::subscription_group::SubscriptionGroup;
use crate::endpoints::writer::{WriterEndpoint, WriterEndpointConfig};
use crate::error::{EndpointError, GroupError};
use crate::graph::DISCOVERY_TOPIC;
use crate::instance::TopicKey;
use crate::limits::Limits;
use crate::qos::DataLifecycle;
use crate::sample::samples_max;
use crate::scheduler::timeout_queue::TimeoutOwner;
use crate::send::flow_controller::{FlowController, FlowMembership};
use crate::transport::rtps::RtpsTransport;
use crate::transport::{Transport, TransportEvent};
use crate::user_data::NO_ENTRIES;

/// Maximum number of endpoints of a context. A robot process has tens; the bound
/// makes a runaway loop an error.
const ENDPOINTS_MAX: usize = 8192;

/// Parameters of a publisher or subscription.
#[derive(Clone, Debug, Default)]
pub struct EndpointSpec {
    /// DDS topic name, `rt/chatter`.
    pub topic: String,
    /// DDS type name, `std_msgs::msg::dds_::String_`.
    pub type_name: String,
    /// Every policy; `user_data` carries the type hash.
    pub qos: EndpointQos,
    /// Whether the topic has a key, and its reader.
    pub topic_key: TopicKey,
    /// Policy for instances that end.
    pub lifecycle: DataLifecycle,
    /// The group of a publisher, whose presentation applies.
    pub group: Option<Arc<PublisherGroup>>,
    /// The group of a subscription, whose presentation applies.
    pub subscription_group: Option<Arc<SubscriptionGroup>>,
    /// The name of the durable store of a transient or persistent publisher.
    /// `None`: derived from domain and topic.
    pub store: Option<String>,
    /// A writer shares no values within its process, a reader accepts none.
    /// Messages are serialized once for all such readers.
    pub serialize_only: bool,
    /// The message type, for content filters.
    pub message_type: MessageType,
    /// The content filter of a subscription; `None` accepts everything.
    pub content_filter: Option<FilterSpec>,
}

impl RtpsTransport {
    /// Whether both sides know of the match before either sends: the discovery log
    /// of a same-host peer is read before any message of it.
    fn is_mutually_known(&self, remote: Guid) -> bool {
        self.participant.lock().is_same_host_peer(remote.prefix)
    }

    fn endpoint_data(&self, guid: Guid, spec: EndpointSpec) -> EndpointData {
        let mut qos = spec.qos;
        if qos.user_data.is_empty() {
            qos.user_data = NO_ENTRIES.to_vec();
        }
        EndpointData {
            type_information: self.type_information(&spec.message_type, &spec.type_name),
            ..EndpointData::new(guid, &spec.topic, &spec.type_name, qos)
        }
    }
}

impl Discovery {
    // --- local with remote ---

    /// Applies the decisions of discovery and sends its output.
    pub(crate) fn serve_participant(&self, now: Instant) {
        self.probe_bound_ports(now);
        let _order = self.endpoints.begin_match();
        self.same_host.append_announcements(now);
        loop {
            let mut events = Vec::new();
            self.transports.rtps.poll(now, &mut events);
            let participant = self.participant().lock();
            let refuses_writers = participant.endpoints().has_refused_writers();
            if let Some(security) = &self.security.0 {
                security.set_unvalidated_count(participant.unvalidated_count());
            }
            drop(participant);
            self.refuses_writers
                .store(refuses_writers, Ordering::Relaxed);
            if events.is_empty() {
                break;
            }
            let publishers_change = events.iter().any(changes_publishers);
            for event in events {
                if let TransportEvent::Discovery(event) = event {
                    self.apply_rtps_event(now, event);
                }
            }
            if publishers_change {
                // After the matches: once all writers of a publisher are known, all of
                // its matches have been made.
                self.update_publisher_writers(now);
            }
        }
        self.serve_transports(now);
    }

    pub(crate) fn apply(&self, now: Instant, event: ParticipantEvent) {
        self.graph.handle_participant_event(&event);
        self.handle_unauthenticated_event(now, &event);
        if matches!(
            event,
            ParticipantEvent::ParticipantDiscovered(_)
                | ParticipantEvent::ParticipantChanged(_)
                | ParticipantEvent::ParticipantLost { .. }
        ) {
            self.peers_changed.fetch_add(1, Ordering::Relaxed);
        }
        match event {
            ParticipantEvent::Matched {
                local,
                remote,
                route,
                vendor,
            } => {
                if !self
                    .security
                    .is_match_ready(now, local, &remote, &route, vendor)
                {
                    return;
                }
                self.apply_match(now, local, &remote, route, vendor);
            }
            ParticipantEvent::Unmatched { local, remote } => {
                if self.security.remove_match(local, remote) {
                    self.apply_unmatch(now, local, remote);
                }
            }
            ParticipantEvent::IncompatibleQos {
                local,
                remote,
                policies,
            } => {
                if let Some(writer) = self.endpoints.writer(local.entity) {
                    mismatch::warn_about_qos(self.prefix, &writer.announced(), &remote);
                    writer.events.note_incompatible(remote.guid, policies);
                } else if let Some(reader) = self.endpoints.reader(local.entity) {
                    mismatch::warn_about_qos(self.prefix, &remote, &reader.announced());
                    reader.events.note_incompatible(remote.guid, policies);
                }
            }
            ParticipantEvent::InconsistentTopic { local, remote } => {
                if let Some(writer) = self.endpoints.writer(local.entity) {
                    mismatch::warn_about_types(self.prefix, &writer.data, &remote);
                    writer.events.note_incompatible_type(&remote);
                } else if let Some(reader) = self.endpoints.reader(local.entity) {
                    mismatch::warn_about_types(self.prefix, &remote, &reader.data);
                    reader.events.note_incompatible_type(&remote);
                }
            }
            ParticipantEvent::LivelinessAsserted { prefix, kind } => {
                self.apply_liveliness(now, prefix, kind);
            }
            ParticipantEvent::PathChanged {
                from, to, reason, ..
            } => self.sockets.tell_move(now, from, to, reason),
            ParticipantEvent::EndpointChanged { remote, route } => {
                self.endpoints.tell_refused(&remote);
                self.apply_route(now, &remote, &route);
            }
            ParticipantEvent::ParticipantLost { prefix, reason } => {
                self.shm_connections.end_connection(prefix);
                for reader in self.endpoints.read().readers.values() {
                    reader.forget_participant(prefix, reason == LostReason::Restarted);
                }
                if reason == LostReason::LeaseExpired {
                    self.note_interruption(prefix);
                }
            }
            ParticipantEvent::SourceRefused { prefix, from } => {
                tracing::warn!(
                    "datagrams in the name of participant {prefix} come from {from}, where it is \
                     not; they are dropped (counted, not logged again)"
                );
            }
            ParticipantEvent::ParticipantSilent { data, from } => {
                SilentParticipant::new(&data).warn(from);
            }
            ParticipantEvent::ParticipantReturned {
                prefix,
                reason: LostReason::Restarted,
            } => {
                tracing::warn!(
                    "participant {prefix} seemed to have restarted with the same GUID, and was \
                     discovered again"
                );
            }
            ParticipantEvent::ParticipantReturned { prefix, .. } => {
                tracing::warn!(
                    "participant {prefix} answers, although its end was announced in its name; \
                     somebody may have forged that"
                );
            }
            ParticipantEvent::ParticipantDiscovered(data) => {
                self.shm_connections.use_connection(data.prefix)
            }
            ParticipantEvent::TableFull {
                table,
                limit,
                holder,
            } => warn_about_full_table(table, limit, holder),
            ParticipantEvent::ParticipantChanged(_)
            | ParticipantEvent::EndpointDiscovered(_)
            | ParticipantEvent::EndpointLost(_)
            | ParticipantEvent::AuthenticationNeeded(_)
            | ParticipantEvent::Unauthenticated(_)
            | ParticipantEvent::StatelessMessage { .. }
            | ParticipantEvent::KeyExchangeMessage { .. }
            | ParticipantEvent::AuthenticationAbandoned(_)
            | ParticipantEvent::TypeObjectsReceived => {}
        }
        self.scheduler.wake_waiters();
    }

    /// A peer was silent for its lease. Samples that its writers publish until it returns
    /// are lost to our readers, except replies, which are for one client each.
    fn note_interruption(&self, prefix: pteros_rtps::id::GuidPrefix) {
        for reader in self.endpoints.read().readers.values() {
            if !reader.data.topic.starts_with("rr/") {
                reader.machine.lock().note_interruption(prefix);
            }
        }
    }

    pub(crate) fn apply_match(
        &self,
        now: Instant,
        local: Guid,
        remote: &EndpointData,
        route: Route,
        vendor: VendorId,
    ) {
        // The graph's own endpoints match with all participants; they alone do not
        // justify a connection.
        if remote.topic != DISCOVERY_TOPIC {
            self.shm_connections
                .request_connection(now, remote.guid.prefix, vendor);
        }
        if let Some(writer) = self.endpoints.writer(local.entity) {
            let payload_form = if remote.topic == DISCOVERY_TOPIC {
                let Some(form) = self.graph.node_list_form(&writer, remote, vendor) else {
                    return;
                };
                form
            } else {
                None
            };
            let proxy = ReaderProxyConfig {
                guid: remote.guid,
                qos: remote.qos.clone(),
                route,
                expects_inline_qos: remote.expects_inline_qos,
                vendor,
                content_filter: writer.filter_of(remote),
                payload_form,
            };
            let is_mutually_known = self.transports.rtps.is_mutually_known(remote.guid);
            let prefix = remote.guid.prefix;
            let window = self.participant().lock().retransmission_window(prefix);
            let is_on_demand = self.shm_connections.is_on_demand(prefix);
            let mut state = writer.state.lock();
            self.publishing.write_deferred(now, &writer, &mut state);
            writer.serialize_pending(&mut state);
            state.machine.match_reader(now, proxy);
            state
                .machine
                .readers_mut()
                .share_retransmission_window(prefix, &window);
            if is_mutually_known {
                state.machine.suppress_initial_heartbeat(remote.guid);
            }
            writer.update_connected_count(&state.machine);
            // Before a publisher that decides under this lock whether its message leaves
            // the process.
            if is_on_demand {
                writer.note_on_demand_peer();
            }
            writer.note_remote(1);
            drop(state);
            self.publishing.serve_writer(now, &writer);
            writer.events.note_matched(remote.guid, 1);
            mismatch::warn_about_definitions(self.prefix, &writer.data, remote);
        } else if let Some(reader) = self.endpoints.reader(local.entity) {
            let proxy = WriterProxyConfig {
                guid: remote.guid,
                qos: remote.qos.clone(),
                route,
                vendor,
            };
            reader.note_writer(remote.guid, remote.qos.ownership_strength);
            reader.note_durable(remote.guid, &remote.qos);
            self.add_remote_set_writer(&reader, remote, vendor);
            let is_mutually_known = self.transports.rtps.is_mutually_known(remote.guid);
            let account = self.participant().lock().memory_account(remote.guid.prefix);
            let mut machine = reader.machine.lock();
            machine.match_writer(now, proxy);
            machine.limit_memory(remote.guid, account);
            if is_mutually_known {
                machine.suppress_preemptive_acknack(remote.guid);
            }
            drop(machine);
            let mut table = self.endpoints.write();
            table
                .readers_of_writer
                .entry(remote.guid)
                .or_default()
                .push(reader.clone());
            drop(table);
            self.serve_reader(now, &reader);
            reader.events.note_matched(remote.guid, 1);
            mismatch::warn_about_definitions(self.prefix, &reader.data, remote);
            mismatch::warn_about_key(&reader.data, remote, vendor);
        }
    }

    pub(crate) fn apply_unmatch(&self, now: Instant, local: Guid, remote: Guid) {
        if let Some(writer) = self.endpoints.writer(local.entity) {
            if writer.data.topic == DISCOVERY_TOPIC && !writer.is_matched_with(remote) {
                // It waited for the layout of its participant.
                return;
            }
            let mut state = writer.state.lock();
            state.machine.unmatch_reader(remote);
            writer.update_connected_count(&state.machine);
            drop(state);
            writer.note_remote(-1);
            self.publishing.serve_writer(now, &writer);
            writer.events.note_matched(remote, -1);
        } else if let Some(reader) = self.endpoints.reader(local.entity) {
            let mut table = self.endpoints.write();
            if let Some(readers) = table.readers_of_writer.get_mut(&remote) {
                readers.retain(|r| r.data.guid != local);
                if readers.is_empty() {
                    table.readers_of_writer.remove(&remote);
                }
            }
            drop(table);
            reader.note_gone(remote);
            let mut machine = reader.machine.lock();
            if !self.transports.added().is_empty() {
                // Another transport may serve it meanwhile, and RTPS again later.
                machine.set_resume_point(remote);
            }
            machine.unmatch_writer(remote);
            drop(machine);
            self.serve_reader(now, &reader);
            reader.remove_set_writer(
                now,
                &mut reader.machine.lock(),
                self.platform.wall_clock(),
                remote,
            );
            reader.forget_writer(now, remote, self.platform.wall_clock());
            // An ended instance may need a purge timer.
            reader.schedule(&self.scheduler, &reader.machine.lock());
            reader.events.note_matched(remote, -1);
        }
    }

    fn apply_liveliness(
        &self,
        now: Instant,
        prefix: pteros_rtps::id::GuidPrefix,
        kind: Liveliness,
    ) {
        let readers: Vec<_> = {
            let table = self.endpoints.read();
            let of_peer = table
                .readers_of_writer
                .iter()
                .filter(|(w, _)| w.prefix == prefix);
            of_peer
                .flat_map(|(_, readers)| readers.iter().cloned())
                .collect()
        };
        for reader in readers {
            reader
                .machine
                .lock()
                .handle_liveliness_assertion(now, prefix, kind);
            self.serve_reader(now, &reader);
        }
    }

    fn apply_route(&self, now: Instant, remote: &EndpointData, route: &Route) {
        if remote.guid.entity.is_reader() {
            let writers: Vec<_> = self.endpoints.writers();
            for writer in writers {
                let mut state = writer.state.lock();
                if !state.machine.readers().contains(remote.guid) {
                    continue;
                }
                state.machine.update_route(remote.guid, route.clone());
                writer.update_connected_count(&state.machine);
                if writer.data.topic == remote.topic {
                    let filter = writer.filter_of(remote);
                    state.machine.set_content_filter(remote.guid, filter);
                }
                drop(state);
                // A new destination owes GAPs and heartbeats of the old one.
                self.publishing.serve_writer(now, &writer);
            }
        } else if let Some(readers) = self.endpoints.read().readers_of_writer.get(&remote.guid) {
            for reader in readers {
                let mut machine = reader.machine.lock();
                machine.update_route(remote.guid, route.clone());
                machine.update_writer(remote.guid, &remote.qos);
                reader.note_writer(remote.guid, remote.qos.ownership_strength);
            }
        }
    }

    fn new_guid(&self, kind: u8) -> Result<Guid, EndpointError> {
        if self.scheduler.is_closed() {
            return Err(EndpointError::ShutDown);
        }
        let table = self.endpoints.read();
        if table.writers.len() + table.readers.len() >= ENDPOINTS_MAX {
            return Err(EndpointError::TooMany { max: ENDPOINTS_MAX });
        }
        drop(table);
        Ok(self.endpoints.new_guid(kind))
    }
}

impl Core {
    /// Creates a writer, announces it and matches it with local readers.
    ///
    /// A transient or persistent writer starts with its stored samples and blocks
    /// until they are read from disk.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_writer(&self, spec: EndpointSpec) -> Result<Arc<WriterEndpoint>, EndpointError> {
        self.create_writer_with_flow(spec, None)
    }

    /// As [`Core::create_writer`], with a flow controller and a priority there.
    pub(crate) fn create_writer_with_flow(
        &self,
        spec: EndpointSpec,
        flow: Option<(usize, Option<i32>)>,
    ) -> Result<Arc<WriterEndpoint>, EndpointError> {
        let guid = self.discovery().new_guid(spec.topic_key.writer_kind())?;
        let (topic_key, lifecycle) = (spec.topic_key.clone(), spec.lifecycle);
        let (group, message_type) = (spec.group.clone(), spec.message_type.clone());
        if group.as_ref().is_some_and(|group| group.is_open()) {
            return Err(GroupError::SetOpen.into());
        }
        let (store, as_bytes) = (spec.store.clone(), spec.serialize_only);
        let mut data = self.rtps().endpoint_data(guid, spec);
        if let Some(group) = &group {
            data.group = Some(group.guid());
            data.qos.presentation = group.presentation();
        }
        if data.qos.representation.is_empty() {
            data.qos.representation = vec![XCDR1];
        }
        self.discovery()
            .security
            .check_endpoint_permission(&mut data)?;
        let membership = flow.map(|(controller, priority)| FlowMembership {
            controller,
            priority: priority.unwrap_or(data.qos.transport_priority),
            writer: guid.entity,
        });
        let has_own_priority = flow.is_some_and(|(_, priority)| priority.is_some());
        let controller = flow.and_then(|(at, _)| self.options.flow_controllers.get(at));
        let fragment_bytes_max = controller.map_or(u16::MAX, FlowController::fragment_bytes_max);
        let wanted = self.send.fragment_size(FragmentSize {
            same_host: self.options.fragment_bytes_same_host,
            network: self.options.fragment_bytes_network,
        });
        let mut config = WriterConfig {
            fragment_size: FragmentSize {
                same_host: wanted.same_host.min(fragment_bytes_max),
                network: wanted.network.min(fragment_bytes_max),
            },
            flow_controlled: membership.is_some(),
            // The crypto transform finds the keys by it.
            omits_info_dst: !self.send.is_secured(),
            ..WriterConfig::new(guid, protocol_qos(&data.qos, topic_key.reader().is_some()))
        };
        self.options.limits.bound_writer(&mut config.limits);
        let sample_bytes_max = config.limits.sample_bytes_max;
        durable_store::extend_history(&mut config, self.options.store.bytes_max);
        let events = Arc::default();
        let (store, stored) = self.open_store(&data, store, &events)?.unzip();
        let machine = Writer::new(config);
        let data = Arc::new(data);
        let mut writer = WriterEndpoint::new(WriterEndpointConfig {
            data: data.clone(),
            machine,
            sample_bytes_max,
            topic_key: &topic_key,
            lifecycle,
            group,
            events,
            store,
        });
        writer.flow_membership = membership;
        writer.has_own_priority = has_own_priority;
        writer.serialize_only = as_bytes;
        writer.ty = FilterableType::new(message_type, self.options.limits.filter_depth);
        let writer = Arc::new(writer);
        if let Some(tracer) = &self.tracer
            && writer.data.topic != DISCOVERY_TOPIC
        {
            tracer.name_endpoint(&writer.data);
        }
        if let Some(group) = &writer.group {
            group.add(&writer)?;
        }
        let now = self.platform.now();
        writer.restore(now, self.platform.wall_clock(), stored.unwrap_or_default());
        let order = self.discovery().endpoints.begin_match();
        let local: Vec<_> = {
            let mut table = self.discovery().endpoints.write();
            table.writers.insert(guid.entity, writer.clone());
            let on_topic = |reader: &&Arc<ReaderEndpoint>| reader.data.topic == data.topic;
            table.readers.values().filter(on_topic).cloned().collect()
        };
        for reader in &local {
            self.discovery().match_local(now, &writer, reader);
        }
        self.discovery().transports.announce_endpoint(now, &data);
        drop(order);
        self.discovery().serve_participant(now);
        if has_manual_lease(&writer.data.qos) {
            // Alive from its creation; after that it must assert liveliness.
            writer.state.lock().machine.assert_liveliness(now);
        }
        self.discovery().publishing.serve_writer(now, &writer);
        self.scheduler.wake_waiters();
        Ok(writer)
    }

    /// Creates a reader, announces it and matches it with local writers.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_reader(
        &self,
        spec: EndpointSpec,
        delivery_form: DeliveryForm,
        ignore_local: bool,
    ) -> Result<Arc<ReaderEndpoint>, EndpointError> {
        self.create_reader_for(None, spec, delivery_form, ignore_local)
    }

    /// Creates a reader whose samples are passed to an inline listener instead of a
    /// queue, from the first one on.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_reader_with_listener(
        &self,
        spec: EndpointSpec,
        delivery_form: DeliveryForm,
        listener: InlineListener,
    ) -> Result<Arc<ReaderEndpoint>, EndpointError> {
        self.create_reader_for(Some(listener), spec, delivery_form, false)
    }

    fn create_reader_for(
        &self,
        listener: Option<InlineListener>,
        spec: EndpointSpec,
        delivery_form: DeliveryForm,
        ignore_local: bool,
    ) -> Result<Arc<ReaderEndpoint>, EndpointError> {
        let delivery_form = if spec.serialize_only {
            DeliveryForm::Bytes
        } else {
            delivery_form
        };
        let guid = self.discovery().new_guid(spec.topic_key.reader_kind())?;
        let (topic_key, lifecycle) = (spec.topic_key.clone(), spec.lifecycle);
        let local_filter =
            IntraProcessFilter::new(spec.message_type.clone(), self.options.limits.filter_depth);
        let content_filter = match &spec.content_filter {
            Some(filter) => local_filter.build(&spec.topic, filter)?,
            None => None,
        };
        local_filter.set(content_filter.clone());
        let group = spec.subscription_group.clone();
        let mut data = self.rtps().endpoint_data(guid, spec);
        if data.qos.representation.is_empty() {
            data.qos.representation = vec![XCDR1, XCDR2];
        }
        if let Some(group) = &group {
            data.qos.presentation = group.presentation();
        }
        self.discovery()
            .security
            .check_endpoint_permission(&mut data)?;
        if content_filter.is_some() {
            self.discovery()
                .transports
                .note_content_filter(guid, content_filter.as_ref());
        }
        let machine = Reader::new(ReaderConfig {
            content_filter,
            ..reader_config(
                guid,
                &protocol_qos(&data.qos, topic_key.reader().is_some()),
                &self.options.limits,
            )
        });
        let mut reader = ReaderEndpoint::new(
            Arc::new(data),
            delivery_form,
            ignore_local,
            machine,
            local_filter,
            &topic_key,
            lifecycle,
        );
        if let Some(group) = &group {
            reader = reader.in_group(group);
        }
        reader.listener = listener;
        if reader.data.topic != DISCOVERY_TOPIC {
            reader.tracer.clone_from(&self.tracer);
        }
        if let Some(tracer) = &reader.tracer {
            tracer.name_endpoint(&reader.data);
        }
        let reader = Arc::new(reader);
        if let Some(member) = &reader.group {
            member.group.note_reader(member.index, &reader);
        }
        let now = self.platform.now();
        let order = self.discovery().endpoints.begin_match();
        let local: Vec<_> = {
            let mut table = self.discovery().endpoints.write();
            table.readers.insert(guid.entity, reader.clone());
            let on_topic = |writer: &&Arc<WriterEndpoint>| writer.data.topic == reader.data.topic;
            table.writers.values().filter(on_topic).cloned().collect()
        };
        for writer in &local {
            self.discovery().match_local(now, writer, &reader);
        }
        self.discovery()
            .transports
            .announce_endpoint(now, &reader.announced());
        drop(order);
        self.discovery().serve_participant(now);
        self.scheduler.wake_waiters();
        Ok(reader)
    }

    /// Removes a reader and informs peers and local writers.
    pub fn remove_reader(&self, reader: &ReaderEndpoint) {
        let guid = reader.data.guid;
        let now = self.platform.now();
        let order = self.discovery().endpoints.begin_match();
        let writers: Vec<_> = {
            let mut table = self.discovery().endpoints.write();
            table.readers.remove(&guid.entity);
            table.readers_of_writer.retain(|_, readers| {
                readers.retain(|r| r.data.guid != guid);
                !readers.is_empty()
            });
            table.writers.values().cloned().collect()
        };
        for writer in writers {
            self.discovery()
                .publishing
                .intra_process
                .remove_route(&writer, reader);
        }
        if let Some(member) = &reader.group {
            member.group.remove_reader(now, member.index);
        }
        self.scheduler.remove(TimeoutOwner::Reader(guid.entity));
        self.discovery().transports.withdraw_endpoint(now, guid);
        self.discovery().security.forget_endpoint(guid);
        drop(order);
        self.discovery().serve_participant(now);
        self.scheduler.wake_waiters();
    }
}

/// The QoS of an endpoint's protocol machine. On keyed topics each instance has its
/// own deadline, see [`crate::instance`].
pub(crate) fn protocol_qos(qos: &SharedQos, is_keyed: bool) -> SharedQos {
    let mut qos = qos.clone();
    if is_keyed && !qos.deadline.is_infinite() {
        qos.deadline = Duration::INFINITE;
    }
    qos
}

/// A KEEP_ALL reader's limit also bounds the reorder buffer. Otherwise a writer would be
/// blocked only after hundreds of further samples.
fn reader_config(guid: Guid, qos: &SharedQos, within: &Limits) -> ReaderConfig {
    let mut config = ReaderConfig::new(guid, qos.clone());
    within.bound_reader(&mut config.limits);
    let bounds = &qos.resource_limits;
    let bound = if guid.entity.is_keyed() {
        // There may be few samples of one instance and more in all.
        let of_each = bounds.max_samples_per_instance;
        let of_each = of_each.map(|n| n.max(REORDER_SAMPLES_MIN));
        let tighter = [bounds.max_samples, of_each].into_iter().flatten().min();
        tighter.map(|n| n.max(1) as usize)
    } else {
        samples_max(bounds)
    };
    if qos.history == History::KeepAll
        && let Some(samples) = bound
    {
        let limits = &mut config.limits;
        limits.ready_samples_max = limits.ready_samples_max.min(samples);
        limits.reorder_samples_max = limits.reorder_samples_max.min(samples);
    }
    config
}

/// At least the number of samples that one poll delivers.
const REORDER_SAMPLES_MIN: u32 = 16;

#[cfg(test)]
mod tests {
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::ResourceLimits;

    use super::*;

    #[test]
    fn a_keep_all_readers_limits_bound_what_waits_before_its_queue() {
        let reorder = |kind: u8, max_samples: Option<u32>, of_each: Option<u32>, history| {
            let guid = GuidPrefix([1; 12]).with(EntityId::new([0, 0, 1], kind));
            let qos = EndpointQos {
                history,
                resource_limits: ResourceLimits {
                    max_samples,
                    max_samples_per_instance: of_each,
                    ..ResourceLimits::default()
                },
                ..EndpointQos::default()
            };
            let config = reader_config(guid, &qos.into(), &Limits::default());
            config.limits.reorder_samples_max
        };
        let (no_key, with_key) = (EntityId::KIND_READER_NO_KEY, EntityId::KIND_READER_WITH_KEY);
        let unbounded = reorder(no_key, None, None, History::KeepAll);
        assert!(unbounded > 100);
        assert_eq!(reorder(no_key, Some(10), None, History::KeepAll), 10);
        assert_eq!(
            reorder(no_key, Some(10), None, History::KeepLast(1)),
            unbounded
        );
        // Few samples of each instance are more in all.
        assert_eq!(reorder(with_key, None, Some(1), History::KeepAll), 16);
        assert_eq!(reorder(with_key, None, Some(40), History::KeepAll), 40);
        assert_eq!(reorder(with_key, Some(3), Some(40), History::KeepAll), 3);
        assert_eq!(reorder(with_key, Some(0), None, History::KeepAll), 1);
    }
}
