//! Loops at a steady pace, on any clock.

use std::time::Duration;

use super::{Clock, Time};

/// Keeps a loop at a pace: [`Rate::sleep`] at its end waits for the next turn. A loop
/// that is late begins its next turn at once and counts from there.
///
/// ```no_run
/// use pteros::clock::Rate;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("loop")?;
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
    /// So many turns a second of that clock.
    ///
    /// # Panics
    /// When `hertz` is not above zero, or a turn longer than a hundred years.
    pub fn new(clock: &Clock, hertz: f64) -> Self {
        let period = Duration::try_from_secs_f64(1.0 / hertz).ok();
        let period = period.filter(|p| !p.is_zero() && *p < Duration::from_secs(3_200_000_000));
        assert!(
            period.is_some(),
            "a rate of {hertz} turns a second; give one above 0"
        );
        let period = period.unwrap_or_default();
        Self {
            clock: clock.clone(),
            period,
            next: clock.now() + period,
        }
    }

    /// The time of one turn.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Waits for the next turn; false when the context shuts down or `use_sim_time`
    /// changes. Blocks as [`Clock::sleep_until`].
    pub fn sleep(&mut self) -> bool {
        let now = self.clock.now();
        // Back in time: the turn that was waited for is far.
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
