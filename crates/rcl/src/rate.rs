//! Rate: when the iterations of a loop of fixed frequency begin.
//!
//! Plain numbers, in nanoseconds of the clock. It never reads a clock and never blocks.

/// Schedule of a loop. A late loop starts its next iteration at once and counts from
/// there: it skips the iterations that it missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSchedule {
    period: i64,
    next: i64,
}

impl RateSchedule {
    /// The first iteration ends one period from `now`.
    pub fn starting_at(now: i64, period: i64) -> Self {
        Self {
            period,
            next: now.saturating_add(period),
        }
    }

    /// Period in nanoseconds.
    pub fn period(&self) -> i64 {
        self.period
    }

    /// When a sleep ends that somebody begins or continues at `now`. It lasts one period
    /// at most: if time went back, also during the sleep, the period begins again.
    pub fn sleep_until(&mut self, now: i64) -> i64 {
        self.next = self.next.min(now.saturating_add(self.period));
        self.next
    }

    /// A sleep has ended at `now`.
    pub fn wake(&mut self, now: i64) {
        let next = self.next.saturating_add(self.period);
        self.next = if next < now {
            now.saturating_add(self.period)
        } else {
            next
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_was_stopped_for_thirty_seconds_runs_one_late_iteration() {
        let mut rate = RateSchedule::starting_at(0, 20);
        // In time, or late by less than a period: the phase is kept.
        for (now, until) in [(20, 40), (59, 60)] {
            rate.wake(now);
            assert_eq!(rate.sleep_until(now), until);
        }
        // The iteration of 60 ms runs late, and the next one a period after it.
        rate.wake(30_060);
        assert_eq!(rate.sleep_until(30_060), 30_080);
        rate.wake(30_080);
        assert_eq!(rate.sleep_until(30_080), 30_100);
    }

    #[test]
    fn extreme_values_saturate() {
        let mut rate = RateSchedule::starting_at(i64::MAX - 5, i64::MAX);
        assert_eq!(rate.sleep_until(i64::MAX - 5), i64::MAX);
        rate.wake(i64::MAX);
        assert_eq!(rate.sleep_until(i64::MIN), -1);
    }
}
