//! Where a writer's publisher is, for readers that put its writers in order: a
//! silent writer says that nothing is missing from it (RTPS 2.5 §8.7.5).

use super::{PLACE_PAUSE, PLACE_TELLINGS, TIMER_PLACE, Writer};
use crate::seq::SequenceNumber;
use crate::time::Instant;
use crate::wire::GroupPlace;

impl Writer {
    /// This writer takes the publisher to `current`, which has these writers.
    pub fn know_place(&mut self, current: SequenceNumber, writers: [u8; 4]) {
        self.place = Some((current.0, writers));
    }

    /// Another writer of the publisher has written, or ended a set: the
    /// publisher is at `current` and has these writers. Readers that ask for
    /// the publisher's order are told soon, and again for some time.
    pub fn note_place(&mut self, now: Instant, current: SequenceNumber, writers: [u8; 4]) {
        self.know_place(current, writers);
        let is_asked = self.groups.iter().any(|g| g.hears_ends && g.reliable > 0);
        if is_asked {
            self.tellings = (PLACE_TELLINGS, PLACE_PAUSE);
            self.timers.set(TIMER_PLACE, now.after(PLACE_PAUSE));
        }
    }

    pub(super) fn tell_place(&mut self, now: Instant) {
        for group in &mut self.groups {
            group.place_due |= group.hears_ends && group.reliable > 0;
            self.has_debts |= group.place_due;
        }
        let (left, pause) = self.tellings;
        let pause = pause.times(4);
        self.tellings = (left.saturating_sub(1), pause);
        if left > 1 {
            self.timers.set(TIMER_PLACE, now.after(pause));
        }
    }

    /// What a heartbeat that names everything up to `last` may say of the
    /// publisher: nothing while there is something that it does not name.
    pub(super) fn place_for(&self, last: i64) -> Option<GroupPlace> {
        let (current, writers) = self.place?;
        if last < self.last.0 || self.cursor.number <= self.last.0 && last > self.cursor.number {
            return None;
        }
        let place_of = |change: &crate::history::Change| change.mark.as_ref()?.group_sequence;
        let first = self.history.first().and_then(place_of);
        let latest = self.history.iter().next_back().and_then(place_of);
        let first = first.unwrap_or(SequenceNumber(current).next());
        Some(GroupPlace {
            current: SequenceNumber(current),
            first,
            last: latest.unwrap_or(first.previous()),
            writers,
        })
    }
}
