//! Links of the real world: a hub of shared memory (`pteros-shm`).

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_rtps::id::GuidPrefix;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::time::Instant;
use pteros_shm::{
    Exhausted, Hub, HubOptions, LinkEvent, RING_BYTES_MAX, RING_BYTES_MIN, Reason, Record, Refused,
    SEGMENT_BYTES_MAX, ShmCounts, ShmError,
};

use crate::env::SocketPlan;
use crate::links::{Chunk, Links, Realm};

/// Shared memory between the processes of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemoryOptions {
    /// Whether processes of this user and host are linked; true.
    pub on: bool,
    /// Memory for messages on their way and kept, bytes; 256 MiB. Only what is
    /// used is taken from the machine. When all is in use, a reliable publisher
    /// waits up to its `max_blocking_time`, a best-effort one loses the message
    /// for linked subscriptions, which is counted.
    pub pool_bytes: usize,
    /// The largest message, bytes; 64 MiB, at most 1 GiB. A larger one is refused
    /// while a reliable subscription is linked.
    pub largest_bytes: usize,
    /// What each link holds of headers and small messages that were not read
    /// yet, bytes; 256 KiB, a power of two from 4 KiB to 16 MiB. More is refused
    /// and, where reliable, sent again.
    pub ring_bytes: usize,
}

impl Default for SharedMemoryOptions {
    fn default() -> Self {
        let hub = HubOptions::default();
        Self {
            on: true,
            pool_bytes: hub.pool_bytes,
            largest_bytes: hub.largest_bytes,
            ring_bytes: hub.ring_bytes,
        }
    }
}

impl SharedMemoryOptions {
    /// Whether a hub can be made of them.
    ///
    /// # Errors
    /// [`ShmError::Option`] names the option, its value and what is allowed.
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
        Ok(())
    }
}

/// A hub, and what its owner's poll has seen of it.
pub(crate) struct SharedMemory {
    hub: Hub,
    realm: Realm,
    /// Its descriptor was readable.
    due: AtomicBool,
    /// Somebody waits for a chunk, so a ring of the doorbell may mean that.
    starved: AtomicBool,
}

impl SharedMemory {
    /// Opens the hub of a participant.
    ///
    /// # Errors
    /// Why there is no shared memory, in words; everything works without.
    pub(crate) fn open(plan: &SocketPlan, seed: u64) -> Result<Arc<Self>, String> {
        let options = &plan.shared_memory;
        if !options.on {
            return Err("switched off here".into());
        }
        let realm = realm().map_err(|e| format!("this host cannot be told from others: {e}"))?;
        let mut hub_options = HubOptions::default();
        hub_options.pool_bytes = options.pool_bytes;
        hub_options.largest_bytes = options.largest_bytes;
        hub_options.ring_bytes = options.ring_bytes;
        hub_options.seed = seed;
        hub_options.warrant.clone_from(&plan.warrant);
        let hub = Hub::open(plan.prefix.0, hub_options).map_err(|e| e.to_string())?;
        Ok(Arc::new(Self {
            hub,
            realm,
            due: AtomicBool::new(false),
            starved: AtomicBool::new(false),
        }))
    }

    /// Readable when there is something to do for [`Links::turn`].
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.hub.descriptor()
    }

    /// To be watched edge-triggered, never read.
    pub(crate) fn doorbell(&self) -> BorrowedFd<'_> {
        self.hub.doorbell()
    }

    /// The descriptor was found readable.
    pub(crate) fn note_readable(&self) {
        // Relaxed: only the thread that drives sets and clears it.
        self.due.store(true, Ordering::Relaxed);
    }

    /// The doorbell rang: for a message, which is found by looking, or because a
    /// chunk has come back.
    pub(crate) fn note_rung(&self) {
        if self.starved.load(Ordering::Relaxed) {
            self.note_readable();
        }
    }
}

impl Links for SharedMemory {
    fn realm(&self) -> Realm {
        self.realm
    }

    fn connect(&self, peer: GuidPrefix, now: Instant) -> Result<(), Reason> {
        self.note_readable();
        match self.hub.connect(peer.0, now.as_nanos()) {
            Ok(()) => Ok(()),
            Err(ShmError::Refused { reason, .. }) => Err(reason),
            Err(_) => Err(Reason::System("connect")),
        }
    }

    fn disconnect(&self, peer: GuidPrefix) {
        self.hub.disconnect(peer.0);
    }

    fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    fn turn(&self, now: Instant, events: &mut dyn FnMut(LinkEvent)) -> Option<Instant> {
        self.due.store(false, Ordering::Relaxed);
        let next = self.hub.turn(now.as_nanos(), &mut |event| {
            if event == LinkEvent::Room {
                self.starved.store(false, Ordering::Relaxed);
            }
            events(event);
        });
        next.map(Instant::from_nanos)
    }

    fn send(&self, link: u32, datagram: &Datagram<'_>) -> Result<(), Refused> {
        let [head, body, tail] = datagram.parts;
        match datagram.waits {
            true => self.hub.send_quietly(link, head, body, tail),
            false => self.hub.send(link, head, body, tail),
        }
    }

    fn receive(&self, head: &mut Vec<u8>) -> Option<Record> {
        self.hub.receive(head)
    }

    fn chunk(&self, len: usize) -> Result<Chunk, Exhausted> {
        let chunk = self.hub.chunk(len).or_else(|_| {
            // Before the last look: from here on a ring is understood.
            self.starved.store(true, Ordering::SeqCst);
            self.hub.chunk(len)
        });
        chunk.map(Chunk::Shared)
    }

    fn warm_chunk(&self, len: usize) -> Option<Chunk> {
        let chunk = self.hub.warm_chunk(len).or_else(|| {
            self.starved.store(true, Ordering::SeqCst);
            self.hub.warm_chunk(len)
        });
        chunk.map(Chunk::Shared)
    }

    fn warm_ahead(&self, len: usize) {
        self.hub.warm_ahead(len);
    }

    fn before_sleep(&self) -> bool {
        // Each sleep has its own number, and peers ring once for each.
        self.hub.awake();
        self.hub.before_sleep()
    }

    fn awake(&self) {
        self.hub.awake();
    }

    fn counts(&self) -> ShmCounts {
        self.hub.counts()
    }
}

/// Where this process lives. Containers share the host's boot id and have
/// network namespaces of their own, where abstract sockets are named.
fn realm() -> io::Result<Realm> {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id")?;
    let process = std::fs::metadata("/proc/self")?;
    let network = std::fs::metadata("/proc/self/ns/net")?;
    // FNV-1a, 64 bits: who knows it cannot tell the boot id.
    let host = boot.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Ok(Realm {
        version: pteros_shm::VERSION,
        host,
        network: network.ino(),
        user: process.uid(),
    })
}
