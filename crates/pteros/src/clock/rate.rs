//! Rate: runs a loop at a fixed frequency, on any clock.

use std::time::Duration;

use super::{Clock, Time};
use crate::rate::RateSchedule;

/// Runs a loop at a fixed frequency: call [`Rate::sleep`] at the end of each
/// iteration. A late loop starts its next iteration at once and counts from there. It
/// skips the iterations that it missed, however long it was stopped. If time goes back,
/// the period begins again.
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
    schedule: RateSchedule,
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
        let nanos = period.unwrap_or_default().as_nanos();
        let nanos = i64::try_from(nanos).unwrap_or(i64::MAX);
        Self {
            clock: clock.clone(),
            schedule: RateSchedule::starting_at(clock.now().as_nanos(), nanos),
        }
    }

    /// Period of one iteration.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.schedule.period().unsigned_abs())
    }

    /// Waits for the next iteration. Returns false if the context shuts down or
    /// `use_sim_time` changes. Blocks as [`Clock::sleep_until`].
    pub fn sleep(&mut self) -> bool {
        let schedule = &mut self.schedule;
        let sleep_until = |now: Time| Time::from_nanos(schedule.sleep_until(now.as_nanos()));
        let reached = self.clock.sleep_while(sleep_until);
        self.schedule.wake(self.clock.now().as_nanos());
        reached
    }
}
