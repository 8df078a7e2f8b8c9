//! System platform: clocks, disk and UDP sockets of the host as a [`Platform`].
//!
//! Two sockets serve a participant: one unicast socket for discovery and data, and
//! one for the domain's multicast group (unicast/multicast). With IPv4 and IPv6 there are
//! two of each, with the same ports.
//! Their ports follow from the participant index (port mapping, RTPS 2.5 §9.6.1.1).

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use pteros_net::{
    Events, Poller, ShutdownSignal, Timer, UdpSocket, Waker, bound_udp_ports, monotonic_nanos,
    shutdown_request, shutdown_signal,
};
use pteros_rtps::locator::{IpAddress, Locator};
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_shm::{DiscoveryLog, DiscoveryLogOptions, ShmError};

use crate::error::OpenError;
use crate::interfaces::{
    InterfaceChange, InterfaceFollower, InterfaceSettings, OpenVersions, usable_interfaces,
};
use crate::platform::{
    DatagramSockets, OpenedSockets, Platform, ReceivedDatagram, SocketPlan, multicast_port,
    unicast_port,
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
        let mut usable = usable_interfaces(&plan.interfaces)?;
        let versions = OpenVersions::choose(plan.ip_versions, &usable, plan.local_only);
        versions.retain(&mut usable);
        let unicast = bind_unicast(plan, versions)?;
        let mut advice = Vec::new();
        let mut unicast_port = 0;
        for socket in &unicast {
            let grant = socket.request_buffers(plan.buffer_bytes.0, plan.buffer_bytes.1);
            advice.extend(grant.advice().filter(|_| unicast_port == 0));
            unicast_port = socket.local_port();
        }
        let settings = InterfaceSettings {
            domain_id: plan.domain_id,
            names: plan.interfaces.clone(),
            local_only: plan.local_only,
            multicast: plan.multicast,
            group_port: multicast_port(plan.domain_id),
            versions,
            unicast_port,
        };
        let interfaces = InterfaceFollower::open(settings, usable, &mut advice)?;
        let links = interfaces.links();
        let multicast = interfaces.group_locators();
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

/// Opens the unicast sockets: one for each version of IP, with the port of one participant
/// index.
fn bind_unicast(plan: &SocketPlan, versions: OpenVersions) -> Result<Vec<UdpSocket>, OpenError> {
    let bind = |port: u16| -> Result<Vec<UdpSocket>, (IpAddr, io::Error)> {
        let mut sockets: Vec<UdpSocket> = Vec::new();
        for is_v6 in versions.all() {
            let address = OpenVersions::own_address(is_v6, plan.local_only);
            let port = sockets.first().map_or(port, UdpSocket::local_port);
            sockets.push(UdpSocket::bind_unicast(address, port).map_err(|e| (address, e))?);
        }
        Ok(sockets)
    };
    let last = unicast_port(plan.domain_id, PARTICIPANT_INDEX_MAX);
    for index in 0..=PARTICIPANT_INDEX_MAX {
        let port = unicast_port(plan.domain_id, index);
        match bind(port) {
            Ok(sockets) => return Ok(sockets),
            Err((_, e)) if e.kind() == io::ErrorKind::AddrInUse => {}
            Err((address, source)) => {
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
    bind(0).map_err(|_| OpenError::NoFreePort {
        domain_id: plan.domain_id,
        first: unicast_port(plan.domain_id, 0),
        last,
    })
}

/// Tokens of the epoll set. The sockets come first: two for each version of IP.
const SOCKETS: std::ops::Range<u64> = 0..4;
const WAKER: u64 = 4;
const SHUTDOWN: u64 = 5;
const ALARM: u64 = 6;
const DISCOVERY_LOG: u64 = 7;
const INTERFACES: u64 = 8;
const SHARED_MEMORY: u64 = 9;
const DOORBELL: u64 = 10;

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

/// The sockets of one version of IP; that of the multicast groups is the
/// [`InterfaceFollower`]'s.
struct VersionSockets {
    is_v6: bool,
    unicast: UdpSocket,
    /// The kernel knows segmented sending.
    segments: bool,
    /// Which sockets the last wait found readable, or may have left unread.
    unicast_readable: AtomicBool,
    multicast_readable: AtomicBool,
    /// The multicast socket is read first, once, so that endless unicast traffic does not
    /// starve it.
    multicast_first: AtomicBool,
}

struct UdpSockets {
    /// Of one or two versions of IP.
    versions: Vec<VersionSockets>,
    /// The version that is read first, so that endless traffic of one does not starve the
    /// other.
    read_first: AtomicUsize,
    /// The version whose send buffer was full last.
    full: AtomicUsize,
    interfaces: InterfaceFollower,
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
        unicast: Vec<UdpSocket>,
        interfaces: InterfaceFollower,
        signal: Option<&'static ShutdownSignal>,
    ) -> Result<Self, OpenError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| OpenError::Socket { what, source }
        };
        let poller = Poller::new().map_err(failed("epoll set"))?;
        let waker = Waker::new().map_err(failed("eventfd"))?;
        let mut versions = Vec::new();
        for (socket, token) in unicast.into_iter().zip(SOCKETS.step_by(2)) {
            let is_v6 = socket.local_address().is_ipv6();
            let group = interfaces.group(is_v6);
            for (socket, token) in std::iter::once(&socket).chain(group).zip(token..) {
                socket.set_multicast(1, true).map_err(failed("socket"))?;
                poller.add(socket, token).map_err(failed("epoll set"))?;
            }
            versions.push(VersionSockets {
                is_v6,
                segments: socket.supports_segmentation(),
                unicast: socket,
                unicast_readable: AtomicBool::new(true),
                multicast_readable: AtomicBool::new(true),
                multicast_first: AtomicBool::new(false),
            });
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
            versions,
            read_first: AtomicUsize::new(0),
            full: AtomicUsize::new(0),
            interfaces,
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
                    token if SOCKETS.contains(&token) => self.note_readable(token),
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

    /// Notes the socket of a token as readable.
    fn note_readable(&self, token: u64) {
        let Some(version) = self.versions.get(usize::from(token >= 2)) else {
            return;
        };
        if token.is_multiple_of(2) {
            version.unicast_readable.store(true, Ordering::Relaxed);
        } else {
            version.multicast_readable.store(true, Ordering::Relaxed);
            version.multicast_first.store(true, Ordering::Relaxed);
        }
    }

    /// Takes one datagram of a version of IP.
    fn receive_version(
        &self,
        version: &VersionSockets,
        buffer: &mut [u8],
    ) -> Option<ReceivedDatagram> {
        let from_group = |buffer: &mut [u8]| {
            let group = self.interfaces.group(version.is_v6)?;
            Self::receive_from(group, &version.multicast_readable, buffer)
        };
        if version.multicast_first.load(Ordering::Relaxed) {
            version.multicast_first.store(false, Ordering::Relaxed);
            if let Some(received) = from_group(buffer) {
                return Some(received);
            }
        }
        Self::receive_from(&version.unicast, &version.unicast_readable, buffer)
            .or_else(|| from_group(buffer))
    }

    /// Sends by the socket of the locator's version of IP.
    fn send_by(
        &self,
        to: &Locator,
        send: impl FnOnce(&VersionSockets, SocketAddr) -> io::Result<()>,
    ) -> io::Result<()> {
        let address = address_of(to)?;
        let is_it = |v: &VersionSockets| v.is_v6 == address.is_ipv6();
        let Some(index) = self.versions.iter().position(is_it) else {
            return Err(not_sendable(to));
        };
        let sent = send(&self.versions[index], address);
        if sent
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::WouldBlock)
        {
            // Relaxed: another thread may note its own, and wait for that in vain once.
            self.full.store(index, Ordering::Relaxed);
        }
        sent
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
                from: locator_of(received.from),
            }),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
            Err(_) => {
                readable.store(false, Ordering::Relaxed);
                None
            }
        }
    }
}

fn locator_of(address: SocketAddr) -> Locator {
    let zone = match address {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(v6) => v6.scope_id(),
    };
    Locator::udp(IpAddress::new(address.ip(), zone), address.port())
}

fn address_of(locator: &Locator) -> io::Result<SocketAddr> {
    let (ip, port) = locator.to_udp().ok_or_else(|| not_sendable(locator))?;
    Ok(match ip.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.into(), port),
        IpAddr::V6(v6) => SocketAddrV6::new(v6, port, 0, ip.zone()).into(),
    })
}

fn not_sendable(locator: &Locator) -> io::Error {
    io::Error::new(
        io::ErrorKind::AddrNotAvailable,
        format!("{locator} is not an address of a version of IP that is in use"),
    )
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
        self.send_by(to, |version, address| {
            let sent = version.unicast.send_with_dscp(parts, address, code_point);
            sent.map(drop)
        })
    }

    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        self.send_by(to, |version, address| {
            if !to.is_multicast() {
                return version.unicast.send(parts, address).map(drop);
            }
            let mut outcome = Ok(());
            self.interfaces
                .for_each_multicast(version.is_v6, |interface| {
                    if let Err(e) = version.unicast.send_via(parts, address, interface) {
                        outcome = Err(e);
                    }
                });
            outcome
        })
    }

    fn send_segmented(
        &self,
        parts: &[IoSlice<'_>],
        segment_bytes: u16,
        to: &Locator,
    ) -> io::Result<()> {
        self.send_by(to, |version, address| {
            if !version.segments {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let sent = version
                .unicast
                .send_segmented(parts, segment_bytes, address);
            sent.map(drop)
        })
    }

    fn wait_writable(&self, span: Duration) -> bool {
        let full = self.versions.get(self.full.load(Ordering::Relaxed));
        full.is_none_or(|version| version.unicast.wait_writable(span.to_std()))
    }

    fn bound_ports(&self, ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        let own = self.versions.first()?.unicast.local_port();
        let bound = bound_udp_ports(own.min(*ports.start())..=own.max(*ports.end()));
        // A list without our own port is not trusted.
        bound.ok().filter(|bound| bound.contains(&own))
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram> {
        let first = match self.versions.len() {
            1 => 0,
            // Relaxed: only the thread that drives reads.
            _ => self.read_first.fetch_xor(1, Ordering::Relaxed),
        };
        let (later, earlier) = self.versions.split_at(first.min(self.versions.len()));
        let mut versions = earlier.iter().chain(later);
        versions.find_map(|version| self.receive_version(version, buffer))
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
