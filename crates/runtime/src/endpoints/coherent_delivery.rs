//! Delivery of samples to a subscription whose PRESENTATION may hold them back.

use pteros_dcps::coherent::{
    CoherentSets, GroupDialect, MatchKey, ReaderLosses, ReadyBatch, SOLE_READER, WriterArrival,
};
use pteros_dcps::sample::{ArrivalSummary, InsertOutcome, PoppedSample, QueuedSample};
use pteros_rtps::coherent_mark::CoherentMarkKind;
use pteros_rtps::history::CacheChange;
use pteros_rtps::id::Guid;
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::reader::Reader;
use pteros_rtps::time::{Instant, Timestamp};

use crate::endpoints::reader::ReaderEndpoint;
use crate::transport::TransportEvent;

impl ReaderEndpoint {
    /// Whether samples may have to wait for others.
    pub(crate) fn holds_samples(&self) -> bool {
        self.group.is_some() || self.data.qos.presentation.holds_samples()
    }

    /// The index of the reader among those whose sets are merged.
    pub(crate) fn member_index(&self) -> usize {
        self.group
            .as_ref()
            .map_or(SOLE_READER, |member| member.index)
    }

    /// Accesses its sets, or those of its group.
    pub(crate) fn with_sets<R>(&self, look: impl FnOnce(&mut CoherentSets) -> R) -> Option<R> {
        match &self.group {
            None => self.cache().sets.as_deref_mut().map(look),
            Some(member) => {
                let guid = self.data.guid;
                member.group.with_sets(member.index, guid, look)
            }
        }
    }

    /// Adds a matched writer.
    pub(crate) fn add_set_writer(
        &self,
        writer: Guid,
        publisher: Option<Guid>,
        dialect: GroupDialect,
    ) {
        let index = self.member_index();
        self.with_sets(|sets| sets.add_writer(index, writer, publisher, dialect));
    }

    /// Removes a writer. Its samples are received first, however full the queue is.
    pub(crate) fn remove_set_writer(
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
        self.change_sets(now, machine, |sets| {
            sets.remove_writer(now, self.member_index(), writer)
        });
    }

    /// Inserts a local sample or the end of a set. `may_refuse`: a full queue drops
    /// the sample.
    pub(crate) fn offer_or_refuse(
        &self,
        now: Instant,
        machine: &mut Reader,
        mut item: QueuedSample,
        may_refuse: bool,
    ) {
        let mark = item.mark.as_ref();
        let is_change = mark.is_none_or(|mark| mark.kind == CoherentMarkKind::CacheChange);
        let is_sample = is_change && !self.cache().is_duplicate_sample(&item);
        if is_sample && may_refuse && self.is_full_for(None) {
            self.note_lost(1);
            return;
        }
        let mut mark = item.mark.take();
        if let Some(mark) = &mut mark {
            // Within a process the set of writers is known.
            mark.writer_group_digest = None;
        }
        let has_place = is_sample && (self.is_keyed() || !item.is_end());
        if has_place {
            self.note_received_for_deadline(now, machine, [&item]);
        }
        let arrival = WriterArrival {
            writer: item.meta.publisher,
            sequence: item.meta.sequence,
            mark,
            items: has_place.then_some(item).into_iter().collect(),
            in_order: true,
        };
        self.change_sets(now, machine, |sets| {
            sets.offer(now, self.member_index(), arrival)
        });
    }

    /// Inserts a change received from the network.
    fn offer_change(
        &self,
        now: Instant,
        machine: &mut Reader,
        mut change: CacheChange,
        wall: Timestamp,
    ) {
        let mark = change.coherent_mark.take();
        let (writer, sequence) = (change.writer, change.sequence.0);
        if let Some(mark) = mark
            .as_ref()
            .filter(|m| m.kind == CoherentMarkKind::GroupHeartbeat)
        {
            let index = mark.group_sequence.map_or(0, |index| index.0);
            let key = MatchKey {
                reader: self.member_index(),
                writer,
            };
            self.change_sets(now, machine, |sets| {
                sets.note_settled(now, key, sequence, index)
            });
            return;
        }
        let is_change = mark
            .as_ref()
            .is_none_or(|m| m.kind == CoherentMarkKind::CacheChange);
        let mut arrived = ArrivalSummary::default();
        let original = change.original_writer_info;
        let is_repeated = is_change && self.cache().is_duplicate(writer, sequence, original);
        let items = if is_change && !is_repeated {
            self.queued_samples_of(change, wall, &mut arrived)
        } else {
            [None, None]
        };
        if items.iter().any(Option::is_some) {
            self.note_received_for_deadline(now, machine, items.iter().flatten());
        }
        let arrival = WriterArrival {
            writer,
            sequence,
            mark,
            items: items.into_iter().flatten().collect(),
            in_order: false,
        };
        self.change_sets(now, machine, |sets| {
            sets.offer(now, self.member_index(), arrival)
        });
        if arrived.rejected {
            self.notify_arrival(&arrived);
        }
    }

    /// Records the arrival for the reader's DEADLINE (in groups) and for that of the
    /// instance. Other parts decide when the sample can be taken.
    fn note_received_for_deadline<'i>(
        &self,
        now: Instant,
        machine: &mut Reader,
        items: impl IntoIterator<Item = &'i QueuedSample>,
    ) {
        if self.group.is_some() {
            machine.renew_deadline(now);
        }
        if let Some(instances) = &mut self.cache().instances {
            for item in items {
                instances.note_received(now, item);
            }
        }
    }

    /// Takes the oldest sample of its part of a group. `None` if there is nothing; no
    /// sample if a filter rejected it.
    pub(crate) fn pop_of_group(&self, now: impl Fn() -> Instant) -> Option<PoppedSample> {
        let member = self.group.as_ref()?;
        let machine = self.machine.lock();
        let released = self.cache().pop(&now);
        if released.item.is_some() {
            return Some(released);
        }
        let taken = member.group.take_of(member.index, &now);
        let (freed_space, resume) = (
            released.freed_space || taken.freed_space,
            released.resume || taken.resume,
        );
        let Some((at, item)) = taken.next else {
            return (freed_space || resume).then_some(PoppedSample {
                item: None,
                freed_space,
                resume,
            });
        };
        let mut cache = self.cache();
        let alive = |writer| machine.is_alive(at, writer);
        let outcome = cache.offer(at, item, alive);
        let mut popped = cache.pop(&now);
        drop(cache);
        if outcome == InsertOutcome::Rejected {
            self.notify_arrival(&ArrivalSummary {
                rejected: true,
                ..ArrivalSummary::default()
            });
        }
        // The time-based filter holds a sample and needs a timeout.
        popped.resume |= resume || outcome == InsertOutcome::Withheld;
        popped.freed_space |= freed_space;
        Some(popped)
    }

    /// Takes the oldest sample; sets are returned one after the other.
    pub(crate) fn pop_of_sets(&self, now: impl Fn() -> Instant) -> PoppedSample {
        let mut machine = self.machine.lock();
        let mut cache = self.cache();
        let was_full = cache.is_full_for(None);
        let (mut arrived, mut has_alarms) = (ArrivalSummary::default(), false);
        loop {
            let is_empty = cache.is_empty();
            let next = match &mut cache.sets {
                Some(sets) if is_empty => sets.ready.next(&now),
                _ => None,
            };
            let items = next.map(|batch| batch.items).unwrap_or_default();
            for (_, item) in items {
                if self.is_keyed() {
                    let outcome = cache.insert(now(), &mut machine, item);
                    arrived.rejected |= outcome == InsertOutcome::Rejected;
                    // A held sample or an ended instance needs a timeout.
                    has_alarms |= matches!(
                        outcome,
                        InsertOutcome::Withheld | InsertOutcome::InstanceEndQueued
                    );
                } else {
                    cache.queue.push_or_drop_oldest(item);
                }
            }
            let mut popped = cache.pop(&now);
            // The expired sample may not have been the last.
            if popped.item.is_some() || cache.has_no_samples() {
                popped.freed_space |= was_full && !cache.is_full_for(None);
                popped.resume |= has_alarms;
                drop(cache);
                if arrived.rejected {
                    self.notify_arrival(&arrived);
                }
                return popped;
            }
        }
    }

    /// Changes the sets, then notifies about samples that became ready or were
    /// dropped.
    pub(crate) fn change_sets(
        &self,
        now: Instant,
        machine: &mut Reader,
        change: impl FnOnce(&mut CoherentSets) -> Vec<ReadyBatch>,
    ) {
        if let Some(member) = &self.group {
            member
                .group
                .change_sets(member.index, self.data.guid, change);
            return;
        }
        let mut cache = self.cache();
        let alive = |writer| machine.is_alive(now, writer);
        let queued = cache.with_sets(now, alive, change);
        let losses = match &mut cache.sets {
            None => return,
            Some(sets) => sets.losses(SOLE_READER),
        };
        drop(cache);
        if let Some(samples) = queued {
            machine.renew_deadline(now);
            self.notify_ready(samples);
        }
        self.note_losses(losses);
    }

    /// Reports dropped sets and samples.
    pub(crate) fn note_losses(&self, losses: ReaderLosses) {
        if losses.sets > 0 {
            tracing::debug!(
                topic = %self.data.topic, sets = losses.sets, samples = losses.samples,
                "coherent sets dropped: incomplete, or larger than the history of the subscription"
            );
        }
        self.note_lost(losses.samples);
    }

    /// As [`ReaderEndpoint::collect`], for samples that may be held back.
    pub(crate) fn collect_to_sets(&self, now: Instant, machine: &mut Reader, wall: Timestamp) {
        loop {
            let is_full = match &self.group {
                Some(member) => member.group.holds_back_when_full(member.index),
                None => self.cache().holds_back_when_full(machine),
            };
            if is_full {
                break;
            }
            let Some(change) = machine.poll_sample() else {
                break;
            };
            self.offer_change(now, machine, change, wall);
        }
        self.change_sets(now, machine, |sets| sets.handle_timeout(now));
    }
}

/// Whether the event may change the known writers of a publisher.
pub(crate) fn changes_publishers(event: &TransportEvent) -> bool {
    match event {
        TransportEvent::Discovery(ParticipantEvent::EndpointDiscovered(data)) => {
            data.group.is_some()
        }
        TransportEvent::Discovery(ParticipantEvent::Matched { remote, .. }) => {
            remote.group.is_some()
        }
        TransportEvent::Discovery(ParticipantEvent::EndpointLost(_)) => true,
        _ => false,
    }
}
