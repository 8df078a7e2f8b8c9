//! Losses of a subscription, and their reports: one log line per burst of lost samples (reliable
//! subscriptions, SAMPLE_LOST status, DDS 1.4 §2.2.4.1) or of rejected samples
//! (SAMPLE_REJECTED status).
//!
//! The status event is queued for each loss, see `endpoints/event.rs`. The log reports
//! the first loss at once and later ones together after [`PERIOD`]. The reader endpoint
//! owns the report, and updates it on the delivering thread. It never blocks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pteros_dcps::names::ros_topic;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::time::{Duration, Instant};

use crate::endpoints::undecodable::UndecodableSamples;

/// Shortest time between two log lines of one subscription.
const PERIOD: Duration = Duration::from_secs(5);

/// Losses that are not logged yet.
#[derive(Debug, Default)]
pub(crate) struct LossReport {
    untold: AtomicU64,
    /// When the next line may be written, nanoseconds.
    next_at: AtomicU64,
}

impl LossReport {
    /// Adds lost samples.
    pub fn add(&self, count: u64) {
        self.untold.fetch_add(count, Ordering::Relaxed);
    }

    /// When [`Self::take_due`] has losses to log.
    pub fn due_at(&self) -> Option<Instant> {
        let is_untold = self.untold.load(Ordering::Relaxed) > 0;
        is_untold.then(|| Instant::from_nanos(self.next_at.load(Ordering::Relaxed)))
    }

    /// Number of losses to log now, if [`PERIOD`] has passed since the last line.
    pub fn take_due(&self, now: Instant) -> Option<u64> {
        self.due_at().filter(|due| *due <= now)?;
        let next = now.after(PERIOD);
        self.next_at.store(next.as_nanos(), Ordering::Relaxed);
        Some(self.untold.swap(0, Ordering::Relaxed)).filter(|count| *count > 0)
    }
}

/// Samples that one subscription lost, rejected or could not decode. Any thread may update
/// it.
#[derive(Default)]
pub(crate) struct ReceptionLosses {
    lost: AtomicU64,
    loss_report: LossReport,
    /// Samples that the protocol machine rejected for lack of receive memory.
    rejected_by_machine: AtomicU64,
    /// All rejected samples when the last one was reported.
    rejected: AtomicU64,
    rejection_report: LossReport,
    /// Samples that were not of its type.
    pub undecodable: UndecodableSamples,
    resynchronisation_logged: AtomicBool,
}

impl ReceptionLosses {
    /// Samples lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Adds lost samples. Returns the total.
    pub fn add_lost(&self, count: u64, is_logged: bool) -> u64 {
        if is_logged {
            self.loss_report.add(count);
        }
        self.lost.fetch_add(count, Ordering::Relaxed) + count
    }

    /// Updates the protocol machine's count. Returns whether it has changed.
    pub fn set_rejected_by_machine(&self, total: u64) -> bool {
        self.rejected_by_machine.swap(total, Ordering::Relaxed) != total
    }

    /// Updates the count of rejected samples from the cache's. Returns the total.
    pub fn add_rejected(&self, by_cache: u64, is_logged: bool) -> u64 {
        let total = by_cache + self.rejected_by_machine.load(Ordering::Relaxed);
        let count = total.saturating_sub(self.rejected.swap(total, Ordering::Relaxed));
        if is_logged {
            self.rejection_report.add(count);
        }
        total
    }

    /// When something is to be logged or announced.
    pub fn due_at(&self) -> Option<Instant> {
        let logs = [self.loss_report.due_at(), self.rejection_report.due_at()];
        logs.into_iter()
            .chain([self.undecodable.due_at()])
            .flatten()
            .min()
    }

    /// Logs losses, once per burst.
    pub fn log_due(&self, now: Instant, reader: &EndpointData) {
        if let Some(count) = self.loss_report.take_due(now) {
            warn_about_loss(reader, count, self.lost());
        }
        if let Some(count) = self.rejection_report.take_due(now) {
            warn_about_rejection(reader, count, self.rejected.load(Ordering::Relaxed));
        }
    }

    /// Logs that the state of a publisher was reset (resynchronisation). Once.
    pub fn log_resynchronisation(&self, reader: &EndpointData, writer: Guid) {
        if !self.resynchronisation_logged.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                subscription = %reader.guid,
                "{}", resynchronisation_line(&reader.topic, writer)
            );
        }
    }
}

/// Warns that a reliable subscription has lost samples.
fn warn_about_loss(reader: &EndpointData, count: u64, total: u64) {
    let topic = ros_topic(&reader.topic);
    let messages = if count == 1 { "message" } else { "messages" };
    tracing::warn!(
        subscription = %reader.guid,
        "topic \"{topic}\": our reliable subscription lost {count} {messages} ({total} in all): \
         the publisher no longer had them when they could be sent again; a larger depth (KEEP_LAST) \
         or KEEP_ALL at the publisher keeps them longer"
    );
}

fn resynchronisation_line(topic: &str, writer: Guid) -> String {
    let topic = ros_topic(topic);
    format!(
        "topic \"{topic}\": our subscription takes the state of publisher {writer} anew: what \
         came in its name contradicts itself, and may be forged (counted, not logged again)"
    )
}

/// Warns that a subscription has rejected samples (SAMPLE_REJECTED status).
fn warn_about_rejection(reader: &EndpointData, count: u64, total: u64) {
    let topic = ros_topic(&reader.topic);
    let samples = if count == 1 { "sample" } else { "samples" };
    tracing::warn!(
        subscription = %reader.guid,
        "topic \"{topic}\": our subscription rejected {count} {samples} ({total} in all): of an \
         instance beyond max_instances, without a readable key, or beyond the receive memory; \
         take samples sooner, or raise the limit"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_first_loss_is_told_at_once_and_a_burst_together() {
        let report = LossReport::default();
        assert_eq!((report.due_at(), report.take_due(at(1))), (None, None));
        report.add(1_500);
        assert_eq!(report.take_due(at(2)), Some(1_500));
        for ms in 3..1_000 {
            report.add(2);
            assert_eq!(report.take_due(at(ms)), None);
        }
        assert_eq!(report.due_at(), Some(at(5_002)));
        assert_eq!(report.take_due(at(5_002)), Some(1_994));
        assert_eq!(report.due_at(), None);
    }
    #[test]
    fn a_resynchronisation_names_the_topic_as_users_do_and_the_publisher() {
        let mut bytes = [7; 16];
        bytes[12..].copy_from_slice(&[0, 0, 2, 3]);
        assert_eq!(
            resynchronisation_line("rt/news", Guid::from_bytes(bytes)),
            "topic \"/news\": our subscription takes the state of publisher \
             07070707.07070707.07070707|00000203 anew: what came in its name contradicts \
             itself, and may be forged (counted, not logged again)"
        );
    }
}
