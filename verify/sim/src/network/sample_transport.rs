//! A simulated transport: the second implementation of the engine's transport seam.
//!
//! A [`TransportBus`] joins contexts by whole samples instead of datagrams, as a transport with
//! sessions does. Each context has a [`Station`] with an inbox. What is sent arrives
//! after the latency, in order, unless a station is unplugged.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use pteros::interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::participant::{LostReason, ParticipantEvent};
use pteros_rtps::qos::{Liveliness, Reliability};
use pteros_rtps::time::{Duration, Instant};
use pteros_runtime::transport::matcher::EndpointMatcher;
use pteros_runtime::transport::{
    OpenTransport, RemoteEndpointRecord, SampleTransport, Transport, TransportEvent,
    TransportSample, TransportScheduler, TransportSetup,
};

/// Samples of one writer under way to one station, beyond which a KEEP_ALL writer has
/// no space.
const SAMPLES_MAX: usize = 16;

/// What travels between stations.
#[derive(Clone)]
enum Message {
    Joined(Box<ParticipantData>),
    Left(GuidPrefix, LostReason),
    Endpoint(Arc<EndpointData>),
    Withdrawn(Guid),
    Nodes(GuidPrefix, ParticipantEntitiesInfo),
    Alive(GuidPrefix, Liveliness),
    WriterAlive(Guid),
    Sample(Box<TransportSample>),
    /// Samples of a writer of the receiver have arrived.
    Arrived,
}

/// One context on the bus.
struct Station {
    participant: ParticipantData,
    scheduler: TransportScheduler,
    is_plugged: bool,
    /// What it has announced, for those that join later.
    endpoints: BTreeMap<Guid, Arc<EndpointData>>,
    nodes: Option<ParticipantEntitiesInfo>,
    matcher: EndpointMatcher,
    inbox: VecDeque<(Instant, Message)>,
    /// Remote writers whose messages wait for space, with the number of full readers.
    held: BTreeMap<Guid, usize>,
    /// Written, not flushed.
    outgoing: VecDeque<TransportSample>,
}

/// Joins simulated contexts. Unbounded inboxes: a simulation ends.
pub struct TransportBus {
    latency: Duration,
    stations: Mutex<BTreeMap<GuidPrefix, Station>>,
}

impl TransportBus {
    /// A bus on which everything takes `latency`.
    pub fn new(latency: std::time::Duration) -> Arc<Self> {
        Arc::new(Self {
            latency: latency.into(),
            stations: Mutex::default(),
        })
    }

    /// What opens the bus as a transport of a context.
    pub fn transport(self: &Arc<Self>) -> OpenTransport {
        let bus = self.clone();
        OpenTransport::new("bus", move |setup| Ok(Arc::new(bus.join(setup))))
    }

    /// Unplugs a context: both sides lose each other, and nothing passes. Samples under
    /// way are lost.
    pub fn unplug(&self, context: GuidPrefix) {
        let mut stations = self.stations.lock();
        let others: Vec<GuidPrefix> = stations.keys().copied().collect();
        for (prefix, station) in stations.iter_mut() {
            let gone = if *prefix == context {
                station.is_plugged = false;
                &others[..]
            } else {
                std::slice::from_ref(&context)
            };
            for gone in gone.iter().filter(|gone| *gone != prefix) {
                station.lose(*gone, LostReason::LeaseExpired);
            }
        }
    }

    /// Plugs it in again.
    pub fn plug(&self, context: GuidPrefix) {
        let mut stations = self.stations.lock();
        if let Some(station) = stations.get_mut(&context) {
            station.is_plugged = true;
        }
        introduce(&mut stations, context);
    }

    fn join(self: &Arc<Self>, setup: TransportSetup) -> BusTransport {
        let mut participant = ParticipantData::new(setup.prefix);
        participant.domain_id = Some(setup.domain_id);
        participant.user_data = format!("enclave={};", setup.enclave).into_bytes();
        let station = Station {
            participant,
            scheduler: setup.scheduler,
            is_plugged: true,
            endpoints: BTreeMap::new(),
            nodes: None,
            matcher: EndpointMatcher::new(setup.limits),
            inbox: VecDeque::new(),
            held: BTreeMap::new(),
            outgoing: VecDeque::new(),
        };
        let mut stations = self.stations.lock();
        stations.insert(setup.prefix, station);
        introduce(&mut stations, setup.prefix);
        BusTransport {
            bus: self.clone(),
            prefix: setup.prefix,
        }
    }
}

/// Tells a context and all others of each other.
fn introduce(stations: &mut BTreeMap<GuidPrefix, Station>, newcomer: GuidPrefix) {
    let known = |station: &Station| {
        let mut known = vec![Message::Joined(Box::new(station.participant.clone()))];
        known.extend(station.endpoints.values().cloned().map(Message::Endpoint));
        let nodes = station.nodes.clone();
        known.extend(nodes.map(|nodes| Message::Nodes(station.participant.prefix, nodes)));
        known
    };
    let plugged = stations.iter().filter(|(_, station)| station.is_plugged);
    let all: Vec<_> = plugged.map(|(prefix, of)| (*prefix, known(of))).collect();
    for (prefix, known) in &all {
        for (at, station) in stations.iter_mut() {
            let concerns = *prefix == newcomer || *at == newcomer;
            if concerns && at != prefix && station.is_plugged {
                for message in known {
                    station.receive(Instant::ZERO, message.clone());
                }
            }
        }
    }
}

impl Station {
    /// Puts a message into the inbox, in order.
    fn receive(&mut self, at: Instant, message: Message) {
        let last = self.inbox.back().map_or(at, |(last, _)| at.max(*last));
        self.inbox.push_back((last, message));
        self.schedule();
    }

    fn lose(&mut self, gone: GuidPrefix, reason: LostReason) {
        self.held.retain(|writer, _| writer.prefix != gone);
        self.inbox.retain(|(_, message)| match message {
            Message::Sample(sample) => sample.change.writer.prefix != gone,
            _ => true,
        });
        self.receive(Instant::ZERO, Message::Left(gone, reason));
    }

    fn schedule(&self) {
        let is_free = |(_, message): &&(Instant, Message)| !self.is_held(message);
        let next = self.inbox.iter().find(is_free).map(|(at, _)| *at);
        let at_once = self.matcher.has_events().then_some(Instant::ZERO);
        self.scheduler.schedule(at_once.or(next));
    }

    /// Whether a message waits behind samples that no reader has space for.
    fn is_held(&self, message: &Message) -> bool {
        match message {
            Message::Sample(sample) => self.held.contains_key(&sample.change.writer),
            Message::Withdrawn(guid) | Message::WriterAlive(guid) => self.held.contains_key(guid),
            Message::Endpoint(data) => self.held.contains_key(&data.guid),
            Message::Left(prefix, LostReason::Disposed) => {
                self.held.keys().any(|held| held.prefix == *prefix)
            }
            _ => false,
        }
    }

    /// Takes the oldest message that has arrived and is not held.
    fn pop_due(&mut self, now: Instant) -> Option<Message> {
        let is_due = |(at, message): &(Instant, Message)| *at <= now && !self.is_held(message);
        let index = self.inbox.iter().position(is_due)?;
        Some(self.inbox.remove(index)?.1)
    }

    /// Samples of a writer that have not arrived.
    fn under_way(&self, writer: Guid) -> usize {
        let is_of_it = |message: &Message| match message {
            Message::Sample(sample) => sample.change.writer == writer,
            _ => false,
        };
        self.inbox.iter().filter(|(_, m)| is_of_it(m)).count()
    }

    /// Applies a message that has arrived.
    fn handle(&mut self, message: Message, events: &mut Vec<TransportEvent>) {
        match message {
            Message::Joined(data) => drop(self.matcher.add_participant(*data)),
            Message::Left(prefix, reason) => self.matcher.remove_participant(prefix, reason),
            Message::Endpoint(data) => drop(self.matcher.add_remote((*data).clone())),
            Message::Withdrawn(guid) => self.matcher.remove_remote(guid),
            Message::Nodes(participant, nodes) => {
                events.push(TransportEvent::Nodes { participant, nodes });
            }
            Message::Alive(prefix, kind) => {
                let event = ParticipantEvent::LivelinessAsserted { prefix, kind };
                events.push(TransportEvent::Discovery(event));
            }
            Message::Sample(sample) => events.push(TransportEvent::Sample(sample)),
            Message::WriterAlive(writer) => events.push(TransportEvent::WriterAsserted(writer)),
            Message::Arrived => events.push(TransportEvent::SpaceFreed),
        }
        self.take_matches(events);
    }

    fn take_matches(&mut self, events: &mut Vec<TransportEvent>) {
        while let Some(event) = self.matcher.poll_event() {
            events.push(TransportEvent::Discovery(event));
        }
    }
}

/// The transport of one context.
struct BusTransport {
    bus: Arc<TransportBus>,
    prefix: GuidPrefix,
}

impl BusTransport {
    fn with_station<T>(&self, act: impl FnOnce(&mut Station) -> T) -> Option<T> {
        self.bus.stations.lock().get_mut(&self.prefix).map(act)
    }

    /// Sends to all other stations that are plugged in.
    fn send(&self, now: Instant, message: &Message) {
        let mut stations = self.bus.stations.lock();
        let own = stations.get(&self.prefix);
        if own.is_none_or(|own| !own.is_plugged) {
            return;
        }
        let at = now.after(self.bus.latency);
        for (prefix, station) in stations.iter_mut() {
            if *prefix != self.prefix && station.is_plugged {
                station.receive(at, message.clone());
            }
        }
    }
}

impl Transport for BusTransport {
    fn name(&self) -> &str {
        "bus"
    }

    fn why_not(&self, endpoint: &EndpointData) -> Option<Cow<'static, str>> {
        let holds = endpoint.qos.presentation.holds_samples();
        holds.then_some("it marks no coherent sets and no order of a group".into())
    }

    fn announce(&self, now: Instant, endpoint: &Arc<EndpointData>) {
        self.with_station(|own| {
            own.endpoints.insert(endpoint.guid, endpoint.clone());
            own.matcher.add_local(endpoint);
            own.schedule();
        });
        self.send(now, &Message::Endpoint(endpoint.clone()));
    }

    fn withdraw(&self, now: Instant, endpoint: Guid) {
        let was_known = self.with_station(|own| {
            own.matcher.remove_local(endpoint);
            own.schedule();
            own.endpoints.remove(&endpoint).is_some()
        });
        if was_known == Some(true) {
            self.send(now, &Message::Withdrawn(endpoint));
        }
    }

    fn assert_liveliness(&self, now: Instant, kind: Liveliness) {
        self.send(now, &Message::Alive(self.prefix, kind));
    }

    fn poll(&self, now: Instant, events: &mut Vec<TransportEvent>) {
        let mut stations = self.bus.stations.lock();
        let Some(own) = stations.get_mut(&self.prefix) else {
            return;
        };
        own.take_matches(events);
        let mut sender = None;
        while let Some(message) = own.pop_due(now) {
            if let Message::Sample(sample) = &message {
                sender = Some(sample.change.writer.prefix);
            }
            own.handle(message, events);
            if sender.is_some() {
                break;
            }
        }
        own.schedule();
        if let Some(station) = sender.and_then(|sender| stations.get_mut(&sender)) {
            station.receive(now.after(self.bus.latency), Message::Arrived);
        }
    }

    fn for_each_endpoint(&self, see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {
        self.with_station(|own| own.matcher.remotes().for_each(|known| see(known)));
    }

    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        self.with_station(|own| own.matcher.exceeded_limit())?
    }

    fn close(&self, now: Instant) {
        let left = Message::Left(self.prefix, LostReason::Disposed);
        self.send(now, &left);
        self.bus.stations.lock().remove(&self.prefix);
    }
}

impl SampleTransport for BusTransport {
    fn announce_nodes(&self, now: Instant, nodes: &ParticipantEntitiesInfo) {
        self.with_station(|own| own.nodes = Some(nodes.clone()));
        self.send(now, &Message::Nodes(self.prefix, nodes.clone()));
    }

    fn assert_writer(&self, now: Instant, writer: Guid) {
        self.send(now, &Message::WriterAlive(writer));
    }

    fn hold(&self, writer: Guid, holds: bool) {
        self.with_station(|own| {
            if holds {
                *own.held.entry(writer).or_default() += 1;
            } else if let Some(readers) = own.held.get_mut(&writer) {
                *readers -= 1;
                own.held.retain(|_, readers| *readers > 0);
            }
            own.schedule();
        });
    }

    fn write(&self, _now: Instant, sample: &TransportSample) {
        self.with_station(|own| own.outgoing.push_back(sample.clone()));
    }

    fn flush(&self, now: Instant, writer: Guid) {
        let of_it = |sample: &TransportSample| sample.change.writer == writer;
        let outgoing = self.with_station(|own| {
            let all = std::mem::take(&mut own.outgoing);
            let (ours, others) = all.into_iter().partition(of_it);
            own.outgoing = others;
            ours
        });
        let outgoing: VecDeque<TransportSample> = outgoing.unwrap_or_default();
        for sample in outgoing {
            self.send(now, &Message::Sample(Box::new(sample)));
        }
    }

    fn has_space(&self, writer: Guid, _bytes: usize) -> bool {
        let stations = self.bus.stations.lock();
        let own = stations.get(&self.prefix);
        let announced = own.and_then(|own| own.endpoints.get(&writer));
        let waits = announced.is_some_and(|of| of.qos.reliability == Reliability::Reliable);
        let mut all = stations.values();
        !waits || all.all(|station| station.under_way(writer) < SAMPLES_MAX)
    }

    fn is_acknowledged(&self, writer: Guid) -> bool {
        let stations = self.bus.stations.lock();
        stations
            .values()
            .all(|station| station.under_way(writer) == 0)
    }
}
