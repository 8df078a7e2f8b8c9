//! Heartbeats that answer the ACKNACKs of a reader: the first at once, further ones at
//! most once per [`INTERVAL`]. None is lost: what came in between is answered by one
//! heartbeat at its end.
//!
//! An ACKNACK without the final flag asks for a heartbeat (RTPS 2.5 §8.3.8.1.5). Without
//! security anyone who spoofs an address can ask 100 000 times a second.

use super::proxy::ReaderProxy;
use super::{PendingSends, TIMER_ANSWER, TIMERS, Writer};
use crate::time::{Duration, Instant};
use crate::timer::Timers;

/// The time between two answers. A reader asks again after its heartbeat response delay,
/// which is a few milliseconds in most implementations.
pub(super) const INTERVAL: Duration = Duration::from_millis(1);

/// When one reader is answered again.
#[derive(Debug)]
pub(super) struct AckAnswer {
    /// The next answer is not sent before.
    next_at: Instant,
    /// An answer waits for that time.
    is_deferred: bool,
}

impl AckAnswer {
    pub const NONE: Self = Self {
        next_at: Instant::ZERO,
        is_deferred: false,
    };
}

impl ReaderProxy {
    /// Answers an ACKNACK with a heartbeat, now or as soon as the last answer is
    /// [`INTERVAL`] old.
    pub fn answer_acknack(
        &mut self,
        now: Instant,
        pending: &mut PendingSends,
        timers: &mut Timers<TIMERS>,
    ) {
        let answer = &mut self.ack_answer;
        if answer.next_at <= now {
            answer.next_at = now.after(INTERVAL);
            self.heartbeat_due = true;
            pending.any = true;
        } else if !self.heartbeat_due {
            answer.is_deferred = true;
            timers.set_no_later(TIMER_ANSWER, answer.next_at);
        }
    }
}

impl Writer {
    /// Answers the ACKNACKs that came soon after another. O(readers).
    pub(super) fn send_deferred_answers(&mut self, now: Instant) {
        let mut next = Instant::FAR_FUTURE;
        for reader in self.readers.iter_mut() {
            if !reader.ack_answer.is_deferred {
                continue;
            }
            if reader.ack_answer.next_at <= now {
                reader.ack_answer.is_deferred = false;
                reader.answer_acknack(now, &mut self.pending, &mut self.timers);
            } else {
                next = next.min(reader.ack_answer.next_at);
            }
        }
        self.timers.set(TIMER_ANSWER, next);
    }
}
