//! Shared-memory transport of one context: its listener, connections and chunk
//! pool.
//!
//! Lock order, outermost first: `control`, `receive_halves`, `connections`, a
//! connection's own lock, the pool's lock. No call waits for a peer, so no lock is
//! held during a wait.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::chunk::ChunkMut;
use crate::connection::{Body, Connection, ReceiveHalf, SendError};
use crate::counts::{Counters, ShmCounts};
use crate::doorbell::{ChunkWaiters, WakePage, arm, begin_chunk_wait, disarm, end_chunk_wait};
use crate::error::{DisconnectReason, PeerName, SendRefusal, ShmError};
use crate::handshake::{self, PendingHandshake};
use crate::layout::{
    CHUNK_BODY_MIN_BYTES, INLINE_MAX_BYTES, RING_BYTES_MAX, RING_BYTES_MIN, SEGMENT_BYTES_MAX,
};
use crate::memory::io_error;
use crate::peer_authenticator::PeerAuthenticator;
use crate::poll::LISTENER_TOKEN;
use crate::pool::{Pool, PoolExhausted};
use crate::sync::{AtomicU64, Ordering};

/// Low bits of a connection's number that hold its slot. The other bits count the
/// connections made, so that numbers are not reused.
const SLOT_BITS: u32 = 10;

/// Limits of a shared-memory transport. All have defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SharedMemoryTransportOptions {
    /// Largest total size of all pool segments, bytes. Default 256 MiB. Only used
    /// pages take physical memory. At the limit [`SharedMemoryTransport::chunk`]
    /// returns `Full`.
    pub pool_bytes: usize,
    /// Largest message that gets a chunk, bytes. Default 64 MiB, at most 1 GiB.
    pub largest_bytes: usize,
    /// Size of the ring of each connection and direction, bytes: a power of two
    /// from 4 KiB to 16 MiB. Default 256 KiB. It carries heads, tails, and bodies
    /// of up to 4 KiB that are not in a chunk.
    pub ring_bytes: usize,
    /// Connections at a time, at most 1024. Default 256. More are refused.
    pub connections_max: usize,
    /// Handshakes at a time. Default 256. More are refused.
    pub pending_max: usize,
    /// Handshake timeout, nanoseconds. Default 1 s.
    pub handshake_ns: u64,
    /// Seed of the handshake nonces. Two transports that connect should have
    /// different seeds.
    pub seed: u64,
    /// Authenticates peers with a shared secret. `None`: a process of the same user
    /// is accepted.
    pub peer_authenticator: Option<Arc<dyn PeerAuthenticator>>,
}

impl Default for SharedMemoryTransportOptions {
    fn default() -> Self {
        Self {
            pool_bytes: 256 << 20,
            largest_bytes: 64 << 20,
            ring_bytes: 256 << 10,
            connections_max: 256,
            pending_max: 256,
            handshake_ns: 1_000_000_000,
            seed: 0,
            peer_authenticator: None,
        }
    }
}

impl SharedMemoryTransportOptions {
    fn check(&self) -> Result<(), ShmError> {
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
        if !(1..=1 << SLOT_BITS).contains(&self.connections_max) {
            return wrong("links_max", self.connections_max, "from 1 to 1024");
        }
        if self.largest_bytes > SEGMENT_BYTES_MAX / 2 {
            return wrong("largest_bytes", self.largest_bytes, "at most 1 GiB");
        }
        Ok(())
    }
}

/// A change of a connection, reported by [`SharedMemoryTransport::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionEvent {
    /// A connection is established. Either side may have asked for it.
    Connected {
        /// The participant at the other end.
        peer: PeerName,
        /// The connection's number. This transport never uses it again.
        connection: u32,
    },
    /// The connection is closed. All that the peer sent before was received.
    Disconnected {
        /// The participant that was at the other end.
        peer: PeerName,
        /// Its number.
        connection: u32,
        /// Why.
        reason: DisconnectReason,
    },
    /// A connection that this side asked for was refused.
    Refused {
        /// The participant that this side asked for.
        peer: PeerName,
        /// Why.
        reason: DisconnectReason,
    },
    /// A chunk was returned after [`SharedMemoryTransport::chunk`] had found none.
    ChunkAvailable,
}

/// A message in a chunk of the peer's memory, and where it came from.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// The connection that it came over.
    pub connection: u32,
    /// The sender.
    pub peer: PeerName,
    /// Bytes of the head, at the front of the buffer. Without a `body`: bytes of
    /// the whole message, including body and tail.
    pub head_len: usize,
    /// Bytes of the tail, which follows the head in the buffer.
    pub tail_len: usize,
    /// The body, if it was not copied (zero-copy). The chunk is returned to the
    /// sender when the last clone is dropped. Its bytes are mapped read-only.
    pub body: Option<Bytes>,
}

/// Shared-memory transport of one context. Thread-safe.
///
/// Any thread may send, take chunks and drop bodies. One thread at a time may poll,
/// receive and arm the doorbell. No method waits for another process.
///
/// Dropping it closes all connections. Received bodies and frozen chunks stay
/// readable until they are dropped.
#[derive(Debug)]
pub struct SharedMemoryTransport {
    pub(crate) name: PeerName,
    pub(crate) options: SharedMemoryTransportOptions,
    pub(crate) context: Arc<WakePage>,
    pub(crate) epoll: OwnedFd,
    pub(crate) listener: OwnedFd,
    pub(crate) pool: Arc<Pool>,
    pub(crate) control: Mutex<ConnectionTable>,
    pub(crate) receive_halves: Mutex<ReceiveHalves>,
    pub(crate) connections: RwLock<ConnectionSlots>,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) struct ConnectionTable {
    pub(crate) entries: HashMap<u64, ConnectionEntry>,
    pub(crate) token: u64,
    pub(crate) rng_state: u64,
}

#[derive(Debug)]
pub(crate) enum ConnectionEntry {
    Pending(Box<PendingHandshake>),
    Connection(Arc<Connection>),
}

#[derive(Debug, Default)]
pub(crate) struct ReceiveHalves {
    pub(crate) list: Vec<ReceiveHalf>,
    /// Index of the connection that is read next (round robin).
    next: usize,
}

/// Connections by number, including closed ones that still hold chunks.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlots {
    pub(crate) list: Vec<Option<Arc<Connection>>>,
    made: u32,
}

impl ConnectionSlots {
    fn connection(&self, number: u32) -> Option<&Arc<Connection>> {
        let slot = number & ((1 << SLOT_BITS) - 1);
        let connection = self.list.get(slot as usize)?.as_ref()?;
        (connection.number == number).then_some(connection)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Connection>> {
        self.list.iter().flatten()
    }

    /// Reserves a slot and returns a new number; `None` at the limit.
    pub(crate) fn allocate_number(&mut self, links_max: usize) -> Option<u32> {
        let slot = self.list.iter().position(Option::is_none);
        let slot = slot.or_else(|| {
            (self.list.len() < links_max).then(|| {
                self.list.push(None);
                self.list.len() - 1
            })
        })?;
        let round = self.made;
        self.made = self.made.wrapping_add(1);
        Some(round << SLOT_BITS | slot as u32)
    }

    pub(crate) fn insert(&mut self, connection: Arc<Connection>) {
        let slot = connection.number & ((1 << SLOT_BITS) - 1);
        self.list[slot as usize] = Some(connection);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if self.connection(number).is_some() {
            let slot = number & ((1 << SLOT_BITS) - 1);
            self.list[slot as usize] = None;
        }
    }
}

impl SharedMemoryTransport {
    /// Opens a transport that other processes of this host, user and network
    /// namespace reach by `name`.
    ///
    /// # Errors
    /// [`ShmError::Option`] for a limit out of range. [`ShmError::Open`] when the
    /// system refuses memory, a descriptor or the name (a transport with that name
    /// exists already, in this or another process).
    pub fn open(name: PeerName, options: SharedMemoryTransportOptions) -> Result<Self, ShmError> {
        options.check()?;
        let context = WakePage::new().map_err(ShmError::Open)?;
        let open = |action: &'static str| move |e| ShmError::Open(io_error(action, e));
        let listener = handshake::listen(&name).map_err(open("listen for connections"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(open("create an epoll set"))?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER_TOKEN),
            EventFlags::IN,
        )
        .map_err(open("watch for connections"))?;
        let starved = ChunkWaiters::new(Arc::clone(&context));
        Ok(Self {
            name,
            pool: Pool::new(options.pool_bytes, options.largest_bytes, starved),
            control: Mutex::new(ConnectionTable {
                entries: HashMap::new(),
                token: LISTENER_TOKEN,
                rng_state: options.seed,
            }),
            options,
            context,
            epoll,
            listener,
            receive_halves: Mutex::default(),
            connections: RwLock::default(),
            counters: Counters::default(),
        })
    }

    /// The name of this transport.
    pub fn name(&self) -> PeerName {
        self.name
    }

    /// Epoll set of the listener and the connections' sockets. Readable when
    /// [`SharedMemoryTransport::poll`] has something to do; messages do not make it
    /// readable.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The doorbell: an eventfd, to be watched edge-triggered and never read. Peers
    /// ring it while this process sleeps, and when a chunk is returned after
    /// [`SharedMemoryTransport::chunk`] found none.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.context.bell.as_fd()
    }

    /// Starts a connection to `peer`. [`SharedMemoryTransport::poll`] reports the
    /// outcome. Does nothing if there is a connection or a handshake already.
    ///
    /// # Errors
    /// [`ShmError::Refused`]: no process listens there, it belongs to
    /// another user, or there are too many connections.
    pub fn connect(&self, peer: PeerName, now: u64) -> Result<(), ShmError> {
        let refused = |reason| {
            self.counters.handshakes_failed.add();
            ShmError::Refused { peer, reason }
        };
        let mut control = self.control.lock();
        if control.has_connection(peer) {
            return Ok(());
        }
        self.check_connection_limits(&control).map_err(refused)?;
        let nonce = control.nonce();
        let deadline = now.saturating_add(self.options.handshake_ns);
        let pending = PendingHandshake::outgoing(peer, &self.local_side(), nonce, deadline)
            .map_err(refused)?;
        self.add_handshake(&mut control, pending, now)
            .map_err(refused)
    }

    /// Closes the connection to `peer`, or ends the handshake with it. No event
    /// follows. Chunks that the peer still holds stay on loan until it returns
    /// them.
    pub fn disconnect(&self, peer: PeerName) {
        let mut control = self.control.lock();
        control.entries.retain(
            |_, entry| !matches!(entry, ConnectionEntry::Pending(p) if p.peer == Some(peer)),
        );
        let connections = control.entries.values().filter_map(|entry| match entry {
            ConnectionEntry::Connection(connection)
                if connection.peer == peer && connection.is_connected() =>
            {
                Some(Arc::clone(connection))
            }
            _ => None,
        });
        for connection in connections.collect::<Vec<_>>() {
            connection.fail(DisconnectReason::ClosedLocally);
            self.close(&mut control, &connection, DisconnectReason::ClosedLocally);
        }
    }

    /// Accepts connections, advances handshakes, reads sockets and closes what has
    /// ended. Call it when [`SharedMemoryTransport::descriptor`] is readable, after
    /// the doorbell rang, and at the returned time. More calls do no harm. Events
    /// are reported without a lock held.
    pub fn poll(&self, now: u64, events: &mut dyn FnMut(ConnectionEvent)) -> Option<u64> {
        let mut reported = Vec::new();
        let deadline = {
            let mut control = self.control.lock();
            self.poll_sockets(&mut control, now, &mut reported);
            self.expire_handshakes(&mut control, now, &mut reported)
        };
        if self.take_chunk_available() {
            reported.push(ConnectionEvent::ChunkAvailable);
        }
        reported.into_iter().for_each(events);
        deadline
    }

    /// Whether a chunk is free now that a caller waits for. If none is, the next
    /// returned chunk rings the doorbell again.
    fn take_chunk_available(&self) -> bool {
        let starved = self.context.chunk_wait();
        let mut seen = starved.load(Ordering::Relaxed);
        if seen & 1 == 0 {
            return false;
        }
        let has_room = || {
            self.reclaim();
            self.pool.counts().free > 0
        };
        // Chunks found here are reported by this poll. Chunks returned after the
        // second check ring.
        self.pool.suppress_wake();
        if !has_room() {
            begin_chunk_wait(starved);
            seen = starved.load(Ordering::Relaxed);
            if !has_room() {
                return false;
            }
        }
        end_chunk_wait(starved, seen);
        true
    }

    /// Whether the connection is established.
    pub fn is_connected(&self, connection: u32) -> bool {
        self.connections
            .read()
            .connection(connection)
            .is_some_and(|l| l.is_connected())
    }

    /// Takes a chunk for a message of `len` bytes, prefaulted if one was used
    /// before.
    ///
    /// Its bytes begin 60 bytes after a multiple of 64, so that the data after a
    /// CDR encapsulation header is aligned. Does not allocate in steady state.
    ///
    /// # Errors
    /// [`PoolExhausted`]: the message is larger than any chunk, or all chunks are in use
    /// and the pool is at its limit. In the latter case
    /// [`ConnectionEvent::ChunkAvailable`] follows when a chunk was returned.
    pub fn chunk(&self, len: usize) -> Result<ChunkMut, PoolExhausted> {
        let hold = self
            .take_chunk(len)
            .inspect_err(|_| self.counters.pool_exhausted.add());
        hold.map(|hold| ChunkMut::new(hold, len))
    }

    /// Takes a free chunk whose memory was used before, if there is one. Otherwise
    /// the doorbell rings when a chunk is returned.
    pub fn prefaulted_chunk(&self, len: usize) -> Option<ChunkMut> {
        let take = || self.pool.take_prefaulted(len);
        let hold = take().or_else(|| {
            self.reclaim();
            take()
        });
        let hold = hold.or_else(|| {
            begin_chunk_wait(self.context.chunk_wait());
            self.reclaim();
            take()
        });
        hold.map(|hold| ChunkMut::new(hold, len))
    }

    /// Prefaults the chunk that [`SharedMemoryTransport::chunk`] would return next
    /// for `len` bytes. Creates a segment if no chunk is free. Does nothing when
    /// the pool is at its limit.
    pub fn prefault(&self, len: usize) {
        let take = || self.pool.take(len, false);
        if take().is_none() && self.reclaim() == 0 && self.grow(len).is_ok() {
            take();
        }
    }

    fn grow(&self, len: usize) -> Result<(), PoolExhausted> {
        let retired = self.pool.grow(len)?;
        let connections = self.connections.read();
        connections
            .iter()
            .for_each(|connection| connection.retire(&retired));
        Ok(())
    }

    fn take_chunk(&self, len: usize) -> Result<crate::pool::ChunkHold, PoolExhausted> {
        let pool = &self.pool;
        if let Some(hold) = pool.take(len, false) {
            return Ok(hold);
        }
        self.reclaim();
        // Another thread may take the chunk that this one created, but not forever.
        for _ in 0..8 {
            if let Some(hold) = pool.take(len, false) {
                return Ok(hold);
            }
            match self.grow(len) {
                Ok(()) => {}
                Err(e @ PoolExhausted::TooLarge { .. }) => return Err(e),
                Err(_) => break,
            }
        }
        if let Some(hold) = pool.take(len, true) {
            return Ok(hold);
        }
        // From now on a returned chunk rings the doorbell.
        begin_chunk_wait(self.context.chunk_wait());
        self.reclaim();
        match pool.take(len, true) {
            Some(hold) => Ok(hold),
            None => Err(pool.full(len)),
        }
    }

    /// Collects the chunks that readers returned. Returns how many.
    fn reclaim(&self) -> usize {
        self.connections
            .read()
            .iter()
            .map(|connection| connection.reclaim())
            .sum()
    }

    /// Sends one message: head, body and tail, in order per connection.
    ///
    /// A body in a chunk of this transport is not copied (zero-copy): the chunk is
    /// on loan until the reader drops it. Another body is copied, into the ring if
    /// it is short, else into a chunk. Wakes the peer if it sleeps. Does not block.
    ///
    /// # Errors
    /// [`SendRefusal`]: the message was not sent, and the peer sees nothing of it.
    pub fn send(
        &self,
        connection: u32,
        head: &[u8],
        body: &[u8],
        tail: &[u8],
    ) -> Result<(), SendRefusal> {
        self.send_parts(connection, [head, body, tail], true)
    }

    /// As [`SharedMemoryTransport::send`], but without waking a sleeping peer. The
    /// peer finds the message at its next look, at the latest before it sleeps
    /// again.
    ///
    /// # Errors
    /// As [`SharedMemoryTransport::send`].
    pub fn send_without_wake(
        &self,
        connection: u32,
        head: &[u8],
        body: &[u8],
        tail: &[u8],
    ) -> Result<(), SendRefusal> {
        self.send_parts(connection, [head, body, tail], false)
    }

    fn send_parts(
        &self,
        connection: u32,
        parts: [&[u8]; 3],
        wakes: bool,
    ) -> Result<(), SendRefusal> {
        let sent = self.send_over(connection, parts, wakes);
        match sent {
            Ok(()) => self.counters.sent.add(),
            Err(refused) => self.counters.refuse(refused),
        }
        sent
    }

    fn send_over(
        &self,
        number: u32,
        [head, body, tail]: [&[u8]; 3],
        wakes: bool,
    ) -> Result<(), SendRefusal> {
        let connection = self.connections.read().connection(number).cloned();
        let Some(connection) = connection.filter(|connection| connection.is_connected()) else {
            return Err(SendRefusal::Disconnected);
        };
        if head.len().max(tail.len()) > RING_BYTES_MAX {
            return Err(SendRefusal::TooLong);
        }
        let body = self.body_form(body)?;
        let share = self.pool.limit_bytes() / 2;
        match connection.send(head, body, tail, share, wakes) {
            Ok(rung) => {
                if rung {
                    self.counters.doorbells_rung.add();
                }
                Ok(())
            }
            Err(SendError::Refused(refused)) => Err(refused),
            Err(SendError::Broken(reason)) => {
                self.fail(&connection, reason);
                Err(SendRefusal::Disconnected)
            }
        }
    }

    /// Chooses how a body is sent: in the ring or in a chunk.
    fn body_form<'a>(&self, body: &'a [u8]) -> Result<Body<'a>, SendRefusal> {
        if body.len() < CHUNK_BODY_MIN_BYTES {
            return Ok(Body::Inline(body));
        }
        if let Some((hold, offset)) = self.pool.find(body) {
            self.counters.zero_copy.add();
            return Ok(Body::Chunk(hold, offset, body.len()));
        }
        if body.len() <= INLINE_MAX_BYTES.min(self.options.ring_bytes / 4) {
            return Ok(Body::Inline(body));
        }
        let mut chunk = self.chunk(body.len())?;
        chunk.copy_from_slice(body);
        self.counters.copied.add();
        let (hold, offset) = chunk.into_hold();
        Ok(Body::Chunk(hold, offset, body.len()))
    }

    /// Receives the next message, round robin over the connections; `None` when
    /// there is none. `head` is cleared and receives the message's bytes, except a
    /// zero-copy body. Allocates the reference count of such a body, and when
    /// `head` grows.
    pub fn receive(&self, head: &mut Vec<u8>) -> Option<ReceivedMessage> {
        let mut receive_halves = self.receive_halves.lock();
        for _ in 0..receive_halves.list.len() {
            let at = if receive_halves.next < receive_halves.list.len() {
                receive_halves.next
            } else {
                0
            };
            receive_halves.next = at + 1;
            let half = &mut receive_halves.list[at];
            if !half.connection.is_connected() {
                // The next poll closes it.
                continue;
            }
            head.clear();
            match half.next(head) {
                Ok(Some(message)) => {
                    self.counters.received.add();
                    return Some(ReceivedMessage {
                        connection: half.connection.number,
                        peer: half.connection.peer,
                        head_len: message.head,
                        tail_len: message.tail,
                        body: message.body,
                    });
                }
                // Everything that the peer sent before it closed has been received.
                Ok(None) => {
                    if let Some(reason) = half.close_reason {
                        self.fail(&half.connection, reason);
                    }
                }
                Err(reason) => self.fail(&half.connection, reason),
            }
        }
        None
    }

    /// Arms the doorbell: from now on peers ring when they send. Call it before
    /// sleeping on [`SharedMemoryTransport::doorbell`]. Returns false if a message
    /// waits already: then receive, do not sleep.
    pub fn arm_doorbell(&self) -> bool {
        self.arm(self.context.sleeping())
    }

    fn arm(&self, word: &AtomicU64) -> bool {
        let receive_halves = self.receive_halves.lock();
        arm(word);
        let waits = receive_halves
            .list
            .iter()
            .any(|half| half.connection.is_connected() && half.has_record());
        if waits {
            disarm(word);
        }
        !waits
    }

    /// From now on peers ring only once much waits: half of a ring, of a peer's loans or of
    /// its pool's share. For a transport that has time, and sleeps with a timer. Returns
    /// false if a message waits already: then receive, do not sleep.
    pub fn defer_doorbell(&self) -> bool {
        self.arm(self.context.deferring())
    }

    /// Disarms the doorbell, also a deferred one. Call it after waking: peers need not
    /// ring any more.
    pub fn disarm_doorbell(&self) {
        let _inboxes = self.receive_halves.lock();
        disarm(self.context.sleeping());
        disarm(self.context.deferring());
    }

    /// A snapshot of the counters, connections and pool.
    pub fn counts(&self) -> ShmCounts {
        self.reclaim();
        let mut counts = self.counters.snapshot();
        let pool = self.pool.counts();
        counts.chunks_free = pool.free;
        counts.chunks_used = pool.chunks - pool.free;
        counts.segments = pool.segments;
        counts.segment_bytes = pool.bytes;
        for connection in self.connections.read().iter() {
            counts.loans += connection.loaned().0;
            if connection.is_connected() {
                counts.connections += 1;
            } else {
                counts.lingering_connections += 1;
            }
        }
        let control = self.control.lock();
        let pending = |entry: &&ConnectionEntry| matches!(entry, ConnectionEntry::Pending(_));
        counts.pending_handshakes = control.entries.values().filter(pending).count();
        counts
    }
}
