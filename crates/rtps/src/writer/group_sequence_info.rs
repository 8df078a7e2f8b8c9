//! Group sequence info of a writer: the group sequence number of its publisher, for
//! readers with ordered access of group scope (RTPS 2.5 §8.7.5).
//!
//! A heartbeat of a silent writer with this number shows that no change of it is
//! missing.

use super::Writer;
use super::group_info::GroupSequence;
use super::heartbeats::{HeartbeatSource, Heartbeats};
use super::matched_readers::MatchedReaders;
use super::timers::{TIMER_GROUP_INFO, WriterTimers};
use crate::seq::SequenceNumber;
use crate::time::Instant;
use crate::wire::GroupSequenceInfo;

impl Writer {
    /// Sets the group sequence number of the publisher after a write of this
    /// writer, and the digest of its writers.
    pub fn set_group_sequence(&mut self, current: SequenceNumber, writers: [u8; 4]) {
        self.heartbeats.group_info.sequence = Some(GroupSequence {
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
            .matched
            .destinations
            .iter()
            .any(|g| g.wants_set_ends && g.reliable > 0);
        if is_requested {
            let delay = self.heartbeats.group_info.begin_repeats();
            self.timers.set(TIMER_GROUP_INFO, now.after(delay));
        }
    }
}

impl Heartbeats {
    /// Lets the destinations get the group sequence number again. True if one does.
    pub(super) fn repeat_group_info(
        &mut self,
        now: Instant,
        matched: &mut MatchedReaders,
        timers: &mut WriterTimers,
    ) -> bool {
        let mut is_due = false;
        for destination in &mut matched.destinations {
            destination.group_info_due |= destination.wants_set_ends && destination.reliable > 0;
            is_due |= destination.group_info_due;
        }
        if let Some(delay) = self.group_info.next_repeat() {
            timers.set(TIMER_GROUP_INFO, now.after(delay));
        }
        is_due
    }

    /// The group sequence info for a heartbeat that names everything up to `last`;
    /// `None` while a change is not named.
    pub(super) fn group_info_up_to(
        &self,
        last: i64,
        HeartbeatSource { cache, cursor, .. }: HeartbeatSource<'_>,
    ) -> Option<GroupSequenceInfo> {
        let GroupSequence {
            current,
            writer_group_digest,
        } = self.group_info.sequence?;
        if last < cache.last.0 || cursor.number <= cache.last.0 && last > cursor.number {
            return None;
        }
        let group_sequence_of =
            |change: &crate::change::WriterChange| change.coherent_mark.as_ref()?.group_sequence;
        let first = cache.history.first().and_then(group_sequence_of);
        let latest = cache.history.iter().next_back().and_then(group_sequence_of);
        let first = first.unwrap_or(current.next());
        Some(GroupSequenceInfo {
            current,
            first,
            last: latest.unwrap_or(first.previous()),
            writer_group_digest,
        })
    }
}
