//! The simulated network between processes.
//!
//! It loses, duplicates, delays, reorders and corrupts datagrams, stalls and cuts
//! directions, limits the MTU and fills sockets. Datagrams in flight are ordered by
//! time and a random tie-break.

mod connections;
mod datagram_text;
pub mod interfaces;
pub mod link;
pub mod processing;
pub mod sample_transport;
pub mod shared_memory;
pub mod trace;
pub mod watched_text;

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use fastrand::Rng;
use pteros_rtps::locator::Locator;

use self::datagram_text::{datagram_summary, has_user_traffic};
use self::interfaces::{Passage, SocketInterfaces, Topology};
use self::link::Link;
use self::processing::{ProcessingCost, Processor};
use self::shared_memory::{ConnectionTable, InFlightContent};
use self::trace::Trace;
use self::watched_text::WatchedText;

/// Something in flight.
#[derive(Debug)]
struct InFlight {
    to: usize,
    from: Locator,
    content: InFlightContent,
}

/// The unicast and multicast sockets of a process as one.
#[derive(Debug)]
pub struct Socket {
    /// Index of the process.
    pub process: usize,
    /// Its unicast address. On a host whose interfaces change it only names the host
    /// and the port.
    pub address: Locator,
    /// Datagrams that have arrived and were not read.
    inbox: VecDeque<(Bytes, Locator)>,
    inbox_bytes: usize,
    /// Size of the receive buffer. Datagrams beyond it are dropped, as by a kernel.
    pub buffer_bytes: usize,
    /// Whether it has joined the multicast group.
    pub in_group: bool,
    /// False once its process is dead: it neither sends nor receives.
    pub open: bool,
    /// Ends a wait for a datagram.
    pub woken: bool,
    /// Shared-memory connections.
    pub shared: ConnectionTable,
    /// Port of the multicast group.
    pub group_port: u16,
    /// Its knowledge of the interfaces of its host, where they change.
    pub interfaces: SocketInterfaces,
    /// The CPU of its process, where datagrams cost time.
    processor: Processor,
}

/// Counters of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams sent, once per destination.
    pub sent: u64,
    /// Bytes of these datagrams.
    pub sent_bytes: u64,
    /// Datagrams delivered to a socket.
    pub delivered: u64,
    /// Datagrams dropped: loss, cut, MTU, no receiver, or full buffer.
    pub lost: u64,
    /// Records sent through shared memory.
    pub records: u64,
}

/// The simulated network: hosts, sockets, links and the datagrams in flight.
#[derive(Debug)]
pub struct Network {
    random: Rng,
    /// By time of arrival, random tie-break and order of sending.
    in_flight: BTreeMap<(u64, u64, u64), InFlight>,
    serial: u64,
    /// All sockets ever opened. Indices stay valid.
    pub sockets: Vec<Socket>,
    by_address: BTreeMap<Locator, usize>,
    processes: usize,
    links: Vec<Link>,
    /// The interfaces of hosts with several addresses.
    pub topology: Topology,
    /// Chance in 1/10000 that a send finds the socket full.
    pub send_full_rate: u32,
    /// Chance in 1/10000 of a fault at each use of a shared-memory connection.
    pub connection_fault_rate: u32,
    /// Number of shared-memory connection ids assigned so far.
    pub connections_made: u32,
    /// Datagrams that arrive at one instant keep the order of sending.
    pub in_order: bool,
    /// What a datagram costs the process that gets it. Without it nothing.
    pub processing_cost: Option<ProcessingCost>,
    /// The trace of the run.
    pub trace: Trace,
    /// Counters.
    pub traffic: Traffic,
    /// Bytes sent to an address without a process (a victim), by sender.
    pub undeliverable: BTreeMap<(usize, Locator), u64>,
    /// Bytes that the attacker sent to each process.
    pub injected: BTreeMap<usize, u64>,
    /// Bytes sent from one process to another, before any loss.
    pub sent_between: BTreeMap<(usize, usize), u64>,
    /// Number of datagrams with user traffic, while a check counts them.
    pub user_datagrams_sent: Option<u64>,
    /// Time of the last datagram by (sender, receiver).
    pub last_received: BTreeMap<(usize, usize), u64>,
    /// The last datagrams, which the attacker copies.
    pub captured: VecDeque<Bytes>,
    /// A text that some processes must never send readably.
    pub watched_text: Option<WatchedText>,
}

/// Number of datagrams that the attacker keeps.
const CAPTURED_MAX: usize = 64;

impl Network {
    /// A network between `processes` processes whose links have no faults.
    pub fn new(seed: u64, processes: usize, trace: Trace) -> Self {
        Self {
            random: Rng::with_seed(seed),
            in_flight: BTreeMap::new(),
            serial: 0,
            sockets: Vec::new(),
            by_address: BTreeMap::new(),
            processes,
            links: vec![Link::perfect(100_000); processes * processes],
            topology: Topology::default(),
            send_full_rate: 0,
            connection_fault_rate: 0,
            connections_made: 0,
            in_order: false,
            processing_cost: None,
            trace,
            traffic: Traffic::default(),
            undeliverable: BTreeMap::new(),
            injected: BTreeMap::new(),
            sent_between: BTreeMap::new(),
            user_datagrams_sent: None,
            last_received: BTreeMap::new(),
            captured: VecDeque::new(),
            watched_text: None,
        }
    }

    /// The link from one process to another.
    pub fn link_mut(&mut self, from: usize, to: usize) -> &mut Link {
        &mut self.links[from * self.processes + to]
    }

    /// All links.
    pub fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut()
    }

    /// Whether no socket has this address.
    pub fn is_free(&self, address: &Locator) -> bool {
        !self.by_address.contains_key(address)
    }

    /// Opens a socket and returns its number.
    pub fn open(&mut self, socket: Socket) -> usize {
        let number = self.sockets.len();
        self.by_address.insert(socket.address, number);
        self.sockets.push(socket);
        number
    }

    /// Closes the socket of a process that died or shut down.
    pub fn close(&mut self, now: u64, number: usize) {
        if !self.sockets[number].open {
            return;
        }
        self.end_connections(now, number);
        let socket = &mut self.sockets[number];
        socket.open = false;
        socket.inbox.clear();
        socket.processor.clear();
        socket.inbox_bytes = 0;
        self.by_address.remove(&socket.address);
    }

    /// Time of the next arrival.
    pub fn next_at(&self) -> Option<u64> {
        self.in_flight.first_key_value().map(|((at, ..), _)| *at)
    }

    /// Sends a datagram. False when the socket is full.
    pub fn send(&mut self, now: u64, number: usize, bytes: Bytes, to: &Locator) -> bool {
        let socket = &self.sockets[number];
        if !socket.open {
            return true;
        }
        let (process, from) = (socket.process, socket.address);
        if self.send_full_rate > 0 && self.random.u32(0..10_000) < self.send_full_rate {
            return false;
        }
        self.traffic.sent += 1;
        self.traffic.sent_bytes += bytes.len() as u64;
        self.trace.bytes(&bytes);
        if let Some(count) = &mut self.user_datagrams_sent {
            *count += u64::from(has_user_traffic(&bytes));
        }
        if let Some(watched) = &mut self.watched_text {
            watched.look_at(process, &bytes);
        }
        if self.captured.len() == CAPTURED_MAX {
            self.captured.pop_front();
        }
        self.captured.push_back(bytes.clone());
        if to.is_multicast() {
            for target in 0..self.sockets.len() {
                let receiver = &self.sockets[target];
                if !receiver.open || !receiver.in_group || target == number {
                    continue;
                }
                for passage in self.group_passages(number, target) {
                    self.pass(now, process, (from, passage), target, bytes.clone());
                }
            }
            return true;
        }
        match self.find_target(number, to) {
            Some((target, passage)) => self.pass(now, process, (from, passage), target, bytes),
            None => {
                self.traffic.lost += 1;
                if !to.is_loopback() {
                    *self.undeliverable.entry((process, *to)).or_default() += bytes.len() as u64;
                    self.trace_undeliverable(now, process, to, &bytes);
                }
            }
        }
        true
    }

    /// Sends a datagram of the attacker.
    pub fn inject(&mut self, at: u64, from: Locator, to: usize, bytes: Bytes) {
        self.trace.bytes(&bytes);
        let process = self.sockets[to].process;
        *self.injected.entry(process).or_default() += bytes.len() as u64;
        self.push(at, to, from, bytes);
    }

    /// Transmits a datagram of a socket on its way, unless it is lost there.
    fn pass(
        &mut self,
        now: u64,
        process: usize,
        (own, passage): (Locator, Passage),
        to: usize,
        bytes: Bytes,
    ) {
        match passage {
            Passage::From(ip) => {
                let port = u16::try_from(own.port).unwrap_or(0);
                self.transmit(now, process, Locator::udp_v4(ip, port), to, bytes);
            }
            Passage::Lost(ip) => {
                self.traffic.lost += 1;
                let port = u16::try_from(own.port).unwrap_or(0);
                self.trace_datagram(now, "no way", Locator::udp_v4(ip, port), to, &bytes);
            }
        }
    }

    fn transmit(&mut self, now: u64, process: usize, from: Locator, to: usize, bytes: Bytes) {
        let pair = (process, self.sockets[to].process);
        *self.sent_between.entry(pair).or_default() += bytes.len() as u64;
        let link = self.links[process * self.processes + self.sockets[to].process];
        let random = &mut self.random;
        let mut chance = |c: u32| c > 0 && random.u32(0..10_000) < c;
        let lost = chance(link.loss);
        let copies = if chance(link.duplicate) { 2 } else { 1 };
        let corrupt = chance(link.corrupt);
        if lost || link.cut || bytes.len() > link.mtu {
            self.traffic.lost += 1;
            let why = if link.cut { "cut" } else { "lost" };
            self.trace_datagram(now, why, from, to, &bytes);
            return;
        }
        for _ in 0..copies {
            let random = &mut self.random;
            let mut at = now + link.delay + random.u64(0..=link.jitter);
            if link.straggle > 0 && random.u32(0..10_000) < link.straggle {
                at += random.u64(0..1_000_000_000);
            }
            let mut bytes = bytes.clone();
            if corrupt && !bytes.is_empty() {
                let mut changed = bytes.to_vec();
                let index = random.usize(0..changed.len());
                changed[index] ^= random.u8(1..=255);
                bytes = changed.into();
            }
            self.trace_datagram(now, "sent", from, to, &bytes);
            self.push(at.max(link.stalled_until), to, from, bytes);
        }
    }

    fn push(&mut self, at: u64, to: usize, from: Locator, bytes: Bytes) {
        let tie = if self.in_order {
            0
        } else {
            self.random.u64(..)
        };
        self.push_content(at, tie, to, from, InFlightContent::Datagram(bytes));
    }

    /// Sends content of a shared-memory connection, which keeps its order.
    pub fn push_in_order(&mut self, at: u64, to: usize, content: InFlightContent) {
        self.push_content(at, 0, to, self.sockets[to].address, content);
    }

    fn push_content(
        &mut self,
        at: u64,
        tie: u64,
        to: usize,
        from: Locator,
        content: InFlightContent,
    ) {
        self.serial += 1;
        let arrival = InFlight { to, from, content };
        self.in_flight.insert((at, tie, self.serial), arrival);
    }

    /// Draws whether a shared-memory connection has a fault now.
    pub fn draw_connection_fault(&mut self) -> bool {
        self.connection_fault_rate > 0 && self.random.u32(0..10_000) < self.connection_fault_rate
    }

    /// Draws a random boolean.
    pub fn draw_bool(&mut self) -> bool {
        self.random.bool()
    }

    /// Delivers the next arrival and returns its socket.
    pub fn deliver_next(&mut self, now: u64) -> Option<usize> {
        let (_, arrival) = self.in_flight.pop_first()?;
        let socket = &mut self.sockets[arrival.to];
        if !socket.open {
            self.traffic.lost += 1;
            return None;
        }
        let bytes = match arrival.content {
            InFlightContent::Datagram(bytes) => bytes,
            InFlightContent::ProcessorFree => {
                let next = self.next_waiting(now, arrival.to)?;
                return Some(self.hand_over(now, arrival.to, next));
            }
            of_link => {
                self.trace.number(now ^ arrival.to as u64);
                socket.shared.handle_arrival(of_link);
                return Some(arrival.to);
            }
        };
        if socket.inbox_bytes + bytes.len() > socket.buffer_bytes {
            self.traffic.lost += 1;
            let (from, to) = (arrival.from, arrival.to);
            self.trace_datagram(now, "overflow", from, to, &bytes);
            return None;
        }
        socket.inbox_bytes += bytes.len();
        let datagram = (bytes, arrival.from);
        if self.keep_while_busy(now, arrival.to, &datagram) {
            return None;
        }
        self.begin_processing(now, arrival.to, true);
        Some(self.hand_over(now, arrival.to, datagram))
    }

    /// Hands a datagram to the process of a socket.
    fn hand_over(&mut self, now: u64, number: usize, datagram: (Bytes, Locator)) -> usize {
        self.traffic.delivered += 1;
        self.trace.number(now ^ number as u64);
        if let Some(sender) = self.process_at(&datagram.1) {
            let pair = (sender, self.sockets[number].process);
            self.last_received.insert(pair, now);
        }
        self.sockets[number].inbox.push_back(datagram);
        number
    }

    /// Takes the oldest datagram of a socket.
    pub fn take(&mut self, number: usize) -> Option<(Bytes, Locator)> {
        let socket = &mut self.sockets[number];
        let entry = socket.inbox.pop_front()?;
        socket.inbox_bytes -= entry.0.len();
        Some(entry)
    }

    /// Whether a socket has unread datagrams or shared-memory input.
    pub fn has_input(&self, number: usize) -> bool {
        let socket = &self.sockets[number];
        !socket.inbox.is_empty() || socket.shared.has_input()
    }

    fn trace_undeliverable(&mut self, now: u64, process: usize, to: &Locator, bytes: &[u8]) {
        if self.trace.is_readable() {
            let content = datagram_summary(bytes);
            self.trace.line(
                now,
                format_args!("  undeliverable p{process} -> {to}: {content}"),
            );
        }
    }

    fn trace_datagram(&mut self, now: u64, what: &str, from: Locator, to: usize, bytes: &[u8]) {
        if !self.trace.is_readable() {
            return;
        }
        let process = self.sockets[to].process;
        let content = datagram_summary(bytes);
        let (port, host) = (from.port, from.address[15]);
        let network = match from.address[13] {
            0 => String::new(),
            network => format!("network {network} "),
        };
        self.trace.line(
            now,
            format_args!("  {what} {network}host {host} port {port} -> p{process}: {content}"),
        );
    }
}

impl Socket {
    /// An open socket of `process`.
    pub fn new(process: usize, address: Locator, buffer_bytes: usize, in_group: bool) -> Self {
        Self {
            process,
            address,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            buffer_bytes,
            in_group,
            open: true,
            woken: false,
            shared: ConnectionTable::default(),
            group_port: 0,
            interfaces: SocketInterfaces::default(),
            processor: Processor::default(),
        }
    }
}
