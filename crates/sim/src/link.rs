//! The network between simulated processes: loss, duplication, delay and
//! reordering, clogs, cuts in single directions, small MTUs, corrupted bytes,
//! full sockets. Datagrams in flight are ordered by time and a random tie.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use bytes::Bytes;
use fastrand::Rng;
use pteros_rmw::links::LinkEvent;
use pteros_rtps::locator::Locator;

use crate::shared::{LinkSide, Sent};
use crate::trace::Trace;

/// How one direction between two processes behaves. Chances are in 1/10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Chance that a datagram is lost.
    pub loss: u32,
    /// Chance that it comes twice.
    pub duplicate: u32,
    /// Chance that one byte is changed.
    pub corrupt: u32,
    /// Nanoseconds under way, at least.
    pub delay: u64,
    /// Random nanoseconds more; larger than the pause between datagrams, it
    /// reorders them.
    pub jitter: u64,
    /// Chance of a straggler that takes up to a second.
    pub straggle: u32,
    /// Larger datagrams vanish.
    pub mtu: usize,
    /// Nothing passes.
    pub cut: bool,
    /// Nothing arrives before this; then all at once.
    pub clogged_until: u64,
}

impl Link {
    /// A link that only takes `delay` nanoseconds.
    pub const fn perfect(delay: u64) -> Self {
        Self {
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            delay,
            jitter: 0,
            straggle: 0,
            mtu: usize::MAX,
            cut: false,
            clogged_until: 0,
        }
    }
}

/// Something under way, ordered by arrival.
#[derive(Debug)]
struct Flight {
    at: u64,
    tie: u64,
    serial: u64,
    to: usize,
    from: Locator,
    cargo: Cargo,
}

/// What is under way.
#[derive(Debug)]
pub enum Cargo {
    /// A datagram.
    Datagram(Bytes),
    /// A message of a link.
    Record(Sent),
    /// Word of a link.
    News(LinkEvent),
}

impl Flight {
    fn order(&self) -> (u64, u64, u64) {
        (self.at, self.tie, self.serial)
    }
}

impl PartialEq for Flight {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Flight {}

impl PartialOrd for Flight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Flight {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// A process's sockets, as one: unicast and group.
#[derive(Debug)]
pub struct Socket {
    /// The process's place.
    pub place: usize,
    /// The address peers send to.
    pub address: Locator,
    /// What has arrived and was not read.
    inbox: VecDeque<(Bytes, Locator)>,
    inbox_bytes: usize,
    /// What fits; more is dropped, as a kernel does.
    pub buffer_bytes: usize,
    /// Whether it listens to the group.
    pub in_group: bool,
    /// A dead process's socket neither sends nor receives.
    pub open: bool,
    /// Ends a wait.
    pub woken: bool,
    /// Links of shared memory.
    pub shared: LinkSide,
}

/// Counts of the network over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams that processes sent, once per destination.
    pub sent: u64,
    /// Bytes of those.
    pub sent_bytes: u64,
    /// Datagrams put into an inbox.
    pub delivered: u64,
    /// Datagrams lost on the way, cut, oversized, to nobody, or overflowing.
    pub lost: u64,
    /// Messages sent by links.
    pub records: u64,
}

/// See the module's description.
#[derive(Debug)]
pub struct Network {
    random: Rng,
    in_flight: BinaryHeap<Reverse<Flight>>,
    serial: u64,
    /// All sockets ever opened; indices stay valid.
    pub sockets: Vec<Socket>,
    by_address: BTreeMap<Locator, usize>,
    places: usize,
    links: Vec<Link>,
    /// Chance in 1/10000 that a send finds its socket full.
    pub full: u32,
    /// Chance in 1/10000 that something happens to a link.
    pub link_faults: u32,
    /// Numbers of links given out.
    pub links_made: u32,
    /// What arrives at one instant comes in the order in which it was sent.
    pub in_order: bool,
    /// What happened.
    pub trace: Trace,
    /// Counts.
    pub traffic: Traffic,
    /// Bytes sent to an address where no process is (a victim), by sender.
    pub astray: BTreeMap<(usize, Locator), u64>,
    /// Bytes that an attacker sent to each place.
    pub injected: BTreeMap<usize, u64>,
    /// Counts datagrams of user endpoints, while somebody wants to know.
    pub users_sent: Option<u64>,
    /// When each place heard each other last, as (speaker, hearer).
    pub heard: BTreeMap<(usize, usize), u64>,
    /// The last datagrams, for an attacker to copy.
    pub overheard: VecDeque<Bytes>,
}

/// Datagrams that an attacker remembers.
const OVERHEARD_MAX: usize = 64;

impl Network {
    /// A network between `places` processes with links that only delay.
    pub fn new(seed: u64, places: usize, trace: Trace) -> Self {
        Self {
            random: Rng::with_seed(seed),
            in_flight: BinaryHeap::new(),
            serial: 0,
            sockets: Vec::new(),
            by_address: BTreeMap::new(),
            places,
            links: vec![Link::perfect(100_000); places * places],
            full: 0,
            link_faults: 0,
            links_made: 0,
            in_order: false,
            trace,
            traffic: Traffic::default(),
            astray: BTreeMap::new(),
            injected: BTreeMap::new(),
            users_sent: None,
            heard: BTreeMap::new(),
            overheard: VecDeque::new(),
        }
    }

    /// The link from one place to another.
    pub fn link_mut(&mut self, from: usize, to: usize) -> &mut Link {
        &mut self.links[from * self.places + to]
    }

    /// Every link.
    pub fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut()
    }

    /// Opens a socket; false when the address is taken.
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

    /// Closes a socket: its process is dead or has said goodbye.
    pub fn close(&mut self, now: u64, number: usize) {
        if !self.sockets[number].open {
            return;
        }
        self.end_links(now, number);
        let socket = &mut self.sockets[number];
        socket.open = false;
        socket.inbox.clear();
        socket.inbox_bytes = 0;
        self.by_address.remove(&socket.address);
    }

    /// When the next datagram arrives.
    pub fn next_at(&self) -> Option<u64> {
        self.in_flight.peek().map(|Reverse(flight)| flight.at)
    }

    /// Sends a datagram; false when the socket is full.
    pub fn send(&mut self, now: u64, number: usize, bytes: Bytes, to: &Locator) -> bool {
        let socket = &self.sockets[number];
        if !socket.open {
            return true;
        }
        let (place, from) = (socket.place, socket.address);
        if self.full > 0 && self.random.u32(0..10_000) < self.full {
            return false;
        }
        self.traffic.sent += 1;
        self.traffic.sent_bytes += bytes.len() as u64;
        self.trace.bytes(&bytes);
        if let Some(count) = &mut self.users_sent {
            *count += u64::from(crate::describe::is_of_users(&bytes));
        }
        if self.overheard.len() == OVERHEARD_MAX {
            self.overheard.pop_front();
        }
        self.overheard.push_back(bytes.clone());
        if to.is_multicast() {
            for target in 0..self.sockets.len() {
                let hears = &self.sockets[target];
                if hears.open && hears.in_group && target != number {
                    self.fly(now, place, from, target, bytes.clone());
                }
            }
            return true;
        }
        let mut address = *to;
        if address.is_loopback() {
            address.address = from.address;
        }
        match self.by_address.get(&address) {
            Some(target) => self.fly(now, place, from, *target, bytes),
            None => {
                self.traffic.lost += 1;
                if !to.is_loopback() {
                    *self.astray.entry((place, *to)).or_default() += bytes.len() as u64;
                    self.describe_astray(now, place, to, &bytes);
                }
            }
        }
        true
    }

    /// A datagram from nowhere: an attacker's.
    pub fn inject(&mut self, at: u64, from: Locator, to: usize, bytes: Bytes) {
        self.trace.bytes(&bytes);
        let place = self.sockets[to].place;
        *self.injected.entry(place).or_default() += bytes.len() as u64;
        self.push(at, to, from, bytes);
    }

    fn fly(&mut self, now: u64, place: usize, from: Locator, to: usize, bytes: Bytes) {
        let link = self.links[place * self.places + self.sockets[to].place];
        let random = &mut self.random;
        let mut chance = |c: u32| c > 0 && random.u32(0..10_000) < c;
        let lost = chance(link.loss);
        let copies = if chance(link.duplicate) { 2 } else { 1 };
        let corrupt = chance(link.corrupt);
        if lost || link.cut || bytes.len() > link.mtu {
            self.traffic.lost += 1;
            let why = if link.cut { "cut" } else { "lost" };
            self.describe(now, why, from, to, &bytes);
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
            self.describe(now, "sent", from, to, &bytes);
            self.push(at.max(link.clogged_until), to, from, bytes);
        }
    }

    fn push(&mut self, at: u64, to: usize, from: Locator, bytes: Bytes) {
        self.serial += 1;
        let flight = Flight {
            at,
            tie: match self.in_order {
                true => 0,
                false => self.random.u64(..),
            },
            serial: self.serial,
            to,
            from,
            cargo: Cargo::Datagram(bytes),
        };
        self.in_flight.push(Reverse(flight));
    }

    /// Sends what belongs to links, which keep their order.
    pub fn push_cargo(&mut self, at: u64, to: usize, cargo: Cargo) {
        self.serial += 1;
        let flight = Flight {
            at,
            tie: 0,
            serial: self.serial,
            to,
            from: self.sockets[to].address,
            cargo,
        };
        self.in_flight.push(Reverse(flight));
    }

    /// Whether something happens to a link now.
    pub fn link_fault(&mut self) -> bool {
        self.link_faults > 0 && self.random.u32(0..10_000) < self.link_faults
    }

    /// One of two.
    pub fn coin(&mut self) -> bool {
        self.random.bool()
    }

    /// Moves the next datagram into its inbox; returns the socket.
    pub fn arrive(&mut self, now: u64) -> Option<usize> {
        let Reverse(flight) = self.in_flight.pop()?;
        let socket = &mut self.sockets[flight.to];
        if !socket.open {
            self.traffic.lost += 1;
            return None;
        }
        let bytes = match flight.cargo {
            Cargo::Datagram(bytes) => bytes,
            of_link => {
                self.trace.number(now ^ flight.to as u64);
                socket.shared.arrive(of_link);
                return Some(flight.to);
            }
        };
        if socket.inbox_bytes + bytes.len() > socket.buffer_bytes {
            self.traffic.lost += 1;
            let (from, to) = (flight.from, flight.to);
            self.describe(now, "overflow", from, to, &bytes);
            return None;
        }
        self.traffic.delivered += 1;
        self.trace.number(now ^ flight.to as u64);
        socket.inbox_bytes += bytes.len();
        if let Some(speaker) = self.by_address.get(&flight.from) {
            let pair = (self.sockets[*speaker].place, self.sockets[flight.to].place);
            self.heard.insert(pair, now);
        }
        let entry = (bytes, flight.from);
        self.sockets[flight.to].inbox.push_back(entry);
        Some(flight.to)
    }

    /// Takes the oldest datagram of a socket.
    pub fn take(&mut self, number: usize) -> Option<(Bytes, Locator)> {
        let socket = &mut self.sockets[number];
        let entry = socket.inbox.pop_front()?;
        socket.inbox_bytes -= entry.0.len();
        Some(entry)
    }

    /// Whether datagrams wait in a socket.
    pub fn has_mail(&self, number: usize) -> bool {
        let socket = &self.sockets[number];
        !socket.inbox.is_empty() || socket.shared.has_mail()
    }

    fn describe_astray(&mut self, now: u64, place: usize, to: &Locator, bytes: &[u8]) {
        if self.trace.is_readable() {
            let content = crate::describe::datagram(bytes);
            self.trace
                .line(now, format_args!("  astray p{place} -> {to}: {content}"));
        }
    }

    fn describe(&mut self, now: u64, what: &str, from: Locator, to: usize, bytes: &[u8]) {
        if !self.trace.is_readable() {
            return;
        }
        let place = self.sockets[to].place;
        let content = crate::describe::datagram(bytes);
        let (port, host) = (from.port, from.address[15]);
        self.trace.line(
            now,
            format_args!("  {what} host {host} port {port} -> p{place}: {content}"),
        );
    }
}

impl Socket {
    /// An open socket of `place`.
    pub fn new(place: usize, address: Locator, buffer_bytes: usize, in_group: bool) -> Self {
        Self {
            place,
            address,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            buffer_bytes,
            in_group,
            open: true,
            woken: false,
            shared: LinkSide::default(),
        }
    }
}
