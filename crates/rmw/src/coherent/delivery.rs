//! How samples reach a subscription whose PRESENTATION lets them wait, and what
//! it tells of those that never come.

use std::collections::BTreeSet;
use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::CacheChange;
use pteros_rtps::id::{Guid, VendorId};
use pteros_rtps::mark::MarkKind;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::reader::Reader;
use pteros_rtps::time::{Instant, Timestamp};

use super::{Arrival, Batch, Losses, SOLE, Sets};
use crate::core::Core;
use crate::intake::Entered;
use crate::reader::{Arrived, ReaderEndpoint, enter};
use crate::sample::{Item, Popped};

impl ReaderEndpoint {
    /// Whether samples may have to wait for others.
    pub(crate) fn holds_samples(&self) -> bool {
        self.group.is_some() || self.data.qos.presentation.holds_samples()
    }

    /// Its place among those whose sets are put together.
    pub(crate) fn place(&self) -> usize {
        self.group.as_ref().map_or(SOLE, |member| member.place)
    }

    /// Looks at its sets, or its group's.
    fn with_sets<R>(&self, look: impl FnOnce(&mut Sets) -> R) -> Option<R> {
        match &self.group {
            None => self.intake().sets.as_deref_mut().map(look),
            Some(member) => {
                let me = (member.place, self.data.guid);
                member.group.with_sets(me, look)
            }
        }
    }

    /// Its sets, if they have outgrown a limit.
    pub(crate) fn exceeded_limit_of_sets(&self) -> Option<(&'static str, usize, usize)> {
        let place = self.place();
        self.with_sets(|sets| sets.exceeded_limit(place)).flatten()
    }

    /// A writer is matched; `tells`: it is known to send group information.
    pub(crate) fn begin_sets(&self, writer: Guid, publisher: Option<Guid>, tells: bool) {
        let place = self.place();
        self.with_sets(|sets| sets.join(place, writer, publisher, tells));
    }

    /// A writer is gone: what it sent and nobody has polled yet is heard first,
    /// however full the queue is.
    pub(crate) fn end_sets(
        &self,
        now: Instant,
        machine: &mut Reader,
        wall: Timestamp,
        writer: Guid,
    ) {
        if !self.holds_samples() {
            return;
        }
        while let Some(change) = machine.poll_sample() {
            self.offer_change(now, machine, change, wall);
        }
        self.change_sets(now, machine, |sets| sets.leave(now, self.place(), writer));
    }

    /// Takes a sample of this process, or the end of a set. `may_refuse`: a full
    /// queue loses the sample.
    pub(crate) fn offer_or_refuse(
        &self,
        now: Instant,
        machine: &mut Reader,
        mut item: Item,
        may_refuse: bool,
    ) {
        let mark = item.mark.as_ref();
        let is_change = mark.is_none_or(|mark| mark.kind == MarkKind::Change);
        let is_sample = is_change && !self.intake().is_repeated_item(&item);
        if is_sample && may_refuse && self.is_full_for(None) {
            self.note_lost(1);
            return;
        }
        let mut mark = item.mark.take();
        if let Some(mark) = &mut mark {
            // Within a process everybody knows who is there.
            mark.writers = None;
        }
        let has_place = is_sample && (self.is_keyed() || !item.is_end());
        if has_place {
            self.note_heard(now, machine, [&item]);
        }
        let arrival = Arrival {
            writer: item.meta.publisher,
            sequence: item.meta.sequence,
            mark,
            items: has_place.then_some(item).into_iter().collect(),
            in_order: true,
        };
        self.change_sets(now, machine, |sets| sets.offer(now, self.place(), arrival));
    }

    /// Takes what came over the network.
    fn offer_change(
        &self,
        now: Instant,
        machine: &mut Reader,
        mut change: CacheChange,
        wall: Timestamp,
    ) {
        let mark = change.mark.take();
        let (writer, sequence) = (change.writer, change.sequence.0);
        if let Some(mark) = mark.as_ref().filter(|m| m.kind == MarkKind::Settled) {
            let place = mark.group_sequence.map_or(0, |place| place.0);
            self.change_sets(now, machine, |sets| {
                sets.settle(now, (self.place(), writer), sequence, place)
            });
            return;
        }
        let is_change = mark.as_ref().is_none_or(|m| m.kind == MarkKind::Change);
        let mut arrived = Arrived::default();
        let is_repeated = is_change && self.is_repeated(&change);
        let items = match is_change && !is_repeated {
            true => self.items_of(change, wall, &mut arrived),
            false => [None, None],
        };
        if items.iter().any(Option::is_some) {
            self.note_heard(now, machine, items.iter().flatten());
        }
        let arrival = Arrival {
            writer,
            sequence,
            mark,
            items: items.into_iter().flatten().collect(),
            in_order: false,
        };
        self.change_sets(now, machine, |sets| sets.offer(now, self.place(), arrival));
        if arrived.rejected {
            self.note_arrived(&arrived);
        }
    }

    /// In a group a sample counts for the deadline when it comes, and everywhere
    /// for its instance's: when it may be seen is up to others.
    fn note_heard<'i>(
        &self,
        now: Instant,
        machine: &mut Reader,
        items: impl IntoIterator<Item = &'i Item>,
    ) {
        if self.group.is_some() {
            machine.note_update(now);
        }
        if let Some(instances) = &mut self.intake().instances {
            for item in items {
                instances.note_heard(now, item);
            }
        }
    }

    /// Takes the oldest sample of its part of a group; `None` if there is
    /// nothing, no sample if a judge kept it.
    pub(crate) fn pop_of_group(&self, now: impl Fn() -> Instant) -> Option<Popped> {
        let member = self.group.as_ref()?;
        let machine = self.machine.lock();
        let released = self.intake().pop(&now);
        if released.item.is_some() {
            return Some(released);
        }
        let taken = member.group.take_of(member.place, &now);
        let (made_room, resume) = (
            released.made_room || taken.made_room,
            released.resume || taken.resume,
        );
        let Some((at, item)) = taken.next else {
            return (made_room || resume).then_some(Popped {
                item: None,
                made_room,
                resume,
            });
        };
        let mut intake = self.intake();
        let alive = |writer| machine.is_alive(at, writer);
        let entered = intake.offer(at, item, alive);
        let mut popped = intake.pop(&now);
        drop(intake);
        if entered == Entered::Rejected {
            let mut arrived = Arrived::default();
            arrived.rejected = true;
            self.note_arrived(&arrived);
        }
        // What the time filter holds has a time to be looked at.
        popped.resume |= resume || entered == Entered::Heard;
        popped.made_room |= made_room;
        Some(popped)
    }

    /// Takes the oldest sample; of sets, one after the other.
    pub(crate) fn pop_of_sets(&self, now: impl Fn() -> Instant) -> Popped {
        let mut machine = self.machine.lock();
        let mut intake = self.intake();
        let was_full = intake.is_full_for(None);
        let (mut arrived, mut has_alarms) = (Arrived::default(), false);
        loop {
            let is_empty = intake.is_empty();
            let next = match &mut intake.sets {
                Some(sets) if is_empty => sets.waiting.next(&now),
                _ => None,
            };
            let items = next.map(|batch| batch.items).unwrap_or_default();
            for (_, item) in items {
                if self.is_keyed() {
                    let entered = enter(&mut intake, now(), &mut machine, item);
                    arrived.rejected |= entered == Entered::Rejected;
                    // What is held or has ended has a time to be looked at.
                    has_alarms |= matches!(entered, Entered::Heard | Entered::Noted);
                } else {
                    intake.queue.push_or_drop_oldest(item);
                }
            }
            let mut popped = intake.pop(&now);
            // What has expired may not have been the last.
            if popped.item.is_some() || intake.has_nothing() {
                popped.made_room |= was_full && !intake.is_full_for(None);
                popped.resume |= has_alarms;
                drop(intake);
                if arrived.rejected {
                    self.note_arrived(&arrived);
                }
                return popped;
            }
        }
    }

    /// Does something to the sets, and tells of what became ready or was
    /// dropped.
    pub(crate) fn change_sets(
        &self,
        now: Instant,
        machine: &mut Reader,
        change: impl FnOnce(&mut Sets) -> Vec<Batch>,
    ) {
        if let Some(member) = &self.group {
            member
                .group
                .change_sets((member.place, self.data.guid), change);
            return;
        }
        let mut intake = self.intake();
        let alive = |writer| machine.is_alive(now, writer);
        let queued = intake.with_sets(now, alive, change);
        let losses = match &mut intake.sets {
            None => return,
            Some(sets) => sets.losses(SOLE),
        };
        drop(intake);
        if let Some(samples) = queued {
            machine.note_update(now);
            self.note_ready(samples);
        }
        self.note_losses(losses);
    }

    /// Tells of what was dropped.
    pub(crate) fn note_losses(&self, losses: Losses) {
        if losses.sets > 0 {
            tracing::debug!(
                topic = %self.data.topic, sets = losses.sets, samples = losses.samples,
                "coherent sets dropped: incomplete, or larger than the subscription keeps"
            );
        }
        if losses.samples > 0 {
            self.note_lost(losses.samples);
        }
    }

    /// As [`ReaderEndpoint::collect`], for samples that may have to wait.
    pub(crate) fn collect_to_sets(&self, now: Instant, machine: &mut Reader, wall: Timestamp) {
        loop {
            if self.holds_back_when_full() {
                break;
            }
            let Some(change) = machine.poll_sample() else {
                break;
            };
            self.offer_change(now, machine, change, wall);
        }
        self.change_sets(now, machine, |sets| sets.wake(now));
    }

    fn holds_back_when_full(&self) -> bool {
        if let Some(member) = &self.group {
            return member.group.holds_back_when_full(member.place);
        }
        let mut intake = self.intake();
        let full = intake.is_full_for(None);
        if full {
            intake.hold_back();
        }
        full
    }
}

impl Core {
    /// A remote writer is matched.
    pub(crate) fn begin_remote_sets(
        &self,
        reader: &ReaderEndpoint,
        writer: &EndpointData,
        vendor: VendorId,
    ) {
        if !reader.holds_samples() {
            return;
        }
        let is_reliable = |qos: &EndpointQos| qos.reliability == Reliability::Reliable;
        let tells =
            vendor == VendorId::PTEROS && is_reliable(&writer.qos) && is_reliable(&reader.data.qos);
        reader.begin_sets(writer.guid, writer.group, tells);
    }

    /// Discovery has something new about which writers publishers have. O(all
    /// endpoints, and those that readers with group access are matched with).
    pub(crate) fn tell_of_publishers(&self, now: Instant) {
        let mut told = BTreeSet::new();
        let readers: Vec<_> = {
            let table = self.table.read();
            let all = table.readers.values();
            all.filter(|r| r.data.qos.presentation.is_of_group() && r.holds_samples())
                // Once for those that are presented as one.
                .filter(|r| match &r.group {
                    Some(member) => told.insert(Arc::as_ptr(&member.group)),
                    None => true,
                })
                .cloned()
                .collect()
        };
        if readers.is_empty() {
            return;
        }
        let known = self.known_writers();
        for reader in readers {
            let publishers = reader.with_sets(|sets| sets.publishers());
            for publisher in publishers.unwrap_or_default() {
                let known = known.get(&publisher).copied().unwrap_or_default();
                let mut machine = reader.machine.lock();
                reader.change_sets(now, &mut machine, |sets| {
                    sets.note_writers(now, publisher, known)
                });
            }
        }
    }
}

/// Whether the event may change which writers a publisher has, or is known to
/// have.
pub(crate) fn changes_publishers(event: &ParticipantEvent) -> bool {
    match event {
        ParticipantEvent::EndpointDiscovered(data) => data.group.is_some(),
        ParticipantEvent::Matched { remote, .. } => remote.group.is_some(),
        ParticipantEvent::EndpointLost(_) => true,
        _ => false,
    }
}
