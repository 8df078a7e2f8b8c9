//! Acknowledgement state of one matched writer: its next ACKNACK, the schedule of
//! requests for missing samples, and the counts of both submessages (RTPS 2.5
//! §8.4.12.2). [`super::acknack`] decides with it.

use super::config::ReaderConfig;
use super::request_window::RequestWindow;
use super::round_trip::RoundTrip;
use crate::retry_backoff::RetryBackoff;
use crate::time::{Duration, Instant};

/// State of the ACKNACKs and NACK_FRAGs from a reader to one writer.
#[derive(Debug)]
pub(super) struct AckState {
    pub acknack_count: u32,
    pub nack_frag_count: u32,
    /// Counts new samples, fragments and gaps.
    pub progress_count: u64,
    /// An ACKNACK is due now.
    pub due: bool,
    /// Unsolicited acknowledgements, for a shared-memory connection.
    pub unsolicited: UnsolicitedAck,
    pub nack: NackState,
    /// Preemptive ACKNACKs left for a writer without a heartbeat.
    pub preemptive_left: u32,
    /// The writer is in the reader's list of writers to answer.
    pub queued: bool,
}

impl AckState {
    /// Nothing was received. A reliable writer gets preemptive ACKNACKs.
    pub fn new(reader: &ReaderConfig, reliable: bool) -> Self {
        Self {
            acknack_count: 0,
            nack_frag_count: 0,
            progress_count: 0,
            due: reliable,
            unsolicited: UnsolicitedAck::NOTHING,
            nack: NackState {
                at: Instant::FAR_FUTURE,
                // An unanswered preemptive ACKNACK is repeated with a growing
                // delay.
                backoff: RetryBackoff::new(reader.nack.retry_period.times(2), 0),
                round_trip: RoundTrip::new(),
                requested: 0,
                window: RequestWindow::FULL,
                sent_at: Instant::ZERO,
                only_new: false,
                unsuccessful_requests: 0,
                progress_seen: 0,
            },
            preemptive_left: if reliable {
                reader.nack.preemptive_acknacks
            } else {
                0
            },
            queued: false,
        }
    }

    /// Puts the writer into the list of writers to answer. False if it is there.
    pub fn enqueue(&mut self) -> bool {
        !core::mem::replace(&mut self.queued, true)
    }
}

/// A writer on a shared-memory connection gets an unsolicited ACKNACK this often
/// ...
const UNSOLICITED_ACK_PERIOD: Duration = Duration::from_millis(5);

/// ... or after this many bytes, since it needs their chunks again.
const UNSOLICITED_ACK_BYTES: usize = 64 << 10;

/// The schedule of requests for missing samples.
#[derive(Debug)]
pub(super) struct NackState {
    /// When the timer fires; far future when nothing is missing.
    pub at: Instant,
    /// The delays after the next requests.
    pub backoff: RetryBackoff,
    /// The round-trip estimate.
    pub round_trip: RoundTrip,
    /// The highest number requested so far.
    pub requested: i64,
    /// How many numbers the next request may name.
    pub window: RequestWindow,
    /// When the last request was sent.
    pub sent_at: Instant,
    /// The next request omits numbers of the last one.
    pub only_new: bool,
    /// Requests in a row without progress.
    pub unsuccessful_requests: u32,
    /// [`AckState::progress_count`] when the last request was sent.
    pub progress_seen: u64,
}

/// Acknowledgements without a request. A shared-memory connection loses nothing
/// silently, so its writer sends no heartbeat, and the reader acknowledges from
/// time to time.
#[derive(Debug)]
pub(super) struct UnsolicitedAck {
    /// All numbers below were acknowledged by the last ACKNACK.
    base: i64,
    /// When it was sent.
    at: Instant,
    /// Bytes received since.
    pub unacked_bytes: usize,
    /// The due ACKNACK was not requested.
    pub is_unsolicited: bool,
}

impl UnsolicitedAck {
    const NOTHING: Self = Self {
        base: 1,
        at: Instant::ZERO,
        unacked_bytes: 0,
        is_unsolicited: false,
    };

    /// Whether to acknowledge everything below `base` now.
    pub fn is_due(&self, now: Instant, base: i64) -> bool {
        let is_old = now.since(self.at) >= UNSOLICITED_ACK_PERIOD;
        base > self.base && (is_old || self.unacked_bytes >= UNSOLICITED_ACK_BYTES)
    }

    pub fn note(&mut self, now: Instant, base: i64) {
        *self = Self {
            base,
            at: now,
            ..Self::NOTHING
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsolicited_acknack_is_due_after_its_period_or_many_bytes() {
        let mut ack = UnsolicitedAck::NOTHING;
        let start = Instant::ZERO.after(Duration::from_secs(1));
        ack.note(start, 5);
        assert!(!ack.is_due(start, 6));
        assert!(!ack.is_due(start.after(UNSOLICITED_ACK_PERIOD), 5));
        assert!(ack.is_due(start.after(UNSOLICITED_ACK_PERIOD), 6));
        ack.unacked_bytes = UNSOLICITED_ACK_BYTES;
        assert!(ack.is_due(start, 6));
    }
}
