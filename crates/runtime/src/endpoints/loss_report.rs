//! Loss report of a subscription: one log line per burst of lost samples (reliable
//! subscriptions, SAMPLE_LOST status, DDS 1.4 §2.2.4.1) or of rejected samples
//! (SAMPLE_REJECTED status).
//!
//! The status event is queued for each loss, see `endpoints/event.rs`. The log reports
//! the first loss at once and later ones together after [`PERIOD`]. The reader endpoint
//! owns the report, and updates it on the delivering thread. It never blocks.

use std::sync::atomic::{AtomicU64, Ordering};

use pteros_dcps::names::ros_topic;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::time::{Duration, Instant};

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

/// Warns that a reliable subscription has lost samples.
pub(crate) fn warn_about_loss(reader: &EndpointData, count: u64, total: u64) {
    let topic = ros_topic(&reader.topic);
    let messages = if count == 1 { "message" } else { "messages" };
    tracing::warn!(
        subscription = %reader.guid,
        "topic \"{topic}\": our reliable subscription lost {count} {messages} ({total} in all): \
         the publisher no longer had them when they could be sent again; a larger depth (KEEP_LAST) \
         or KEEP_ALL at the publisher keeps them longer"
    );
}

/// Warns that a subscription has reset its state of a publisher (resynchronisation).
pub(crate) fn warn_about_resynchronisation(reader: &EndpointData, writer: Guid) {
    tracing::warn!(
        subscription = %reader.guid,
        "{}", resynchronisation_line(&reader.topic, writer)
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
pub(crate) fn warn_about_rejection(reader: &EndpointData, count: u64, total: u64) {
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
