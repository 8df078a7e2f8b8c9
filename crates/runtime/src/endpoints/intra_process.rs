//! The intra-process path: readers of the same context get a writer's messages as
//! shared values, whatever the QoS.
//!
//! Samples bypass the protocol machines, but the machines still enforce policies. The
//! reader's machine knows its local writers (as best-effort ones, so that it never sends
//! to them). It is informed of samples and liveliness assertions if DEADLINE, a manual
//! LIVELINESS lease, exclusive OWNERSHIP or TIME_BASED_FILTER requires it. So both paths
//! count the same events, and endpoints without such policies have no overhead.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use pteros_dcps::coherent::{GroupDialect, MatchKey};
use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::id::VendorId;
use pteros_rtps::locator::Route;
use pteros_rtps::memory_budget::SampleCharge;
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::reader::WriterProxyConfig;
use pteros_rtps::time::{Duration, Instant};

use crate::endpoints::local_route::IntraProcessRoute;
use crate::endpoints::publisher_group::GroupWriteGuard;
use crate::endpoints::reader::{DeliveryForm, ReaderEndpoint};
use crate::endpoints::undecodable::describe;
use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::instance::{KeyHash, SampleInstance};
use crate::outbound::OutboundMessage;
use crate::platform::Platform;
use crate::sample::{DeliveryPath, QueuedSample, RelatedIdentity, SampleBody, SampleMeta};
use crate::scheduler::Scheduler;

/// A sample with its metadata, as local readers and late joiners get it.
pub(crate) struct WrittenSample<'a> {
    pub(crate) meta: SampleMeta,
    pub(crate) instance: Option<&'a SampleInstance>,
    pub(crate) mark: Option<Box<CoherentMark>>,
}

/// Matches endpoints of one context and delivers between them.
///
/// Publishing threads call it under the writer's lock. It never sends a datagram.
pub(crate) struct IntraProcess {
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) scheduler: Arc<Scheduler>,
}

impl IntraProcess {
    /// Matches two compatible endpoints.
    pub(crate) fn start_match(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        reader: &Arc<ReaderEndpoint>,
    ) {
        self.add_writer(now, writer, reader);
        let remembers = reader.note_durable(writer.guid(), &writer.data.qos);
        let route = IntraProcessRoute::new(&writer.data.qos, reader, remembers);
        let guard = writer.group.as_ref().map(|group| group.begin_write());
        // Under the writer's lock, so that no message is missed between the kept history
        // and the route.
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
                self.reject_sample(now, writer, &route, handed);
                continue;
            }
            let handed = if may_wait {
                reader.cache().block_if_full(handed)
            } else {
                Some(handed)
            };
            if let Some(handed) = handed {
                self.deliver_to(now, writer, &route, handed);
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
    pub(crate) fn update_match(&self, writer: &WriterEndpoint, reader: &Arc<ReaderEndpoint>) {
        let announced = writer.announced();
        reader.note_writer(writer.guid(), announced.qos.ownership_strength);
        let mut state = writer.state.lock();
        let mut routes = state.local.iter_mut();
        if let Some(route) = routes.find(|route| route.reader.data.guid == reader.data.guid) {
            *route = IntraProcessRoute::new(&announced.qos, reader, route.filters_duplicates);
        }
    }

    /// Ends the match of two endpoints that remain.
    pub(crate) fn end_match(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        reader: &Arc<ReaderEndpoint>,
    ) {
        self.remove_route(writer, reader);
        self.forget_writer(now, writer, reader);
    }

    /// Adds a local writer to the reader's machine.
    fn add_writer(&self, now: Instant, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
        let mut qos = EndpointQos {
            reliability: Reliability::BestEffort,
            durability: Durability::Volatile,
            ..EndpointQos::clone(&writer.announced().qos)
        };
        if qos.liveliness == Liveliness::Automatic {
            // It exists as long as this process.
            qos.lease_duration = Duration::INFINITE;
        }
        reader.note_writer(writer.guid(), qos.ownership_strength);
        // Within a process the set of writers is known.
        let dialect = GroupDialect {
            names_writers: true,
            ..GroupDialect::default()
        };
        reader.add_set_writer(writer.guid(), writer.data.group, dialect);
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
        reader.schedule(&self.scheduler, &machine);
    }

    /// Ends all local matches of a writer that is being removed.
    pub(crate) fn end_matches_of(&self, now: Instant, writer: &WriterEndpoint) {
        let routes = std::mem::take(&mut writer.state.lock().local);
        for route in routes {
            self.forget_writer(now, writer, &route.reader);
        }
    }

    /// The reader's side of the end of a match.
    fn forget_writer(&self, now: Instant, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
        let guid = writer.guid();
        reader.note_gone(guid);
        let mut machine = reader.machine.lock();
        machine.unmatch_writer(guid);
        reader.remove_set_writer(now, &mut machine, self.platform.wall_clock(), guid);
        reader.collect_events(&mut machine);
        drop(machine);
        reader.forget_writer(now, guid, self.platform.wall_clock());
        // An ended instance may need a purge timer.
        reader.schedule(&self.scheduler, &reader.machine.lock());
        reader.events.note_matched(guid, -1);
    }

    /// Ends the match of a writer with a local reader that is being removed.
    pub(crate) fn remove_route(&self, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
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

    /// Delivers a message to every matched reader of this context. Returns whether any of
    /// them received bytes.
    pub(crate) fn deliver(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        message: &mut dyn OutboundMessage,
        sample: &WrittenSample<'_>,
    ) -> bool {
        let routes = &state.local;
        let (related, directed_to) = (message.related(), message.directed_to());
        let is_addressed = |route: &&IntraProcessRoute| {
            directed_to.is_none_or(|only| only == route.reader.data.guid)
        };
        let (mut delivered, mut is_serialized) = (0, false);
        for route in routes.iter().filter(is_addressed) {
            let passes = route.reader.filter.accepts(message);
            // A rejected sample is only counted.
            let body = if passes {
                body_in_form(route.reader.delivery_form, message)
            } else {
                SampleBody::Serialized(Bytes::new())
            };
            is_serialized |= passes && matches!(body, SampleBody::Serialized(_));
            let mut item = writer.queued_sample(now, body, sample.meta, sample.instance);
            item.mark.clone_from(&sample.mark);
            item.related_identity = RelatedIdentity::new(None, related);
            if passes {
                self.deliver_to(now, writer, route, item);
                delivered += 1;
            } else {
                self.reject_sample(now, writer, route, item);
            }
        }
        state.delivered_locally += delivered;
        is_serialized
    }

    /// Delivers the end of a coherent set to every matched reader of this context.
    pub(crate) fn deliver_set_end(
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
            self.deliver_to(now, writer, route, item.clone());
        }
        state.history.push_or_drop_oldest(item);
    }

    pub(crate) fn deliver_to(
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
            if let Err(reason) = listener(&item) {
                let publisher = item.meta.publisher;
                if reader.losses.undecodable.note(now, publisher) {
                    let line = describe(&reader.data, publisher, &reason);
                    reader.losses.undecodable.tell_later(line);
                }
                reader.schedule(&self.scheduler, &reader.machine.lock());
            }
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
        reader.schedule(&self.scheduler, &machine);
    }

    /// Passes a sample or a liveliness assertion to a local reader's machine.
    pub(crate) fn note_assertion(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &IntraProcessRoute,
    ) {
        let reader = &route.reader;
        let mut machine = reader.machine.lock();
        machine.note_delivered_elsewhere(now, writer.guid(), false);
        reader.collect_events(&mut machine);
        reader.schedule(&self.scheduler, &machine);
    }

    /// Asserts a manual writer's liveliness at local readers.
    pub(crate) fn assert_liveliness(&self, now: Instant, writer: &WriterEndpoint) {
        let state = writer.state.lock();
        for route in state.local.iter().filter(|route| route.needs_assertions) {
            self.note_assertion(now, writer, route);
        }
    }

    /// Counts a local sample that the filter rejected. It still counts as received
    /// from its publisher.
    fn reject_sample(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &IntraProcessRoute,
        mut item: QueuedSample,
    ) {
        let reader = &route.reader;
        reader.filter.rejected.fetch_add(1, Ordering::Relaxed);
        if reader.holds_samples() {
            // Coherent sets and the publisher's order count it.
            item.body = SampleBody::Serialized(Bytes::new());
            item.mark.get_or_insert_default().kind = CoherentMarkKind::Filtered;
            self.deliver_to(now, writer, route, item);
        } else if route.is_watched() {
            self.note_assertion(now, writer, route);
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
                route.reliable && reader.is_full_for(key) && reader.filter.accepts(message)
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
            charge: SampleCharge::default(),
        }
    }
}

/// Whether a reader receives it. Ends of sets and of instances are delivered only to
/// readers with sets or instances.
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
