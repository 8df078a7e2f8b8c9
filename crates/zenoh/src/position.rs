//! Loss detection on the Zenoh wire: the position of a reader in the sequence numbers of a
//! writer. A gap is a loss. A number that was forged in the writer's name is given up
//! again when lower ones go on ([`LateSamples`]). It knows no reader and no time.

use pteros_rtps::late_samples::LateSamples;
use pteros_rtps::time::Instant;

/// Where a reader is in a writer's numbers.
#[derive(Default)]
pub struct Position {
    last: Option<i64>,
    late: LateSamples,
}

impl Position {
    /// Takes a sample's number and returns how many before it are lost. As the reader does,
    /// it goes back to lower numbers that go on after a forged one.
    pub fn take(&mut self, now: Instant, sequence: i64) -> u64 {
        let last = self.last.unwrap_or(sequence);
        if sequence < last && !self.late.follows(now, sequence) {
            return 0;
        }
        self.late.note_in_order(now);
        self.last = Some(sequence);
        let lost = sequence.saturating_sub(last).saturating_sub(1);
        u64::try_from(lost).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use pteros_rtps::time::Duration;

    use super::*;

    /// One sample in the name of a living publisher made its losses unseen for good.
    #[test]
    fn a_forged_number_ends_after_the_publisher_has_gone_on_for_two_seconds() {
        for forged in [301, 60_000, i64::MAX] {
            let at = |millis: i64| Instant::ZERO.after(Duration::from_millis(millis));
            let mut position = Position::default();
            for number in 1..=9 {
                assert_eq!(position.take(at(100 * number), number), 0);
            }
            position.take(at(950), forged);
            for number in 10..=30 {
                assert_eq!(position.take(at(100 * number), number), 0);
            }
            assert_eq!(position.take(at(3_100), 33), 2, "{forged}: counted again");
        }
    }
}
