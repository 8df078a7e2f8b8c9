//! The real world: the machine's clocks, disk and UDP sockets as an [`Env`].
//!
//! Two sockets serve a participant: one unicast socket for discovery and data
//! alike, and one that listens to the domain's discovery group.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pteros_net::{
    Events, Interface, Poller, Timer, UdpSocket, Waker, bound_udp_ports, interfaces,
    monotonic_nanos, shutdown_signal,
};
use pteros_rtps::locator::{Locator, OwnAddress};
use pteros_rtps::time::{Duration, Instant, Timestamp};
use pteros_shm::{Board, BoardOptions, ShmError};

use crate::env::{
    Env, GROUP, Opened, Received, SocketPlan, Transport, multicast_port, unicast_port,
};
use crate::error::OpenError;
use crate::links::Links;
use crate::shared_memory::SharedMemory;
use crate::store::{OnLoss, Store, StoreError, StoreSpec, StoredSample};

/// Highest participant index tried, as in other stacks; of domain 232 only the
/// first 63 have ports. More participants take any port.
const PARTICIPANT_INDEX_MAX: u32 = 119;

/// Looks at both clocks, of which the quickest counts; 0.1 µs each.
const LOOKS_AT_CLOCKS: usize = 4;

/// The clocks and sockets of this machine.
#[derive(Debug)]
pub struct SystemEnv {
    start: std::time::Instant,
    /// The host's monotonic clock then.
    origin: u64,
}

impl Default for SystemEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl SystemEnv {
    /// The machine's own clocks.
    #[allow(
        clippy::disallowed_methods,
        reason = "the door through which the clock enters"
    )]
    pub fn new() -> Self {
        let look = || {
            let start = std::time::Instant::now();
            let origin = monotonic_nanos();
            (start.elapsed(), start, origin)
        };
        // Of both clocks at once, as near as can be had: whoever is put aside between
        // them would be late by that for good.
        let looks = std::iter::repeat_with(look).take(LOOKS_AT_CLOCKS);
        let nearest = looks.min_by_key(|(took, ..)| *took);
        let (_, start, origin) = nearest.unwrap_or_else(look);
        Self { start, origin }
    }
}

impl SystemEnv {
    #[allow(
        clippy::disallowed_methods,
        reason = "the door through which chance enters"
    )]
    fn open_links(
        &self,
        plan: &SocketPlan,
        transport: &mut UdpTransport,
    ) -> Result<Arc<dyn Links>, String> {
        let seed = fastrand::Rng::new().u64(..);
        let links = SharedMemory::open(plan, seed)?;
        transport.watch(&links).map_err(|e| e.to_string())?;
        Ok(links)
    }
}

/// Runs `work` on a thread of the operating system.
#[allow(
    clippy::disallowed_methods,
    reason = "the door through which threads enter"
)]
pub(crate) fn spawn(name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
    let spawned = std::thread::Builder::new().name(name.into()).spawn(work);
    spawned.map(drop)
}

impl Env for SystemEnv {
    #[allow(
        clippy::disallowed_methods,
        reason = "the door through which the clock enters"
    )]
    fn now(&self) -> Instant {
        let nanos = self.start.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn clock_origin(&self) -> u64 {
        self.origin
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the door through which the clock enters"
    )]
    fn wall(&self) -> Timestamp {
        let since = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "the door through which chance enters"
    )]
    fn unique(&self) -> [u8; 10] {
        let mut random = fastrand::Rng::new();
        let mut bytes = [0; 10];
        random.fill(&mut bytes[4..]);
        bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
        // Two contexts of one process started in the same instant differ by
        // the random part; two processes by the id as well.
        let wall = self.wall().as_nanos() as u64;
        for (byte, stir) in bytes[4..].iter_mut().zip(wall.to_le_bytes()) {
            *byte ^= stir;
        }
        bytes
    }

    fn open(&self, plan: &SocketPlan) -> Result<Opened, OpenError> {
        let usable = usable_interfaces(plan)?;
        let (unicast, participant_index) = bind_unicast(plan)?;
        let port = unicast.local_port();
        let mut advice = Vec::new();
        let grant = unicast.request_buffers(plan.buffer_bytes.0, plan.buffer_bytes.1);
        advice.extend(grant.advice());
        let multicast = match plan.multicast && !plan.local_only {
            true => open_group(plan, &usable, &mut advice)?,
            false => None,
        };
        let own = own_addresses(&usable);
        let unicast_locators = announced(plan, &own, port);
        let mut transport = UdpTransport::new(unicast, multicast)?;
        let links = self.open_links(plan, &mut transport);
        if plan.shared_memory.on && plan.warrant.is_none() {
            match transport.open_board(plan) {
                Ok(()) => {}
                Err(error) => advice.push(format!(
                    "processes of this host are met over the network only: {error}"
                )),
            }
        }
        let group = transport
            .multicast
            .is_some()
            .then(|| Locator::udp_v4(GROUP.octets(), multicast_port(plan.domain_id)));
        Ok(Opened {
            transport: Box::new(transport),
            participant_index,
            unicast: unicast_locators,
            own,
            multicast: group,
            advice,
            links,
        })
    }

    fn open_store(
        &self,
        spec: StoreSpec,
        on_loss: OnLoss,
    ) -> Result<(Store, Vec<StoredSample>), StoreError> {
        Store::open(spec, self.wall().as_nanos(), on_loss)
    }
}

fn usable_interfaces(plan: &SocketPlan) -> Result<Vec<Interface>, OpenError> {
    let up: Vec<Interface> = interfaces()
        .map_err(OpenError::Interfaces)?
        .into_iter()
        .filter(|i| i.up)
        .collect();
    for name in &plan.interfaces {
        if !up.iter().any(|i| is_named(i, name)) {
            let mut names: Vec<&str> = up.iter().map(|i| i.name.as_str()).collect();
            names.dedup();
            return Err(OpenError::NoSuchInterface {
                name: name.clone(),
                usable: names.join(", "),
            });
        }
    }
    if up.is_empty() {
        return Err(OpenError::NoInterface);
    }
    Ok(up
        .into_iter()
        .filter(|i| {
            plan.interfaces.is_empty()
                || i.loopback
                || plan.interfaces.iter().any(|n| is_named(i, n))
        })
        .collect())
}

fn bind_unicast(plan: &SocketPlan) -> Result<(UdpSocket, u32), OpenError> {
    let address = match plan.local_only {
        true => Ipv4Addr::LOCALHOST,
        false => Ipv4Addr::UNSPECIFIED,
    };
    let last = unicast_port(plan.domain_id, PARTICIPANT_INDEX_MAX);
    for index in 0..=PARTICIPANT_INDEX_MAX {
        let port = unicast_port(plan.domain_id, index);
        match UdpSocket::bind_unicast(address, port) {
            Ok(socket) => return Ok((socket, index)),
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
    // Any port: neighbours are told it on our board, others by announcement.
    UdpSocket::bind_unicast(address, 0)
        .map(|socket| (socket, PARTICIPANT_INDEX_MAX + 1))
        .map_err(|_| OpenError::NoFreePort {
            domain_id: plan.domain_id,
            first: unicast_port(plan.domain_id, 0),
            last,
        })
}

/// The listening socket of the group with the interfaces that joined it. An
/// interface that cannot join is reported, the others still serve.
fn open_group(
    plan: &SocketPlan,
    usable: &[Interface],
    advice: &mut Vec<String>,
) -> Result<Option<(UdpSocket, Vec<u32>)>, OpenError> {
    let capable: Vec<&Interface> = usable.iter().filter(|i| i.multicast).collect();
    if capable.is_empty() {
        return Ok(None);
    }
    let port = multicast_port(plan.domain_id);
    let socket = UdpSocket::bind_multicast(GROUP, port).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => OpenError::DiscoveryPortTaken {
            domain_id: plan.domain_id,
            port,
        },
        _ => OpenError::Socket {
            what: format!("discovery group {GROUP}:{port}"),
            source,
        },
    })?;
    let mut joined: Vec<u32> = Vec::new();
    for interface in capable {
        if joined.contains(&interface.index) {
            continue;
        }
        match socket.join(GROUP, interface) {
            Ok(()) => joined.push(interface.index),
            Err(e) => advice.push(format!(
                "interface {}: cannot join the discovery group {GROUP} ({e}); peers behind it are found only through ROS_STATIC_PEERS",
                interface.name
            )),
        }
    }
    Ok((!joined.is_empty()).then_some((socket, joined)))
}

fn own_addresses(usable: &[Interface]) -> Vec<OwnAddress> {
    usable
        .iter()
        .map(|i| OwnAddress {
            ip: i.address.octets(),
            prefix_length: i.prefix_length,
        })
        .collect()
}

/// What peers are told: every address but loopback, or loopback alone when
/// there is nothing else or nothing else is wanted.
fn announced(plan: &SocketPlan, own: &[OwnAddress], port: u16) -> Vec<Locator> {
    let outside: Vec<Locator> = own
        .iter()
        .filter(|o| o.ip[0] != 127)
        .map(|o| Locator::udp_v4(o.ip, port))
        .collect();
    if plan.local_only || outside.is_empty() {
        return vec![Locator::udp_v4([127, 0, 0, 1], port)];
    }
    outside
}

const UNICAST: u64 = 0;
const MULTICAST: u64 = 1;
const WAKER: u64 = 2;
const SHUTDOWN: u64 = 3;
const ALARM: u64 = 4;
const BOARD: u64 = 7;
const LINKS: u64 = 5;
const DOORBELL: u64 = 6;

thread_local! {
    /// Where a waiting thread is told what woke it.
    static EVENTS: RefCell<Events> = RefCell::new(Events::with_capacity(8));
}

/// Ends a wait in time, at no cost for waits that end before.
///
/// A time limit given to the wait itself is set and taken back with every
/// wait; where timers belong to a hypervisor, that is slower than a message.
/// This one stays set: when it rings for a deadline that has moved since, the
/// wait ends early, once, and the next one sets it anew.
struct Alarm {
    timer: Timer,
    /// When it will ring, nanoseconds; `u64::MAX`: not set.
    rings_at: AtomicU64,
}

impl Alarm {
    fn new() -> io::Result<Self> {
        Ok(Self {
            timer: Timer::new()?,
            rings_at: AtomicU64::new(u64::MAX),
        })
    }

    /// Rings at that time at the latest.
    fn ring_by(&self, at: Instant, now: Instant) {
        // Relaxed: only the thread that drives sleeps.
        if at.as_nanos() < self.rings_at.load(Ordering::Relaxed)
            && let Some(span) = at.since(now).to_std()
        {
            self.rings_at.store(at.as_nanos(), Ordering::Relaxed);
            self.timer.arm(span);
        }
    }

    fn rang(&self) {
        self.timer.drain();
        self.rings_at.store(u64::MAX, Ordering::Relaxed);
    }
}

struct UdpTransport {
    unicast: UdpSocket,
    /// The kernel knows segmented sending.
    segments: bool,
    multicast: Option<(UdpSocket, Vec<u32>)>,
    /// What the last wait found readable, or may have left unread.
    unicast_readable: AtomicBool,
    multicast_readable: AtomicBool,
    /// The group goes first, once: unicast that never ends must not hide it.
    multicast_first: AtomicBool,
    poller: Poller,
    waker: Waker,
    alarm: Alarm,
    board: Option<Board>,
    board_stirs: AtomicBool,
    /// Told when one of its descriptors is ready.
    links: Option<Arc<SharedMemory>>,
    /// A shutdown signal came; its descriptor, readable for good, has left
    /// the set.
    shut_down: AtomicBool,
}

impl UdpTransport {
    fn new(
        unicast: UdpSocket,
        multicast: Option<(UdpSocket, Vec<u32>)>,
    ) -> Result<Self, OpenError> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |source| OpenError::Socket { what, source }
        };
        if let Some((group, _)) = &multicast {
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
        if let Some((group, _)) = &multicast {
            poller.add(group, MULTICAST).map_err(failed("epoll set"))?;
        }
        poller.add(&waker, WAKER).map_err(failed("epoll set"))?;
        let alarm = Alarm::new().map_err(failed("timer"))?;
        poller
            .add(&alarm.timer, ALARM)
            .map_err(failed("epoll set"))?;
        if let Ok(signal) = shutdown_signal() {
            poller.add(signal, SHUTDOWN).map_err(failed("epoll set"))?;
        }
        Ok(Self {
            segments: unicast.supports_segmentation(),
            unicast,
            multicast,
            unicast_readable: AtomicBool::new(true),
            multicast_readable: AtomicBool::new(true),
            multicast_first: AtomicBool::new(false),
            poller,
            waker,
            alarm,
            board: None,
            board_stirs: AtomicBool::new(false),
            links: None,
            shut_down: AtomicBool::new(false),
        })
    }

    fn open_board(&mut self, plan: &SocketPlan) -> Result<(), ShmError> {
        let options = BoardOptions::default();
        let board = Board::open(plan.domain_id, plan.prefix.0, options)?;
        let added = self.poller.add(board.descriptor(), BOARD);
        added.map_err(ShmError::Open)?;
        self.board = Some(board);
        Ok(())
    }

    /// Wakes up for links as well.
    fn watch(&mut self, links: &Arc<SharedMemory>) -> io::Result<()> {
        self.poller.add(links.descriptor(), LINKS)?;
        self.poller.add_edge(links.doorbell(), DOORBELL)?;
        self.links = Some(links.clone());
        Ok(())
    }

    /// Takes the signal out of the set: it stays readable, and whoever waits
    /// after it (the helper, an orderly end) would never sleep again.
    fn note_shutdown(&self) {
        if !self.shut_down.swap(true, Ordering::Relaxed)
            && let Ok(signal) = shutdown_signal()
        {
            let _ = self.poller.remove(signal);
        }
    }

    /// Notes what can be received; waits for it at most so long.
    fn poll(&self, timeout: Option<std::time::Duration>) {
        EVENTS.with_borrow_mut(|events| {
            // An error here (an interrupted call, say) reads as an early
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
                    ALARM => self.alarm.rang(),
                    BOARD => self.board_stirs.store(true, Ordering::Relaxed),
                    LINKS => self.links.iter().for_each(|links| links.note_readable()),
                    DOORBELL => self.links.iter().for_each(|links| links.note_rung()),
                    _ => self.note_shutdown(),
                }
            }
        });
    }

    fn take(socket: &UdpSocket, readable: &AtomicBool, buffer: &mut [u8]) -> Option<Received> {
        // Relaxed: only the thread that drives reads and clears the flags.
        if !readable.load(Ordering::Relaxed) {
            return None;
        }
        match socket.receive(buffer) {
            Ok(received) => Some(Received {
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

impl Transport for UdpTransport {
    fn send_marked(&self, parts: &[IoSlice<'_>], to: &Locator, code_point: u8) -> io::Result<()> {
        if to.is_multicast() {
            return self.send(parts, to);
        }
        let address = address_of(to)?;
        let sent = self.unicast.send_marked(parts, address, code_point);
        sent.map(drop)
    }

    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()> {
        let address = address_of(to)?;
        if !to.is_multicast() {
            return self.unicast.send(parts, address).map(drop);
        }
        let Some((_, interfaces)) = &self.multicast else {
            return Ok(());
        };
        let mut outcome = Ok(());
        for index in interfaces {
            if let Err(e) = self.unicast.send_via(parts, address, *index) {
                outcome = Err(e);
            }
        }
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

    fn wait_for_room(&self, span: Duration) -> bool {
        self.unicast.wait_for_room(span.to_std())
    }

    fn bound_ports(&self, ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        let own = self.unicast.local_port();
        let bound = bound_udp_ports(own.min(*ports.start())..=own.max(*ports.end()));
        // A list without ourselves is not to be believed.
        bound.ok().filter(|bound| bound.contains(&own))
    }

    fn receive(&self, buffer: &mut [u8]) -> Option<Received> {
        let from_group = |buffer: &mut [u8]| {
            let (group, _) = self.multicast.as_ref()?;
            Self::take(group, &self.multicast_readable, buffer)
        };
        if self.multicast_first.load(Ordering::Relaxed) {
            self.multicast_first.store(false, Ordering::Relaxed);
            if let Some(received) = from_group(buffer) {
                return Some(received);
            }
        }
        Self::take(&self.unicast, &self.unicast_readable, buffer).or_else(|| from_group(buffer))
    }

    fn look(&self) {
        self.poll(Some(std::time::Duration::ZERO));
    }

    fn sleep(&self, now: Instant, until: Instant) {
        if until != Instant::FAR_FUTURE {
            self.alarm.ring_by(until, now);
        }
        self.poll(None);
    }

    fn wake(&self) {
        self.waker.wake();
    }

    fn shutdown_requested(&self) -> bool {
        // Relaxed: a flag that is only ever set.
        self.shut_down.load(Ordering::Relaxed) || shutdown_signal().is_ok_and(|s| s.is_requested())
    }

    fn board(&self) -> Option<&Board> {
        self.board.as_ref()
    }

    fn board_stirs(&self) -> bool {
        self.board_stirs.swap(false, Ordering::Relaxed)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poller.as_fd())
    }
}

/// Whether an interface is meant by its name or by one of its addresses.
fn is_named(interface: &Interface, name: &str) -> bool {
    interface.name == name || interface.address.to_string() == name
}
