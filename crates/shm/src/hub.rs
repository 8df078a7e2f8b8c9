//! A context's shared memory: its door, its links, its pool.
//!
//! Locks, outermost first: `control`, `inboxes`, `links`, a link's own, the
//! pool's. None is held while a peer is waited for, because none ever is.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::chunk::ChunkMut;
use crate::counts::{Counters, ShmCounts};
use crate::doorbell::{Context, Starved, arm, disarm, sate, starve};
use crate::error::{Name, Reason, Refused, ShmError};
use crate::handshake::{self, Pending};
use crate::layout::{
    INLINE_MAX_BYTES, NAMED_MIN_BYTES, RING_BYTES_MAX, RING_BYTES_MIN, SEGMENT_BYTES_MAX,
};
use crate::link::{Body, Inbox, Link, SendError};
use crate::memory::named;
use crate::pool::{Exhausted, Pool};
use crate::sync::Ordering;
use crate::turn::LISTENER;
use crate::warrant::Warrant;

/// Bits of a link's number that say its slot; the rest says which link of
/// that slot it is.
const SLOT_BITS: u32 = 10;

/// Limits of a hub. All may be left as they are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HubOptions {
    /// Memory for payloads that is ever made, bytes; 256 MiB. Only what is
    /// used takes memory of the machine. Then [`Hub::chunk`] says `Full`.
    pub pool_bytes: usize,
    /// The largest message that has a chunk, bytes; 64 MiB, at most 1 GiB.
    pub largest_bytes: usize,
    /// The ring of each link and direction, bytes, a power of two from 4 KiB
    /// to 16 MiB; 256 KiB. A message's head and tail go through it, and bodies
    /// of up to 4 KiB that lie in no chunk.
    pub ring_bytes: usize,
    /// Links at a time, at most 1024; 256. More are refused.
    pub links_max: usize,
    /// Handshakes at a time; 256. More are refused.
    pub pending_max: usize,
    /// How long a handshake may take, nanoseconds; 1 s.
    pub handshake_ns: u64,
    /// Where the nonces of handshakes come from. Two hubs that meet should
    /// have different ones.
    pub seed: u64,
    /// What both ends of a link must have in common; `None`: that they are of
    /// the same user is enough.
    pub warrant: Option<Arc<dyn Warrant>>,
}

impl Default for HubOptions {
    fn default() -> Self {
        Self {
            pool_bytes: 256 << 20,
            largest_bytes: 64 << 20,
            ring_bytes: 256 << 10,
            links_max: 256,
            pending_max: 256,
            handshake_ns: 1_000_000_000,
            seed: 0,
            warrant: None,
        }
    }
}

impl HubOptions {
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
        if !(1..=1 << SLOT_BITS).contains(&self.links_max) {
            return wrong("links_max", self.links_max, "from 1 to 1024");
        }
        if self.largest_bytes > SEGMENT_BYTES_MAX / 2 {
            return wrong("largest_bytes", self.largest_bytes, "at most 1 GiB");
        }
        Ok(())
    }
}

/// What happened to links, from [`Hub::turn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkEvent {
    /// There is a link; either side may have asked for it.
    Up {
        /// The peer.
        peer: Name,
        /// The link's number, never used again by this hub.
        link: u32,
    },
    /// The link is no more; all that the peer sent before has been received.
    Down {
        /// The peer.
        peer: Name,
        /// Its number.
        link: u32,
        /// Why.
        reason: Reason,
    },
    /// A link that we asked for will not be.
    Refused {
        /// The peer.
        peer: Name,
        /// Why not.
        reason: Reason,
    },
    /// A chunk came back after [`Hub::chunk`] had found none.
    Room,
}

/// A message as it was received.
#[derive(Debug)]
pub struct Record {
    /// The link it came by.
    pub link: u32,
    /// Who sent it.
    pub peer: Name,
    /// Bytes of the head, at the front of the buffer. Where there is no
    /// `body`, the whole message, body and tail included, in one piece.
    pub head_len: usize,
    /// Bytes of the tail, behind the head in the buffer.
    pub tail_len: usize,
    /// The body, if it stayed in the sender's memory. It is given back when
    /// the last clone is dropped. Its bytes are mapped read-only.
    pub body: Option<Bytes>,
}

/// One context's shared memory. Methods take `&self`; any thread may send,
/// take chunks and drop bodies, and one at a time may turn, receive and sleep.
/// No method waits for another process.
///
/// Dropping it closes all links. Bodies that were received and chunks that
/// were frozen stay readable until they are dropped themselves.
#[derive(Debug)]
pub struct Hub {
    pub(crate) name: Name,
    pub(crate) options: HubOptions,
    pub(crate) context: Arc<Context>,
    pub(crate) epoll: OwnedFd,
    pub(crate) listener: OwnedFd,
    pub(crate) pool: Arc<Pool>,
    pub(crate) control: Mutex<Control>,
    pub(crate) inboxes: Mutex<Inboxes>,
    pub(crate) links: RwLock<Slots>,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) entries: HashMap<u64, Entry>,
    pub(crate) token: u64,
    pub(crate) chance: u64,
}

#[derive(Debug)]
pub(crate) enum Entry {
    Pending(Box<Pending>),
    Link(Arc<Link>),
}

#[derive(Debug, Default)]
pub(crate) struct Inboxes {
    pub(crate) list: Vec<Inbox>,
    /// Whose turn it is.
    next: usize,
}

/// Links by number, those that are down and still hold chunks included.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub(crate) list: Vec<Option<Arc<Link>>>,
    made: u32,
}

impl Slots {
    fn link(&self, number: u32) -> Option<&Arc<Link>> {
        let slot = number & ((1 << SLOT_BITS) - 1);
        let link = self.list.get(slot as usize)?.as_ref()?;
        (link.number == number).then_some(link)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.list.iter().flatten()
    }

    /// A number for one more.
    pub(crate) fn vacancy(&mut self, links_max: usize) -> Option<u32> {
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

    pub(crate) fn put(&mut self, link: Arc<Link>) {
        let slot = link.number & ((1 << SLOT_BITS) - 1);
        self.list[slot as usize] = Some(link);
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if self.link(number).is_some() {
            let slot = number & ((1 << SLOT_BITS) - 1);
            self.list[slot as usize] = None;
        }
    }
}

impl Hub {
    /// Opens a hub that others of this host, user and network namespace reach
    /// by `name`.
    ///
    /// # Errors
    /// [`ShmError::Option`] for a limit out of range; [`ShmError::Open`] when
    /// the system refuses memory, a descriptor or the name (there is a hub of
    /// that name already, in this or another process).
    pub fn open(name: Name, options: HubOptions) -> Result<Self, ShmError> {
        options.check()?;
        let context = Context::new().map_err(ShmError::Open)?;
        let open = |action: &'static str| move |e| ShmError::Open(named(action, e));
        let listener = handshake::listen(&name).map_err(open("listen for links"))?;
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(open("create an epoll set"))?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )
        .map_err(open("watch for links"))?;
        let starved = Starved::new(Arc::clone(&context));
        Ok(Self {
            name,
            pool: Pool::new(options.pool_bytes, options.largest_bytes, starved),
            control: Mutex::new(Control {
                entries: HashMap::new(),
                token: LISTENER,
                chance: options.seed,
            }),
            options,
            context,
            epoll,
            listener,
            inboxes: Mutex::default(),
            links: RwLock::default(),
            counters: Counters::default(),
        })
    }

    /// What this hub is called.
    pub fn name(&self) -> Name {
        self.name
    }

    /// Readable when [`Hub::turn`] has something to do: an epoll set of the
    /// listener and the links' sockets, quiet while links are only used.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Rung by peers while this hub sleeps, and when a chunk comes back that
    /// was waited for. An eventfd to be watched edge-triggered
    /// and never read.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.context.bell.as_fd()
    }

    /// Asks `peer` for a link; how that ends comes from [`Hub::turn`]. Nothing
    /// happens if there is a link or a handshake already.
    ///
    /// # Errors
    /// [`ShmError::Refused`] when there can be none now: nobody listens, it is
    /// another user's, or there are too many.
    pub fn connect(&self, peer: Name, now: u64) -> Result<(), ShmError> {
        let refused = |reason| {
            self.counters.handshakes_failed.add();
            ShmError::Refused { peer, reason }
        };
        let mut control = self.control.lock();
        if control.knows(peer) {
            return Ok(());
        }
        self.room_for_one_more(&control).map_err(refused)?;
        let nonce = control.nonce();
        let deadline = now.saturating_add(self.options.handshake_ns);
        let pending = Pending::outgoing(peer, &self.ours(), nonce, deadline).map_err(refused)?;
        self.add_pending(&mut control, pending, now)
            .map_err(refused)
    }

    /// Ends the link to `peer`, or the handshake with it. No event follows.
    /// What it holds of our pool stays lent until it has given it back.
    pub fn disconnect(&self, peer: Name) {
        let mut control = self.control.lock();
        control
            .entries
            .retain(|_, entry| !matches!(entry, Entry::Pending(p) if p.peer == Some(peer)));
        let links = control.entries.values().filter_map(|entry| match entry {
            Entry::Link(link) if link.peer == peer && link.is_up() => Some(Arc::clone(link)),
            _ => None,
        });
        for link in links.collect::<Vec<_>>() {
            link.fail(Reason::Disconnected);
            self.finish(&mut control, &link, Reason::Disconnected);
        }
    }

    /// Does what is due: accepts, shakes hands, reads sockets, ends what is
    /// over. To be called when [`Hub::descriptor`] is readable, after the
    /// doorbell rang, and at the time it returned; calling it more often does
    /// no harm. Events are told without a lock held.
    pub fn turn(&self, now: u64, events: &mut dyn FnMut(LinkEvent)) -> Option<u64> {
        let mut told = Vec::new();
        let deadline = {
            let mut control = self.control.lock();
            self.look_at_sockets(&mut control, now, &mut told);
            self.look_at_time(&mut control, now, &mut told)
        };
        if self.ends_starvation() {
            told.push(LinkEvent::Room);
        }
        told.into_iter().for_each(events);
        deadline
    }

    /// Whether somebody waits for a chunk and one is there now. If none is, the next
    /// that comes back rings again.
    fn ends_starvation(&self) -> bool {
        let starved = self.context.starved();
        let mut seen = starved.load(Ordering::Relaxed);
        if seen & 1 == 0 {
            return false;
        }
        let has_room = || {
            self.reclaim();
            self.pool.counts().free > 0
        };
        // What is found now is told here. Not so what comes back behind the second look.
        self.pool.hush();
        if !has_room() {
            starve(starved);
            seen = starved.load(Ordering::Relaxed);
            if !has_room() {
                return false;
            }
        }
        sate(starved, seen);
        true
    }

    /// Whether the link is there.
    pub fn is_up(&self, link: u32) -> bool {
        self.links.read().link(link).is_some_and(|l| l.is_up())
    }

    /// A chunk for a message of `len` bytes, warm if one was used before. Its
    /// bytes begin 60 behind a multiple of 64, so that what follows a CDR
    /// encapsulation is aligned. No allocation in steady state.
    ///
    /// # Errors
    /// [`Exhausted`]: the message is larger than any chunk, or all are in use
    /// and the pool is at its limit. In that case [`LinkEvent::Room`] follows
    /// when one has come back.
    pub fn chunk(&self, len: usize) -> Result<ChunkMut, Exhausted> {
        let hold = self
            .hold(len)
            .inspect_err(|_| self.counters.exhausted.add());
        hold.map(|hold| ChunkMut::new(hold, len))
    }

    /// A chunk as [`Hub::chunk`] gives it, if there is one whose memory was used
    /// before. If not, the doorbell rings when one has come back.
    pub fn warm_chunk(&self, len: usize) -> Option<ChunkMut> {
        let take = || self.pool.take_warm(len);
        let hold = take().or_else(|| {
            self.reclaim();
            take()
        });
        let hold = hold.or_else(|| {
            starve(self.context.starved());
            self.reclaim();
            take()
        });
        hold.map(|hold| ChunkMut::new(hold, len))
    }

    /// Brings in the memory of the chunk that [`Hub::chunk`] would give next for
    /// `len` bytes, a new segment's if no chunk is free. Does nothing where the pool
    /// is used up.
    pub fn warm_ahead(&self, len: usize) {
        let take = || self.pool.take(len, false);
        if take().is_none() && self.reclaim() == 0 && self.grow(len).is_ok() {
            take();
        }
    }

    fn grow(&self, len: usize) -> Result<(), Exhausted> {
        let retired = self.pool.grow(len)?;
        let links = self.links.read();
        links.iter().for_each(|link| link.retire(&retired));
        Ok(())
    }

    fn hold(&self, len: usize) -> Result<crate::pool::Hold, Exhausted> {
        let pool = &self.pool;
        if let Some(hold) = pool.take(len, false) {
            return Ok(hold);
        }
        self.reclaim();
        // Another thread may take what was made for this one; not for ever.
        for _ in 0..8 {
            if let Some(hold) = pool.take(len, false) {
                return Ok(hold);
            }
            match self.grow(len) {
                Ok(()) => {}
                Err(e @ Exhausted::TooLarge { .. }) => return Err(e),
                Err(_) => break,
            }
        }
        if let Some(hold) = pool.take(len, true) {
            return Ok(hold);
        }
        // Whoever gives one back from now on rings.
        starve(self.context.starved());
        self.reclaim();
        match pool.take(len, true) {
            Some(hold) => Ok(hold),
            None => Err(pool.full(len)),
        }
    }

    /// Takes back what readers have given back; returns how many chunks.
    fn reclaim(&self) -> usize {
        self.links.read().iter().map(|link| link.reclaim()).sum()
    }

    /// Sends one message: head, body and tail. A body that lies in a chunk of
    /// ours is named, not copied, and the chunk lent until the reader drops
    /// it; another one is copied, into the ring if it is short, else into a
    /// chunk. The peer is woken if it sleeps. Order is kept per link.
    ///
    /// # Errors
    /// [`Refused`]: the message was not sent, and the peer sees nothing of it.
    pub fn send(&self, link: u32, head: &[u8], body: &[u8], tail: &[u8]) -> Result<(), Refused> {
        self.send_parts(link, [head, body, tail], true)
    }

    /// As [`Hub::send`], but a peer that sleeps is not woken: it finds the
    /// message when it looks next, at the latest before it sleeps again.
    ///
    /// # Errors
    /// As [`Hub::send`].
    pub fn send_quietly(
        &self,
        link: u32,
        head: &[u8],
        body: &[u8],
        tail: &[u8],
    ) -> Result<(), Refused> {
        self.send_parts(link, [head, body, tail], false)
    }

    fn send_parts(&self, link: u32, parts: [&[u8]; 3], wakes: bool) -> Result<(), Refused> {
        let sent = self.send_on(link, parts, wakes);
        match sent {
            Ok(()) => self.counters.sent.add(),
            Err(refused) => self.counters.refuse(refused),
        }
        sent
    }

    fn send_on(
        &self,
        number: u32,
        [head, body, tail]: [&[u8]; 3],
        wakes: bool,
    ) -> Result<(), Refused> {
        let link = self.links.read().link(number).cloned();
        let Some(link) = link.filter(|link| link.is_up()) else {
            return Err(Refused::Down);
        };
        if head.len().max(tail.len()) > RING_BYTES_MAX {
            return Err(Refused::TooLong);
        }
        let body = self.place(body)?;
        let share = self.pool.limit_bytes() / 2;
        match link.send((head, body, tail), share, wakes) {
            Ok(rung) => {
                if rung {
                    self.counters.rung.add();
                }
                Ok(())
            }
            Err(SendError::Refused(refused)) => Err(refused),
            Err(SendError::Broken(reason)) => {
                self.fail(&link, reason);
                Err(Refused::Down)
            }
        }
    }

    /// Where a body is to travel.
    fn place<'a>(&self, body: &'a [u8]) -> Result<Body<'a>, Refused> {
        if body.len() < NAMED_MIN_BYTES {
            return Ok(Body::Inline(body));
        }
        if let Some((hold, offset)) = self.pool.find(body) {
            self.counters.named.add();
            return Ok(Body::Named(hold, offset, body.len()));
        }
        if body.len() <= INLINE_MAX_BYTES.min(self.options.ring_bytes / 4) {
            return Ok(Body::Inline(body));
        }
        let mut chunk = self.chunk(body.len())?;
        chunk.copy_from_slice(body);
        self.counters.copied.add();
        let (hold, offset) = chunk.into_hold();
        Ok(Body::Named(hold, offset, body.len()))
    }

    /// Takes the next message, from the links in turn; `None` when nothing
    /// waits. `head` is cleared and gets the message's bytes except a body
    /// that stayed where it was. Allocates for the count of owners of such a
    /// body, and while `head` grows.
    pub fn receive(&self, head: &mut Vec<u8>) -> Option<Record> {
        let mut inboxes = self.inboxes.lock();
        for _ in 0..inboxes.list.len() {
            let at = if inboxes.next < inboxes.list.len() {
                inboxes.next
            } else {
                0
            };
            inboxes.next = at + 1;
            let inbox = &mut inboxes.list[at];
            if !inbox.link.is_up() {
                // The next turn ends it.
                continue;
            }
            head.clear();
            match inbox.next(head) {
                Ok(Some(message)) => {
                    self.counters.received.add();
                    return Some(Record {
                        link: inbox.link.number,
                        peer: inbox.link.peer,
                        head_len: message.head,
                        tail_len: message.tail,
                        body: message.body,
                    });
                }
                // All that it sent before it ended has been taken.
                Ok(None) => {
                    if let Some(reason) = inbox.ending {
                        self.fail(&inbox.link, reason);
                    }
                }
                Err(reason) => self.fail(&inbox.link, reason),
            }
        }
        None
    }

    /// To be called before sleeping on [`Hub::doorbell`]: from now on peers
    /// ring. False if something waits already: do not sleep, receive.
    pub fn before_sleep(&self) -> bool {
        let inboxes = self.inboxes.lock();
        arm(self.context.sleeping());
        crate::fault!("armed");
        let waits = inboxes
            .list
            .iter()
            .any(|inbox| inbox.link.is_up() && inbox.waits());
        if waits {
            disarm(self.context.sleeping());
        }
        !waits
    }

    /// To be called after waking: peers need not ring any more.
    pub fn awake(&self) {
        let _inboxes = self.inboxes.lock();
        disarm(self.context.sleeping());
    }

    /// What was done and what there is.
    pub fn counts(&self) -> ShmCounts {
        self.reclaim();
        let mut counts = self.counters.snapshot();
        let pool = self.pool.counts();
        counts.chunks_free = pool.free;
        counts.chunks_used = pool.chunks - pool.free;
        counts.segments = pool.segments;
        counts.segment_bytes = pool.bytes;
        for link in self.links.read().iter() {
            counts.loans += link.lent().0;
            if link.is_up() {
                counts.links += 1;
            } else {
                counts.lingering += 1;
            }
        }
        let control = self.control.lock();
        let pending = |entry: &&Entry| matches!(entry, Entry::Pending(_));
        counts.pending = control.entries.values().filter(pending).count();
        counts
    }
}
