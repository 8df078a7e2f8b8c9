//! Shared-memory transport of the real platform: wraps `pteros-shm` with its chunk
//! pool and descriptor rings.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pteros_msg::cdr::Endian;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::time::Instant;
use pteros_shm::{
    ConnectionEvent, DisconnectReason, PoolExhausted, RING_BYTES_MAX, RING_BYTES_MIN,
    ReceivedMessage, SEGMENT_BYTES_MAX, SendRefusal, SharedMemoryTransport,
    SharedMemoryTransportOptions, ShmCounts, ShmError,
};

use crate::platform::SocketPlan;
use crate::shm_transport::{Chunk, ShmScope, ShmTransport};

/// The longest [`SharedMemoryOptions::latency_budget`].
const LATENCY_BUDGET_MAX: Duration = Duration::from_millis(100);

/// Options of shared memory between processes of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemoryOptions {
    /// Whether processes of this user and host connect; true.
    pub enabled: bool,
    /// Size of the chunk pool in bytes; 256 MiB. Only used memory is allocated by the
    /// system.
    ///
    /// When it is exhausted, a reliable publisher blocks up to its
    /// `max_blocking_time`. A best-effort one loses the message for connected
    /// subscriptions, which is counted.
    pub pool_bytes: usize,
    /// The largest message, bytes; 64 MiB, at most 1 GiB. A larger one is refused
    /// while a reliable subscription is connected.
    pub largest_bytes: usize,
    /// Descriptor ring of each connection for headers and small messages, bytes;
    /// 256 KiB, a power of two from 4 KiB to 16 MiB. A full ring refuses; reliable
    /// messages are retransmitted.
    pub ring_bytes: usize,
    /// Latency budget: how long a message may wait before it wakes this process; zero, at
    /// most 100 ms.
    ///
    /// For a process that is not urgent, such as a recorder. Publishers need not wake it
    /// for each message, which would cost some microseconds each, and it takes many
    /// messages at once. They still wake it once a ring, or their memory for it, is half
    /// full. Acknowledgements are delayed as well, so a KEEP_ALL publisher may block. A
    /// thread that sleeps in an external event loop is still woken for each message.
    pub latency_budget: Duration,
}

impl Default for SharedMemoryOptions {
    fn default() -> Self {
        let transport = SharedMemoryTransportOptions::default();
        Self {
            enabled: true,
            pool_bytes: transport.pool_bytes,
            largest_bytes: transport.largest_bytes,
            ring_bytes: transport.ring_bytes,
            latency_budget: Duration::ZERO,
        }
    }
}

impl SharedMemoryOptions {
    /// Checks the options.
    ///
    /// # Errors
    /// [`ShmError::Option`] names the option, its value and the valid values.
    pub fn validate(&self) -> Result<(), ShmError> {
        let wrong = |name, value, allowed| {
            Err(ShmError::Option {
                name,
                value,
                allowed,
            })
        };
        let ring = self.ring_bytes;
        if !ring.is_power_of_two() || !(RING_BYTES_MIN..=RING_BYTES_MAX).contains(&ring) {
            return wrong("ring_bytes", ring, "a power of two from 4 KiB to 16 MiB");
        }
        if self.largest_bytes > SEGMENT_BYTES_MAX / 2 {
            return wrong("largest_bytes", self.largest_bytes, "at most 1 GiB");
        }
        if self.latency_budget > LATENCY_BUDGET_MAX {
            let micros = usize::try_from(self.latency_budget.as_micros()).unwrap_or(usize::MAX);
            return wrong("latency_budget", micros, "at most 100 000 us");
        }
        Ok(())
    }
}

/// The transport, and what the last poll found.
pub(crate) struct SystemShmTransport {
    transport: SharedMemoryTransport,
    scope: ShmScope,
    /// Its descriptor was readable.
    due: AtomicBool,
    /// Some thread waits for a chunk, so the doorbell may announce a free one.
    waits_for_chunk: AtomicBool,
}

impl SystemShmTransport {
    /// Opens the transport of a participant.
    ///
    /// # Errors
    /// Why there is no shared memory. The context works without it.
    pub(crate) fn open(plan: &SocketPlan, seed: u64) -> Result<Arc<Self>, String> {
        let options = &plan.shared_memory;
        if !options.enabled {
            return Err("switched off here".into());
        }
        let scope = own_scope().map_err(|e| format!("cannot identify this host: {e}"))?;
        let mut transport_options = SharedMemoryTransportOptions::default();
        transport_options.pool_bytes = options.pool_bytes;
        transport_options.largest_bytes = options.largest_bytes;
        transport_options.ring_bytes = options.ring_bytes;
        transport_options.seed = seed;
        transport_options
            .peer_authenticator
            .clone_from(&plan.peer_authenticator);
        let transport = SharedMemoryTransport::open(plan.prefix.0, transport_options)
            .map_err(|e| e.to_string())?;
        Ok(Arc::new(Self {
            transport,
            scope,
            due: AtomicBool::new(false),
            waits_for_chunk: AtomicBool::new(false),
        }))
    }

    /// Readable when [`ShmTransport::poll`] has work.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.transport.descriptor()
    }

    /// Watch it edge-triggered, and never read it.
    pub(crate) fn doorbell(&self) -> BorrowedFd<'_> {
        self.transport.doorbell()
    }

    /// Notes that the descriptor was readable.
    pub(crate) fn note_readable(&self) {
        // Relaxed: only the thread that drives sets and clears it.
        self.due.store(true, Ordering::Relaxed);
    }

    /// Notes that the doorbell rang, for a message, which the next poll finds, or for a
    /// freed chunk.
    pub(crate) fn note_doorbell(&self) {
        if self.waits_for_chunk.load(Ordering::Relaxed) {
            self.note_readable();
        }
    }
}

impl ShmTransport for SystemShmTransport {
    fn scope(&self) -> ShmScope {
        self.scope
    }

    fn connect(&self, peer: GuidPrefix, now: Instant) -> Result<(), DisconnectReason> {
        self.note_readable();
        match self.transport.connect(peer.0, now.as_nanos()) {
            Ok(()) => Ok(()),
            Err(ShmError::Refused { reason, .. }) => Err(reason),
            Err(_) => Err(DisconnectReason::SystemCall("connect")),
        }
    }

    fn disconnect(&self, peer: GuidPrefix) {
        self.transport.disconnect(peer.0);
    }

    fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    fn poll(&self, now: Instant, events: &mut dyn FnMut(ConnectionEvent)) -> Option<Instant> {
        self.due.store(false, Ordering::Relaxed);
        let next = self.transport.poll(now.as_nanos(), &mut |event| {
            if event == ConnectionEvent::ChunkAvailable {
                self.waits_for_chunk.store(false, Ordering::Relaxed);
            }
            events(event);
        });
        next.map(Instant::from_nanos)
    }

    fn send(&self, connection: u32, datagram: &Datagram<'_>) -> Result<(), SendRefusal> {
        let [head, body, tail] = datagram.parts;
        if datagram.is_deferrable {
            self.transport
                .send_without_wake(connection, head, body, tail)
        } else {
            self.transport.send(connection, head, body, tail)
        }
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<ReceivedMessage> {
        self.transport.receive(head)
    }

    fn chunk(&self, len: usize) -> Result<Chunk, PoolExhausted> {
        let chunk = self.transport.chunk(len).or_else(|_| {
            // Before the last check: a later doorbell signal is handled.
            self.waits_for_chunk.store(true, Ordering::SeqCst);
            self.transport.chunk(len)
        });
        chunk.map(Chunk::Shared)
    }

    fn prefaulted_chunk(&self, len: usize) -> Option<Chunk> {
        let chunk = self.transport.prefaulted_chunk(len).or_else(|| {
            self.waits_for_chunk.store(true, Ordering::SeqCst);
            self.transport.prefaulted_chunk(len)
        });
        chunk.map(Chunk::Shared)
    }

    fn prefault(&self, len: usize) {
        self.transport.prefault(len);
    }

    fn arm_doorbell(&self) -> bool {
        // Each sleep has its own number, and peers signal once for each.
        self.transport.disarm_doorbell();
        self.transport.arm_doorbell()
    }

    fn defer_doorbell(&self) -> bool {
        self.transport.disarm_doorbell();
        self.transport.defer_doorbell()
    }

    fn disarm_doorbell(&self) {
        self.transport.disarm_doorbell();
    }

    fn counts(&self) -> ShmCounts {
        self.transport.counts()
    }
}

/// Scope of this process. Containers share the host's boot id but have their own network
/// namespaces, which scope abstract sockets.
fn own_scope() -> io::Result<ShmScope> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    let process = std::fs::metadata("/proc/self")?;
    let network = std::fs::metadata("/proc/self/ns/net")?;
    // FNV-1a, 64 bits: the boot id cannot be derived from it.
    let host = boot.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok(ShmScope {
        version: pteros_shm::VERSION,
        host,
        network: network.ino(),
        user: process.uid(),
        byte_order: Endian::NATIVE,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_due_after_a_request_until_it_is_polled() {
        let plan = SocketPlan {
            domain_id: 0,
            discovery_group: 0,
            local_only: true,
            ip_versions: crate::ip_versions::IpVersions::Automatic,
            multicast: false,
            interfaces: Vec::new(),
            buffer_bytes: (0, 0),
            prefix: GuidPrefix(
                u128::from(std::process::id()).to_be_bytes()[4..]
                    .try_into()
                    .unwrap(),
            ),
            shared_memory: SharedMemoryOptions::default(),
            peer_authenticator: None,
        };
        let transport = SystemShmTransport::open(&plan, 1).unwrap();
        assert!(!transport.is_due(), "nobody has connected");
        transport.note_doorbell();
        assert!(!transport.is_due(), "no chunk is awaited");
        // No process has this name.
        assert!(
            transport
                .connect(GuidPrefix([0xee; 12]), Instant::ZERO)
                .is_err()
        );
        assert!(transport.is_due());
        let mut events = Vec::new();
        transport.poll(Instant::ZERO, &mut |event| events.push(event));
        assert!(!transport.is_due());
        assert_eq!(events, []);
    }
}
