//! Busy polling: polls for a short time before sleeping, to save the wake-up latency.
//!
//! Off by default. The span adapts. While messages arrive during polling, it is at its
//! maximum. Each poll without one halves it, down to zero. A sleep so short that polling
//! would have avoided it restores the maximum.

use pteros_rtps::time::Duration;

/// Longest configurable span. A longer one would keep a thread busy permanently.
pub const BUSY_POLL_MAX: Duration = Duration::from_millis(100);

/// Below this fraction of the longest span, polling does not start.
const MIN_SPAN_DIVISOR: i64 = 16;

/// The adaptive polling span of one thread.
pub(crate) struct BusyPoll {
    span_max: Duration,
    span: Duration,
}

impl BusyPoll {
    /// Polls for at most `span_max`; zero means never.
    pub(crate) fn new(span_max: Duration) -> Self {
        Self {
            span_max,
            span: span_max,
        }
    }

    /// How long to poll now; `None` means not at all.
    pub(crate) fn span(&self) -> Option<Duration> {
        (self.span > Duration::ZERO).then_some(self.span)
    }

    /// Notes whether a poll found nothing.
    pub(crate) fn note_polled(&mut self, in_vain: bool) {
        if !in_vain {
            self.span = self.span_max;
            return;
        }
        self.span = self.span.half();
        if self.span.times(MIN_SPAN_DIVISOR) < self.span_max {
            self.span = Duration::ZERO;
        }
    }

    /// Notes how long the thread slept.
    pub(crate) fn note_slept(&mut self, slept: Duration) {
        if slept <= self.span_max {
            self.span = self.span_max;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(n: i64) -> Duration {
        Duration::from_nanos(n * 1_000)
    }

    #[test]
    fn polling_in_vain_stops_soon_and_resumes_after_a_short_sleep() {
        let mut poll = BusyPoll::new(micros(160));
        let mut spent = Duration::ZERO;
        for _ in 0..1_000 {
            let Some(span) = poll.span() else { continue };
            spent = Duration::from_nanos(spent.as_nanos() + span.as_nanos());
            poll.note_polled(true);
            poll.note_slept(micros(20_000));
        }
        assert_eq!(poll.span(), None);
        assert!(spent < micros(320), "twice the span, then never: {spent:?}");
        poll.note_slept(micros(150));
        assert_eq!(poll.span(), Some(micros(160)));
        poll.note_polled(true);
        assert_eq!(poll.span(), Some(micros(80)));
        poll.note_polled(false);
        assert_eq!(poll.span(), Some(micros(160)));
    }

    #[test]
    fn without_configuration_it_never_polls() {
        let mut poll = BusyPoll::new(Duration::ZERO);
        assert_eq!(poll.span(), None);
        poll.note_slept(Duration::ZERO);
        assert_eq!(poll.span(), None);
    }
}
