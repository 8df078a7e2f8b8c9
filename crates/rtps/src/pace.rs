//! Pauses between attempts that nobody answers.

use crate::time::Duration;

/// A number of equal pauses, for a link that loses much, then longer and
/// longer ones, for a peer that is gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    first: Duration,
    pause: Duration,
    /// Equal pauses still to come.
    steady: u32,
}

impl Pace {
    /// `steady` further pauses as long as the first, then doubling.
    pub const fn new(first: Duration, steady: u32) -> Self {
        Self {
            first,
            pause: first,
            steady,
        }
    }

    /// The pause before the next attempt.
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    /// An attempt was made: the next pause is longer, at most `max`.
    pub fn advance(&mut self, max: Duration) {
        match self.steady.checked_sub(1) {
            Some(left) => self.steady = left,
            None => self.pause = self.pause.times(2).min(max.max(self.first)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn pauses_are_equal_at_first_and_never_longer_than_the_longest() {
        let mut pace = Pace::new(Duration::from_millis(10), 3);
        let max = Duration::from_millis(50);
        let pauses: Vec<_> = core::iter::repeat_with(|| {
            let pause = pace.pause();
            pace.advance(max);
            pause.as_nanos() / 1_000_000
        })
        .take(8)
        .collect();
        assert_eq!(pauses, [10, 10, 10, 10, 20, 40, 50, 50]);
    }
}
