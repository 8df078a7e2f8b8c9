//! The intra-process path: readers of the same context get a writer's messages as
//! shared values, whatever the QoS.
//!
//! Samples bypass the protocol machines, but the machines still enforce policies.
//! The reader's machine knows its local writers (as best-effort ones, so that it
//! never sends to them). It is informed of samples and liveliness assertions when
//! DEADLINE, a manual LIVELINESS lease, exclusive OWNERSHIP or TIME_BASED_FILTER
//! needs that. So both paths count the same events, and endpoints without such
//! policies pay nothing.

use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::fault;
use pteros_rtps::id::VendorId;
use pteros_rtps::locator::Route;
use pteros_rtps::matching::{MatchOutcome, evaluate_match};
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::reader::WriterProxyConfig;
use pteros_rtps::time::{Duration, Instant};

use crate::core::Core;
use crate::instance::{KeyHash, SampleInstance};
use crate::publish::WrittenSample;
use crate::publisher_group::GroupWriteGuard;
use crate::reader::{DeliveryForm, ReaderEndpoint};
use crate::sample::{DeliveryPath, QueuedSample, RelatedIdentity, SampleBody, SampleMeta};
use crate::writer::{OutboundMessage, WriterEndpoint, WriterState};
use pteros_dcps::cache::FullQueuePolicy;
use pteros_dcps::coherent::MatchKey;

/// A writer's route to one reader of its own context.
#[derive(Clone)]
pub(crate) struct IntraProcessRoute {
    pub(crate) reader: Arc<ReaderEndpoint>,
    /// Both sides are reliable.
    reliable: bool,
    /// Policy for samples when the reader has no space.
    when_full: FullQueuePolicy,
    /// The reader's machine needs samples and liveliness assertions.
    needs_assertions: bool,
    /// The writer is durable: its samples pass the duplicate filter.
    filters_duplicates: bool,
}

impl IntraProcessRoute {
    fn new(writer: &EndpointQos, reader: &Arc<ReaderEndpoint>, filters_duplicates: bool) -> Self {
        let announced = reader.announced();
        let wanted = &announced.qos;
        let reliable = writer.reliability == Reliability::Reliable
            && wanted.reliability == Reliability::Reliable;
        Self {
            reader: reader.clone(),
            reliable,
            when_full: FullQueuePolicy::for_match(writer, reliable),
            needs_assertions: !wanted.deadline.is_infinite()
                || has_manual_lease(writer)
                || reader.needs_filtering()
                || filters_duplicates,
            filters_duplicates,
        }
    }
}

impl IntraProcessRoute {
    pub(crate) fn is_watched(&self) -> bool {
        self.needs_assertions
    }
}

/// Whether a writer must assert its liveliness.
pub(crate) fn has_manual_lease(writer: &EndpointQos) -> bool {
    writer.liveliness != Liveliness::Automatic && !writer.lease_duration.is_infinite()
}

impl Core {
    /// Matches two endpoints of this context, or reports why they do not match.
    pub(crate) fn match_local(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
    ) {
        if writer.may_match_locally(reader)
            && !self.is_revoked(writer.guid())
            && !self.is_revoked(reader.data.guid)
        {
            let decision = evaluate_match(&writer.announced(), &reader.announced());
            self.apply_local_match(now, writer, reader, decision);
        }
    }

    /// Applies the match decision for two endpoints that are not matched.
    pub(crate) fn apply_local_match(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
        decision: MatchOutcome,
    ) {
        match decision {
            MatchOutcome::Matched => self.start_local_match(now, writer, reader),
            MatchOutcome::NoCommonPartition | MatchOutcome::DifferentProtection => {}
            MatchOutcome::InconsistentType => {
                self.warn_about_types(&writer.data, &reader.data);
                writer.events.note_incompatible_type(&reader.data);
                reader.events.note_incompatible_type(&writer.data);
            }
            MatchOutcome::IncompatibleQos(policies) => {
                self.warn_about_qos(&writer.announced(), &reader.announced());
                writer
                    .events
                    .note_incompatible(reader.data.guid, policies.clone());
                reader.events.note_incompatible(writer.guid(), policies);
            }
        }
    }

    fn start_local_match(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        reader: &Arc<ReaderEndpoint>,
    ) {
        self.add_local_writer(now, writer, reader);
        let remembers = reader.note_durable(writer.guid(), &writer.data.qos);
        let route = IntraProcessRoute::new(&writer.data.qos, reader, remembers);
        let guard = writer.group.as_ref().map(|group| group.begin_write());
        // Under the writer's lock, so that no message falls between the kept
        // history and the route.
        let mut state = writer.state.lock();
        let filter = reader.filter.get();
        if filter.is_some() || state.history.needs_serialization_for(reader.delivery_form) {
            writer.serialize_pending(&mut state);
        }
        let machine = &state.machine;
        let wants = |item: &QueuedSample| writer.passes_filter(machine, item, filter.as_deref());
        // A reader with coherent sets must also count samples that it filters.
        let hears_of = |item: &QueuedSample| reader.holds_samples() || wants(item);
        let kept = state.history.for_reader(now, &reader.data.qos, hears_of);
        let may_wait = route.reliable && !reader.holds_samples();
        for item in kept.into_iter().filter(|item| accepts_kind(reader, item)) {
            let mut handed = item.clone();
            if !reader.delivery_form.takes(&item.body) {
                handed.body = SampleBody::Serialized(writer.kept_payload(machine, item));
            }
            if !wants(item) {
                self.reject_local_sample(now, writer, &route, handed);
                continue;
            }
            let handed = if may_wait {
                reader.cache().block_if_full(handed)
            } else {
                Some(handed)
            };
            if let Some(handed) = handed {
                self.deliver_to_route(now, writer, &route, handed);
            }
        }
        if reader.holds_samples() {
            let number = state.machine.next_sequence().previous().0;
            let group_sequence = guard
                .as_ref()
                .map_or(0, GroupWriteGuard::last_group_sequence);
            let mut machine = reader.machine.lock();
            let key = MatchKey {
                reader: reader.member_index(),
                writer: writer.guid(),
            };
            reader.change_sets(now, &mut machine, |sets| {
                sets.note_settled(now, key, number, group_sequence)
            });
        }
        state.local.push(route);
        drop(state);
        writer.events.note_matched(reader.data.guid, 1);
        reader.events.note_matched(writer.guid(), 1);
    }

    /// Updates a local match after a change of policies.
    pub(crate) fn update_local_match(&self, writer: &WriterEndpoint, reader: &Arc<ReaderEndpoint>) {
        let announced = writer.announced();
        reader.note_writer(writer.guid(), announced.qos.ownership_strength);
        let mut state = writer.state.lock();
        let mut routes = state.local.iter_mut();
        if let Some(route) = routes.find(|route| route.reader.data.guid == reader.data.guid) {
            *route = IntraProcessRoute::new(&announced.qos, reader, route.filters_duplicates);
        }
    }

    /// Ends the match of two endpoints that stay.
    pub(crate) fn unmatch_local(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        reader: &Arc<ReaderEndpoint>,
    ) {
        self.unmatch_local_reader(writer, reader);
        self.end_local_match(now, writer, reader);
    }

    /// Adds a local writer to the reader's machine.
    fn add_local_writer(&self, now: Instant, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
        let mut qos = EndpointQos {
            reliability: Reliability::BestEffort,
            durability: Durability::Volatile,
            ..EndpointQos::clone(&writer.announced().qos)
        };
        if qos.liveliness == Liveliness::Automatic {
            // It lives as long as this process does.
            qos.lease_duration = Duration::INFINITE;
        }
        reader.note_writer(writer.guid(), qos.ownership_strength);
        reader.add_set_writer(writer.guid(), writer.data.group, false);
        let mut machine = reader.machine.lock();
        machine.match_writer(
            now,
            WriterProxyConfig {
                guid: writer.guid(),
                qos: qos.into(),
                route: Route::by_socket(&[], true),
                vendor: VendorId::PTEROS,
            },
        );
        reader.collect_events(&mut machine);
        self.schedule_reader(reader, &machine);
    }

    /// Ends all local matches of a writer that is being removed.
    pub(crate) fn unmatch_local_writer(&self, now: Instant, writer: &WriterEndpoint) {
        let routes = std::mem::take(&mut writer.state.lock().local);
        for route in routes {
            self.end_local_match(now, writer, &route.reader);
        }
    }

    /// The reader's side of the end of a match.
    fn end_local_match(&self, now: Instant, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
        let guid = writer.guid();
        let mut machine = reader.machine.lock();
        machine.unmatch_writer(guid);
        reader.remove_set_writer(now, &mut machine, self.platform.wall_clock(), guid);
        reader.collect_events(&mut machine);
        drop(machine);
        reader.forget_writer(now, guid, self.platform.wall_clock());
        // An ended instance may need a purge timer.
        self.schedule_reader(reader, &reader.machine.lock());
        reader.events.note_matched(guid, -1);
    }

    /// Ends the match of a writer with a local reader that is being removed.
    pub(crate) fn unmatch_local_reader(&self, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
        let guid = reader.data.guid;
        let mut state = writer.state.lock();
        let before = state.local.len();
        state.local.retain(|route| route.reader.data.guid != guid);
        let is_gone = state.local.len() < before;
        drop(state);
        if is_gone {
            writer.events.note_matched(guid, -1);
        }
    }

    /// Delivers a message to every matched reader of this context. Returns whether
    /// some of them got bytes.
    pub(crate) fn deliver_locally(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        message: &mut dyn OutboundMessage,
        sample: &WrittenSample<'_>,
    ) -> bool {
        let routes = &state.local;
        let left_out = routes.len() > 1 && fault!("local-reader-omitted");
        let (related, directed_to) = (message.related(), message.directed_to());
        let is_addressed = |route: &&IntraProcessRoute| {
            directed_to.is_none_or(|only| only == route.reader.data.guid)
        };
        let (mut delivered, mut is_serialized) = (0, false);
        for route in routes
            .iter()
            .filter(is_addressed)
            .skip(usize::from(left_out))
        {
            let passes = route.reader.accepts(message);
            let body = body_in_form(route.reader.delivery_form, message);
            is_serialized |= matches!(body, SampleBody::Serialized(_));
            let mut item = writer.queued_sample(now, body, sample.meta, sample.instance);
            item.mark.clone_from(&sample.mark);
            item.related_identity = RelatedIdentity::new(None, related);
            if passes {
                self.deliver_to_route(now, writer, route, item);
                delivered += 1;
            } else {
                self.reject_local_sample(now, writer, route, item);
            }
        }
        state.delivered_locally += delivered;
        is_serialized
    }

    /// Delivers the end of a coherent set to every matched reader of this context.
    pub(crate) fn deliver_set_end_locally(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        mark: CoherentMark,
    ) {
        let meta = SampleMeta {
            source: None,
            reception: self.platform.wall_clock(),
            sequence: state.machine.next_sequence().0,
            publisher: writer.guid(),
            path: DeliveryPath::IntraProcess,
        };
        let mut item = writer.queued_sample(now, SampleBody::Serialized(Bytes::new()), meta, None);
        item.mark = Some(Box::new(mark));
        for route in &state.local {
            self.deliver_to_route(now, writer, route, item.clone());
        }
        state.history.push_or_drop_oldest(item);
    }

    pub(crate) fn deliver_to_route(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &IntraProcessRoute,
        item: QueuedSample,
    ) {
        if item.expires_at <= now {
            return;
        }
        let reader = &route.reader;
        if !accepts_kind(reader, &item) {
            return;
        }
        if let Some(tracer) = &reader.tracer {
            tracer.note_arrived(reader.data.guid.entity, &item.meta, item.weight());
        }
        if let Some(listener) = &reader.listener {
            listener(&item);
            return;
        }
        if !route.needs_assertions {
            reader.deliver_local(item, route.when_full);
            return;
        }
        let mut machine = reader.machine.lock();
        machine.note_delivered_elsewhere(now, writer.guid(), is_data_or_instance_end(&item));
        reader.deliver_filtered(now, &mut machine, item, route.when_full);
        reader.collect_events(&mut machine);
        self.schedule_reader(reader, &machine);
    }

    /// Passes a sample or a liveliness assertion to a local reader's machine.
    pub(crate) fn note_local_assertion(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &IntraProcessRoute,
    ) {
        let reader = &route.reader;
        let mut machine = reader.machine.lock();
        machine.note_delivered_elsewhere(now, writer.guid(), false);
        reader.collect_events(&mut machine);
        self.schedule_reader(reader, &machine);
    }

    /// Asserts a manual writer's liveliness at local readers.
    pub(crate) fn assert_liveliness_locally(&self, now: Instant, writer: &WriterEndpoint) {
        let state = writer.state.lock();
        for route in state.local.iter().filter(|route| route.needs_assertions) {
            self.note_local_assertion(now, writer, route);
        }
    }
}

impl WriterEndpoint {
    /// Whether the two endpoints may match at all.
    pub(crate) fn may_match_locally(&self, reader: &ReaderEndpoint) -> bool {
        self.data.topic == reader.data.topic && !reader.ignore_local && !self.is_lingering()
    }

    /// Whether a KEEP_ALL writer must wait for some local KEEP_ALL reader that
    /// accepts the message. KEEP_LAST never waits, as on the wire.
    pub(crate) fn must_block_locally(
        &self,
        message: &mut dyn OutboundMessage,
        key: Option<&KeyHash>,
    ) -> bool {
        self.data.qos.history == History::KeepAll
            && self.state.lock().local.iter().any(|route| {
                let reader = &route.reader;
                route.reliable && reader.is_full_for(key) && reader.accepts(message)
            })
    }

    /// The sample for a local reader.
    pub(crate) fn queued_sample(
        &self,
        now: Instant,
        body: SampleBody,
        meta: SampleMeta,
        keyed: Option<&SampleInstance>,
    ) -> QueuedSample {
        QueuedSample {
            body,
            meta,
            expires_at: now.after(self.lifespan()),
            instance: keyed.map(|keyed| Box::new(keyed.clone())),
            mark: None,
            related_identity: None,
        }
    }
}

/// Whether a reader gets it. Ends of sets and of instances go only to readers with
/// sets or instances.
fn accepts_kind(reader: &ReaderEndpoint, item: &QueuedSample) -> bool {
    let knows = is_data_or_instance_end(item) && (!item.is_end() || reader.is_keyed());
    knows || reader.holds_samples()
}

/// Whether it is not the end of a set.
fn is_data_or_instance_end(item: &QueuedSample) -> bool {
    let mark = item.mark.as_ref();
    mark.is_none_or(|mark| mark.kind == CoherentMarkKind::CacheChange)
}

fn body_in_form(wants: DeliveryForm, message: &mut dyn OutboundMessage) -> SampleBody {
    if wants == DeliveryForm::Type(message.message_type())
        && let Some(shared) = message.shared()
    {
        return SampleBody::Shared(shared);
    }
    SampleBody::Serialized(message.serialized())
}
