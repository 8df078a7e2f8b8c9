//! Group sequence info of a writer: the group sequence number of its publisher, for
//! readers with ordered access of group scope (RTPS 2.5 §8.7.5).
//!
//! A heartbeat of a silent writer with this number shows that no change of it is
//! missing.

use super::{GROUP_INFO_DELAY, GROUP_INFO_REPEATS, TIMER_GROUP_INFO, Writer};
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::GroupSequenceInfo;

/// The group sequence number of a publisher, and the digest of its writers.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupSequence {
    pub current: SequenceNumber,
    pub writer_group_digest: [u8; 4],
}

/// Repeats of the group sequence number, which no reader acknowledges.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupInfoRepeats {
    /// Repeats left.
    pub left: u8,
    /// The delay before the next one.
    pub delay: Duration,
}

impl Writer {
    /// Sets the group sequence number of the publisher after a write of this
    /// writer, and the digest of its writers.
    pub fn set_group_sequence(&mut self, current: SequenceNumber, writers: [u8; 4]) {
        self.group_sequence = Some(GroupSequence {
            current,
            writer_group_digest: writers,
        });
    }

    /// Announces the publisher's group sequence number after a write, or the end of
    /// a set, of another writer.
    ///
    /// Readers with ordered access get it soon, and repeated for some time.
    pub fn announce_group_sequence(
        &mut self,
        now: Instant,
        current: SequenceNumber,
        writers: [u8; 4],
    ) {
        self.set_group_sequence(current, writers);
        let is_requested = self
            .destinations
            .iter()
            .any(|g| g.wants_set_ends && g.reliable > 0);
        if is_requested {
            self.group_info_repeats = GroupInfoRepeats {
                left: GROUP_INFO_REPEATS,
                delay: GROUP_INFO_DELAY,
            };
            self.timers
                .set(TIMER_GROUP_INFO, now.after(GROUP_INFO_DELAY));
        }
    }

    pub(super) fn repeat_group_info(&mut self, now: Instant) {
        for destination in &mut self.destinations {
            destination.group_info_due |= destination.wants_set_ends && destination.reliable > 0;
            self.has_pending |= destination.group_info_due;
        }
        let repeats = &mut self.group_info_repeats;
        let is_last = repeats.left <= 1;
        repeats.left = repeats.left.saturating_sub(1);
        repeats.delay = repeats.delay.times(4);
        if !is_last {
            let at = now.after(repeats.delay);
            self.timers.set(TIMER_GROUP_INFO, at);
        }
    }

    /// The group sequence info for a heartbeat that names everything up to `last`;
    /// `None` while a change is not named.
    pub(super) fn group_info_up_to(&self, last: i64) -> Option<GroupSequenceInfo> {
        let GroupSequence {
            current,
            writer_group_digest,
        } = self.group_sequence?;
        if last < self.last.0 || self.cursor.number <= self.last.0 && last > self.cursor.number {
            return None;
        }
        let group_sequence_of =
            |change: &crate::history::WriterChange| change.coherent_mark.as_ref()?.group_sequence;
        let first = self.history.first().and_then(group_sequence_of);
        let latest = self.history.iter().next_back().and_then(group_sequence_of);
        let first = first.unwrap_or(current.next());
        Some(GroupSequenceInfo {
            current,
            first,
            last: latest.unwrap_or(first.previous()),
            writer_group_digest,
        })
    }
}
