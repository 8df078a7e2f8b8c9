//! Rate: runs a loop at a fixed frequency, on any clock.

use std::time::Duration;

use super::{Clock, Time};

/// Runs a loop at a fixed frequency: call [`Rate::sleep`] at the end of each
/// iteration. A late loop starts its next iteration at once and counts from there. It
/// skips the iterations that it missed, however long it was stopped.
///
/// ```no_run
/// use pteros::clock::Rate;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("loop")?;
/// let mut rate = Rate::new(&node.clock(), 100.0);
/// while rate.sleep() {
///     println!("a hundred times a second of ROS time");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Rate {
    clock: Clock,
    period: Duration,
    next: Time,
}

impl Rate {
    /// Creates a rate of `hertz` iterations per second of the clock.
    ///
    /// # Panics
    /// If `hertz` is not above zero, or the period is longer than a hundred years.
    pub fn new(clock: &Clock, hertz: f64) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / hertz).ok();
        let period = period.filter(|p| !p.is_zero() && *p < Duration::from_secs(3_200_000_000));
        assert!(period.is_some(), "rate = {hertz} Hz; use a value above 0");
        let period = period.unwrap_or_default();
        Self {
            clock: clock.clone(),
            period,
            next: clock.now() + period,
        }
    }

    /// Period of one iteration.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Waits for the next iteration. Returns false if the context shuts down or
    /// `use_sim_time` changes. Blocks as [`Clock::sleep_until`].
    pub fn sleep(&mut self) -> bool {
        let now = self.clock.now();
        // Time jumped back: the scheduled iteration is too far ahead.
        if now + self.period < self.next {
            self.next = now + self.period;
        }
        let reached = self.clock.sleep_until(self.next);
        self.next = following(self.next, self.period, self.clock.now());
        reached
    }
}

/// When the iteration after the one of time `due` starts, which began at `now`. Missed
/// iterations are skipped, so that a loop never catches up by a burst.
fn following(due: Time, period: Duration, now: Time) -> Time {
    let next = due + period;
    if next < now { now + period } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_was_stopped_for_thirty_seconds_runs_one_late_iteration() {
        let period = Duration::from_millis(20);
        let at = |millis: u64| Time::from_nanos(0) + Duration::from_millis(millis);
        // In time, or late by less than a period: the phase is kept.
        assert_eq!(following(at(20), period, at(20)), at(40));
        assert_eq!(following(at(40), period, at(59)), at(60));
        // The iteration of 60 ms runs late, and the next one a period after it.
        let next = following(at(60), period, at(30_060));
        assert_eq!(next, at(30_080));
        assert_eq!(following(next, period, at(30_080)), at(30_100));
    }
}
