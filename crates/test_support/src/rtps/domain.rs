//! Test support: several participants on an in-memory network with fake time.
//!
//! The network loses, duplicates and delays datagrams by a seeded generator. Single
//! directions can be cut. Multicast reaches every participant.

use bytes::Bytes;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix};
use pteros_rtps::locator::{Locator, NetworkScope, OwnAddress};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::participant::{Participant, ParticipantConfig, ParticipantEvent};
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};

/// The discovery group.
pub const GROUP: Locator = Locator::udp_v4([239, 255, 0, 1], 7400);

/// One-way latency of a datagram.
pub const LATENCY: Duration = Duration::from_micros(100);

/// A participant and its events so far.
pub struct Node {
    pub machine: Participant,
    pub address: Locator,
    pub events: Vec<ParticipantEvent>,
    /// Not scheduled, sends and receives nothing.
    pub dead: bool,
    next_entity: u16,
}

struct Flight {
    at: Instant,
    from: Locator,
    to: Locator,
    bytes: Vec<u8>,
}

/// The wire, the clock and the participants.
pub struct Domain {
    pub now: Instant,
    pub nodes: Vec<Node>,
    flights: Vec<Flight>,
    random: u64,
    /// Datagrams lost, in per cent.
    pub loss: u64,
    /// Datagrams that arrive twice, in per cent.
    pub duplication: u64,
    /// Directions (from, to) in which nothing arrives, as indices of nodes.
    pub cuts: Vec<(usize, usize)>,
    /// Datagrams and bytes sent to each unicast address.
    pub sent: std::collections::BTreeMap<Locator, (usize, usize)>,
    /// Datagrams that arrived where no participant is.
    pub undelivered: Vec<(Locator, Vec<u8>)>,
    /// All datagrams sent, counted once per destination.
    pub datagrams: usize,
}

/// The address of the node at `index`.
pub fn address(index: usize) -> Locator {
    Locator::udp_v4([10, 0, 0, index as u8 + 1], 7410)
}

/// A GUID prefix; `generation` distinguishes restarts.
pub fn prefix(index: usize, generation: u8) -> GuidPrefix {
    let mut bytes = [7; 12];
    bytes[0] = index as u8;
    bytes[1] = generation;
    GuidPrefix(bytes)
}

/// The configuration of the node at `index`, reached by multicast.
pub fn config(index: usize, generation: u8) -> ParticipantConfig {
    let here = address(index);
    let mut config = ParticipantConfig::new(prefix(index, generation), 0);
    config.network = NetworkScope {
        addresses: vec![OwnAddress {
            ip: [10, 0, 0, index as u8 + 1].into(),
            prefix_length: 24,
        }],
        ..NetworkScope::default()
    };
    config.metatraffic_unicast = vec![here];
    config.default_unicast = vec![Locator { port: 7411, ..here }];
    config.metatraffic_multicast = vec![GROUP];
    config.announce_to = vec![GROUP];
    config.user_data = b"enclave=/;".to_vec();
    config
}

impl Domain {
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO + Duration::from_secs(1),
            nodes: Vec::new(),
            flights: Vec::new(),
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            loss: 0,
            duplication: 0,
            cuts: Vec::new(),
            sent: Default::default(),
            undelivered: Vec::new(),
            datagrams: 0,
        }
    }

    /// `count` participants on multicast that have found each other.
    pub fn met(count: usize) -> Self {
        let mut domain = Self::new(1);
        for index in 0..count {
            domain.join(config(index, 0));
        }
        domain.run_for(Duration::from_millis(500));
        for node in &mut domain.nodes {
            assert_eq!(node.machine.participants().count(), count - 1);
            node.events.clear();
        }
        domain
    }

    /// Adds a participant; its index.
    pub fn join(&mut self, config: ParticipantConfig) -> usize {
        let address = config.metatraffic_unicast[0];
        self.nodes.push(Node {
            machine: Participant::new(self.now, config),
            address,
            events: Vec::new(),
            dead: false,
            next_entity: 1,
        });
        self.nodes.len() - 1
    }

    fn chance(&mut self, per_cent: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 100 < per_cent
    }

    /// Adds a writer to a node.
    pub fn add_writer(&mut self, node: usize, topic: &str, qos: EndpointQos) -> Guid {
        let guid = self.new_guid(node, EntityId::KIND_WRITER_NO_KEY);
        self.write_endpoint(node, endpoint(guid, topic, "T", qos));
        guid
    }

    /// Adds a reader to a node.
    pub fn add_reader(&mut self, node: usize, topic: &str, qos: EndpointQos) -> Guid {
        let guid = self.new_guid(node, EntityId::KIND_READER_NO_KEY);
        self.write_endpoint(node, endpoint(guid, topic, "T", qos));
        guid
    }

    pub fn new_guid(&mut self, node: usize, kind: u8) -> Guid {
        let node = &mut self.nodes[node];
        let key = node.next_entity;
        node.next_entity += 1;
        node.machine
            .prefix()
            .with(EntityId::new([0, (key >> 8) as u8, key as u8], kind))
    }

    pub fn write_endpoint(&mut self, node: usize, data: EndpointData) {
        let now = self.now;
        let machine = &mut self.nodes[node].machine;
        if data.guid.entity.is_writer() {
            machine.add_writer(now, data);
        } else {
            machine.add_reader(now, data);
        }
        self.flush(node);
    }

    pub fn remove(&mut self, node: usize, guid: Guid) {
        self.nodes[node].machine.remove_endpoint(self.now, guid);
        self.flush(node);
    }

    /// The node leaves politely.
    pub fn leave(&mut self, node: usize) {
        let mut out = Outbox::new();
        self.nodes[node].machine.shut_down(self.now, &mut out);
        self.send(node, &out);
        self.nodes[node].dead = true;
    }

    /// Sends the datagrams of a node and collects its events.
    pub fn flush(&mut self, node: usize) {
        for _ in 0..1000 {
            let mut out = Outbox::new();
            let more = self.nodes[node].machine.poll_transmit(self.now, &mut out);
            self.send(node, &out);
            if !more {
                break;
            }
        }
        let node = &mut self.nodes[node];
        while let Some(event) = node.machine.poll_event() {
            node.events.push(event);
        }
    }

    fn send(&mut self, node: usize, out: &Outbox) {
        let from = self.nodes[node].address;
        let datagrams: Vec<(Vec<Locator>, Vec<u8>)> = out
            .iter()
            .map(|d| (d.to.to_vec(), d.parts.concat()))
            .collect();
        for (destinations, bytes) in datagrams {
            for to in destinations {
                self.datagrams += 1;
                let count = self.sent.entry(to).or_default();
                count.0 += 1;
                count.1 += bytes.len();
                self.transmit(from, to, &bytes);
            }
        }
    }

    /// Puts a datagram on the wire.
    pub fn transmit(&mut self, from: Locator, to: Locator, bytes: &[u8]) {
        if to == GROUP {
            let everybody: Vec<Locator> = self.nodes.iter().map(|n| n.address).collect();
            for to in everybody.into_iter().filter(|to| *to != from) {
                self.transmit(from, to, bytes);
            }
            return;
        }
        let copies = 1 + usize::from(self.chance(self.duplication));
        for _ in 0..copies {
            if !self.chance(self.loss) {
                self.flights.push(Flight {
                    at: self.now + LATENCY,
                    from,
                    to,
                    bytes: bytes.to_vec(),
                });
            }
        }
    }

    /// Runs everything that happens within `span`.
    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut stuck = 0;
        for node in 0..self.nodes.len() {
            if !self.nodes[node].dead {
                self.flush(node);
            }
        }
        loop {
            let flight = self.flights.iter().map(|f| f.at).min();
            let timer = self
                .nodes
                .iter()
                .filter(|n| !n.dead)
                .filter_map(|n| n.machine.next_timeout())
                .min();
            let next = flight.into_iter().chain(timer).min();
            let Some(next) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            stuck = if next <= self.now { stuck + 1 } else { 0 };
            assert!(stuck < 10_000, "time stands still at {:?}", self.now);
            self.now = self.now.max(next);
            self.step();
        }
    }

    fn step(&mut self) {
        let now = self.now;
        let (arrived, flying) = std::mem::take(&mut self.flights)
            .into_iter()
            .partition(|f| f.at <= now);
        self.flights = flying;
        let arrived: Vec<Flight> = arrived;
        for flight in arrived {
            self.arrive(flight);
        }
        for node in 0..self.nodes.len() {
            if !self.nodes[node].dead {
                self.nodes[node].machine.handle_timeout(now);
                self.flush(node);
            }
        }
    }

    fn arrive(&mut self, flight: Flight) {
        let sender = self.nodes.iter().rposition(|n| n.address == flight.from);
        if self.nodes.iter().all(|n| n.address != flight.to) {
            self.undelivered.push((flight.to, flight.bytes.clone()));
        }
        for node in 0..self.nodes.len() {
            let cut = sender.is_some_and(|sender| self.cuts.contains(&(sender, node)));
            if self.nodes[node].dead || self.nodes[node].address != flight.to || cut {
                continue;
            }
            self.deliver(node, Some(flight.from), &flight.bytes);
            self.flush(node);
        }
    }

    /// Hands a datagram to a node's machine, without the wire.
    pub fn deliver(&mut self, node: usize, from: Option<Locator>, bytes: &[u8]) {
        let own = self.nodes[node].machine.prefix();
        let Ok(reader) = MessageReader::new(bytes, own) else {
            return;
        };
        for (source, submessage) in reader {
            let machine = &mut self.nodes[node].machine;
            machine.handle_submessage(self.now, from, &source, &submessage);
        }
    }

    /// The pairs in which a node's endpoint is matched now, by its events.
    pub fn matches(&self, node: usize) -> Vec<(Guid, Guid)> {
        let mut pairs = Vec::new();
        for event in &self.nodes[node].events {
            match event {
                ParticipantEvent::Matched { local, remote, .. } => {
                    assert!(!pairs.contains(&(*local, remote.guid)), "matched twice");
                    pairs.push((*local, remote.guid));
                }
                ParticipantEvent::Unmatched { local, remote } => {
                    let before = pairs.len();
                    pairs.retain(|pair| *pair != (*local, *remote));
                    assert_eq!(pairs.len() + 1, before, "unmatched without a match");
                }
                _ => {}
            }
        }
        pairs.sort();
        pairs
    }
}

/// An endpoint as its owner describes it.
pub fn endpoint(guid: Guid, topic: &str, type_name: &str, qos: EndpointQos) -> EndpointData {
    EndpointData {
        guid,
        topic: topic.into(),
        type_name: type_name.into(),
        qos: qos.into(),
        unicast: Vec::new(),
        multicast: Vec::new(),
        expects_inline_qos: false,
        type_information: None::<Bytes>,
        max_serialized_size: None,
        content_filter: None,
        group: None,
        security_info: None,
        stalled_readers: Vec::new(),
        undecodable: Vec::new(),
    }
}
