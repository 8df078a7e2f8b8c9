//! Timers of a writer: one slot per reason to wake up.

use crate::timer::Timers;

/// Sends a heartbeat that requests missing acknowledgements.
pub(super) const TIMER_HEARTBEAT: usize = 0;
/// Serves requests that the NACK suppression duration delayed.
pub(super) const TIMER_RETRANSMISSION: usize = 1;
/// Deadline monitor: nothing was written within the offered deadline.
pub(super) const TIMER_DEADLINE: usize = 2;
/// The application did not assert liveliness within the lease.
pub(super) const TIMER_LIVELINESS: usize = 3;
/// The lifespan of the oldest change ends.
pub(super) const TIMER_LIFESPAN: usize = 4;
/// Sends the samples held for LATENCY_BUDGET.
pub(super) const TIMER_BATCH: usize = 5;
/// Sends the group sequence number of the publisher.
pub(super) const TIMER_GROUP_INFO: usize = 6;
/// Looks whether reliable readers acknowledge what was sent.
pub(super) const TIMER_STALL: usize = 7;
/// Sends heartbeats to readers that may have lost their state.
pub(super) const TIMER_RESET_PROBE: usize = 8;
/// Sends the heartbeats that answer ACKNACKs which came soon after another.
pub(super) const TIMER_ANSWER: usize = 9;
/// How many timers a writer has.
pub(super) const TIMERS: usize = 10;

/// The timers of one writer.
pub(super) type WriterTimers = Timers<TIMERS>;
