//! Rate limiter of a publisher: drops the messages above a frequency.
//!
//! Generic cell rate algorithm (ITU-T I.371) with a tolerance of one message, so that a
//! publisher at the limit loses nothing by its jitter. Sans-IO.

use pteros_rtps::time::{Duration, Instant};

/// See the module documentation.
#[derive(Clone, Copy, Debug)]
pub struct RateLimiter {
    period: Duration,
    /// When the next message is due. It may arrive a period early.
    due: Option<Instant>,
}

impl RateLimiter {
    /// A limiter of `hertz` messages per second, which must be positive and finite.
    pub fn new(hertz: f64) -> Self {
        // The cast saturates.
        let nanos = (1e9 / hertz) as i64;
        Self {
            period: Duration::from_nanos(nanos),
            due: None,
        }
    }

    /// Whether a message at `now` is within the rate.
    pub fn passes(&mut self, now: Instant) -> bool {
        let due = self.due.unwrap_or(now);
        if now.after(self.period) < due {
            return false;
        }
        self.due = Some(due.max(now).after(self.period));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_millis(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn messages_above_the_rate_do_not_pass() {
        let mut limiter = RateLimiter::new(10.0);
        let passed = (0..100).filter(|n| limiter.passes(at_millis(n * 10)));
        // Ten in a second, and one of tolerance.
        assert_eq!(passed.count(), 11);
    }

    #[test]
    fn a_publisher_at_the_limit_loses_nothing_by_its_jitter() {
        let mut limiter = RateLimiter::new(10.0);
        let jitter = [0, 30, 10, 40, 5];
        for n in 0..50_u64 {
            let at = at_millis(n * 100 + jitter[usize::try_from(n % 5).unwrap()]);
            assert!(limiter.passes(at), "{n}");
        }
    }

    #[test]
    fn a_pause_saves_nothing_up() {
        let mut limiter = RateLimiter::new(1.0);
        assert!(limiter.passes(at_millis(0)));
        let burst = (0..100).filter(|n| limiter.passes(at_millis(60_000 + n)));
        assert_eq!(burst.count(), 2);
    }
}
