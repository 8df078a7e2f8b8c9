//! Stall report of a reliable publisher: one log line when subscriptions acknowledge
//! nothing although messages are outstanding, and one when all do again.
//!
//! The status event comes at once, see `endpoints/event.rs`. The line follows without
//! a lock of the writer, because a log output may publish (/rosout), and so does the
//! announcement of the stalled ones (`core/stalled_readers.rs`). The writer endpoint
//! notes it under its lock. The driver tells it. It never blocks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use pteros_dcps::names::ros_topic;
use pteros_rtps::discovery::data::EndpointData;

/// So many stalled subscriptions are told one by one. Beyond, only a doubled number is
/// told: thousands of forged ones must not flood the log.
const TOLD_EACH_MAX: usize = 8;

/// Subscriptions that acknowledge nothing, now and as the log knows it.
#[derive(Debug, Default)]
pub(crate) struct StallReport {
    stalled: AtomicUsize,
    told: AtomicUsize,
    /// Other ones stall than the announcement says.
    is_changed: AtomicBool,
}

impl StallReport {
    /// Notes a subscription that stalls (+1) or goes on (-1). Returns how many stall.
    pub(crate) fn note(&self, change: i32) -> usize {
        // Relaxed: the writer's lock orders the changes.
        let before = self.stalled.load(Ordering::Relaxed);
        let stalled = before.saturating_add_signed(change as isize);
        self.stalled.store(stalled, Ordering::Relaxed);
        self.is_changed.store(true, Ordering::Relaxed);
        stalled
    }

    /// Takes whether others stall than at the last call. One load without a change.
    pub(crate) fn take_changed(&self) -> bool {
        self.is_changed.load(Ordering::Relaxed) && self.is_changed.swap(false, Ordering::Relaxed)
    }

    /// How many stall, if the log has not told the change.
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

    /// Tells a change in the log.
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
