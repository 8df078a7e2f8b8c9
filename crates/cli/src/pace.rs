//! Pace: the period of a verb that repeats something.
//!
//! Missed turns are skipped and the phase is kept, as timers do. So a command that was
//! stopped for a minute does not send a minute of messages at once afterwards, which
//! would be dangerous on a topic such as `/cmd_vel`.

use std::time::{Duration, Instant};

/// See the module documentation.
pub struct Pace {
    period: Duration,
    next: Instant,
}

impl Pace {
    /// The first turn is one period after `now`.
    pub fn new(period: Duration, now: Instant) -> Self {
        Self {
            period,
            next: now + period,
        }
    }

    /// The next turn.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Takes the turn that is due, and skips those that were missed until `now`.
    /// Returns whether one was due.
    pub fn take(&mut self, now: Instant) -> bool {
        if now < self.next {
            return false;
        }
        let behind = now.duration_since(self.next).as_nanos();
        let missed = behind.checked_div(self.period.as_nanos()).unwrap_or(0);
        let skipped = missed.saturating_mul(self.period.as_nanos());
        let skipped = Duration::from_nanos(u64::try_from(skipped).unwrap_or(u64::MAX));
        self.next += skipped + self.period;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_command_skips_its_turns_and_keeps_its_phase() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut pace = Pace::new(Duration::from_millis(20), start);
        assert!(!pace.take(at(19)));
        assert!(pace.take(at(20)));
        assert_eq!(pace.next(), at(40));
        // Stopped for 30 s: one turn, not 1 500.
        assert!(pace.take(at(30_047)));
        assert!(!pace.take(at(30_047)));
        assert_eq!(pace.next(), at(30_060));
        // A turn that begins exactly when it is due is not missed.
        assert!(pace.take(at(30_060)));
        assert_eq!(pace.next(), at(30_080));
    }

    #[test]
    fn without_a_period_every_turn_is_due_once() {
        let start = Instant::now();
        let mut pace = Pace::new(Duration::ZERO, start);
        assert!(pace.take(start + Duration::from_secs(1)));
        assert_eq!(pace.next(), start);
    }
}
