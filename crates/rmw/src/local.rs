//! The path within a process: a writer's messages reach the readers of its own
//! context as shared values, whatever the QoS.
//!
//! Samples go past the protocol machines, but the machines still judge: the
//! reader's knows its local writers (as best-effort ones, so that it never
//! sends them anything) and hears of their samples and signs of life when a
//! DEADLINE, a manual LIVELINESS lease, exclusive OWNERSHIP or a
//! TIME_BASED_FILTER asks for it. So both paths count the same events, and
//! endpoints without such policies pay nothing.

use std::sync::Arc;

use bytes::Bytes;
use pteros_rtps::fault;
use pteros_rtps::id::VendorId;
use pteros_rtps::locator::Route;
use pteros_rtps::mark::{Mark, MarkKind};
use pteros_rtps::matching::{Verdict, judge};
use pteros_rtps::qos::{Durability, EndpointQos, History, Liveliness, Reliability};
use pteros_rtps::reader::WriterProxyConfig;
use pteros_rtps::time::{Duration, Instant};

use crate::backlog::WhenFull;
use crate::core::Core;
use crate::instance::{KeyHash, Keyed};
use crate::publisher_group::Turn;
use crate::reader::{ReaderEndpoint, Wants};
use crate::sample::{Body, Item, Kin, Path, SampleMeta};
use crate::writer::{Outgoing, WriterEndpoint, WriterState};

/// A writer's way to one reader of its own context.
#[derive(Clone)]
pub(crate) struct LocalRoute {
    pub(crate) reader: Arc<ReaderEndpoint>,
    /// Both sides are reliable.
    reliable: bool,
    /// What becomes of samples for which the reader has no room.
    when_full: WhenFull,
    /// The reader's machine wants to hear of samples and signs of life.
    watched: bool,
    /// What the writer brings may have been had in an earlier life of it.
    remembers: bool,
}

impl LocalRoute {
    fn new(writer: &EndpointQos, reader: &Arc<ReaderEndpoint>, remembers: bool) -> Self {
        let announced = reader.announced();
        let wanted = &announced.qos;
        let reliable = writer.reliability == Reliability::Reliable
            && wanted.reliability == Reliability::Reliable;
        Self {
            reader: reader.clone(),
            reliable,
            when_full: WhenFull::of(writer, reliable),
            watched: !wanted.deadline.is_infinite()
                || has_manual_lease(writer)
                || reader.judges()
                || remembers,
            remembers,
        }
    }
}

impl LocalRoute {
    pub(crate) fn is_watched(&self) -> bool {
        self.watched
    }
}

/// Whether a writer must prove itself alive.
pub(crate) fn has_manual_lease(writer: &EndpointQos) -> bool {
    writer.liveliness != Liveliness::Automatic && !writer.lease_duration.is_infinite()
}

impl Core {
    /// Matches two endpoints of this context, or says why they do not match.
    pub(crate) fn match_local(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
    ) {
        if writer.may_meet(reader)
            && !self.is_barred(writer.guid())
            && !self.is_barred(reader.data.guid)
        {
            let verdict = judge(&writer.announced(), &reader.announced());
            self.carry_out(now, writer, reader, verdict);
        }
    }

    /// Does what was decided about two endpoints that are not matched.
    pub(crate) fn carry_out(
        &self,
        now: Instant,
        writer: &Arc<WriterEndpoint>,
        reader: &Arc<ReaderEndpoint>,
        verdict: Verdict,
    ) {
        match verdict {
            Verdict::Matched => self.join(now, writer, reader),
            Verdict::OtherPartition | Verdict::OtherProtection => {}
            Verdict::InconsistentType => {
                self.warn_of_types(&writer.data, &reader.data);
                writer.events.note_other_type(&reader.data);
                reader.events.note_other_type(&writer.data);
            }
            Verdict::Incompatible(policies) => {
                self.warn_of_qos(&writer.announced(), &reader.announced());
                writer
                    .events
                    .note_incompatible(reader.data.guid, policies.clone());
                reader.events.note_incompatible(writer.guid(), policies);
            }
        }
    }

    fn join(&self, now: Instant, writer: &WriterEndpoint, reader: &Arc<ReaderEndpoint>) {
        self.introduce(now, writer, reader);
        let remembers = reader.note_durable(writer.guid(), &writer.data.qos);
        let route = LocalRoute::new(&writer.data.qos, reader, remembers);
        let turn = writer.group.as_ref().map(|group| group.turn());
        // Under the writer's lock, so that no message falls between the
        // latched ones and the route.
        let mut state = writer.state.lock();
        let filter = reader.filter.get();
        if filter.is_some() || state.latched.has_other_than(reader.wants) {
            writer.supply(&mut state);
        }
        let machine = &state.machine;
        let wants = |item: &Item| writer.is_wanted(machine, item, filter.as_deref());
        // Whoever holds sets together needs to hear of what it does not want.
        let hears_of = |item: &Item| reader.holds_samples() || wants(item);
        let kept = state.latched.for_reader(now, &reader.data.qos, hears_of);
        let may_wait = route.reliable && !reader.holds_samples();
        for item in kept.into_iter().filter(|item| hears(reader, item)) {
            let mut handed = item.clone();
            if !reader.wants.takes(&item.body) {
                handed.body = Body::Serialized(writer.kept_payload(machine, item));
            }
            if !wants(item) {
                self.keep_out(now, writer, &route, handed);
                continue;
            }
            let handed = match may_wait {
                true => reader.intake().put_off(handed),
                false => Some(handed),
            };
            if let Some(handed) = handed {
                self.deliver(now, writer, &route, handed);
            }
        }
        if reader.holds_samples() {
            let number = state.machine.next_sequence().previous().0;
            let place = turn.as_ref().map_or(0, Turn::last);
            let mut machine = reader.machine.lock();
            reader.change_sets(now, &mut machine, |sets| {
                sets.settle(now, (reader.place(), writer.guid()), number, place)
            });
        }
        state.local.push(route);
        drop(state);
        writer.events.note_matched(reader.data.guid, 1);
        reader.events.note_matched(writer.guid(), 1);
    }

    /// Takes over what has changed between two that stay matched.
    pub(crate) fn refresh(&self, writer: &WriterEndpoint, reader: &Arc<ReaderEndpoint>) {
        let announced = writer.announced();
        reader.note_writer(writer.guid(), announced.qos.ownership_strength);
        let mut state = writer.state.lock();
        let mut routes = state.local.iter_mut();
        if let Some(route) = routes.find(|route| route.reader.data.guid == reader.data.guid) {
            *route = LocalRoute::new(&announced.qos, reader, route.remembers);
        }
    }

    /// Ends the match of two that stay where they are.
    pub(crate) fn part(&self, now: Instant, writer: &WriterEndpoint, reader: &Arc<ReaderEndpoint>) {
        self.unmatch_local_reader(writer, reader);
        self.end_local_match(now, writer, reader);
    }

    /// Tells the reader's machine of a local writer.
    fn introduce(&self, now: Instant, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
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
        reader.begin_sets(writer.guid(), writer.data.group, false);
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

    /// Ends all local matches of a writer that is going.
    pub(crate) fn unmatch_local_writer(&self, now: Instant, writer: &WriterEndpoint) {
        let routes = std::mem::take(&mut writer.state.lock().local);
        for route in routes {
            self.end_local_match(now, writer, &route.reader);
        }
    }

    /// The reader's part of the end of a match.
    fn end_local_match(&self, now: Instant, writer: &WriterEndpoint, reader: &ReaderEndpoint) {
        let guid = writer.guid();
        let mut machine = reader.machine.lock();
        machine.unmatch_writer(guid);
        reader.end_sets(now, &mut machine, self.env.wall(), guid);
        reader.collect_events(&mut machine);
        drop(machine);
        reader.forget_writer(now, guid, self.env.wall());
        // An instance that ended may be due to be purged.
        self.schedule_reader(reader, &reader.machine.lock());
        reader.events.note_matched(guid, -1);
    }

    /// Ends the match of a writer with a local reader that is going.
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

    /// Hands a message to every reader of this context. Whether some of them got
    /// bytes.
    pub(crate) fn deliver_locally(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        message: &mut dyn Outgoing,
        (meta, keyed, mark): (SampleMeta, Option<&Keyed>, Option<&Mark>),
    ) -> bool {
        let routes = &state.local;
        let left_out = routes.len() > 1 && fault!("local-reader-left-out");
        let (related, only_for) = (message.related(), message.only_for());
        let is_addressed =
            |route: &&LocalRoute| only_for.is_none_or(|only| only == route.reader.data.guid);
        let (mut delivered, mut is_serialized) = (0, false);
        for route in routes
            .iter()
            .filter(is_addressed)
            .skip(usize::from(left_out))
        {
            let passes = route.reader.wants(message);
            let body = body_for(route.reader.wants, message);
            is_serialized |= matches!(body, Body::Serialized(_));
            let mut item = writer.item(now, body, meta, keyed);
            item.mark = mark.copied().map(Box::new);
            item.kin = Kin::new(None, related);
            if passes {
                self.deliver(now, writer, route, item);
                delivered += 1;
            } else {
                self.keep_out(now, writer, route, item);
            }
        }
        state.delivered_locally += delivered;
        is_serialized
    }

    /// Tells every reader of this context that a coherent set ends here.
    pub(crate) fn end_locally(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        state: &mut WriterState,
        mark: Mark,
    ) {
        let meta = SampleMeta {
            source: None,
            reception: self.env.wall(),
            sequence: state.machine.next_sequence().0,
            publisher: writer.guid(),
            path: Path::IntraProcess,
        };
        let mut item = writer.item(now, Body::Serialized(Bytes::new()), meta, None);
        item.mark = Some(Box::new(mark));
        for route in &state.local {
            self.deliver(now, writer, route, item.clone());
        }
        state.latched.push_or_drop_oldest(item);
    }

    pub(crate) fn deliver(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &LocalRoute,
        item: Item,
    ) {
        if item.expires_at <= now {
            return;
        }
        let reader = &route.reader;
        if !hears(reader, &item) {
            return;
        }
        if let Some(tracer) = &reader.tracer {
            tracer.note_arrived(reader.data.guid.entity, &item.meta, item.weight());
        }
        if let Some(attendant) = &reader.attendant {
            attendant(&item);
            return;
        }
        if !route.watched {
            reader.deliver_local(item, route.when_full);
            return;
        }
        let mut machine = reader.machine.lock();
        machine.note_elsewhere(now, writer.guid(), is_change(&item));
        reader.deliver_judged(now, &mut machine, item, route.when_full);
        reader.collect_events(&mut machine);
        self.schedule_reader(reader, &machine);
    }

    /// Tells a local reader's machine of a sign of life.
    pub(crate) fn watch(&self, now: Instant, writer: &WriterEndpoint, route: &LocalRoute) {
        let reader = &route.reader;
        let mut machine = reader.machine.lock();
        machine.note_elsewhere(now, writer.guid(), false);
        reader.collect_events(&mut machine);
        self.schedule_reader(reader, &machine);
    }

    /// Tells local readers that a manual writer is alive.
    pub(crate) fn assert_locally(&self, now: Instant, writer: &WriterEndpoint) {
        let state = writer.state.lock();
        for route in state.local.iter().filter(|route| route.watched) {
            self.watch(now, writer, route);
        }
    }
}

impl WriterEndpoint {
    /// Whether the two are to be judged at all.
    pub(crate) fn may_meet(&self, reader: &ReaderEndpoint) -> bool {
        self.data.topic == reader.data.topic && !reader.ignore_local && !self.lingers()
    }

    /// Whether a KEEP_ALL writer must wait for some local KEEP_ALL reader that
    /// wants the message. KEEP_LAST never waits, here as on the wire.
    pub(crate) fn must_wait_locally(
        &self,
        message: &mut dyn Outgoing,
        key: Option<&KeyHash>,
    ) -> bool {
        self.data.qos.history == History::KeepAll
            && self.state.lock().local.iter().any(|route| {
                let reader = &route.reader;
                route.reliable && reader.is_full_for(key) && reader.wants(message)
            })
    }

    /// A sample on its way to a local reader.
    pub(crate) fn item(
        &self,
        now: Instant,
        body: Body,
        meta: SampleMeta,
        keyed: Option<&Keyed>,
    ) -> Item {
        Item {
            body,
            meta,
            expires_at: now.after(self.lifespan()),
            instance: keyed.map(|keyed| Box::new(keyed.clone())),
            mark: None,
            kin: None,
        }
    }
}

/// Whether a reader hears of it: of the ends of sets and of instances only who
/// knows sets, or instances.
fn hears(reader: &ReaderEndpoint, item: &Item) -> bool {
    let knows = is_change(item) && (!item.is_end() || reader.is_keyed());
    knows || reader.holds_samples()
}

/// Whether it is no end of a set.
fn is_change(item: &Item) -> bool {
    let mark = item.mark.as_ref();
    mark.is_none_or(|mark| mark.kind == MarkKind::Change)
}

fn body_for(wants: Wants, message: &mut dyn Outgoing) -> Body {
    if wants == Wants::Type(message.message_type())
        && let Some(shared) = message.shared()
    {
        return Body::Shared(shared);
    }
    Body::Serialized(message.serialized())
}
