//! Counters of a shared-memory transport, a field for each.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::SendRefusal;
use crate::pool::PoolExhausted;

/// A snapshot of a transport's counters. Message counters only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShmCounts {
    /// Messages sent.
    pub sent: u64,
    /// Messages sent with a zero-copy body.
    pub zero_copy: u64,
    /// Messages sent with a body that was copied into a chunk first.
    pub copied: u64,
    /// Messages received.
    pub received: u64,
    /// Doorbells rung because a receiver slept (wake-ups).
    pub doorbells_rung: u64,
    /// Not sent: the connection was closed.
    pub refused_disconnected: u64,
    /// Not sent: the ring was full.
    pub refused_ring_full: u64,
    /// Not sent: longer than the ring.
    pub refused_too_long: u64,
    /// Not sent: the reader holds half of the pool.
    pub refused_pool_share: u64,
    /// Not sent: the reader holds as many chunks as a connection may have on loan.
    pub refused_loans: u64,
    /// Not sent: no chunk was free for a body outside the pool.
    pub refused_pool_exhausted: u64,
    /// Not sent: the descriptor of a segment could not be sent then.
    pub refused_segment: u64,
    /// [`SharedMemoryTransport::chunk`](crate::SharedMemoryTransport::chunk) found
    /// no chunk.
    pub pool_exhausted: u64,
    /// Connections that were established.
    pub connections_made: u64,
    /// Handshakes that failed, on either side.
    pub handshakes_failed: u64,
    /// Connections closed because the peer violated the protocol.
    pub protocol_violations: u64,
    /// Open connections.
    pub connections: usize,
    /// Closed connections whose peer still holds chunks of ours.
    pub lingering_connections: usize,
    /// Handshakes in progress.
    pub pending_handshakes: usize,
    /// Chunks on loan, counted once per connection.
    pub loans: usize,
    /// Chunks with a holder, here or in a peer.
    pub chunks_used: usize,
    /// Chunks of the pool without a holder.
    pub chunks_free: usize,
    /// Segments of the pool.
    pub segments: usize,
    /// Bytes of all segments, whether touched or not.
    pub segment_bytes: usize,
}

/// The atomic counters.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub sent: Counter,
    pub zero_copy: Counter,
    pub copied: Counter,
    pub received: Counter,
    pub doorbells_rung: Counter,
    refused: [Counter; 7],
    pub pool_exhausted: Counter,
    pub connections_made: Counter,
    pub handshakes_failed: Counter,
    pub protocol_violations: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub(crate) fn refuse(&self, refused: SendRefusal) {
        let index = match refused {
            SendRefusal::Disconnected => 0,
            SendRefusal::RingFull => 1,
            SendRefusal::TooLong | SendRefusal::Exhausted(PoolExhausted::TooLarge { .. }) => 2,
            SendRefusal::PoolShareExceeded => 3,
            SendRefusal::TooManyLoans => 4,
            SendRefusal::Exhausted(_) => 5,
            SendRefusal::SegmentNotSent => 6,
        };
        self.refused[index].add();
    }

    /// A snapshot of the counters. The transport adds the current numbers.
    pub(crate) fn snapshot(&self) -> ShmCounts {
        let refused = |index: usize| self.refused[index].get();
        ShmCounts {
            sent: self.sent.get(),
            zero_copy: self.zero_copy.get(),
            copied: self.copied.get(),
            received: self.received.get(),
            doorbells_rung: self.doorbells_rung.get(),
            refused_disconnected: refused(0),
            refused_ring_full: refused(1),
            refused_too_long: refused(2),
            refused_pool_share: refused(3),
            refused_loans: refused(4),
            refused_pool_exhausted: refused(5),
            refused_segment: refused(6),
            pool_exhausted: self.pool_exhausted.get(),
            connections_made: self.connections_made.get(),
            handshakes_failed: self.handshakes_failed.get(),
            protocol_violations: self.protocol_violations.get(),
            ..ShmCounts::default()
        }
    }
}
