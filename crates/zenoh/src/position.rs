//! Loss detection on the Zenoh transport: the position of a reader in a writer's sequence
//! numbers. A gap is a loss. A forged number is dropped when lower numbers continue
//! ([`LateSamples`]). It knows no reader and no clock.

use pteros_rtps::late_samples::LateSamples;
use pteros_rtps::time::Instant;

/// Samples that may be lost at once. A longer jump is forged: it would take a publisher of
/// 100 000 samples a second half a day.
const LOST_MAX: i64 = 1 << 32;

/// Last number that a reader received of a writer.
#[derive(Default)]
pub struct Position {
    last: Option<i64>,
    late: LateSamples,
}

impl Position {
    /// Handles the number of a sample and returns the number of lost samples before it.
    /// Like the RTPS reader, it returns to lower numbers that continue after a forged
    /// one.
    pub fn take(&mut self, now: Instant, sequence: i64) -> u64 {
        let last = self.last.unwrap_or(sequence);
        if sequence < last && !self.late.follows(now, sequence) {
            return 0;
        }
        self.late.note_in_order(now);
        self.last = Some(sequence);
        let lost = sequence.saturating_sub(last).saturating_sub(1);
        u64::try_from(lost).unwrap_or(0) * u64::from(lost <= LOST_MAX)
    }
}

#[cfg(test)]
mod tests {
    use pteros_rtps::time::Duration;

    use super::*;

    /// Regression: one forged sample hid all later losses of a living publisher.
    #[test]
    fn a_forged_number_ends_after_the_publisher_has_gone_on_for_two_seconds() {
        for forged in [301, 60_000, 1 << 40, i64::MAX] {
            let at = |millis: i64| Instant::ZERO.after(Duration::from_millis(millis));
            let mut position = Position::default();
            for number in 1..=9 {
                assert_eq!(position.take(at(100 * number), number), 0);
            }
            let lost = position.take(at(950), forged);
            assert!(lost < 1 << 32, "{forged}: sums of forged jumps overflowed");
            for number in 10..=30 {
                assert_eq!(position.take(at(100 * number), number), 0);
            }
            assert_eq!(position.take(at(3_100), 33), 2, "{forged}: counted again");
        }
    }
}
