//! The platform trait: the only source of time, randomness, threads and datagrams.
//!
//! Production uses [`SystemPlatform`]; a simulator implements its own. The layers above
//! call this trait once per poll and pass plain values on. The port mapping (RTPS 2.5
//! §9.6.1.1) from domain id and participant index to UDP ports is here as well.

use std::io;
use std::io::IoSlice;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Weak};

use pteros_rtps::id::GuidPrefix;
use pteros_shm::{DiscoveryLog, PeerAuthenticator};

pub use pteros_net::{Descriptors, check_file_size};
pub use pteros_rtps::locator::{Locator, OwnAddress};
pub use pteros_rtps::participant::LocalLinks;
pub use pteros_rtps::time::{Duration, Instant, Timestamp};

pub use crate::interfaces::InterfaceChange;
pub use crate::ip_versions::{DISCOVERY_GROUP, IpVersions};
pub use crate::udp::{SignalHandling, SystemPlatform};

use crate::error::OpenError;
use crate::scheduler::ready_queue::ReadyQueue;
use crate::shared_memory::SharedMemoryOptions;
use crate::shm_transport::ShmTransport;
use crate::store::{OnLoss, Store, StoreError, StoreSpec, StoredSample};

/// Clock, random seed and network of one process. Thread-safe. No call blocks
/// except [`DatagramSockets::sleep`] and [`DatagramSockets::wait_writable`].
pub trait Platform: Send + Sync + 'static {
    /// The monotonic clock.
    fn now(&self) -> Instant;

    /// The reading of the host's monotonic clock, in nanoseconds, when
    /// [`Platform::now`] was zero. Zero where all contexts share one clock, as in a
    /// simulation.
    fn clock_origin(&self) -> u64 {
        0
    }

    /// The wall clock, for source and reception stamps only.
    fn wall_clock(&self) -> Timestamp;

    /// Bytes that make a participant's GUID unique, across restarts too.
    fn guid_seed(&self) -> [u8; 10];

    /// Opens the sockets that `plan` describes.
    ///
    /// # Errors
    /// The failed open call and its cause; see [`OpenError`].
    fn open(&self, plan: &SocketPlan) -> Result<OpenedSockets, OpenError>;

    /// Opens the store of a durable publisher and returns its samples, oldest
    /// first.
    ///
    /// Blocks for disk I/O. A platform without a disk has no stores.
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

    /// Runs `work` on a new thread called `name`.
    ///
    /// # Errors
    /// Those of the operating system, when it has no thread left.
    fn spawn(&self, name: &str, work: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        crate::udp::spawn(name, work)
    }

    /// The descriptors of this process, if less than a tenth of the limit is free.
    fn scarce_descriptors(&self) -> Option<Descriptors> {
        None
    }

    /// Whether the platform drives a context that no executor spins, by
    /// [`UndrivenContext::drive_undriven`].
    ///
    /// A simulation does. Otherwise the background I/O thread of the process does.
    fn drives_undriven(&self, _context: &Weak<dyn UndrivenContext>) -> bool {
        false
    }
}

/// A context as seen by the background I/O thread and a simulation, which drive it while
/// no executor does. [`Core`](crate::Core) implements it.
pub trait UndrivenContext: Send + Sync {
    /// Polls it at most `rounds` times without sleeping. Returns false when another
    /// thread drives it.
    fn drive_undriven(&self, rounds: usize) -> bool;

    /// When it has work even if no datagram arrives.
    fn next_deadline(&self) -> Instant;

    /// Announces that the caller sleeps on its behalf. Returns until when.
    fn begin_background_sleep(&self) -> Instant;

    /// Number of finished polls, and whether a thread is in one.
    fn poll_counter(&self) -> (u64, bool);

    /// Whether it no longer needs driving.
    fn is_closed(&self) -> bool;

    /// The present time of its platform.
    fn now(&self) -> Instant;

    /// See [`DatagramSockets::descriptor`].
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// Bytes of payload that its protocol machines hold, and may hold at most.
    fn memory_bytes(&self) -> (usize, usize);

    /// The queue or table that exceeds its limit. `None`, unless there is a bug.
    fn exceeded_limit(&self) -> Option<String>;
}

/// The sockets a participant needs.
#[derive(Clone, Debug)]
pub struct SocketPlan {
    /// ROS_DOMAIN_ID, 0 to 232.
    pub domain_id: u32,
    /// Contexts of one group see each other's discovery logs: the domain id, or another
    /// number for contexts that only another transport joins.
    pub discovery_group: u32,
    /// Restricts the context to this host: sockets are bound to 127.0.0.1, or ::1.
    pub local_only: bool,
    /// The versions of IP that the sockets use.
    pub ip_versions: IpVersions,
    /// Joins the discovery group on every usable interface.
    pub multicast: bool,
    /// Names of the only interfaces to use; empty means all.
    pub interfaces: Vec<String>,
    /// Wanted kernel buffers in bytes, receive and send.
    pub buffer_bytes: (usize, usize),
    /// The participant's GUID prefix; shared-memory connections are named by it.
    pub prefix: GuidPrefix,
    /// Whether and how to use shared memory with processes of this host.
    pub shared_memory: SharedMemoryOptions,
    /// The authenticator of a secured context. Only peers that it authenticates may
    /// connect, and there is no discovery log for the host.
    pub peer_authenticator: Option<Arc<dyn PeerAuthenticator>>,
}

/// The opened sockets and shared memory.
pub struct OpenedSockets {
    /// The sockets.
    pub sockets: Box<dyn DatagramSockets>,
    /// The unicast locators of this participant.
    pub unicast: Vec<Locator>,
    /// Its own addresses, for choosing among a peer's locators.
    pub own_addresses: Vec<OwnAddress>,
    /// The locators of the SPDP multicast groups that are joined.
    pub multicast: Vec<Locator>,
    /// Hints for the operator, such as clamped buffers.
    pub advice: Vec<String>,
    /// The shared-memory transport, or why there is none.
    pub shm: Result<Arc<dyn ShmTransport>, String>,
}

/// One datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedDatagram {
    /// Bytes of the buffer that are filled.
    pub len: usize,
    /// The sender.
    pub from: Locator,
}

/// The sockets of one participant.
pub trait DatagramSockets: Send + Sync {
    /// Sends one datagram made of `parts`. A multicast locator is sent on every
    /// usable interface. Never blocks.
    ///
    /// # Errors
    /// `WouldBlock` when the send buffer is full, see
    /// [`DatagramSockets::wait_writable`]. Otherwise the error of the operating system,
    /// which is counted and never fatal.
    fn send(&self, parts: &[IoSlice<'_>], to: &Locator) -> io::Result<()>;

    /// As [`DatagramSockets::send`], with a differentiated services code point, 1 to 63.
    /// Sockets without code points send plainly.
    ///
    /// # Errors
    /// As [`DatagramSockets::send`].
    fn send_with_dscp(
        &self,
        parts: &[IoSlice<'_>],
        to: &Locator,
        _code_point: u8,
    ) -> io::Result<()> {
        self.send(parts, to)
    }

    /// Sends several datagrams of `segment_bytes` each to a unicast locator (UDP
    /// GSO); the last may be shorter.
    ///
    /// `parts` hold them one after another. All or none are sent.
    ///
    /// # Errors
    /// As [`DatagramSockets::send`]; `Unsupported` where each must be sent alone.
    fn send_segmented(
        &self,
        _parts: &[IoSlice<'_>],
        _segment_bytes: u16,
        _to: &Locator,
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Blocks until the send buffer has space, at most `span`. Returns whether it has.
    /// Sockets that never refuse return true.
    fn wait_writable(&self, _span: Duration) -> bool {
        true
    }

    /// The ports among `ports` that some process of this host has bound, if known.
    /// Datagrams to other ports are lost.
    fn bound_ports(&self, _ports: RangeInclusive<u16>) -> Option<Vec<u16>> {
        None
    }

    /// Takes one datagram from the receive buffer, if there is one.
    fn receive(&self, buffer: &mut [u8]) -> Option<ReceivedDatagram>;

    /// Checks which sockets are readable. Never sleeps.
    fn check_readable(&self);

    /// Sleeps until a datagram arrives, [`DatagramSockets::wake`] is called, a shutdown
    /// signal arrives, or `until` has passed ([`Instant::FAR_FUTURE`]: no limit).
    /// May return earlier. `now` is the present time.
    fn sleep(&self, now: Instant, until: Instant);

    /// Sleeps until `queue` [has a wake reason](ReadyQueue::has_wake_reason) or `until`
    /// has passed, while another thread is in [`DatagramSockets::sleep`]. Returns false if the
    /// queue can sleep itself; only a simulation returns true.
    fn sleep_queue(&self, _queue: &Arc<ReadyQueue>, _until: Instant) -> bool {
        false
    }

    /// Wakes the present or the next [`DatagramSockets::sleep`]. Thread-safe.
    fn wake(&self);

    /// Whether a shutdown signal has arrived.
    fn shutdown_requested(&self) -> bool;

    /// The discovery log of this process and its peers. `None` without shared
    /// memory.
    fn discovery_log(&self) -> Option<&DiscoveryLog> {
        None
    }

    /// Whether the last wait found new records in discovery logs; resets it.
    fn discovery_log_changed(&self) -> bool {
        false
    }

    /// Whether the last wait found a notice about network interfaces; resets it.
    fn interfaces_changed(&self) -> bool {
        false
    }

    /// Lists the network interfaces again and joins multicast groups on new ones.
    /// `None` if nothing that matters has changed.
    fn follow_interfaces(&self) -> Option<InterfaceChange> {
        None
    }

    /// A descriptor that is readable when [`DatagramSockets::sleep`] would return at
    /// once, for the epoll set of the background I/O thread. `None` in a
    /// simulation.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;
}

/// Port of the SPDP multicast group of a domain (RTPS 2.5 §9.6.1.1).
pub fn multicast_port(domain_id: u32) -> u16 {
    saturating_port(7400 + 250 * domain_id)
}

/// Unicast port of a participant, by domain and participant index. One socket
/// serves discovery and data.
pub fn unicast_port(domain_id: u32, participant_index: u32) -> u16 {
    saturating_port(7410 + 250 * domain_id + 2 * participant_index)
}

fn saturating_port(port: u32) -> u16 {
    u16::try_from(port).unwrap_or(u16::MAX)
}
