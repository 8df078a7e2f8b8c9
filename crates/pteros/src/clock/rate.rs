//! Rate: runs a loop at a fixed frequency, on any clock.

use std::time::Duration;

use super::{Clock, Time};

/// Runs a loop at a fixed frequency: call [`Rate::sleep`] at the end of each
/// iteration. A late loop starts its next iteration at once and counts from there.
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
        let now = self.clock.now();
        self.next = self.next + self.period;
        if self.next < now {
            self.next = now + self.period;
        }
        reached
    }
}
