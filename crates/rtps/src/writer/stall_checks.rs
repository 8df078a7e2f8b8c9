//! Checks of a writer's reliable readers: which acknowledge nothing new, and when to
//! look again ([`super::ack_progress`]).
//!
//! A sample that KEEP_LAST has replaced meanwhile counts as well: the reader neither has
//! it nor knows that it will not come. So the check has a timer of its own. A fast
//! writer asks for acknowledgements with its samples, which postpones its heartbeats.

use super::event::{Events, WriterEvent};
use super::matched_readers::MatchedReaders;
use super::timers::{TIMER_STALL, WriterTimers};
use crate::time::{Duration, Instant};

/// How late a sample is noticed that a reader does not acknowledge, when no heartbeat
/// is due before.
const CHECK_DELAY: Duration = Duration::from_millis(200);

impl MatchedReaders {
    /// Notes which readers acknowledge nothing new, and schedules the next check. `sent`:
    /// the last number sent.
    pub(super) fn check_stalls(
        &mut self,
        now: Instant,
        sent: i64,
        timers: &mut WriterTimers,
        events: &mut Events,
    ) {
        // Unsent changes need no acknowledgement.
        let shared = self.last_undirected.min(sent);
        let mut next = Instant::FAR_FUTURE;
        for reader in self.proxies.iter_mut() {
            if !reader.has_unacked(shared) {
                reader.progress.note_idle();
                continue;
            }
            let is_stalled = reader.progress.note_outstanding(now, reader.acked);
            if is_stalled {
                let reader = reader.guid;
                let event = WriterEvent::ReaderStalled { reader };
                events.push_or_drop_oldest(event);
            }
            next = next.min(reader.progress.due_at());
        }
        timers.set(TIMER_STALL, next);
    }

    /// Every sample is acknowledged.
    pub(super) fn stop_stall_checks(&mut self, timers: &mut WriterTimers) {
        for reader in self.proxies.iter_mut() {
            reader.progress.note_idle();
        }
        timers.stop(TIMER_STALL);
    }
}

/// Looks soon whether a sample that is written now is acknowledged.
pub(super) fn schedule_stall_check(now: Instant, timers: &mut WriterTimers) {
    timers.set_no_later(TIMER_STALL, now.after(CHECK_DELAY));
}
