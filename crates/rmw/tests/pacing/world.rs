//! Two contexts on one host whose clock and network are the test's: time jumps
//! from one deadline or arrival to the next.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;
use pteros_rmw::env::{Env, Opened, Received, SocketPlan, Transport, unicast_port};
use pteros_rmw::error::OpenError;
use pteros_rmw::flow::{FlowController, Pace};
use pteros_rmw::reader::{ReaderEndpoint, Wants};
use pteros_rmw::rtps::locator::{Locator, OwnAddress};
use pteros_rmw::rtps::qos::EndpointQos;
use pteros_rmw::rtps::time::{Duration, Instant, Timestamp};
use pteros_rmw::sample::Body;
use pteros_rmw::writer::{Outgoing, WriterEndpoint};
use pteros_rmw::{Core, CoreOptions, DriverState, EndpointSpec};

/// How long a datagram flies, nanoseconds.
const LATENCY: u64 = 100_000;

#[derive(Default)]
pub struct Network {
    pub now: u64,
    /// By arrival and departure: from, to, bytes.
    flights: BTreeMap<(u64, u64), (usize, usize, Vec<u8>)>,
    /// Arrived and not received.
    mail: [Vec<(usize, Vec<u8>)>; 2],
    /// When, from whom, how many bytes.
    pub sent: Vec<(u64, usize, usize)>,
    /// Every so many-th datagram is lost; 0: none.
    pub lose_every: u64,
    /// The talker's socket, if it can be full.
    pub socket: Option<Socket>,
    count: u64,
}

/// A socket whose network takes so much and no more.
pub struct Socket {
    /// How long a byte takes.
    pub byte_nanos: u64,
    /// Beyond that it refuses.
    pub bytes_max: u64,
    /// When what it has taken is on its way.
    pub busy_until: u64,
}

impl Socket {
    pub fn new(byte_nanos: u64, bytes_max: u64) -> Self {
        Self {
            byte_nanos,
            bytes_max,
            busy_until: 0,
        }
    }

    /// Takes so many bytes; when they have left, unless it is full.
    fn take(&mut self, now: u64, bytes: u64) -> Option<u64> {
        let from = self.busy_until.max(now);
        if from - now >= self.bytes_max.saturating_mul(self.byte_nanos) {
            return None;
        }
        self.busy_until = from.saturating_add(bytes.saturating_mul(self.byte_nanos));
        Some(self.busy_until)
    }

    /// When half of it is free.
    fn roomy_at(&self) -> u64 {
        let half = (self.bytes_max / 2).saturating_mul(self.byte_nanos);
        self.busy_until.saturating_sub(half)
    }
}

struct Place {
    network: Arc<Mutex<Network>>,
    index: usize,
}

fn address(index: usize) -> Locator {
    let port = unicast_port(0, u32::try_from(index).unwrap());
    Locator::udp_v4([127, 0, 0, 1], port)
}

impl Env for Place {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.network.lock().unwrap().now)
    }

    fn wall(&self) -> Timestamp {
        let now = self.network.lock().unwrap().now;
        Timestamp::from_nanos(1_790_000_000_000_000_000 + now.cast_signed())
    }

    fn unique(&self) -> [u8; 10] {
        [u8::try_from(self.index).unwrap() + 1; 10]
    }

    fn open(&self, _plan: &SocketPlan) -> Result<Opened, OpenError> {
        Ok(Opened {
            transport: Box::new(Place {
                network: self.network.clone(),
                index: self.index,
            }),
            participant_index: u32::try_from(self.index).unwrap(),
            unicast: vec![address(self.index)],
            own: vec![OwnAddress {
                ip: [127, 0, 0, 1],
                prefix_length: 8,
            }],
            multicast: None,
            advice: Vec::new(),
            links: Err("none here".into()),
        })
    }

    fn looks_after(&self, _core: &Weak<Core>) -> bool {
        true
    }
}

impl Transport for Place {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let Some(target) = (0..2).find(|index| address(*index) == *to) else {
            return Ok(());
        };
        let mut network = self.network.lock().unwrap();
        let bytes = parts
            .iter()
            .flat_map(|part| part.iter().copied())
            .collect::<Vec<u8>>();
        let now = network.now;
        network.sent.push((now, self.index, bytes.len()));
        network.count += 1;
        let count = network.count;
        let length = bytes.len() as u64;
        let socket = network.socket.as_mut().filter(|_| self.index == TALKER);
        let Some(left_at) = socket.map_or(Some(now), |socket| socket.take(now, length)) else {
            return Err(io::ErrorKind::WouldBlock.into());
        };
        if network.lose_every == 0 || !count.is_multiple_of(network.lose_every) {
            let at = (left_at + LATENCY, count);
            network.flights.insert(at, (self.index, target, bytes));
        }
        Ok(())
    }

    fn wait_for_room(&self, span: Duration) -> bool {
        let mut network = self.network.lock().unwrap();
        let socket = network.socket.as_ref().filter(|_| self.index == TALKER);
        let roomy_at = socket.map_or(0, Socket::roomy_at);
        let until = network.now + span.as_nanos().unsigned_abs();
        network.now = network.now.max(roomy_at.min(until));
        roomy_at <= until
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<Received> {
        let mut network = self.network.lock().unwrap();
        let mail = &mut network.mail[self.index];
        if mail.is_empty() {
            return None;
        }
        let (from, bytes) = mail.remove(0);
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(Received {
            len: bytes.len(),
            from: address(from),
        })
    }

    fn look(&self) {}

    fn sleep(&self, _: Instant, _: Instant) {
        panic!("nobody sleeps here");
    }

    fn wake(&self) {}

    fn shutdown_requested(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A publishing and a subscribing context that know each other.
pub struct World {
    pub network: Arc<Mutex<Network>>,
    cores: [Arc<Core>; 2],
    states: [DriverState; 2],
}

pub const TALKER: usize = 0;
pub const LISTENER: usize = 1;

impl World {
    pub fn new(flow_controllers: Vec<FlowController>) -> Self {
        let network = Arc::new(Mutex::new(Network::default()));
        let open = |index| {
            let env = Place {
                network: network.clone(),
                index,
            };
            let options = CoreOptions {
                local_only: true,
                multicast: false,
                flow_controllers: flow_controllers.clone(),
                ..CoreOptions::default()
            };
            Core::open(Arc::new(env), options).unwrap()
        };
        let mut world = Self {
            cores: [open(0), open(1)],
            states: [DriverState::default(), DriverState::default()],
            network,
        };
        world.run_ms(100);
        world
    }

    pub fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap()
    }

    pub fn talker(&self) -> &Core {
        &self.cores[TALKER]
    }

    pub fn listener(&self) -> &Core {
        &self.cores[LISTENER]
    }

    pub fn plain_writer(&self, topic: &str, qos: EndpointQos) -> Arc<WriterEndpoint> {
        self.talker().create_writer(spec(topic, qos)).unwrap()
    }

    pub fn writer(&self, topic: &str, qos: EndpointQos, pace: Pace) -> Arc<WriterEndpoint> {
        let spec = spec(topic, qos);
        self.talker().create_paced_writer(spec, &pace).unwrap()
    }

    pub fn reader(&self, topic: &str, qos: EndpointQos) -> Arc<ReaderEndpoint> {
        let spec = spec(topic, qos);
        self.listener()
            .create_reader(spec, Wants::Bytes, false)
            .unwrap()
    }

    pub fn publish(&self, writer: &WriterEndpoint, payload: Vec<u8>) {
        let source = self.talker().env.wall();
        let mut message = Payload(payload.into());
        self.talker().publish(writer, &mut message, source).unwrap();
    }

    /// First bytes of what has arrived.
    pub fn taken(&self, reader: &ReaderEndpoint) -> Vec<u8> {
        let items = std::iter::from_fn(|| self.listener().take(reader));
        items
            .map(|item| match item.body {
                Body::Serialized(bytes) => bytes[4],
                Body::Shared(_) => panic!("bytes were asked for"),
            })
            .collect()
    }

    pub fn run_ms(&mut self, millis: u64) {
        let end = self.network().now + millis * 1_000_000;
        self.run_until(end, |_| false);
    }

    /// Lets time pass until `done` or `end`.
    pub fn run_until(&mut self, end: u64, mut done: impl FnMut(&Self) -> bool) {
        loop {
            for (core, state) in self.cores.iter().zip(&mut self.states) {
                let mut turns = 0;
                let now = core.env.now();
                while core.turn_now(state) > 0 || core.next_deadline() <= now {
                    turns += 1;
                    assert!(turns < 10_000, "woken again and again at one instant");
                }
            }
            if done(self) {
                return;
            }
            let mut network = self.network.lock().unwrap();
            let arrival = network.flights.keys().next().map(|(at, _)| *at);
            let deadlines = self
                .cores
                .iter()
                .map(|core| core.next_deadline().as_nanos());
            let next = deadlines.chain(arrival).min().unwrap_or(end);
            if next > end {
                network.now = end;
                return;
            }
            network.now = network.now.max(next);
            while let Some(flight) = network.flights.first_entry()
                && flight.key().0 <= next
            {
                let (from, to, bytes) = flight.remove();
                network.mail[to].push((from, bytes));
            }
        }
    }
}

pub fn spec(topic: &str, qos: EndpointQos) -> EndpointSpec {
    EndpointSpec {
        topic: topic.into(),
        type_name: "test::Bytes".into(),
        qos,
        ..EndpointSpec::default()
    }
}

struct Payload(Bytes);

impl Outgoing for Payload {
    fn message_type(&self) -> std::any::TypeId {
        std::any::TypeId::of::<Bytes>()
    }

    fn shared(&mut self) -> Option<Arc<dyn pteros_rmw::sample::SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.0.len()
    }
}
