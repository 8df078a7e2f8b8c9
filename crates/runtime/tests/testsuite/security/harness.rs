//! Contexts on one host with simulated clock, randomness and network: time jumps
//! from one timeout or arrival to the next.

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;
use pteros_runtime::error::OpenError;
use pteros_runtime::platform::{
    DatagramSockets, OpenedSockets, Platform, ReceivedDatagram, SocketPlan, UndrivenContext,
    unicast_port,
};
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::rtps::id::GuidPrefix;
use pteros_runtime::rtps::locator::{Locator, OwnAddress};
use pteros_runtime::rtps::qos::{EndpointQos, History, Reliability};
use pteros_runtime::rtps::receiver::MessageReader;
use pteros_runtime::rtps::time::{Instant, Timestamp};
use pteros_runtime::rtps::wire::Submessage;
use pteros_runtime::sample::SampleBody;
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};
use pteros_runtime::{Core, CoreOptions, DriverState, EndpointSpec, SecurityOptions};
use pteros_security::date::UnixTime;
use pteros_security::keystore::{Keystore, Options};

/// The latency of a datagram, nanoseconds.
const LATENCY: u64 = 100_000;
/// 2030-01-01: the time at which keystores are created.
pub const NOW: UnixTime = UnixTime(1_893_456_000);
pub const SECOND: u64 = 1_000_000_000;

/// A datagram as it was sent.
#[derive(Clone)]
pub struct Sent {
    pub from: usize,
    pub bytes: Vec<u8>,
}

/// The network's treatment of a datagram, by sender and bytes: how often it
/// arrives.
pub type Delivery = Box<dyn FnMut(usize, &[u8]) -> usize + Send>;

#[derive(Default)]
pub struct Network {
    pub now: u64,
    places: usize,
    /// Datagrams in flight, by time of arrival and departure: from, to, bytes.
    in_flight: BTreeMap<(u64, u64), (usize, usize, Vec<u8>)>,
    /// Datagrams in the receive buffers.
    pub arrived: Vec<Vec<(usize, Vec<u8>)>>,
    /// All sent datagrams.
    pub sent: Vec<Sent>,
    /// Without one each datagram arrives once.
    pub delivery: Option<Delivery>,
    count: u64,
    random: u64,
}

impl Network {
    /// Loses `percent` of the datagrams, duplicates as many and reorders them.
    pub fn make_lossy(&mut self, percent: u64, seed: u64) {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        self.random = state;
        self.delivery = Some(Box::new(move |_, _| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            match state % 100 {
                lost if lost < percent => 0,
                doubled if doubled < 2 * percent => 2,
                _ => 1,
            }
        }));
    }

    fn delay(&mut self) -> u64 {
        if self.random == 0 {
            return LATENCY;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        LATENCY + self.random % (20 * LATENCY)
    }

    /// Sends a datagram in another context's name.
    pub fn forge(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        self.carry(from, to, bytes);
    }

    fn carry(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        self.count += 1;
        let at = (self.now + self.delay(), self.count);
        self.in_flight.insert(at, (from, to, bytes));
    }
}

struct Place {
    network: Arc<Mutex<Network>>,
    index: usize,
}

/// The address of a context. Each [`PLACES_OF_HOST`] have an IP address of their
/// own.
pub fn address(index: usize) -> Locator {
    let port = unicast_port(0, u32::try_from(index % PLACES_OF_HOST).unwrap());
    let host = u8::try_from(index / PLACES_OF_HOST).unwrap();
    Locator::udp_v4([127, 0, host, 1], port)
}

/// Places with one IP address.
pub const PLACES_OF_HOST: usize = 100;

impl Platform for Place {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.network.lock().unwrap().now)
    }

    fn wall_clock(&self) -> Timestamp {
        let now = self.network.lock().unwrap().now;
        Timestamp::from_nanos(NOW.0 * 1_000_000_000 + now.cast_signed())
    }

    fn guid_seed(&self) -> [u8; 10] {
        [u8::try_from(self.index).unwrap() + 1; 10]
    }

    fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError> {
        assert!(!plan.shared_memory.enabled);
        Ok(OpenedSockets {
            sockets: Box::new(Place {
                network: self.network.clone(),
                index: self.index,
            }),
            unicast: vec![address(self.index)],
            own_addresses: (0..=10)
                .map(|host| OwnAddress {
                    ip: [127, 0, host, 1].into(),
                    prefix_length: 8,
                })
                .collect(),
            multicast: Vec::new(),
            advice: Vec::new(),
            shm: Err("none here".into()),
        })
    }

    fn drives_undriven(&self, _context: &Weak<dyn UndrivenContext>) -> bool {
        true
    }
}

impl DatagramSockets for Place {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let mut network = self.network.lock().unwrap();
        let Some(target) = (0..network.places).find(|index| address(*index) == *to) else {
            return Ok(());
        };
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
        let from = self.index;
        network.sent.push(Sent {
            from,
            bytes: bytes.clone(),
        });
        let times = network
            .delivery
            .as_mut()
            .map_or(1, |delivery| delivery(from, &bytes));
        for _ in 0..times {
            network.carry(from, target, bytes.clone());
        }
        Ok(())
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let mut network = self.network.lock().unwrap();
        let arrived = &mut network.arrived[self.index];
        if arrived.is_empty() {
            return None;
        }
        let (from, bytes) = arrived.remove(0);
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(ReceivedDatagram {
            len: bytes.len(),
            from: address(from),
        })
    }

    fn check_readable(&self) {}

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

/// Contexts that can reach each other.
#[derive(Default)]
pub struct SecuredContexts {
    pub network: Arc<Mutex<Network>>,
    pub cores: Vec<Option<Arc<Core>>>,
    states: Vec<DriverState>,
}

impl SecuredContexts {
    pub fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap()
    }

    /// Opens another context, with the enclave of this folder, or unsecured.
    pub fn open(&mut self, enclave: Option<&Path>) -> Result<usize, OpenError> {
        let index = self.cores.len();
        {
            let mut network = self.network();
            network.places = index + 1;
            network.arrived.push(Vec::new());
        }
        let env = Place {
            network: self.network.clone(),
            index,
        };
        let mut options = CoreOptions {
            local_only: true,
            multicast: false,
            security: enclave.map(|folder| SecurityOptions {
                enclave: folder.into(),
            }),
            ..CoreOptions::default()
        };
        options.shared_memory.enabled = false;
        self.cores.push(Some(Core::open(Arc::new(env), options)?));
        self.states.push(DriverState::default());
        Ok(index)
    }

    /// An address from which an attacker sends with `inject`.
    pub fn attacker(&mut self) -> usize {
        let index = self.cores.len();
        let mut network = self.network.lock().unwrap();
        network.places = index + 1;
        network.arrived.push(Vec::new());
        drop(network);
        self.cores.push(None);
        self.states.push(DriverState::default());
        index
    }

    /// Sends a datagram from one address to another.
    pub fn inject(&self, from: usize, to: usize, bytes: &[u8]) {
        self.network().carry(from, to, bytes.to_vec());
    }

    pub fn core(&self, index: usize) -> &Arc<Core> {
        self.cores[index].as_ref().unwrap()
    }

    pub fn prefix(&self, index: usize) -> GuidPrefix {
        self.core(index).prefix()
    }

    /// Whether one has authenticated another.
    pub fn has_authenticated(&self, one: usize, other: usize) -> bool {
        let wanted = self.prefix(other);
        let known = self.core(one).security().authenticated();
        known.iter().any(|(prefix, _)| *prefix == wanted)
    }

    pub fn run(&mut self, nanos: u64) {
        self.run_until(nanos, |_| false);
    }

    /// Advances time until `done` returns true, at most `nanos`. Returns whether it
    /// did.
    pub fn run_until(&mut self, nanos: u64, mut done: impl FnMut(&Self) -> bool) -> bool {
        let end = self.network().now + nanos;
        loop {
            for (core, state) in self.cores.iter().zip(&mut self.states) {
                let Some(core) = core else { continue };
                let mut turns = 0;
                let now = core.platform.now();
                while core.driver().poll_now(state) > 0 || core.next_deadline() <= now {
                    turns += 1;
                    assert!(turns < 10_000, "woken again and again at one instant");
                }
            }
            if done(self) {
                return true;
            }
            let mut network = self.network.lock().unwrap();
            let arrival = network.in_flight.keys().next().map(|(at, _)| *at);
            let cores = self.cores.iter().flatten();
            let deadlines = cores.map(|core| core.next_deadline().as_nanos());
            let next = deadlines.chain(arrival).min().unwrap_or(end);
            if next > end {
                network.now = end;
                return false;
            }
            network.now = network.now.max(next);
            while let Some(flight) = network.in_flight.first_entry()
                && flight.key().0 <= next
            {
                let (from, to, bytes) = flight.remove();
                network.arrived[to].push((from, bytes));
            }
        }
    }

    /// Calls `see` with every submessage that a context has sent.
    pub fn for_each_sent(&self, from: usize, mut see: impl FnMut(&Submessage<'_>)) {
        let there = self.cores.iter().flatten();
        let to: Vec<GuidPrefix> = there.map(|core| core.prefix()).collect();
        for sent in self.network().sent.iter().filter(|sent| sent.from == from) {
            // As each of them reads it.
            for own in &to {
                let message = MessageReader::new(&sent.bytes, *own).unwrap();
                for (_, submessage) in message {
                    see(&submessage);
                }
            }
        }
    }
}

pub fn spec(topic: &str) -> EndpointSpec {
    EndpointSpec {
        topic: topic.into(),
        type_name: "test::Bytes".into(),
        qos: EndpointQos {
            reliability: Reliability::Reliable,
            history: History::KeepLast(100),
            ..EndpointQos::default()
        },
        ..EndpointSpec::default()
    }
}

impl SecuredContexts {
    pub fn writer(&self, index: usize, topic: &str) -> Arc<WriterEndpoint> {
        self.core(index).create_writer(spec(topic)).unwrap()
    }

    pub fn reader(&self, index: usize, topic: &str) -> Arc<ReaderEndpoint> {
        let made = self
            .core(index)
            .create_reader(spec(topic), DeliveryForm::Bytes, false);
        made.unwrap()
    }

    pub fn publish(&self, index: usize, writer: &WriterEndpoint, text: &str) {
        let payload = [&[0, 1, 0, 0], text.as_bytes()].concat();
        let core = self.core(index);
        let mut message = Payload(payload.into());
        core.publish(writer, &mut message, core.platform.wall_clock())
            .unwrap();
    }

    /// The messages that have arrived.
    pub fn taken(&self, index: usize, reader: &ReaderEndpoint) -> Vec<String> {
        let items = std::iter::from_fn(|| self.core(index).taking().take(reader));
        items
            .map(|item| match item.body {
                SampleBody::Serialized(bytes) => {
                    let text = String::from_utf8(bytes[4..].to_vec()).unwrap();
                    // A DATA pads its payload.
                    text.trim_end_matches('\0').to_owned()
                }
                SampleBody::Shared(_) => panic!("bytes were asked for"),
            })
            .collect()
    }

    /// Whether any context ever sent these bytes.
    pub fn was_sent(&self, from: usize, word: &str) -> bool {
        let word = word.as_bytes();
        let sent = &self.network().sent;
        sent.iter()
            .filter(|sent| sent.from == from)
            .any(|sent| sent.bytes.windows(word.len()).any(|w| w == word))
    }
}

struct Payload(Bytes);

impl OutboundMessage for Payload {
    fn message_type(&self) -> std::any::TypeId {
        std::any::TypeId::of::<Bytes>()
    }

    fn shared(&mut self) -> Option<Arc<dyn pteros_runtime::sample::SharedValue>> {
        None
    }

    fn serialized(&mut self) -> Bytes {
        self.0.clone()
    }

    fn serialized_len(&mut self) -> usize {
        self.0.len()
    }
}

/// A keystore in a temporary folder.
pub struct TestKeystore {
    pub root: PathBuf,
    pub keystore: Keystore,
}

impl TestKeystore {
    pub fn new(options: &Options) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pteros-runtime-security-{}-{count}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let keystore = Keystore::create(&root, options, NOW).unwrap();
        Self { root, keystore }
    }

    /// The folder of a new enclave with all permissions.
    pub fn enclave(&self, name: &str) -> PathBuf {
        let options = Options::default();
        let made = self.keystore.create_enclave(name, None, &options, NOW);
        made.unwrap()
    }

    /// Replaces text in the governance and signs it again.
    pub fn edit_governance(&self, edits: &[(&str, &str)]) {
        self.edit("enclaves/governance.xml", edits);
    }

    /// Replaces text in a document and signs all of them again.
    pub fn edit(&self, document: &str, edits: &[(&str, &str)]) {
        let path = self.root.join(document);
        let mut text = std::fs::read_to_string(&path).unwrap();
        for (from, to) in edits {
            assert!(text.contains(from), "{from} is not in {text}");
            text = text.replace(from, to);
        }
        std::fs::write(&path, text).unwrap();
        self.keystore.sign(NOW).unwrap();
    }
}

impl Drop for TestKeystore {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
