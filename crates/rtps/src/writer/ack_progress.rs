//! Progress of a reliable reader: notices that it acknowledges nothing new although
//! samples were sent to it.
//!
//! RTPS leaves that to leases, which end after 10 s and more. Until then a stopped
//! reader, or a network that carries nothing back, looks like a healthy match. The
//! writer reports it after [`STALLED_AFTER`], once, and again when the reader acknowledges
//! something new (`stall_checks.rs`).

use super::event::{Events, WriterEvent};
use crate::id::Guid;
use crate::time::{Duration, Instant};

/// How long a reader may acknowledge nothing new.
const STALLED_AFTER: Duration = Duration::from_secs(2);

/// The progress of a reader's acknowledgements, and when it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckProgress {
    acked: i64,
    /// [`Instant::FAR_FUTURE`] while nothing is outstanding.
    since: Instant,
    is_told: bool,
}

impl AckProgress {
    /// Nothing is outstanding.
    pub const NEW: Self = Self {
        acked: 0,
        since: Instant::FAR_FUTURE,
        is_told: false,
    };

    /// Notes that samples from `acked` on are outstanding. True once, when they have
    /// been for so long.
    pub fn note_outstanding(&mut self, now: Instant, acked: i64) -> bool {
        if self.since == Instant::FAR_FUTURE || self.acked != acked {
            self.acked = acked;
            self.since = now;
        }
        let is_stalled = self.due_at() <= now;
        self.is_told |= is_stalled;
        is_stalled
    }

    /// Notes that everything is acknowledged.
    pub fn note_idle(&mut self) {
        self.since = Instant::FAR_FUTURE;
    }

    /// Notes that the reader has received more, if not yet a whole sample.
    pub fn note_received(&mut self, now: Instant) {
        if self.since != Instant::FAR_FUTURE {
            self.since = now;
        }
    }

    /// Takes whether a stall was reported, because it ends.
    fn take_told(&mut self) -> bool {
        core::mem::take(&mut self.is_told)
    }

    /// Reports the end of a reported stall, if the reader `progresses`.
    pub fn end_stall(&mut self, progresses: bool, reader: Guid, events: &mut Events) {
        if progresses && self.take_told() {
            events.push_or_drop_oldest(WriterEvent::StallEnded { reader });
        }
    }

    /// Whether a stall was reported and has not ended.
    pub fn is_stalled(&self) -> bool {
        self.is_told
    }

    /// When a stall is to be reported.
    pub fn due_at(&self) -> Instant {
        if self.is_told || self.since == Instant::FAR_FUTURE {
            return Instant::FAR_FUTURE;
        }
        self.since.after(STALLED_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_stall_is_told_once_and_its_end_once() {
        let mut progress = AckProgress::NEW;
        assert!(!progress.note_outstanding(at(1_000), 5));
        assert!(!progress.note_outstanding(at(2_999), 5));
        assert_eq!(progress.due_at(), at(3_000));
        assert!(progress.note_outstanding(at(3_000), 5));
        assert!(!progress.note_outstanding(at(9_000), 5));
        assert!(progress.take_told());
        assert!(!progress.take_told());
    }

    #[test]
    fn progress_and_idleness_begin_the_time_anew() {
        let mut progress = AckProgress::NEW;
        assert!(!progress.note_outstanding(at(1_000), 5));
        assert!(!progress.note_outstanding(at(2_500), 6));
        assert!(!progress.note_outstanding(at(4_000), 6));
        progress.note_received(at(4_200));
        assert!(!progress.note_outstanding(at(5_000), 6));
        progress.note_idle();
        assert!(!progress.note_outstanding(at(60_000), 6));
    }
}
