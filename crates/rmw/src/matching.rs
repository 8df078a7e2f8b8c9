//! Endpoints come and go: announcing ours, matching local with local, and
//! carrying out what discovery decides about remote ones.
//!
//! Everything here happens under `match_order`, so that a match and its end
//! reach an endpoint in the order in which discovery saw them.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, Guid, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::participant::{LostReason, ParticipantEvent};
use pteros_rtps::qos::{EndpointQos, History, Liveliness, XCDR1, XCDR2};
use pteros_rtps::reader::{Reader, ReaderConfig, WriterProxyConfig};
use pteros_rtps::shared_qos::SharedQos;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::writer::{FragmentSize, ReaderProxyConfig, Writer, WriterConfig};

use crate::coherent::changes_publishers;
use crate::content_filter::{FilterSpec, FilterableType, LocalFilter, MessageType};
use crate::core::Core;
use crate::deadline::Machine;
use crate::durable;
use crate::error::{EndpointError, GroupError};
use crate::flow::{FlowController, Place};
use crate::graph::DISCOVERY_TOPIC;
use crate::instance::{Keying, Lifecycle};
use crate::limits::Limits;
use crate::local::has_manual_lease;
use crate::publish::transmit;
use crate::publisher_group::PublisherGroup;
use crate::reader::{Attendant, ReaderEndpoint, Wants};
use crate::sample::samples_max;
use crate::subscription_group::SubscriptionGroup;
use crate::writer::WriterEndpoint;

/// Endpoints of one context. A robot process has tens; the bound is there so
/// that a loop gone wrong is told, not swapped.
const ENDPOINTS_MAX: usize = 8192;

/// What a publisher or a subscription is made of.
#[derive(Clone, Debug, Default)]
pub struct EndpointSpec {
    /// DDS topic name, `rt/chatter`.
    pub topic: String,
    /// DDS type name, `std_msgs::msg::dds_::String_`.
    pub type_name: String,
    /// Every policy; `user_data` carries the type hash.
    pub qos: EndpointQos,
    /// Whether the topic has a key, and who reads it.
    pub keying: Keying,
    /// What becomes of instances that end.
    pub lifecycle: Lifecycle,
    /// The group that a publisher is made in; its presentation holds then.
    pub group: Option<Arc<PublisherGroup>>,
    /// The group that a subscription is made in; its presentation holds then.
    pub subscription_group: Option<Arc<SubscriptionGroup>>,
    /// Name of the store, where a publisher is transient or persistent. `None`:
    /// named for domain and topic.
    pub store: Option<String>,
    /// A writer of this kind shares no values within its process, a reader takes
    /// none: messages are serialized once for all that read them so.
    pub as_bytes: bool,
    /// What messages are made of, for content filters.
    pub message_type: MessageType,
    /// What a subscription wants of its topic; `None` is all.
    pub content_filter: Option<FilterSpec>,
}

impl Core {
    /// Creates a writer, announces it and matches it with local readers. One
    /// of durability transient or persistent begins with what its store holds,
    /// and blocks until the disk has given it.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_writer(&self, spec: EndpointSpec) -> Result<Arc<WriterEndpoint>, EndpointError> {
        self.create_writer_at(spec, None)
    }

    /// As [`Core::create_writer`], with a flow controller and a rank there.
    pub(crate) fn create_writer_at(
        &self,
        spec: EndpointSpec,
        flow: Option<(usize, Option<i32>)>,
    ) -> Result<Arc<WriterEndpoint>, EndpointError> {
        let guid = self.new_guid(spec.keying.writer_kind())?;
        let (keying, lifecycle) = (spec.keying.clone(), spec.lifecycle);
        let (group, message_type) = (spec.group.clone(), spec.message_type.clone());
        if group.as_ref().is_some_and(|group| group.is_open()) {
            return Err(GroupError::SetOpen.into());
        }
        let (store, as_bytes) = (spec.store.clone(), spec.as_bytes);
        let mut data = self.endpoint_data(guid, spec);
        if let Some(group) = &group {
            data.group = Some(group.guid());
            data.qos.presentation = group.presentation();
        }
        if data.qos.representation.is_empty() {
            data.qos.representation = vec![XCDR1];
        }
        self.permit(&mut data)?;
        let place = flow.map(|(controller, priority)| Place {
            controller,
            priority: priority.unwrap_or(data.qos.transport_priority),
            writer: guid.entity,
        });
        let has_own_rank = flow.is_some_and(|(_, priority)| priority.is_some());
        let controller = flow.and_then(|(at, _)| self.options.flow_controllers.get(at));
        let fragment_bytes_max = controller.map_or(u16::MAX, FlowController::fragment_bytes_max);
        let wanted = self.fragment_size();
        let mut config = WriterConfig {
            fragment_size: FragmentSize {
                same_host: wanted.same_host.min(fragment_bytes_max),
                network: wanted.network.min(fragment_bytes_max),
            },
            paced: place.is_some(),
            // By it the shield finds the keys.
            spares_destinations: self.shield.is_none(),
            ..WriterConfig::new(guid, machine_qos(&data.qos, keying.reader().is_some()))
        };
        self.options.limits.bound_writer(&mut config.limits);
        let sample_bytes_max = config.limits.sample_bytes_max;
        durable::widen(&mut config, self.options.store.bytes_max);
        let events = Arc::default();
        let (store, stored) = self.open_store(&data, store, &events)?.unzip();
        let machine = Writer::new(config);
        let data = Arc::new(data);
        let mut writer = WriterEndpoint::new(
            data.clone(),
            machine,
            sample_bytes_max,
            (&keying, lifecycle),
            group,
            (events, store),
        );
        writer.place = place;
        writer.has_own_rank = has_own_rank;
        writer.as_bytes = as_bytes;
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
        let now = self.env.now();
        writer.restore(now, self.env.wall(), stored.unwrap_or_default());
        let order = self.match_order.lock();
        let local: Vec<_> = {
            let mut table = self.table.write();
            table.writers.insert(guid.entity, writer.clone());
            let on_topic = |reader: &&Arc<ReaderEndpoint>| reader.data.topic == data.topic;
            table.readers.values().filter(on_topic).cloned().collect()
        };
        for reader in &local {
            self.match_local(now, &writer, reader);
        }
        self.participant.lock().add_writer(now, data);
        drop(order);
        self.serve_participant(now);
        if has_manual_lease(&writer.data.qos) {
            // Alive from birth; from here on it has to prove it.
            writer.state.lock().machine.assert_liveliness(now);
        }
        self.serve_writer(now, &writer);
        self.note_progress();
        Ok(writer)
    }

    /// Creates a reader, announces it and matches it with local writers.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_reader(
        &self,
        spec: EndpointSpec,
        wants: Wants,
        ignore_local: bool,
    ) -> Result<Arc<ReaderEndpoint>, EndpointError> {
        self.create_reader_for(None, spec, wants, ignore_local)
    }

    /// A reader whose samples go to `attendant`, from the first on, in place of a
    /// queue.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn create_attended_reader(
        &self,
        spec: EndpointSpec,
        wants: Wants,
        attendant: Attendant,
    ) -> Result<Arc<ReaderEndpoint>, EndpointError> {
        self.create_reader_for(Some(attendant), spec, wants, false)
    }

    fn create_reader_for(
        &self,
        attendant: Option<Attendant>,
        spec: EndpointSpec,
        wants: Wants,
        ignore_local: bool,
    ) -> Result<Arc<ReaderEndpoint>, EndpointError> {
        let wants = if spec.as_bytes { Wants::Bytes } else { wants };
        let guid = self.new_guid(spec.keying.reader_kind())?;
        let (keying, lifecycle) = (spec.keying.clone(), spec.lifecycle);
        let local_filter =
            LocalFilter::new(spec.message_type.clone(), self.options.limits.filter_depth);
        let content_filter = match &spec.content_filter {
            Some(filter) => local_filter.make(&spec.topic, filter)?,
            None => None,
        };
        local_filter.set(content_filter.clone());
        let group = spec.subscription_group.clone();
        let mut data = self.endpoint_data(guid, spec);
        if data.qos.representation.is_empty() {
            data.qos.representation = vec![XCDR1, XCDR2];
        }
        if let Some(group) = &group {
            data.qos.presentation = group.presentation();
        }
        self.permit(&mut data)?;
        let machine = Reader::new(ReaderConfig {
            content_filter,
            ..reader_config(
                guid,
                &machine_qos(&data.qos, keying.reader().is_some()),
                &self.options.limits,
            )
        });
        let mut reader = ReaderEndpoint::new(
            Arc::new(data),
            wants,
            ignore_local,
            (machine, local_filter),
            (&keying, lifecycle),
        );
        if let Some(group) = &group {
            reader = reader.in_group(group);
        }
        reader.attendant = attendant;
        if reader.data.topic != DISCOVERY_TOPIC {
            reader.tracer.clone_from(&self.tracer);
        }
        if let Some(tracer) = &reader.tracer {
            tracer.name_endpoint(&reader.data);
        }
        let reader = Arc::new(reader);
        if let Some(member) = &reader.group {
            member.group.note_reader(member.place, &reader);
        }
        let now = self.env.now();
        let order = self.match_order.lock();
        let local: Vec<_> = {
            let mut table = self.table.write();
            table.readers.insert(guid.entity, reader.clone());
            let on_topic = |writer: &&Arc<WriterEndpoint>| writer.data.topic == reader.data.topic;
            table.writers.values().filter(on_topic).cloned().collect()
        };
        for writer in &local {
            self.match_local(now, writer, &reader);
        }
        let announced = reader.announced();
        self.participant.lock().add_reader(now, announced);
        drop(order);
        self.serve_participant(now);
        self.note_progress();
        Ok(reader)
    }

    /// Removes a reader: peers and local writers are told.
    pub fn remove_reader(&self, reader: &ReaderEndpoint) {
        let guid = reader.data.guid;
        let now = self.env.now();
        let order = self.match_order.lock();
        let writers: Vec<_> = {
            let mut table = self.table.write();
            table.readers.remove(&guid.entity);
            table.readers_of.retain(|_, readers| {
                readers.retain(|r| r.data.guid != guid);
                !readers.is_empty()
            });
            table.writers.values().cloned().collect()
        };
        for writer in writers {
            self.unmatch_local_reader(&writer, reader);
        }
        if let Some(member) = &reader.group {
            member.group.leave(now, member.place);
        }
        self.deadlines.forget(Machine::Reader(guid.entity));
        self.participant.lock().remove_endpoint(now, guid);
        self.forget_endpoint(guid);
        drop(order);
        self.serve_participant(now);
        self.note_progress();
    }

    fn new_guid(&self, kind: u8) -> Result<Guid, EndpointError> {
        if self.is_closed() {
            return Err(EndpointError::ShutDown);
        }
        let table = self.table.read();
        if table.writers.len() + table.readers.len() >= ENDPOINTS_MAX {
            return Err(EndpointError::TooMany { max: ENDPOINTS_MAX });
        }
        Ok(self
            .prefix
            .with(EntityId::new(self.next_entity_key(), kind)))
    }

    fn endpoint_data(&self, guid: Guid, spec: EndpointSpec) -> EndpointData {
        EndpointData {
            type_information: self.type_information(&spec.message_type, &spec.type_name),
            ..EndpointData::new(guid, &spec.topic, &spec.type_name, spec.qos)
        }
    }

    // --- local with remote ---

    /// Carries out what discovery has decided and sends what it has to send.
    pub(crate) fn serve_participant(&self, now: Instant) {
        self.look_who_is_bound(now);
        let _order = self.match_order.lock();
        self.post_notices(now);
        loop {
            let mut events = Vec::new();
            transmit(self, |outbox| {
                let mut participant = self.participant.lock();
                while let Some(event) = participant.poll_event() {
                    events.push(event);
                }
                let more = participant.poll_transmit(now, outbox);
                if let Some(security) = &self.security {
                    security.note_candidates(participant.candidate_count());
                }
                // Under the lock: a later deadline must not be written over.
                self.schedule(Machine::Participant, participant.next_timeout());
                more
            });
            if events.is_empty() {
                break;
            }
            let publishers_change = events.iter().any(changes_publishers);
            for event in events {
                self.apply(now, event);
            }
            if publishers_change {
                // After the matches: a publisher whose writers are all known has
                // all of them matched that ever will be.
                self.tell_of_publishers(now);
            }
        }
    }

    fn apply(&self, now: Instant, event: ParticipantEvent) {
        self.graph.note(&event);
        self.heed_strangers(now, &event);
        match event {
            ParticipantEvent::Matched {
                local,
                remote,
                route,
                vendor,
            } => {
                if !self.is_open(now, local, &remote, (&route, vendor)) {
                    return;
                }
                self.apply_match(now, local, &remote, route, vendor);
            }
            ParticipantEvent::Unmatched { local, remote } => {
                if self.was_open(local, remote) {
                    self.apply_unmatch(now, local, remote);
                }
            }
            ParticipantEvent::IncompatibleQos {
                local,
                remote,
                policies,
            } => {
                if let Some(writer) = self.writer(local.entity) {
                    self.warn_of_qos(&writer.announced(), &remote);
                    writer.events.note_incompatible(remote.guid, policies);
                } else if let Some(reader) = self.reader(local.entity) {
                    self.warn_of_qos(&remote, &reader.announced());
                    reader.events.note_incompatible(remote.guid, policies);
                }
            }
            ParticipantEvent::InconsistentTopic { local, remote } => {
                if let Some(writer) = self.writer(local.entity) {
                    self.warn_of_types(&writer.data, &remote);
                    writer.events.note_other_type(&remote);
                } else if let Some(reader) = self.reader(local.entity) {
                    self.warn_of_types(&remote, &reader.data);
                    reader.events.note_other_type(&remote);
                }
            }
            ParticipantEvent::LivelinessAsserted { prefix, kind } => {
                self.apply_liveliness(now, prefix, kind);
            }
            ParticipantEvent::EndpointChanged { remote, route } => {
                self.apply_route(&remote, &route);
            }
            ParticipantEvent::ParticipantLost { prefix, reason } => {
                self.end_link(prefix);
                if reason == LostReason::BeganAnew {
                    for reader in self.table.read().readers.values() {
                        reader.machine.lock().forget_participant(prefix);
                        reader.forget_participant(prefix);
                    }
                }
            }
            ParticipantEvent::ParticipantDiscovered(data) => self.use_link(data.prefix),
            ParticipantEvent::ParticipantChanged(_)
            | ParticipantEvent::EndpointDiscovered(_)
            | ParticipantEvent::EndpointLost(_)
            | ParticipantEvent::Stranger(_)
            | ParticipantEvent::Unauthenticated(_)
            | ParticipantEvent::StatelessMessage { .. }
            | ParticipantEvent::KeysMessage { .. }
            | ParticipantEvent::TypesLearned => {}
        }
        self.note_progress();
    }

    pub(crate) fn apply_match(
        &self,
        now: Instant,
        local: Guid,
        remote: &EndpointData,
        route: Route,
        vendor: VendorId,
    ) {
        // The graph's own matches with all; for them alone no link pays.
        if remote.topic != DISCOVERY_TOPIC {
            self.seek_link(now, remote.guid.prefix, vendor);
        }
        if let Some(writer) = self.writer(local.entity) {
            let proxy = ReaderProxyConfig {
                guid: remote.guid,
                qos: remote.qos.clone(),
                route,
                expects_inline_qos: remote.expects_inline_qos,
                vendor,
                content_filter: writer.filter_of(remote),
            };
            let mut state = writer.state.lock();
            self.take_up(now, &writer, &mut state);
            writer.supply(&mut state);
            state.machine.match_reader(now, proxy);
            if self.is_told(remote.guid) {
                state.machine.meet_quietly(remote.guid);
            }
            writer.note_links(&state.machine);
            drop(state);
            if self.is_unasked(remote.guid.prefix) {
                writer.note_unasked();
            }
            writer.note_remote(1);
            self.serve_writer(now, &writer);
            writer.events.note_matched(remote.guid, 1);
            self.warn_of_definitions(&writer.data, remote);
        } else if let Some(reader) = self.reader(local.entity) {
            let proxy = WriterProxyConfig {
                guid: remote.guid,
                qos: remote.qos.clone(),
                route,
                vendor,
            };
            reader.note_writer(remote.guid, remote.qos.ownership_strength);
            reader.note_durable(remote.guid, &remote.qos);
            self.begin_remote_sets(&reader, remote, vendor);
            let is_told = self.is_told(remote.guid);
            let mut machine = reader.machine.lock();
            machine.match_writer(now, proxy);
            if is_told {
                machine.meet_quietly(remote.guid);
            }
            drop(machine);
            let mut table = self.table.write();
            table
                .readers_of
                .entry(remote.guid)
                .or_default()
                .push(reader.clone());
            drop(table);
            self.serve_reader(now, &reader);
            reader.events.note_matched(remote.guid, 1);
            self.warn_of_definitions(&reader.data, remote);
            self.warn_of_key(&reader.data, remote, vendor);
        }
    }

    /// Whether the two ends know of each other before either sends: what a
    /// neighbour's board says is read before any message of it.
    fn is_told(&self, remote: Guid) -> bool {
        self.participant.lock().is_neighbour(remote.prefix)
    }

    pub(crate) fn apply_unmatch(&self, now: Instant, local: Guid, remote: Guid) {
        if let Some(writer) = self.writer(local.entity) {
            let mut state = writer.state.lock();
            state.machine.unmatch_reader(remote);
            writer.note_links(&state.machine);
            drop(state);
            writer.note_remote(-1);
            self.serve_writer(now, &writer);
            writer.events.note_matched(remote, -1);
        } else if let Some(reader) = self.reader(local.entity) {
            let mut table = self.table.write();
            if let Some(readers) = table.readers_of.get_mut(&remote) {
                readers.retain(|r| r.data.guid != local);
                if readers.is_empty() {
                    table.readers_of.remove(&remote);
                }
            }
            drop(table);
            reader.machine.lock().unmatch_writer(remote);
            self.serve_reader(now, &reader);
            reader.end_sets(now, &mut reader.machine.lock(), self.env.wall(), remote);
            reader.forget_writer(now, remote, self.env.wall());
            // An instance that ended may be due to be purged.
            self.schedule_reader(&reader, &reader.machine.lock());
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
            let table = self.table.read();
            let of_peer = table.readers_of.iter().filter(|(w, _)| w.prefix == prefix);
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

    fn apply_route(&self, remote: &EndpointData, route: &Route) {
        if remote.guid.entity.is_reader() {
            let writers: Vec<_> = self.table.read().writers.values().cloned().collect();
            for writer in writers {
                let mut state = writer.state.lock();
                state.machine.update_route(remote.guid, route.clone());
                writer.note_links(&state.machine);
                if writer.data.topic == remote.topic {
                    let filter = writer.filter_of(remote);
                    state.machine.set_content_filter(remote.guid, filter);
                }
            }
        } else if let Some(readers) = self.table.read().readers_of.get(&remote.guid) {
            for reader in readers {
                let mut machine = reader.machine.lock();
                machine.update_route(remote.guid, route.clone());
                machine.update_writer(remote.guid, &remote.qos);
                reader.note_writer(remote.guid, remote.qos.ownership_strength);
            }
        }
    }
}

/// What the protocol machine of an endpoint is told: where instances are told
/// apart each has a deadline of its own, see [`crate::instance`].
pub(crate) fn machine_qos(qos: &SharedQos, is_keyed: bool) -> SharedQos {
    let mut qos = qos.clone();
    if is_keyed && !qos.deadline.is_infinite() {
        qos.deadline = Duration::INFINITE;
    }
    qos
}

/// A KEEP_ALL reader's own limit also bounds what waits before its queue, else
/// a writer would be held back only after hundreds of samples more.
fn reader_config(guid: Guid, qos: &SharedQos, within: &Limits) -> ReaderConfig {
    let mut config = ReaderConfig::new(guid, qos.clone());
    within.bound_reader(&mut config.limits);
    let bounds = &qos.resource_limits;
    let bound = match guid.entity.is_keyed() {
        false => samples_max(bounds),
        // Of one instance there may be few samples, of all there are more.
        true => {
            let of_each = bounds.max_samples_per_instance;
            let of_each = of_each.map(|n| n.max(WAITING_SAMPLES_MIN));
            let tighter = [bounds.max_samples, of_each].into_iter().flatten().min();
            tighter.map(|n| n.max(1) as usize)
        }
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

/// As many samples as one turn moves on at a time, at the least.
const WAITING_SAMPLES_MIN: u32 = 16;
