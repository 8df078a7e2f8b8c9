//! The only door through which time, chance and datagrams enter.
//!
//! Production opens [`SystemEnv`]; a simulator brings
//! its own. Everything above asks this trait once per turn and passes plain
//! values on.

use std::io;
use std::io::IoSlice;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use pteros_rtps::id::GuidPrefix;
use pteros_shm::{Board, Warrant};

pub use pteros_rtps::locator::{Locator, OwnAddress};
pub use pteros_rtps::time::{Duration, Instant, Timestamp};

pub use crate::core::Core;
pub use crate::udp::SystemEnv;

use crate::error::OpenError;
use crate::links::Links;
use crate::ready::ReadyQueue;
use crate::shared_memory::SharedMemoryOptions;
use crate::store::{OnLoss, Store, StoreError, StoreSpec, StoredSample};

/// Clock, seed and network of one process. Thread-safe; calls never block
/// except [`Transport::sleep`] and [`Transport::wait_for_room`].
pub trait Env: Send + Sync + 'static {
    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// What the host's monotonic clock, which its processes share, said in
    /// nanoseconds when [`Env::now`] was zero. Zero where all contexts have one
    /// clock, as in a simulation.
    fn clock_origin(&self) -> u64 {
        0
    }

    /// The wall clock, for source and reception stamps only.
    fn wall(&self) -> Timestamp;

    /// Bytes that make a participant's GUID unique, restarts included.
    fn unique(&self) -> [u8; 10];

    /// Opens the sockets that `plan` describes.
    ///
    /// # Errors
    /// What could not be opened, and why; see [`OpenError`].
    fn open(&self, plan: &SocketPlan) -> Result<Opened, OpenError>;

    /// Opens the store of a durable publisher; what it holds comes along,
    /// oldest first. Blocks for the disk. A world without a disk has none.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn open_store(
        &self,
        _spec: StoreSpec,
        _on_loss: OnLoss,
    ) -> Result<(Store, Vec<StoredSample>), StoreError> {
        Err(StoreError::NoDisk)
    }

    /// Runs `work` on a thread of its own, which is called `name`.
    ///
    /// # Errors
    /// The operating system's, when it has no thread to give.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        crate::udp::spawn(name, work)
    }

    /// Whether it looks after a context that has just been opened, while nobody
    /// spins it, by [`Core::drive_for_others`]; a simulation does. If not, the
    /// process's helper thread does.
    fn looks_after(&self, _core: &Weak<Core>) -> bool {
        false
    }
}

/// The sockets a participant needs.
#[derive(Clone, Debug)]
pub struct SocketPlan {
    /// ROS_DOMAIN_ID, 0 to 232.
    pub domain_id: u32,
    /// Whether to stay on this host: sockets are bound to 127.0.0.1.
    pub local_only: bool,
    /// Whether to join the discovery group on every usable interface.
    pub multicast: bool,
    /// Names of the only interfaces to use; empty means all.
    pub interfaces: Vec<String>,
    /// Wanted kernel buffers in bytes, receive and send.
    pub buffer_bytes: (usize, usize),
    /// Whose sockets they are; links are named by it.
    pub prefix: GuidPrefix,
    /// Whether and how to link with processes of this host.
    pub shared_memory: SharedMemoryOptions,
    /// Of a secured context: whom it vouches for alone may be linked with, and
    /// no board tells others of the host what goes on.
    pub warrant: Option<Arc<dyn Warrant>>,
}

/// What opening gave.
pub struct Opened {
    /// The sockets.
    pub transport: Box<dyn Transport>,
    /// Index of the participant on this host, which chose its ports.
    pub participant_index: u32,
    /// Where peers reach us.
    pub unicast: Vec<Locator>,
    /// Our addresses, for choosing among a peer's locators.
    pub own: Vec<OwnAddress>,
    /// The group we listen to, when there is one.
    pub multicast: Option<Locator>,
    /// What the operator should know: clamped buffers and the like.
    pub advice: Vec<String>,
    /// Links to processes of this host, or why there are none.
    pub links: Result<Arc<dyn Links>, String>,
}

/// One datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// Bytes of the buffer that are filled.
    pub len: usize,
    /// Who sent it.
    pub from: Locator,
}

/// The sockets of one participant.
pub trait Transport: Send + Sync {
    /// Sends one datagram made of `parts` to `to`; a multicast locator goes
    /// out of every usable interface. Does not block.
    ///
    /// # Errors
    /// `WouldBlock` when the socket is full, see [`Transport::wait_for_room`];
    /// else the operating system's error, for counting; never fatal.
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()>;

    /// As [`Transport::send`], marked for the network with a differentiated
    /// services code point, 1 to 63. A transport without marks sends plainly.
    ///
    /// # Errors
    /// As [`Transport::send`].
    fn send_marked(&self, parts: &[IoSlice<'_>], to: &Locator, _code_point: u8) -> io::Result<()> {
        self.send(parts, to)
    }

    /// Sends datagrams of so many bytes each, the last one maybe shorter, to a unicast
    /// locator: `parts` are theirs, one after another. All or none are sent.
    ///
    /// # Errors
    /// As [`Transport::send`]; `Unsupported` where each has to be sent alone.
    fn send_segmented(
        &self,
        _parts: &[IoSlice<'_>],
        _segment_bytes: u16,
        _to: &Locator,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Waits until there is room to send again, at most so long; whether there
    /// is. A transport that never refuses has room.
    fn wait_for_room(&self, _span: Duration) -> bool {
        true
    }

    /// Those of `ports` on which somebody of this host may be heard, if that is
    /// known: what is sent to others is lost.
    fn bound_ports(&self, _ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        None
    }

    /// Takes one datagram, if one is there.
    fn receive(&self, buffer: &mut [u8]) -> Option<Received>;

    /// Finds out what is there to be received. Never sleeps.
    fn look(&self);

    /// Sleeps until a datagram arrives, [`Transport::wake`] is called, a
    /// shutdown signal comes, or it is `until` ([`Instant::FAR_FUTURE`]: no
    /// limit); may return earlier. `now` is what time it is.
    fn sleep(&self, now: Instant, until: Instant);

    /// Sleeps until `queue` [has something](ReadyQueue::is_roused) or it is
    /// `until`, while another thread is in [`Transport::sleep`]. False where the
    /// queue's own means will do: only a simulation has others.
    fn rest(&self, _queue: &Arc<ReadyQueue>, _until: Instant) -> bool {
        false
    }

    /// Ends the present or the next [`Transport::sleep`]. Thread-safe.
    fn wake(&self);

    /// Whether a shutdown signal has come.
    fn shutdown_requested(&self) -> bool;

    /// What this process tells its neighbours, and they tell it. `None` where
    /// there is no shared memory.
    fn board(&self) -> Option<&Board> {
        None
    }

    /// Whether the last wait found news on boards; once.
    fn board_stirs(&self) -> bool {
        false
    }

    /// A descriptor that is readable when [`Transport::sleep`] would return at
    /// once, for the helper thread's own set. `None` in a simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Port of the discovery group of a domain (RTPS 2.5 §9.6.1.1).
pub fn multicast_port(domain_id: u32) -> u16 {
    saturating_port(7400 + 250 * domain_id)
}

/// Unicast port of a participant. One socket serves discovery and data.
pub fn unicast_port(domain_id: u32, participant_index: u32) -> u16 {
    saturating_port(7410 + 250 * domain_id + 2 * participant_index)
}

/// The discovery group (RTPS 2.5 §9.6.1.4).
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

fn saturating_port(port: u32) -> u16 {
    u16::try_from(port).unwrap_or(u16::MAX)
}
