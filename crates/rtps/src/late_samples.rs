//! Late samples: numbers below the expected one, of a writer that repeats nothing.
//!
//! Over best effort and over other transports, a lower number is a duplicate or came late. If
//! lower numbers keep coming, and advance, the expected number is wrong: a forger has
//! sent a high number in the writer's name. Then they are followed. RTPS 2.5 §8.4.12 has
//! no such rule. Used by best-effort readers, and wherever a transport or the bridge counts.

use crate::time::{Duration, Instant};

/// A sample below the expected number is late up to this time after one in order. After
/// that the expected number is wrong.
const LATE_MAX: Duration = Duration::from_millis(1_100);
/// Late samples must advance for this time, in which delayed ones have arrived.
const OBSERVATION_TIME: Duration = Duration::from_millis(400);

/// Samples of one writer below the expected number. A value of 32 bytes.
#[derive(Clone, Copy, Debug)]
pub struct LateSamples {
    in_order_at: Instant,
    /// The lowest one since then: its number, and when it came.
    lowest: Option<(i64, Instant)>,
}

impl Default for LateSamples {
    fn default() -> Self {
        Self::NONE
    }
}

impl LateSamples {
    /// Nothing has come yet.
    pub const NONE: Self = Self {
        in_order_at: Instant::ZERO,
        lowest: None,
    };

    /// Notes a sample in order.
    pub fn note_in_order(&mut self, now: Instant) {
        self.in_order_at = now;
        self.lowest = None;
    }

    /// Whether this late sample shows that the expected number is wrong: none came in
    /// order for 1.1 s, and late ones have advanced for 400 ms. Then the caller
    /// goes on from it. A duplicate does not advance, and a history that a writer sends
    /// again after it had lost us comes at once.
    pub fn follows(&mut self, now: Instant, number: i64) -> bool {
        if now.since(self.in_order_at) < LATE_MAX {
            return false;
        }
        // From the lowest on: a forged number may be above all that will come.
        let lowest = self.lowest.filter(|(first, _)| *first <= number);
        let (first, since) = lowest.unwrap_or((number, now));
        self.lowest = Some((first, since));
        if number == first || now.since(since) < OBSERVATION_TIME {
            return false;
        }
        self.note_in_order(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Instant {
        Instant::ZERO.after(Duration::from_millis(millis))
    }

    #[test]
    fn advancing_late_samples_are_followed_and_repeated_ones_are_not() {
        let mut late = LateSamples::NONE;
        late.note_in_order(at(5_000));
        assert!(!late.follows(at(5_100), 6), "late by 100 ms");
        assert!(!late.follows(at(6_200), 17));
        assert!(!late.follows(at(6_500), 20), "for 300 ms");
        assert!(late.follows(at(6_600), 21));
        assert!(!late.follows(at(6_700), 22), "once");
        let mut late = LateSamples::NONE;
        for millis in (2_000..9_000).step_by(100) {
            assert!(!late.follows(at(millis), 3), "a repetition");
        }
    }
}
