//! Two contexts on one host with simulated clock and network: time jumps from one
//! timeout or arrival to the next.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;
use pteros_dcps::limits::Limits;
use pteros_msg::cdr::Endian;
use pteros_runtime::error::OpenError;
use pteros_runtime::flow_controller::{AsyncPublishMode, FlowController};
use pteros_runtime::platform::{
    DatagramSockets, OpenedSockets, Platform, ReceivedDatagram, SocketPlan, UndrivenContext,
    unicast_port,
};
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::{ReadyQueue, ReadySlot, Task};
use pteros_runtime::rtps::id::{EntityId, GuidPrefix};
use pteros_runtime::rtps::locator::{Locator, OwnAddress};
use pteros_runtime::rtps::outbox::Datagram;
use pteros_runtime::rtps::qos::EndpointQos;
use pteros_runtime::rtps::time::{Duration, Instant, Timestamp};
use pteros_runtime::sample::SampleBody;
use pteros_runtime::shm_transport::{
    Chunk, ConnectionCounts, ConnectionEvent, DisconnectReason, PoolExhausted, ReceivedMessage,
    SendRefusal, ShmScope, ShmTransport,
};
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};
use pteros_runtime::{Core, CoreOptions, DriverState, EndpointSpec};

/// The latency of a datagram, nanoseconds.
const LATENCY: u64 = 100_000;

#[derive(Default)]
pub struct Network {
    pub now: u64,
    /// Datagrams in flight, by time of arrival and departure: from, to, bytes.
    in_flight: BTreeMap<(u64, u64), (usize, usize, Vec<u8>)>,
    /// Datagrams in the receive buffers.
    arrived: [Vec<(usize, Vec<u8>)>; 3],
    /// How many contexts there are.
    contexts: usize,
    /// Time, sender and size of each sent datagram.
    pub sent: Vec<(u64, usize, usize)>,
    /// Announcements of participants are read before all other datagrams, as those that
    /// come in the socket of the multicast group.
    pub group_first: bool,
    /// Every n-th datagram is lost; 0: none.
    pub lose_every: u64,
    /// The publishing context's socket, if its send buffer is bounded.
    pub socket: Option<Socket>,
    /// The shared memory between the two, if there is some.
    shared_memory: Option<SharedMemory>,
    /// How often a context checked its sockets, and how long a check takes,
    /// nanoseconds.
    pub checks: usize,
    pub check_nanos: u64,
    /// How often a thread slept in its sockets; `None`: it must not.
    pub sleeps: Option<usize>,
    count: u64,
}

impl Network {
    /// Advances time; what is to arrive until then is in the receive buffers.
    fn advance_to(&mut self, now: u64) {
        self.now = self.now.max(now);
        while let Some(flight) = self.in_flight.first_entry()
            && flight.key().0 <= self.now
        {
            let (from, to, bytes) = flight.remove();
            self.arrived[to].push((from, bytes));
        }
    }

    /// The next time at which a datagram arrives.
    fn next_arrival(&self) -> Option<u64> {
        self.in_flight.keys().next().map(|(at, _)| *at)
    }
}

/// A socket with a bounded send buffer on a network with a bounded rate.
pub struct Socket {
    /// Transmission time of a byte, nanoseconds.
    pub byte_nanos: u64,
    /// Size of the send buffer.
    pub bytes_max: u64,
    /// When the buffered bytes are sent.
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

    /// Accepts so many bytes and returns when they are sent; `None` if the buffer
    /// is full.
    fn take(&mut self, now: u64, bytes: u64) -> Option<u64> {
        let from = self.busy_until.max(now);
        if from - now >= self.bytes_max.saturating_mul(self.byte_nanos) {
            return None;
        }
        self.busy_until = from.saturating_add(bytes.saturating_mul(self.byte_nanos));
        Some(self.busy_until)
    }

    /// When half of the buffer is free.
    fn half_free_at(&self) -> u64 {
        let half = (self.bytes_max / 2).saturating_mul(self.byte_nanos);
        self.busy_until.saturating_sub(half)
    }
}

/// One connection by shared memory. Messages arrive at once.
#[derive(Default)]
struct SharedMemory {
    names: [GuidPrefix; 2],
    events: [Vec<ConnectionEvent>; 2],
    messages: [VecDeque<Vec<u8>>; 2],
    /// Sizes of the memory that the publishing context prefaulted.
    prefaulted: Vec<usize>,
}

impl SharedMemory {
    /// Whether one of the two has something to poll for.
    fn has_arrived(&self) -> bool {
        self.events.iter().any(|events| !events.is_empty())
            || self.messages.iter().any(|messages| !messages.is_empty())
    }
}

struct Place {
    network: Arc<Mutex<Network>>,
    index: usize,
}

impl Place {
    fn with_memory<R>(&self, change: impl FnOnce(&mut SharedMemory) -> R) -> R {
        let mut network = self.network.lock().unwrap();
        change(network.shared_memory.as_mut().unwrap())
    }
}

impl ShmTransport for Place {
    fn scope(&self) -> ShmScope {
        ShmScope {
            version: 1,
            host: 1,
            network: 1,
            user: 1,
            byte_order: Endian::NATIVE,
        }
    }

    fn connect(&self, _: GuidPrefix, _: Instant) -> Result<(), DisconnectReason> {
        self.with_memory(|memory| {
            for side in 0..2 {
                let (peer, connection) = (memory.names[1 - side].0, 1);
                memory.events[side].push(ConnectionEvent::Connected { peer, connection });
            }
        });
        Ok(())
    }

    fn disconnect(&self, _: GuidPrefix) {}

    fn is_due(&self) -> bool {
        self.with_memory(|memory| !memory.events[self.index].is_empty())
    }

    fn poll(&self, _: Instant, events: &mut dyn FnMut(ConnectionEvent)) -> Option<Instant> {
        let new = self.with_memory(|memory| std::mem::take(&mut memory.events[self.index]));
        new.into_iter().for_each(events);
        None
    }

    fn send(&self, _: u32, datagram: &Datagram<'_>) -> Result<(), SendRefusal> {
        self.with_memory(|memory| memory.messages[1 - self.index].push_back(datagram.to_vec()));
        Ok(())
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<ReceivedMessage> {
        let (message, peer) = self.with_memory(|memory| {
            let message = memory.messages[self.index].pop_front();
            (message, memory.names[1 - self.index].0)
        });
        *head = message?;
        Some(ReceivedMessage {
            connection: 1,
            peer,
            head_len: head.len(),
            tail_len: 0,
            body: None,
        })
    }

    fn chunk(&self, len: usize) -> Result<Chunk, PoolExhausted> {
        Ok(Chunk::Plain(vec![0; len]))
    }

    fn prefault(&self, len: usize) {
        if self.index == TALKER {
            self.with_memory(|memory| memory.prefaulted.push(len));
        }
    }

    fn arm_doorbell(&self) -> bool {
        true
    }

    fn disarm_doorbell(&self) {}

    fn counts(&self) -> ConnectionCounts {
        ConnectionCounts::default()
    }
}

fn address(index: usize) -> Locator {
    let port = unicast_port(0, u32::try_from(index).unwrap());
    Locator::udp_v4([127, 0, 0, 1], port)
}

impl Platform for Place {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.network.lock().unwrap().now)
    }

    fn wall_clock(&self) -> Timestamp {
        let now = self.network.lock().unwrap().now;
        Timestamp::from_nanos(1_790_000_000_000_000_000 + now.cast_signed())
    }

    fn guid_seed(&self) -> [u8; 10] {
        [u8::try_from(self.index).unwrap() + 1; 10]
    }

    fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError> {
        let place = || Place {
            network: self.network.clone(),
            index: self.index,
        };
        let mut network = self.network.lock().unwrap();
        let shm: Result<Arc<dyn ShmTransport>, String> = match &mut network.shared_memory {
            Some(memory) => {
                memory.names[self.index] = plan.prefix;
                Ok(Arc::new(place()))
            }
            None => Err("none here".into()),
        };
        drop(network);
        Ok(OpenedSockets {
            sockets: Box::new(place()),
            unicast: vec![address(self.index)],
            own_addresses: vec![OwnAddress {
                ip: [127, 0, 0, 1].into(),
                prefix_length: 8,
            }],
            multicast: Vec::new(),
            advice: Vec::new(),
            shm,
        })
    }

    fn drives_undriven(&self, _context: &Weak<dyn UndrivenContext>) -> bool {
        true
    }
}

impl DatagramSockets for Place {
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let mut network = self.network.lock().unwrap();
        let Some(target) = (0..network.contexts).find(|index| address(*index) == *to) else {
            return Ok(());
        };
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
            network.in_flight.insert(at, (self.index, target, bytes));
        }
        Ok(())
    }

    fn wait_writable(&self, span: Duration) -> bool {
        let mut network = self.network.lock().unwrap();
        let socket = network.socket.as_ref().filter(|_| self.index == TALKER);
        let half_free_at = socket.map_or(0, Socket::half_free_at);
        let until = network.now + span.as_nanos().unsigned_abs();
        network.now = network.now.max(half_free_at.min(until));
        half_free_at <= until
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let mut network = self.network.lock().unwrap();
        let group_first = network.group_first;
        let arrived = &mut network.arrived[self.index];
        if arrived.is_empty() {
            return None;
        }
        let spdp_writer = EntityId::SPDP_WRITER.to_bytes();
        let is_of_group =
            |(_, bytes): &(usize, Vec<u8>)| bytes.windows(4).any(|w| w == spdp_writer);
        let of_group = arrived.iter().position(is_of_group).filter(|_| group_first);
        let (from, bytes) = arrived.remove(of_group.unwrap_or(0));
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Some(ReceivedDatagram {
            len: bytes.len(),
            from: address(from),
        })
    }

    fn check_readable(&self) {
        let mut network = self.network.lock().unwrap();
        network.checks += 1;
        let now = network.now + network.check_nanos;
        network.advance_to(now);
    }

    fn sleep(&self, _: Instant, until: Instant) {
        let mut network = self.network.lock().unwrap();
        *network.sleeps.as_mut().expect("nobody sleeps here") += 1;
        let arrival = network.next_arrival();
        network.advance_to(until.as_nanos().min(arrival.unwrap_or(u64::MAX)));
    }

    fn wake(&self) {}

    fn shutdown_requested(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A publishing and a subscribing context that have discovered each other.
pub struct ContextPair {
    pub network: Arc<Mutex<Network>>,
    cores: Vec<Arc<Core>>,
    states: Vec<DriverState>,
}

pub const TALKER: usize = 0;
pub const LISTENER: usize = 1;
pub const BYSTANDER: usize = 2;

impl ContextPair {
    pub fn new(flow_controllers: Vec<FlowController>) -> Self {
        Self::on(Network::default(), flow_controllers, Duration::ZERO)
    }

    /// A pair whose threads busy-poll for at most `span` before they sleep.
    pub fn busy_polling(span: Duration) -> Self {
        Self::on(Network::default(), Vec::new(), span)
    }

    /// A pair that is connected by shared memory once endpoints match.
    pub fn of_one_host() -> Self {
        let network = Network {
            shared_memory: Some(SharedMemory::default()),
            ..Network::default()
        };
        Self::on(network, Vec::new(), Duration::ZERO)
    }

    /// A pair and a third context, which both have discovered.
    pub fn and_bystander() -> Self {
        let network = Network {
            contexts: 3,
            ..Network::default()
        };
        Self::on(network, Vec::new(), Duration::ZERO)
    }

    fn on(
        mut network: Network,
        flow_controllers: Vec<FlowController>,
        busy_poll: Duration,
    ) -> Self {
        network.contexts = network.contexts.max(2);
        let contexts = network.contexts;
        let network = Arc::new(Mutex::new(network));
        let open = |index| {
            let env = Place {
                network: network.clone(),
                index,
            };
            // Readers here hold many large samples that nobody takes.
            let limits = Limits {
                participant_memory_bytes: 256 << 20,
                ..Limits::default()
            };
            let options = CoreOptions {
                local_only: true,
                multicast: false,
                limits,
                flow_controllers: flow_controllers.clone(),
                busy_poll,
                ..CoreOptions::default()
            };
            Core::open(Arc::new(env), options).unwrap()
        };
        let mut world = Self {
            cores: (0..contexts).map(open).collect(),
            states: (0..contexts).map(|_| DriverState::default()).collect(),
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

    pub fn bystander(&self) -> &Core {
        &self.cores[BYSTANDER]
    }

    /// Puts a datagram into the listener's socket, with the talker's address.
    pub fn forge(&self, bytes: Vec<u8>) {
        self.network().arrived[LISTENER].push((TALKER, bytes));
    }

    /// Sizes of the memory that the talker prefaulted.
    pub fn prefaulted(&self) -> Vec<usize> {
        let network = self.network();
        network.shared_memory.as_ref().unwrap().prefaulted.clone()
    }

    /// Lets all datagrams arrive. They wait in the sockets for the next poll.
    pub fn fill_sockets(&self) {
        let mut network = self.network();
        while let Some(flight) = network.in_flight.first_entry() {
            let (from, to, bytes) = flight.remove();
            network.arrived[to].push((from, bytes));
        }
    }

    pub fn plain_writer(&self, topic: &str, qos: EndpointQos) -> Arc<WriterEndpoint> {
        self.talker().create_writer(spec(topic, qos)).unwrap()
    }

    pub fn writer(
        &self,
        topic: &str,
        qos: EndpointQos,
        publish_mode: AsyncPublishMode,
    ) -> Arc<WriterEndpoint> {
        let spec = spec(topic, qos);
        self.talker()
            .create_flow_controlled_writer(spec, &publish_mode)
            .unwrap()
    }

    pub fn reader(&self, topic: &str, qos: EndpointQos) -> Arc<ReaderEndpoint> {
        let spec = spec(topic, qos);
        self.listener()
            .create_reader(spec, DeliveryForm::Bytes, false)
            .unwrap()
    }

    pub fn publish(&self, writer: &WriterEndpoint, payload: Vec<u8>) {
        let source = self.talker().platform.wall_clock();
        let mut message = Payload(payload.into());
        self.talker().publish(writer, &mut message, source).unwrap();
    }

    /// First bytes of the samples that arrived.
    pub fn taken(&self, reader: &ReaderEndpoint) -> Vec<u8> {
        let items = std::iter::from_fn(|| self.listener().taking().take(reader));
        items
            .map(|item| match item.body {
                SampleBody::Serialized(bytes) => bytes[4],
                SampleBody::Shared(_) => panic!("bytes were asked for"),
            })
            .collect()
    }

    pub fn run_ms(&mut self, millis: u64) {
        let end = self.network().now + millis * 1_000_000;
        self.run_until(end, |_| false);
    }

    /// Stops the listening process for so long, while the other one goes on.
    pub fn stop_listener_ms(&mut self, millis: u64) {
        let end = self.network().now + millis * 1_000_000;
        loop {
            let (core, state) = (&self.cores[TALKER], &mut self.states[TALKER]);
            while core.driver().poll_now(state) > 0 || core.next_deadline() <= core.platform.now() {
            }
            let mut network = self.network.lock().unwrap();
            let next = core.next_deadline().as_nanos();
            let next = next.min(network.next_arrival().unwrap_or(u64::MAX));
            network.advance_to(next.min(end));
            if next > end {
                return;
            }
        }
    }

    /// Runs the listening process at one instant, as an executor does: callbacks take
    /// samples before the next datagram is read, and each takes `callback_ms`.
    pub fn spin_listener(
        &mut self,
        reader: &Arc<ReaderEndpoint>,
        queue: &ReadyQueue,
        callback_ms: u64,
    ) -> Vec<u8> {
        let mut taken = Vec::new();
        for _ in 0..100 {
            let (core, state) = (&self.cores[LISTENER], &mut self.states[LISTENER]);
            core.driver().poll(state, queue, core.platform.now());
            while queue.pop().is_some() {
                reader.slot.begin_take();
                taken.extend(self.taken(reader));
                let mut network = self.network.lock().unwrap();
                let now = network.now + callback_ms * 1_000_000;
                network.advance_to(now);
            }
        }
        taken
    }

    /// Advances time until `done` returns true, or to `end`.
    pub fn run_until(&mut self, end: u64, mut done: impl FnMut(&Self) -> bool) {
        loop {
            for (core, state) in self.cores.iter().zip(&mut self.states) {
                let mut turns = 0;
                let now = core.platform.now();
                while core.driver().poll_now(state) > 0 || core.next_deadline() <= now {
                    turns += 1;
                    assert!(turns < 10_000, "woken again and again at one instant");
                }
            }
            if done(self) {
                return;
            }
            let mut network = self.network.lock().unwrap();
            let arrival = network.next_arrival();
            let deadlines = self
                .cores
                .iter()
                .map(|core| core.next_deadline().as_nanos());
            let memory = network.shared_memory.as_ref();
            let has_arrived = memory.is_some_and(SharedMemory::has_arrived);
            let arrival = if has_arrived {
                Some(network.now)
            } else {
                arrival
            };
            let next = deadlines.chain(arrival).min().unwrap_or(end);
            if next > end {
                network.now = end;
                return;
            }
            network.advance_to(next);
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

/// The callback of a subscription, which a test runs itself.
pub struct Callback;

impl Task for Callback {
    fn run(&self) {}
}

/// Queues `slot` whenever it is ready.
pub fn queue_of(slot: &ReadySlot, task: &Arc<Callback>) -> Arc<ReadyQueue> {
    let queue = Arc::new(ReadyQueue::new(|| {}));
    let weak: Weak<Callback> = Arc::downgrade(task);
    slot.set_task(weak);
    slot.attach(Some(queue.clone()), || false);
    queue
}
