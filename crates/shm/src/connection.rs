//! One shared-memory connection: the sending half ([`Connection`]), which puts
//! chunks on loan, and the receiving half ([`ReceiveHalf`]), which borrows and
//! reads.
//!
//! Both use the same [`ConnectionResources`]: own memory, the peer's memory, its
//! wake page, its doorbell, the socket. Sending takes one lock of the connection
//! and never waits for the peer. A closed connection frees its loans as soon as
//! that is safe: at once when the peer's process has exited or violated the
//! protocol. Otherwise when the peer has returned all of them, which it signals by
//! closing its half of the socket.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::io::Errno;

use crate::chunk::LoanedBody;
use crate::doorbell::{Doorbell, WakeUp, WokenSleeps, must_wake_chunk_waiter};
use crate::error::{DisconnectReason, PeerName, SendRefusal};
use crate::layout::{
    AT_CHUNK_WAIT, AT_DEFERRING, AT_HEAD, AT_RETURNED, AT_RING, AT_SLEEPING, AT_TAIL, LOANS_MAX,
    SEGMENT_BYTES_MAX, SEGMENTS_MAX,
};
use crate::loans::{Loan, Loans, give_back};
use crate::memory::{OwnMemory, PeerMemory};
use crate::packet::{self, Incoming, Packet};
use crate::pool::ChunkHold;
use crate::process_watch::ProcessWatch;
use crate::ring::{
    ChunkDescriptor, Consumer, NotPushed, Producer, ProtocolViolation, RecordHeader,
};
use crate::sync::{AtomicU32, AtomicU64};

/// Packets read from one socket per poll. The rest follows with the next poll.
const PACKETS_PER_POLL: usize = 64;

/// Memory, doorbell and socket that both directions of a connection use.
#[derive(Debug)]
pub(crate) struct ConnectionResources {
    pub(crate) own: OwnMemory,
    pub(crate) peer: PeerMemory,
    pub(crate) context: PeerMemory,
    pub(crate) bell: Doorbell,
    pub(crate) socket: OwnedFd,
    /// Watches the peer's process, where the kernel allows it.
    pub(crate) process: Option<ProcessWatch>,
}

impl ConnectionResources {
    fn own_ring(&self) -> &[AtomicU64] {
        self.own.words(AT_RING, (self.own.len() - AT_RING) / 8)
    }

    fn their_ring(&self) -> &[AtomicU64] {
        self.peer.words(AT_RING, (self.peer.len() - AT_RING) / 8)
    }

    fn their_returned(&self) -> &[AtomicU32] {
        self.peer.words_u32(AT_RETURNED, LOANS_MAX)
    }
}

/// The peer's chunks that this process holds on one connection. While it exists,
/// the peer must not overwrite the chunks on loan. Dropping the last one signals
/// the peer.
#[derive(Debug)]
pub(crate) struct BorrowedChunks {
    resources: Arc<ConnectionResources>,
    /// Number of the peer's chunk wait for which the doorbell was rung.
    rung_for: AtomicU64,
}

impl ConnectionResources {
    /// Wakes a peer whose doorbell a misbehaving process has emptied: by a packet,
    /// on the socket that no other process has.
    fn wake_without_doorbell(&self) {
        if !self.bell.is_usable() {
            let _ = packet::send(self.socket.as_fd(), &Packet::Wake, &[]);
        }
    }
}

impl BorrowedChunks {
    pub(crate) fn give_back(&self, loan: Loan) {
        let resources = &self.resources;
        give_back(resources.own.words_u32(AT_RETURNED, LOANS_MAX), loan);
        if must_wake_chunk_waiter(resources.context.word(AT_CHUNK_WAIT), &self.rung_for) {
            resources.bell.ring();
            resources.wake_without_doorbell();
        }
    }
}

impl Drop for BorrowedChunks {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.resources.socket, rustix::net::Shutdown::Write);
    }
}

/// The sending half of a connection, and its state.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) number: u32,
    pub(crate) peer: PeerName,
    /// The connection's epoll token.
    pub(crate) token: u64,
    pub(crate) resources: Arc<ConnectionResources>,
    out: Mutex<SendState>,
    up: AtomicBool,
    reason: Mutex<Option<DisconnectReason>>,
}

#[derive(Debug, Default)]
struct SendState {
    ring: Producer,
    loans: Loans<ChunkHold>,
    loaned_bytes: usize,
    /// One bit per segment that was sent to the peer.
    segments_sent: Vec<u64>,
    /// Retired segments that the peer was not informed of yet.
    retired: Vec<u32>,
    woken: WokenSleeps,
}

impl SendState {
    /// Whether much waits for the peer, so that it must not go on sleeping. Much is half of
    /// the ring, of the loans, or of the bytes that it may hold.
    fn has_much_waiting(&mut self, resources: &ConnectionResources, share_bytes: usize) -> bool {
        2 * self.loaned_bytes >= share_bytes
            || 2 * self.loans.len() >= LOANS_MAX
            || self.ring.is_half_full(
                resources.own_ring().len() as u64,
                resources.peer.word(AT_HEAD),
            )
    }
}

/// How a message's body is sent.
pub(crate) enum Body<'a> {
    Inline(&'a [u8]),
    /// In this chunk, at this offset of its segment, with this length.
    Chunk(ChunkHold, usize, usize),
}

impl Connection {
    pub(crate) fn new(
        number: u32,
        peer: PeerName,
        token: u64,
        resources: Arc<ConnectionResources>,
    ) -> Arc<Self> {
        Arc::new(Self {
            number,
            peer,
            token,
            resources,
            out: Mutex::default(),
            up: AtomicBool::new(true),
            reason: Mutex::new(None),
        })
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// Marks the connection as failed. The first reason is kept. Returns whether
    /// this was the first.
    pub(crate) fn fail(&self, reason: DisconnectReason) -> bool {
        self.up.store(false, Ordering::Release);
        let mut kept = self.reason.lock();
        let first = kept.is_none();
        kept.get_or_insert(reason);
        first
    }

    pub(crate) fn reason(&self) -> Option<DisconnectReason> {
        *self.reason.lock()
    }

    /// Sends one message, and wakes the peer if `wakes` is set. A peer that sleeps
    /// deferred is woken if much waits for it. Returns whether the doorbell was rung. At
    /// most `share_bytes` of chunks may be on loan at a time. Does not wait. Allocates only
    /// while the number of loans reaches a new maximum.
    pub(crate) fn send(
        &self,
        head: &[u8],
        body: Body<'_>,
        tail: &[u8],
        share_bytes: usize,
        wakes: bool,
    ) -> Result<bool, SendError> {
        let mut guard = self.out.lock();
        if !self.is_connected() {
            return Err(SendError::Refused(SendRefusal::Disconnected));
        }
        let out = &mut *guard;
        let (inline, descriptor) = match body {
            Body::Inline(bytes) => (bytes, None),
            Body::Chunk(hold, offset, len) => (
                &[] as &[u8],
                Some(self.loan(out, hold, offset, len, share_bytes)?),
            ),
        };
        let resources = &*self.resources;
        let pushed = out.ring.push(
            resources.own_ring(),
            resources.own.word(AT_TAIL),
            resources.peer.word(AT_HEAD),
            [head, inline, tail],
            descriptor,
        );
        if let Err(not) = pushed {
            if let Some(descriptor) = descriptor {
                let loan = Loan {
                    slot: descriptor.slot,
                    generation: descriptor.generation,
                };
                if let Some(hold) = out.loans.cancel(loan) {
                    out.loaned_bytes -= hold.segment.stride();
                }
            }
            return Err(match not {
                NotPushed::Full => SendError::Refused(SendRefusal::RingFull),
                NotPushed::TooLong => SendError::Refused(SendRefusal::TooLong),
                NotPushed::ProtocolViolation(ProtocolViolation(what)) => {
                    SendError::Broken(DisconnectReason::ProtocolViolation(what))
                }
            });
        }
        let mut step = if wakes {
            out.woken.next_step(resources.context.word(AT_SLEEPING))
        } else {
            WakeUp::NotNeeded
        };
        if step == WakeUp::NotNeeded && out.has_much_waiting(resources, share_bytes) {
            let deferring = resources.context.word(AT_DEFERRING);
            if out.woken.must_end_deferred_sleep(deferring) {
                step = WakeUp::Ring;
            }
        }
        drop(guard);
        match step {
            WakeUp::NotNeeded => {}
            WakeUp::Ring => resources.bell.ring(),
            WakeUp::CheckDoorbell => resources.wake_without_doorbell(),
        }
        Ok(step == WakeUp::Ring)
    }

    /// Records the loan of a chunk, and makes sure that the peer has the chunk's
    /// segment.
    fn loan(
        &self,
        out: &mut SendState,
        hold: ChunkHold,
        offset: usize,
        len: usize,
        share_bytes: usize,
    ) -> Result<ChunkDescriptor, SendError> {
        let returned = self.resources.their_returned();
        let loaned_bytes = &mut out.loaned_bytes;
        let mut back = |hold: ChunkHold| *loaned_bytes -= hold.segment.stride();
        out.loans.reclaim_some(returned, &mut back);
        let stride = hold.segment.stride();
        if *loaned_bytes + stride > share_bytes || out.loans.is_full() {
            let mut back = |hold: ChunkHold| *loaned_bytes -= hold.segment.stride();
            out.loans.reclaim_all(returned, &mut back);
        }
        if *loaned_bytes + stride > share_bytes {
            return Err(SendError::Refused(SendRefusal::PoolShareExceeded));
        }
        self.send_retired(&mut out.retired);
        let segment = hold.segment.number;
        let (word, bit) = bit_of(segment);
        if out
            .segments_sent
            .get(word)
            .is_none_or(|bits| bits & bit == 0)
        {
            self.send_segment(&hold)?;
            if out.segments_sent.len() <= word {
                out.segments_sent.resize(word + 1, 0);
            }
            out.segments_sent[word] |= bit;
        }
        let Some(loan) = out.loans.loan(hold) else {
            return Err(SendError::Refused(SendRefusal::TooManyLoans));
        };
        out.loaned_bytes += stride;
        Ok(ChunkDescriptor {
            segment,
            offset: offset as u32,
            bytes: len as u32,
            slot: loan.slot,
            generation: loan.generation,
        })
    }

    fn send_segment(&self, hold: &ChunkHold) -> Result<(), SendError> {
        let packet = Packet::Segment {
            number: hold.segment.number,
            bytes: hold.segment.memory.len() as u64,
        };
        let sent = packet::send(self.resources.socket.as_fd(), &packet, &[hold.segment.fd()]);
        match sent {
            Ok(()) => Ok(()),
            // The socket is full, or too many descriptors are in flight.
            Err(Errno::AGAIN | Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => {
                Err(SendError::Refused(SendRefusal::SegmentNotSent))
            }
            Err(_) => Err(SendError::Refused(SendRefusal::Disconnected)),
        }
    }

    /// Informs the peer that these segments are no longer used, if it has them.
    pub(crate) fn retire(&self, numbers: &[u32]) {
        let mut guard = self.out.lock();
        let out = &mut *guard;
        for number in numbers {
            let (word, bit) = bit_of(*number);
            if let Some(bits) = out.segments_sent.get_mut(word)
                && *bits & bit != 0
            {
                *bits &= !bit;
                out.retired.push(*number);
            }
        }
        self.send_retired(&mut out.retired);
    }

    /// Sends as many as the socket takes. The others follow before the next loan.
    fn send_retired(&self, retired: &mut Vec<u32>) {
        while let Some(number) = retired.last() {
            let packet = Packet::Retire(*number);
            if packet::send(self.resources.socket.as_fd(), &packet, &[]) == Err(Errno::AGAIN) {
                return;
            }
            retired.pop();
        }
    }

    /// Collects the chunks that the peer returned. Returns how many.
    pub(crate) fn reclaim(&self) -> usize {
        let mut guard = self.out.lock();
        let out = &mut *guard;
        let back = |hold: ChunkHold| out.loaned_bytes -= hold.segment.stride();
        out.loans.reclaim_all(self.resources.their_returned(), back)
    }

    /// Ends all loans: the peer cannot read any more, or has violated the protocol.
    pub(crate) fn end_loans(&self) {
        let mut out = self.out.lock();
        out.loans.end_all(drop);
        out.loaned_bytes = 0;
    }

    /// Number of loans and their bytes.
    pub(crate) fn loaned(&self) -> (usize, usize) {
        let out = self.out.lock();
        (out.loans.len(), out.loaned_bytes)
    }
}

/// Index and mask of a segment's bit.
fn bit_of(segment: u32) -> (usize, u64) {
    (segment as usize / 64, 1 << (segment % 64))
}

/// Why a message was not sent.
pub(crate) enum SendError {
    Refused(SendRefusal),
    /// The peer violated the protocol, and the connection must be closed.
    Broken(DisconnectReason),
}

impl From<SendRefusal> for SendError {
    fn from(refused: SendRefusal) -> Self {
        Self::Refused(refused)
    }
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct ReceiveHalf {
    pub(crate) connection: Arc<Connection>,
    ring: Consumer,
    segments: HashMap<u32, Arc<PeerMemory>>,
    borrowed: Arc<BorrowedChunks>,
    /// Set when the peer has closed the connection. Messages that it wrote before
    /// are still read.
    pub(crate) close_reason: Option<DisconnectReason>,
}

/// Lengths and body of one received message.
pub(crate) struct ReceivedParts {
    pub(crate) head: usize,
    pub(crate) tail: usize,
    pub(crate) body: Option<Bytes>,
}

impl ReceiveHalf {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        let borrowed = Arc::new(BorrowedChunks {
            resources: Arc::clone(&connection.resources),
            rung_for: AtomicU64::new(0),
        });
        Self {
            connection,
            ring: Consumer::default(),
            segments: HashMap::new(),
            borrowed,
            close_reason: None,
        }
    }

    /// Whether a message waits.
    pub(crate) fn has_record(&self) -> bool {
        self.ring
            .has_record(self.connection.resources.peer.word(AT_TAIL))
    }

    /// Reads the next message and appends its bytes to `out`.
    pub(crate) fn next(
        &mut self,
        out: &mut Vec<u8>,
    ) -> Result<Option<ReceivedParts>, DisconnectReason> {
        let resources = Arc::clone(&self.borrowed.resources);
        let ring = resources.their_ring();
        let broken = |ProtocolViolation(what)| DisconnectReason::ProtocolViolation(what);
        let Some(header) = self
            .ring
            .next(ring, resources.peer.word(AT_TAIL))
            .map_err(broken)?
        else {
            return Ok(None);
        };
        let body = match header.chunk {
            Some(descriptor) => Some(self.borrow(descriptor)?),
            None => None,
        };
        self.ring.copy(ring, &header, out);
        self.ring.advance(&header, resources.own.word(AT_HEAD));
        Ok(Some(message(&header, body)))
    }

    /// The body in the chunk that a record names, after checking that it exists.
    fn borrow(&mut self, descriptor: ChunkDescriptor) -> Result<Bytes, DisconnectReason> {
        if usize::from(descriptor.slot) >= LOANS_MAX {
            return Err(DisconnectReason::ProtocolViolation(
                "the slot of a loan is out of range",
            ));
        }
        if !self.segments.contains_key(&descriptor.segment) {
            // The peer sent the segment before it wrote the record.
            self.take_packets()?;
        }
        let Some(memory) = self.segments.get(&descriptor.segment) else {
            return Err(DisconnectReason::ProtocolViolation("an unknown segment"));
        };
        let (offset, len) = (descriptor.offset as usize, descriptor.bytes as usize);
        if offset.checked_add(len).is_none_or(|end| end > memory.len()) {
            return Err(DisconnectReason::ProtocolViolation(
                "a body beyond the end of its segment",
            ));
        }
        let loan = Loan {
            slot: descriptor.slot,
            generation: descriptor.generation,
        };
        let (memory, borrowed) = (Arc::clone(memory), Arc::clone(&self.borrowed));
        Ok(LoanedBody::bytes(memory, offset, len, loan, borrowed))
    }

    /// Reads the socket. Sets `close_reason` if the peer closed the connection.
    pub(crate) fn take_packets(&mut self) -> Result<(), DisconnectReason> {
        for _ in 0..PACKETS_PER_POLL {
            match packet::receive(self.connection.resources.socket.as_fd()) {
                Incoming::Nothing => {
                    // Another process may keep the peer's socket open.
                    if self
                        .connection
                        .resources
                        .process
                        .as_ref()
                        .is_some_and(ProcessWatch::has_exited)
                    {
                        self.close_reason
                            .get_or_insert(DisconnectReason::ProcessEnded);
                    }
                    break;
                }
                Incoming::Packet(Packet::Segment { number, bytes }, descriptors) => {
                    self.add_segment(number, bytes, &descriptors)?;
                }
                // The socket has woken us.
                Incoming::Packet(Packet::Wake, _) => {}
                // Bodies that are still held keep it mapped.
                Incoming::Packet(Packet::Retire(number), _) => {
                    self.segments.remove(&number);
                }
                Incoming::Packet(Packet::Bye, _) => {
                    self.close_reason
                        .get_or_insert(DisconnectReason::ClosedByPeer);
                }
                Incoming::Closed => {
                    self.close_reason
                        .get_or_insert(DisconnectReason::ProcessEnded);
                    break;
                }
                Incoming::Packet(..) => {
                    return Err(DisconnectReason::ProtocolViolation("an unexpected packet"));
                }
                Incoming::Invalid => {
                    return Err(DisconnectReason::ProtocolViolation("an invalid packet"));
                }
            }
        }
        Ok(())
    }

    fn add_segment(
        &mut self,
        number: u32,
        bytes: u64,
        descriptors: &[OwnedFd],
    ) -> Result<(), DisconnectReason> {
        let [descriptor] = descriptors else {
            return Err(DisconnectReason::ProtocolViolation(
                "a segment without its descriptor",
            ));
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes > SEGMENT_BYTES_MAX || self.segments.len() >= SEGMENTS_MAX {
            return Err(DisconnectReason::ProtocolViolation(
                "too many segments, or a segment that is too large",
            ));
        }
        let memory = PeerMemory::map(descriptor.as_fd(), bytes);
        let memory = memory.map_err(|unfit| DisconnectReason::UnusableDescriptor(unfit.0))?;
        match self.segments.insert(number, Arc::new(memory)) {
            None => Ok(()),
            Some(_) => Err(DisconnectReason::ProtocolViolation(
                "a segment that was sent twice",
            )),
        }
    }
}

fn message(header: &RecordHeader, body: Option<Bytes>) -> ReceivedParts {
    let (head, inline, tail) = (header.head, header.body, header.tail);
    match body {
        Some(_) => ReceivedParts {
            head: head as usize,
            tail: tail as usize,
            body,
        },
        // Contiguous already.
        None => ReceivedParts {
            head: (head as usize) + (inline as usize) + (tail as usize),
            tail: 0,
            body: None,
        },
    }
}
