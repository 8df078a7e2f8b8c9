//! Stall report of a reliable publisher: one log line when subscriptions stop to
//! acknowledge outstanding messages, and one when all acknowledge again.
//!
//! The status event is queued at once, see `endpoints/event.rs`. The writer endpoint
//! notes the change under its lock. The driver then writes the line without that lock,
//! because a log output may publish (/rosout), and so may the announcement of stalled
//! subscriptions (`core/stalled_readers.rs`). It never blocks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pteros_dcps::names::ros_topic;
use pteros_rtps::discovery::data::EndpointData;

/// Up to this number, each further stalled subscription is logged. Above it, only each
/// doubling is logged, so that thousands of forged ones do not flood the log.
const TOLD_EACH_MAX: usize = 8;

/// Number of stalled subscriptions, now and in the last log line.
#[derive(Debug, Default)]
pub(crate) struct StallReport {
    stalled: AtomicUsize,
    told: AtomicUsize,
    /// The stalled subscriptions differ from the announced ones.
    is_changed: AtomicBool,
}

impl StallReport {
    /// Notes a subscription that stalls (+1) or recovers (-1). Returns the number of
    /// stalled ones.
    pub(crate) fn note(&self, change: i32) -> usize {
        // Relaxed: the writer's lock orders the changes.
        let before = self.stalled.load(Ordering::Relaxed);
        let stalled = before.saturating_add_signed(change as isize);
        self.stalled.store(stalled, Ordering::Relaxed);
        self.is_changed.store(true, Ordering::Relaxed);
        stalled
    }

    /// Whether the set of stalled subscriptions has changed since the last call. One load
    /// without a change.
    pub(crate) fn take_changed(&self) -> bool {
        self.is_changed.load(Ordering::Relaxed) && self.is_changed.swap(false, Ordering::Relaxed)
    }

    /// Number of stalled subscriptions, if the change is not logged yet.
    fn take_untold(&self) -> Option<(usize, usize)> {
        let stalled = self.stalled.load(Ordering::Relaxed);
        let told = self.told.load(Ordering::Relaxed);
        let are_few = stalled.max(told) <= TOLD_EACH_MAX;
        let is_due = are_few || stalled == 0 || stalled >= told.saturating_mul(2);
        if stalled == told || !is_due {
            return None;
        }
        self.told.store(stalled, Ordering::Relaxed);
        Some((told, stalled))
    }

    /// Logs a change.
    pub(crate) fn tell(&self, writer: &EndpointData) {
        let Some((told, stalled)) = self.take_untold() else {
            return;
        };
        let topic = ros_topic(&writer.topic);
        let subscriptions = if stalled == 1 {
            "reliable subscription acknowledges"
        } else {
            "reliable subscriptions acknowledge"
        };
        if stalled > told {
            tracing::warn!(
                publisher = %writer.guid,
                "topic \"{topic}\": {stalled} {subscriptions} nothing for 2 s although messages \
                 are outstanding: their process may be stopped or slow, or the network carries \
                 nothing in one direction (`pteros topic info --details {topic}` names them)"
            );
        } else if stalled == 0 {
            tracing::info!(
                publisher = %writer.guid,
                "topic \"{topic}\": no reliable subscription is behind any more"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let report = StallReport::default();
        assert_eq!(report.take_untold(), None);
        assert!(!report.take_changed());
        assert_eq!(report.note(1), 1);
        assert_eq!(report.note(1), 2);
        assert!(report.take_changed());
        assert!(!report.take_changed());
        assert_eq!(report.take_untold(), Some((0, 2)));
        assert_eq!(report.take_untold(), None);
        assert_eq!(report.note(-1), 1);
        assert_eq!(report.note(-1), 0);
        assert_eq!(report.take_untold(), Some((2, 0)));
        assert_eq!(report.note(-1), 0);
    }

    #[test]
    fn thousands_are_told_by_a_few_lines() {
        let report = StallReport::default();
        let mut told = 0;
        for _ in 0..1_000 {
            for _ in 0..5 {
                report.note(1);
            }
            told += usize::from(report.take_untold().is_some());
            report.note(-1);
            told += usize::from(report.take_untold().is_some());
        }
        assert!(told <= 14, "{told} lines for 4 000");
        for _ in 0..4_000 {
            report.note(-1);
        }
        assert!(
            report
                .take_untold()
                .is_some_and(|(_, stalled)| stalled == 0)
        );
    }
}
