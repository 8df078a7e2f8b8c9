//! System platform: clocks, disk and UDP sockets of the host as a [`Platform`].
//!
//! Two sockets serve a participant: one unicast socket for discovery and data, and
//! one for the domain's multicast group (unicast/multicast).
//! Their ports follow from the participant index (port mapping, RTPS 2.5 §9.6.1.1).

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pteros_net::{
    Events, Poller, ShutdownSignal, Timer, UdpSocket, Waker, bound_udp_ports, monotonic_nanos,
    shutdown_request, shutdown_signal,
};
use pteros_rtps::locator::Locator;
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_shm::{DiscoveryLog, DiscoveryLogOptions, ShmError};

use crate::error::OpenError;
use crate::interfaces::{InterfaceChange, InterfaceFollower, InterfaceSettings, usable_interfaces};
use crate::platform::{
    DISCOVERY_GROUP, DatagramSockets, OpenedSockets, Platform, ReceivedDatagram, SocketPlan,
    multicast_port, unicast_port,
};
use crate::shared_memory::SystemShmTransport;
use crate::shm_transport::ShmTransport;
use crate::store::{OnLoss, Store, StoreError, StoreSpec, StoredSample};
use crate::thread_buffer::with_buffer;

/// Highest participant index that is tried, as in other stacks (participant index / port
/// mapping). In domain 232 only the first 63 have ports. Further participants use any
/// port.
const PARTICIPANT_INDEX_MAX: u32 = 119;

/// Number of reads of both clocks, of which the quickest counts; 0.1 µs each.
const CLOCK_READS: usize = 4;

/// The clocks and sockets of this machine.
#[derive(Debug)]
pub struct SystemPlatform {
    start: std::time::Instant,
    /// The host's monotonic clock then.
    origin: u64,
    signals: SignalHandling,
}

/// Effect of SIGINT and SIGTERM on the contexts of a [`SystemPlatform`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SignalHandling {
    /// They shut the contexts down: the first context installs the process's handlers.
    #[default]
    Install,
    /// A context installs no handlers. It follows those that the program installs
    /// ([`pteros_net::handle_shutdown_signals`]).
    Follow,
    /// Contexts neither install nor follow handlers. The host of a library decides.
    Ignore,
}

impl SignalHandling {
    /// The signal that contexts follow. `None` if none, or if the process has no free
    /// descriptor.
    fn signal(self) -> Option<&'static ShutdownSignal> {
        match self {
            Self::Install => shutdown_signal().ok(),
            Self::Follow => shutdown_request().ok(),
            Self::Ignore => None,
        }
    }
}

impl Default for SystemPlatform {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemPlatform {
    /// The host's clocks. SIGINT and SIGTERM end its contexts.
    pub fn new() -> Self {
        Self::with_signals(SignalHandling::default())
    }

    /// The same with another effect of SIGINT and SIGTERM.
    #[allow(
        clippy::disallowed_methods,
        reason = "the platform is the only place that reads the clock"
    )]
    pub fn with_signals(signals: SignalHandling) -> Self {
        let look = || {
            let start = std::time::Instant::now();
            let origin = monotonic_nanos();
            (start.elapsed(), start, origin)
        };
        // Both clocks are read as close together as possible: a preemption between the
        // two reads would permanently shift this context's times.
        let looks = std::iter::repeat_with(look).take(CLOCK_READS);
        let nearest = looks.min_by_key(|(took, ..)| *took);
        let (_, start, origin) = nearest.unwrap_or_else(look);
        Self {
            start,
            origin,
            signals,
        }
    }
}

impl SystemPlatform {
    #[allow(
        clippy::disallowed_methods,
        reason = "the platform is the only source of randomness"
    )]
    fn open_shm(
        &self,
        plan: &SocketPlan,
        sockets: &mut UdpSockets,
    ) -> Result<Arc<dyn ShmTransport>, String> {
        let seed = fastrand::Rng::new().u64(..);
        let shm = SystemShmTransport::open(plan, seed)?;
        sockets.watch_shm(&shm).map_err(|e| e.to_string())?;
        Ok(shm)
    }
}

/// Runs `work` on a thread of the operating system.
#[allow(
    clippy::disallowed_methods,
    reason = "the platform is the only place that starts threads"
)]
pub(crate) fn spawn(name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    spawned.map(drop)
}

impl Platform for SystemPlatform {
    #[allow(
        clippy::disallowed_methods,
        reason = "the platform is the only place that reads the clock"
    )]
    fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn clock_origin(&self) -> u64 {
        self.origin
    }

    fn scarce_descriptors(&self) -> Option<pteros_net::Descriptors> {
        pteros_net::scarce_descriptors()
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the platform is the only place that reads the clock"
    )]
    fn wall_clock(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the platform is the only source of randomness"
    )]
    fn guid_seed(&self) -> [u8; 10] {
        let mut random = fastrand::Rng::new();
        let mut bytes = [0; 10];
        random.fill(&mut bytes[4..]);
        bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
        // Two contexts of one process started in the same instant differ in the
        // random part; two processes in the id as well.
        let wall = self.wall_clock().as_nanos() as u64;
        for (byte, stir) in bytes[4..].iter_mut().zip(wall.to_le_bytes()) {
            *byte ^= stir;
        }
        bytes
    }

    fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError> {
        let usable = usable_interfaces(&plan.interfaces)?;
        let unicast = bind_unicast(plan)?;
        let mut advice = Vec::new();
        let grant = unicast.request_buffers(plan.buffer_bytes.0, plan.buffer_bytes.1);
        advice.extend(grant.advice());
        let settings = InterfaceSettings {
            domain_id: plan.domain_id,
            names: plan.interfaces.clone(),
            local_only: plan.local_only,
            multicast: plan.multicast,
            group: SocketAddrV4::new(DISCOVERY_GROUP, multicast_port(plan.domain_id)),
            unicast_port: unicast.local_port(),
        };
        let interfaces = InterfaceFollower::open(settings, usable, &mut advice)?;
        let links = interfaces.links();
        let multicast = interfaces.group_locator();
        let mut sockets = UdpSockets::new(unicast, interfaces, self.signals.signal())?;
        let shm = self.open_shm(plan, &mut sockets);
        if plan.shared_memory.enabled && plan.peer_authenticator.is_none() {
            match sockets.open_discovery_log(plan) {
                Ok(()) => {}
                Err(error) => advice.push(format!(
                    "processes of this host are discovered over the network only: {error}"
                )),
            }
        }
        Ok(OpenedSockets {
            sockets: Box::new(sockets),
            unicast: links.unicast,
            own_addresses: links.addresses,
            multicast,
            advice,
            shm,
        })
    }

    fn open_store(
        &self,
        spec: StoreSpec,
        on_loss: OnLoss,
    ) -> Result<(Store, Vec<StoredSample>), StoreError> {
        Store::open(spec, self.wall_clock().as_nanos(), on_loss)
    }
}

fn bind_unicast(plan: &SocketPlan) -> Result<UdpSocket, OpenError> {
    let address = if plan.local_only {
        Ipv4Addr::LOCALHOST
    } else {
        Ipv4Addr::UNSPECIFIED
    };
    let last = unicast_port(plan.domain_id, PARTICIPANT_INDEX_MAX);
    for index in 0..=PARTICIPANT_INDEX_MAX {
        let port = unicast_port(plan.domain_id, index);
        match UdpSocket::bind_unicast(address, port) {
            Ok(socket) => return Ok(socket),
            Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
            Err(source) => {
                return Err(OpenError::Socket {
                    what: format!("UDP port {port} on {address}"),
                    source,
                });
            }
        }
        if port == u16::MAX {
            break;
        }
    }
    // Any port: same-host peers learn it from the discovery log, others from
    // announcements.
    UdpSocket::bind_unicast(address, 0).map_err(|_| OpenError::NoFreePort {
        domain_id: plan.domain_id,
        first: unicast_port(plan.domain_id, 0),
        last,
    })
}

const UNICAST: u64 = 0;
const MULTICAST: u64 = 1;
const WAKER: u64 = 2;
const SHUTDOWN: u64 = 3;
const ALARM: u64 = 4;
const DISCOVERY_LOG: u64 = 7;
const INTERFACES: u64 = 8;
const SHARED_MEMORY: u64 = 5;
const DOORBELL: u64 = 6;

thread_local! {
    /// Receives the events of a waiting thread.
    static EVENTS: RefCell<Events> = RefCell::new(new_events());
}

fn new_events() -> Events {
    Events::with_capacity(8)
}

/// Wake timer: ends a sleep in time, without cost for sleeps that end earlier.
///
/// A timeout of the sleep itself would be set and cleared with every sleep. Under a
/// hypervisor that owns the timers, that is slower than a message. This timer remains
/// set. If it fires for a timeout that was moved since, the sleep ends early, once, and
/// the next sleep sets the timer again.
struct WakeTimer {
    timer: Timer,
    /// When it fires, nanoseconds; `u64::MAX`: not set.
    fires_at: AtomicU64,
}

impl WakeTimer {
    fn new() -> io::Result<Self> {
        Ok(Self {
            timer: Timer::new()?,
            fires_at: AtomicU64::new(u64::MAX),
        })
    }

    /// Makes it fire at `at` at the latest.
    fn arm(&self, at: Instant, now: Instant) {
        // Relaxed: only the thread that drives sleeps.
        if at.as_nanos() < self.fires_at.load(Ordering::Relaxed)
            && let Some(span) = at.since(now).to_std()
        {
            self.fires_at.store(at.as_nanos(), Ordering::Relaxed);
            self.timer.arm(span);
        }
    }

    fn note_fired(&self) {
        self.timer.drain();
        self.fires_at.store(u64::MAX, Ordering::Relaxed);
    }
}

struct UdpSockets {
    unicast: UdpSocket,
    /// The kernel knows segmented sending.
    segments: bool,
    interfaces: InterfaceFollower,
    /// Which sockets the last wait found readable, or may have left unread.
    unicast_readable: AtomicBool,
    multicast_readable: AtomicBool,
    /// The multicast socket is read first, once, so that endless unicast traffic does not
    /// starve it.
    multicast_first: AtomicBool,
    poller: Poller,
    waker: Waker,
    wake_timer: WakeTimer,
    discovery_log: Option<DiscoveryLog>,
    discovery_log_changed: AtomicBool,
    /// Notified when one of its descriptors is ready.
    shm: Option<Arc<SystemShmTransport>>,
    /// Ends all contexts that follow it.
    signal: Option<&'static ShutdownSignal>,
    /// A shutdown signal arrived; its descriptor, readable for good, was removed
    /// from the set.
    shut_down: AtomicBool,
}

impl UdpSockets {
    fn new(
        unicast: UdpSocket,
        interfaces: InterfaceFollower,
        signal: Option<&'static ShutdownSignal>,
    ) -> Result<Self, OpenError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| OpenError::Socket { what, source }
        };
        if let Some(group) = interfaces.group() {
            group
                .set_multicast(1, true)
                .map_err(failed("discovery group"))?;
        }
        unicast
            .set_multicast(1, true)
            .map_err(failed("unicast socket"))?;
        let poller = Poller::new().map_err(failed("epoll set"))?;
        let waker = Waker::new().map_err(failed("eventfd"))?;
        poller.add(&unicast, UNICAST).map_err(failed("epoll set"))?;
        if let Some(group) = interfaces.group() {
            poller.add(group, MULTICAST).map_err(failed("epoll set"))?;
        }
        if let Some(watch) = interfaces.watch() {
            poller.add(watch, INTERFACES).map_err(failed("epoll set"))?;
        }
        poller.add(&waker, WAKER).map_err(failed("epoll set"))?;
        let wake_timer = WakeTimer::new().map_err(failed("timer"))?;
        poller
            .add(&wake_timer.timer, ALARM)
            .map_err(failed("epoll set"))?;
        if let Some(signal) = signal {
            poller.add(signal, SHUTDOWN).map_err(failed("epoll set"))?;
        }
        Ok(Self {
            segments: unicast.supports_segmentation(),
            unicast,
            interfaces,
            unicast_readable: AtomicBool::new(true),
            multicast_readable: AtomicBool::new(true),
            multicast_first: AtomicBool::new(false),
            poller,
            waker,
            wake_timer,
            discovery_log: None,
            discovery_log_changed: AtomicBool::new(false),
            shm: None,
            signal,
            shut_down: AtomicBool::new(false),
        })
    }

    fn open_discovery_log(&mut self, plan: &SocketPlan) -> Result<(), ShmError> {
        let options = DiscoveryLogOptions::default();
        let discovery_log = DiscoveryLog::open(plan.discovery_group, plan.prefix.0, options)?;
        let added = self.poller.add(discovery_log.descriptor(), DISCOVERY_LOG);
        added.map_err(ShmError::Open)?;
        self.discovery_log = Some(discovery_log);
        Ok(())
    }

    /// Adds the descriptors of shared memory to the epoll set.
    fn watch_shm(&mut self, shm: &Arc<SystemShmTransport>) -> io::Result<()> {
        self.poller.add(shm.descriptor(), SHARED_MEMORY)?;
        self.poller.add_edge(shm.doorbell(), DOORBELL)?;
        self.shm = Some(shm.clone());
        Ok(())
    }

    /// Removes the signal from the set. It stays readable, and a later sleep (of
    /// the background I/O thread, or during an orderly end) would return at once.
    fn note_shutdown(&self) {
        if !self.shut_down.swap(true, Ordering::Relaxed)
            && let Some(signal) = self.signal
        {
            let _ = self.poller.remove(signal);
        }
    }

    /// Checks which sockets are readable; waits at most `timeout` for that.
    fn poll(&self, timeout: Option<std::time::Duration>) {
        with_buffer(&EVENTS, new_events, |events| {
            // An error here, such as an interrupted call, counts as an early
            // wake-up.
            let _ = self.poller.wait(events, timeout);
            for event in events.iter() {
                match event.token {
                    UNICAST => self.unicast_readable.store(true, Ordering::Relaxed),
                    MULTICAST => {
                        self.multicast_readable.store(true, Ordering::Relaxed);
                        self.multicast_first.store(true, Ordering::Relaxed);
                    }
                    WAKER => {
                        self.waker.drain();
                    }
                    ALARM => self.wake_timer.note_fired(),
                    DISCOVERY_LOG => self.discovery_log_changed.store(true, Ordering::Relaxed),
                    SHARED_MEMORY => self.shm.iter().for_each(|shm| shm.note_readable()),
                    INTERFACES => self.interfaces.note_changed(),
                    DOORBELL => self.shm.iter().for_each(|shm| shm.note_doorbell()),
                    _ => self.note_shutdown(),
                }
            }
        });
    }

    fn receive_from(
        socket: &UdpSocket,
        readable: &AtomicBool,
        buffer: &mut [u8],
    ) -> Option<ReceivedDatagram> {
        // Relaxed: only the thread that drives reads and clears the flags.
        if !readable.load(Ordering::Relaxed) {
            return None;
        }
        match socket.receive(buffer) {
            Ok(received) => Some(ReceivedDatagram {
                len: received.len,
                from: Locator::udp_v4(received.from.ip().octets(), received.from.port()),
            }),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => {
                readable.store(false, Ordering::Relaxed);
                None
            }
        }
    }
}

fn address_of(locator: &Locator) -> io::Result<SocketAddrV4> {
    let Some((ip, port)) = locator.to_udp_v4() else {
        return Err(io::Error::new(
            io::ErrorKind::AddrNotAvailable,
            format!("{locator} is not a UDPv4 address"),
        ));
    };
    Ok(SocketAddrV4::new(Ipv4Addr::from(ip), port))
}

impl DatagramSockets for UdpSockets {
    fn send_with_dscp(
        &self,
        parts: &[IoSlice<'_>],
        to: &Locator,
        code_point: u8,
    ) -> io::Result<()> {
        if to.is_multicast() {
            return self.send(parts, to);
        }
        let address = address_of(to)?;
        let sent = self.unicast.send_with_dscp(parts, address, code_point);
        sent.map(drop)
    }

    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let address = address_of(to)?;
        if !to.is_multicast() {
            return self.unicast.send(parts, address).map(drop);
        }
        let mut outcome = Ok(());
        self.interfaces.for_each_multicast(|interface| {
            if let Err(e) = self.unicast.send_via(parts, address, interface) {
                outcome = Err(e);
            }
        });
        outcome
    }

    fn send_segmented(
        &self,
        parts: &[IoSlice<'_>],
        segment_bytes: u16,
        to: &Locator,
    ) -> io::Result<()> {
        if !self.segments {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let sent = self
            .unicast
            .send_segmented(parts, segment_bytes, address_of(to)?);
        sent.map(drop)
    }

    fn wait_writable(&self, span: Duration) -> bool {
        self.unicast.wait_writable(span.to_std())
    }

    fn bound_ports(&self, ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        let own = self.unicast.local_port();
        let bound = bound_udp_ports(own.min(*ports.start())..=own.max(*ports.end()));
        // A list without our own port is not trusted.
        bound.ok().filter(|bound| bound.contains(&own))
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let from_group = |buffer: &mut [u8]| {
            let group = self.interfaces.group()?;
            Self::receive_from(group, &self.multicast_readable, buffer)
        };
        if self.multicast_first.load(Ordering::Relaxed) {
            self.multicast_first.store(false, Ordering::Relaxed);
            if let Some(received) = from_group(buffer) {
                return Some(received);
            }
        }
        Self::receive_from(&self.unicast, &self.unicast_readable, buffer)
            .or_else(|| from_group(buffer))
    }

    fn check_readable(&self) {
        self.poll(Some(std::time::Duration::ZERO));
    }

    fn sleep(&self, now: Instant, until: Instant) {
        if until != Instant::FAR_FUTURE {
            self.wake_timer.arm(until, now);
        }
        self.poll(None);
    }

    fn wake(&self) {
        self.waker.wake();
    }

    fn shutdown_requested(&self) -> bool {
        // Relaxed: a flag that is only ever set.
        self.shut_down.load(Ordering::Relaxed)
            || self.signal.is_some_and(ShutdownSignal::is_requested)
    }

    fn discovery_log(&self) -> Option<&DiscoveryLog> {
        self.discovery_log.as_ref()
    }

    fn discovery_log_changed(&self) -> bool {
        self.discovery_log_changed.swap(false, Ordering::Relaxed)
    }

    fn interfaces_changed(&self) -> bool {
        self.interfaces.take_changed()
    }

    fn follow_interfaces(&self) -> Option<InterfaceChange> {
        self.interfaces.follow()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }
}
