//! One link: what we lend and write to a peer ([`Link`]), and what we borrow
//! and read of it ([`Inbox`]).
//!
//! Both stand on the same [`Ends`]: our memory, theirs, their context page,
//! their doorbell, the socket. Sending takes one lock of the link; the peer is
//! never waited for. A link that is down frees what it lent as soon as that is
//! safe: at once when the peer's process has ended or is broken, else when it
//! has given all back, which its half of the socket says by closing.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::io::Errno;

use crate::chunk::Loaned;
use crate::doorbell::{Bell, must_ring, must_tell};
use crate::error::{Name, Reason, Refused};
use crate::layout::{
    AT_HEAD, AT_RETURNED, AT_RING, AT_SLEEPING, AT_STARVED, AT_TAIL, LOANS_MAX, SEGMENT_BYTES_MAX,
    SEGMENTS_MAX,
};
use crate::life::Life;
use crate::loans::{Loan, Loans, give_back};
use crate::memory::{OwnMemory, PeerMemory};
use crate::packet::{self, Incoming, Packet};
use crate::pool::Hold;
use crate::ring::{Consumer, Header, Named, Nonsense, NotPushed, Producer};
use crate::sync::{AtomicU32, AtomicU64};

/// Packets taken from one socket per turn; the rest comes with the next.
const PACKETS_PER_TURN: usize = 64;

/// What both directions of a link stand on.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) own: OwnMemory,
    pub(crate) theirs: PeerMemory,
    pub(crate) context: PeerMemory,
    pub(crate) bell: Bell,
    pub(crate) socket: OwnedFd,
    /// The peer's process, where it can be watched.
    pub(crate) life: Option<Life>,
}

impl Ends {
    fn own_ring(&self) -> &[AtomicU64] {
        self.own.words(AT_RING, (self.own.len() - AT_RING) / 8)
    }

    fn their_ring(&self) -> &[AtomicU64] {
        self.theirs
            .words(AT_RING, (self.theirs.len() - AT_RING) / 8)
    }

    fn their_returned(&self) -> &[AtomicU32] {
        self.theirs.halves(AT_RETURNED, LOANS_MAX)
    }
}

/// What we have of the peer's chunks on one link. While there is one of these,
/// the peer may not write the chunks that it lent; dropping the last tells it.
#[derive(Debug)]
pub(crate) struct Borrowed {
    ends: Arc<Ends>,
    /// The lack of chunks for which we have rung.
    rung: AtomicU64,
}

impl Borrowed {
    pub(crate) fn give_back(&self, loan: Loan) {
        crate::fault!("loan-back-before");
        let ends = &self.ends;
        give_back(ends.own.halves(AT_RETURNED, LOANS_MAX), loan);
        crate::fault!("loan-back-after");
        if must_tell(ends.context.word(AT_STARVED), &self.rung) {
            ends.bell.ring();
        }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.ends.socket, rustix::net::Shutdown::Write);
    }
}

/// The sending side of a link, and its state.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) number: u32,
    pub(crate) peer: Name,
    /// What epoll calls it.
    pub(crate) token: u64,
    pub(crate) ends: Arc<Ends>,
    out: Mutex<Out>,
    up: AtomicBool,
    reason: Mutex<Option<Reason>>,
}

#[derive(Debug, Default)]
struct Out {
    ring: Producer,
    loans: Loans<Hold>,
    lent_bytes: usize,
    /// One bit per segment that the peer was given.
    told: Vec<u64>,
    /// Segments that are no more, which the peer has not been told yet.
    retired: Vec<u32>,
    /// The sleep for which we have rung.
    rung: u64,
}

/// How a message's body travels.
pub(crate) enum Body<'a> {
    Inline(&'a [u8]),
    /// Lies in this chunk, at this offset of its segment, that long.
    Named(Hold, usize, usize),
}

impl Link {
    pub(crate) fn new(number: u32, peer: Name, token: u64, ends: Arc<Ends>) -> Arc<Self> {
        Arc::new(Self {
            number,
            peer,
            token,
            ends,
            out: Mutex::default(),
            up: AtomicBool::new(true),
            reason: Mutex::new(None),
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// Marks it as down; the first reason stays. Whether this was the first.
    pub(crate) fn fail(&self, reason: Reason) -> bool {
        self.up.store(false, Ordering::Release);
        let mut kept = self.reason.lock();
        let first = kept.is_none();
        kept.get_or_insert(reason);
        first
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        *self.reason.lock()
    }

    /// Sends one message, and wakes the peer if it `wakes`; whether that was
    /// needed. At most `share_bytes` of chunks may be lent at a time. Does not wait; allocates only while loans become more than ever.
    pub(crate) fn send(
        &self,
        (head, body, tail): (&[u8], Body<'_>, &[u8]),
        share_bytes: usize,
        wakes: bool,
    ) -> Result<bool, SendError> {
        let mut guard = self.out.lock();
        if !self.is_up() {
            return Err(SendError::Refused(Refused::Down));
        }
        let out = &mut *guard;
        let (inline, named) = match body {
            Body::Inline(bytes) => (bytes, None),
            Body::Named(hold, offset, len) => (
                &[] as &[u8],
                Some(self.lend(out, hold, offset, len, share_bytes)?),
            ),
        };
        let ends = &*self.ends;
        let pushed = out.ring.push(
            ends.own_ring(),
            ends.own.word(AT_TAIL),
            ends.theirs.word(AT_HEAD),
            [head, inline, tail],
            named,
        );
        if let Err(not) = pushed {
            if let Some(named) = named {
                let loan = Loan {
                    slot: named.slot,
                    generation: named.generation,
                };
                if let Some(hold) = out.loans.cancel(loan) {
                    out.lent_bytes -= hold.segment.stride();
                }
            }
            return Err(match not {
                NotPushed::Full => SendError::Refused(Refused::Full),
                NotPushed::TooLong => SendError::Refused(Refused::TooLong),
                NotPushed::Nonsense(Nonsense(what)) => SendError::Broken(Reason::Nonsense(what)),
            });
        }
        crate::fault!("record-visible");
        let ring = wakes && must_ring(ends.context.word(AT_SLEEPING), &mut out.rung);
        drop(guard);
        if ring {
            ends.bell.ring();
        }
        Ok(ring)
    }

    /// Writes the loan of a chunk into the book and makes sure that the peer
    /// can find it.
    fn lend(
        &self,
        out: &mut Out,
        hold: Hold,
        offset: usize,
        len: usize,
        share_bytes: usize,
    ) -> Result<Named, SendError> {
        let returned = self.ends.their_returned();
        let lent_bytes = &mut out.lent_bytes;
        let mut back = |hold: Hold| *lent_bytes -= hold.segment.stride();
        out.loans.reclaim_some(returned, &mut back);
        let stride = hold.segment.stride();
        if *lent_bytes + stride > share_bytes || out.loans.is_full() {
            let mut back = |hold: Hold| *lent_bytes -= hold.segment.stride();
            out.loans.reclaim_all(returned, &mut back);
        }
        if *lent_bytes + stride > share_bytes {
            return Err(SendError::Refused(Refused::Share));
        }
        self.tell_retired(&mut out.retired);
        let segment = hold.segment.number;
        let (word, bit) = bit_of(segment);
        if out.told.get(word).is_none_or(|bits| bits & bit == 0) {
            self.tell_segment(&hold)?;
            if out.told.len() <= word {
                out.told.resize(word + 1, 0);
            }
            out.told[word] |= bit;
        }
        let Some(loan) = out.loans.lend(hold) else {
            return Err(SendError::Refused(Refused::Loans));
        };
        out.lent_bytes += stride;
        crate::fault!("loan-written");
        Ok(Named {
            segment,
            offset: offset as u32,
            bytes: len as u32,
            slot: loan.slot,
            generation: loan.generation,
        })
    }

    fn tell_segment(&self, hold: &Hold) -> Result<(), SendError> {
        let packet = Packet::Segment {
            number: hold.segment.number,
            bytes: hold.segment.memory.len() as u64,
        };
        let sent = packet::send(self.ends.socket.as_fd(), &packet, &[hold.segment.fd()]);
        crate::fault!("segment-sent");
        match sent {
            Ok(()) => Ok(()),
            // Its socket is full, or too many descriptors are under way.
            Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => {
                Err(SendError::Refused(Refused::Segment))
            }
            Err(_) => Err(SendError::Refused(Refused::Down)),
        }
    }

    /// Tells the peer that these segments are named no more, if it has them.
    pub(crate) fn retire(&self, numbers: &[u32]) {
        let mut guard = self.out.lock();
        let out = &mut *guard;
        for number in numbers {
            let (word, bit) = bit_of(*number);
            if let Some(bits) = out.told.get_mut(word)
                && *bits & bit != 0
            {
                *bits &= !bit;
                out.retired.push(*number);
            }
        }
        self.tell_retired(&mut out.retired);
    }

    /// As many as its socket takes; the others before the next loan.
    fn tell_retired(&self, retired: &mut Vec<u32>) {
        while let Some(number) = retired.last() {
            let packet = Packet::Retire(*number);
            if packet::send(self.ends.socket.as_fd(), &packet, &[]) == Err(Errno::AGAIN) {
                return;
            }
            retired.pop();
        }
    }

    /// Takes back what was given back; returns how many chunks.
    pub(crate) fn reclaim(&self) -> usize {
        let mut guard = self.out.lock();
        let out = &mut *guard;
        let back = |hold: Hold| out.lent_bytes -= hold.segment.stride();
        out.loans.reclaim_all(self.ends.their_returned(), back)
    }

    /// Takes back everything: the peer cannot read any more, or has forfeited.
    pub(crate) fn end_loans(&self) {
        let mut out = self.out.lock();
        out.loans.end(drop);
        out.lent_bytes = 0;
    }

    /// Loans and their bytes.
    pub(crate) fn lent(&self) -> (usize, usize) {
        let out = self.out.lock();
        (out.loans.len(), out.lent_bytes)
    }
}

/// Where a segment's bit is.
fn bit_of(segment: u32) -> (usize, u64) {
    (segment as usize / 64, 1 << (segment % 64))
}

/// Why a message was not sent.
pub(crate) enum SendError {
    Refused(Refused),
    /// The peer is broken and the link is to be closed.
    Broken(Reason),
}

impl From<Refused> for SendError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// The receiving side of a link.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) link: Arc<Link>,
    ring: Consumer,
    segments: HashMap<u32, Arc<PeerMemory>>,
    borrowed: Arc<Borrowed>,
    /// The peer has ended the link; what it wrote before is still to be read.
    pub(crate) ending: Option<Reason>,
}

/// One message as it came.
pub(crate) struct Message {
    pub(crate) head: usize,
    pub(crate) tail: usize,
    pub(crate) body: Option<Bytes>,
}

impl Inbox {
    pub(crate) fn new(link: Arc<Link>) -> Self {
        let borrowed = Arc::new(Borrowed {
            ends: Arc::clone(&link.ends),
            rung: AtomicU64::new(0),
        });
        Self {
            link,
            ring: Consumer::default(),
            segments: HashMap::new(),
            borrowed,
            ending: None,
        }
    }

    /// Whether a message waits.
    pub(crate) fn waits(&self) -> bool {
        self.ring.waits(self.link.ends.theirs.word(AT_TAIL))
    }

    /// Takes the next message: its bytes are appended to `out`.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> Result<Option<Message>, Reason> {
        let ends = Arc::clone(&self.borrowed.ends);
        let ring = ends.their_ring();
        let broken = |Nonsense(what)| Reason::Nonsense(what);
        let Some(header) = self
            .ring
            .next(ring, ends.theirs.word(AT_TAIL))
            .map_err(broken)?
        else {
            return Ok(None);
        };
        let body = match header.named {
            Some(named) => Some(self.borrow(named)?),
            None => None,
        };
        self.ring.copy(ring, &header, out);
        crate::fault!("record-read");
        self.ring.advance(&header, ends.own.word(AT_HEAD));
        crate::fault!("record-let-go");
        Ok(Some(message(&header, body)))
    }

    /// The body that a record names, once it is known to be there.
    fn borrow(&mut self, named: Named) -> Result<Bytes, Reason> {
        if usize::from(named.slot) >= LOANS_MAX {
            return Err(Reason::Nonsense("a loan's impossible slot"));
        }
        if !self.segments.contains_key(&named.segment) {
            // It was handed over before the record was written.
            self.take_packets()?;
        }
        let Some(memory) = self.segments.get(&named.segment) else {
            return Err(Reason::Nonsense("a segment that was never handed over"));
        };
        let (offset, len) = (named.offset as usize, named.bytes as usize);
        if offset.checked_add(len).is_none_or(|end| end > memory.len()) {
            return Err(Reason::Nonsense("a body beyond its segment"));
        }
        let loan = Loan {
            slot: named.slot,
            generation: named.generation,
        };
        let (memory, borrowed) = (Arc::clone(memory), Arc::clone(&self.borrowed));
        Ok(Loaned::bytes(memory, (offset, len), loan, borrowed))
    }

    /// Reads the socket. An end of the link is noted in `ending`.
    pub(crate) fn take_packets(&mut self) -> Result<(), Reason> {
        for _ in 0..PACKETS_PER_TURN {
            match packet::receive(self.link.ends.socket.as_fd()) {
                Incoming::Nothing => {
                    // Another process may keep its socket open.
                    if self.link.ends.life.as_ref().is_some_and(Life::is_over) {
                        self.ending.get_or_insert(Reason::Ended);
                    }
                    break;
                }
                Incoming::Packet(Packet::Segment { number, bytes }, descriptors) => {
                    self.add_segment(number, bytes, &descriptors)?;
                }
                // Bodies that are held keep it mapped.
                Incoming::Packet(Packet::Retire(number), _) => {
                    self.segments.remove(&number);
                }
                Incoming::Packet(Packet::Bye, _) => {
                    self.ending.get_or_insert(Reason::Closed);
                }
                Incoming::End => {
                    self.ending.get_or_insert(Reason::Ended);
                    break;
                }
                Incoming::Packet(..) => return Err(Reason::Nonsense("a packet out of place")),
                Incoming::Nonsense => return Err(Reason::Nonsense("not a packet")),
            }
        }
        Ok(())
    }

    fn add_segment(
        &mut self,
        number: u32,
        bytes: u64,
        descriptors: &[OwnedFd],
    ) -> Result<(), Reason> {
        let [descriptor] = descriptors else {
            return Err(Reason::Nonsense("a segment without its descriptor"));
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes > SEGMENT_BYTES_MAX || self.segments.len() >= SEGMENTS_MAX {
            return Err(Reason::Nonsense("too many or too large segments"));
        }
        let memory = PeerMemory::map(descriptor.as_fd(), bytes);
        let memory = memory.map_err(|unfit| Reason::Unfit(unfit.0))?;
        match self.segments.insert(number, Arc::new(memory)) {
            None => Ok(()),
            Some(_) => Err(Reason::Nonsense("a segment handed over twice")),
        }
    }
}

fn message(header: &Header, body: Option<Bytes>) -> Message {
    let (head, inline, tail) = (header.head, header.body, header.tail);
    match body {
        Some(_) => Message {
            head: head as usize,
            tail: tail as usize,
            body,
        },
        // In one piece already.
        None => Message {
            head: (head as usize) + (inline as usize) + (tail as usize),
            tail: 0,
            body: None,
        },
    }
}
