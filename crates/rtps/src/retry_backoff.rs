//! Retry back-off: delays between attempts that get no answer.

use crate::time::Duration;

/// A number of equal delays, for a lossy network, then doubling delays, for a dead
/// peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryBackoff {
    first: Duration,
    delay: Duration,
    /// Equal delays left.
    steady_delays: u32,
}

impl RetryBackoff {
    /// `steady_delays` further delays as long as the first, then doubling.
    pub const fn new(first: Duration, steady_delays: u32) -> Self {
        Self {
            first,
            delay: first,
            steady_delays,
        }
    }

    /// The delay before the next attempt.
    pub const fn delay(&self) -> Duration {
        self.delay
    }

    /// Notes an attempt: the next delay is longer, at most `max`.
    pub fn advance(&mut self, max: Duration) {
        match self.steady_delays.checked_sub(1) {
            Some(left) => self.steady_delays = left,
            None => self.delay = self.delay.times(2).min(max.max(self.first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn delays_are_equal_at_first_and_never_exceed_the_maximum() {
        let mut backoff = RetryBackoff::new(Duration::from_millis(10), 3);
        let max = Duration::from_millis(50);
        let pauses: Vec<_> = core::iter::repeat_with(|| {
            let delay = backoff.delay();
            backoff.advance(max);
            delay.as_nanos() / 1_000_000
        })
        .take(8)
        .collect();
        assert_eq!(pauses, [10, 10, 10, 10, 20, 40, 50, 50]);
    }
}
