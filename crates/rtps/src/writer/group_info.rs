//! Group info: the group sequence number of a writer's publisher, and the repeats
//! that announce it (RTPS 2.5 §8.7.5). [`super::group_sequence_info`] sends them.

use crate::seq::SequenceNumber;
use crate::time::Duration;

/// Delay before a silent writer sends the group sequence number of its publisher.
/// Each repeat waits four times as long, because no reader acknowledges it.
const DELAY: Duration = Duration::from_millis(1);
/// How often the group sequence number is sent.
const REPEATS: u8 = 6;

/// The group sequence number of a publisher, and the digest of its writers.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupSequence {
    pub current: SequenceNumber,
    pub writer_group_digest: [u8; 4],
}

/// The group sequence number, if PRESENTATION has group scope, and its repeats.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupInfo {
    pub sequence: Option<GroupSequence>,
    repeats_left: u8,
    delay: Duration,
}

impl GroupInfo {
    pub const NONE: GroupInfo = GroupInfo {
        sequence: None,
        repeats_left: 0,
        delay: DELAY,
    };

    /// Begins the repeats. Returns the delay before the first one.
    pub fn begin_repeats(&mut self) -> Duration {
        self.repeats_left = REPEATS;
        self.delay = DELAY;
        DELAY
    }

    /// Counts a repeat. Returns the delay before the next one, if one is left.
    pub fn next_repeat(&mut self) -> Option<Duration> {
        let is_last = self.repeats_left <= 1;
        self.repeats_left = self.repeats_left.saturating_sub(1);
        self.delay = self.delay.times(4);
        (!is_last).then_some(self.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_repeats_follow_each_after_four_times_the_pause() {
        let mut info = GroupInfo::NONE;
        let mut delays = alloc::vec![info.begin_repeats()];
        while let Some(delay) = info.next_repeat() {
            delays.push(delay);
        }
        let expected = [1, 4, 16, 64, 256, 1024].map(Duration::from_millis);
        assert_eq!(delays, expected);
    }
}
