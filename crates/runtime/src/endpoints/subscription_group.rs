//! Subscription group: a DDS subscriber with several readers (presentation /
//! coherent set, DDS 1.4 §2.2.2.5.2.8–10).
//!
//! Samples of a publisher are merged before they are delivered, and an access shows all
//! of them at once.
//!
//! Samples enter the group under their reader's `machine` lock. They leave one at a time
//! through the reader's cache, which filters them when they are taken, as of the time
//! when they became ready. The group's lock is never held together with a `cache`.
//!
//! Sets of publishers with several writers are released only after the first
//! access, so that readers created one after the other start together.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use pteros_dcps::coherent::{CoherentSetTotals, CoherentSets, ReaderLosses, ReadyBatch};
use pteros_dcps::sample::SampleLimits;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, Presentation};
use pteros_rtps::time::Instant;

use crate::endpoints::reader::ReaderEndpoint;
use crate::lock::{Mutex, rank};
use crate::sample::QueuedSample;
use crate::scheduler::ready_queue::ReadySlot;

/// Readers with a common presentation.
pub struct SubscriptionGroup {
    presentation: Presentation,
    pub(crate) state: Mutex<SubscriptionGroupState, rank::SubscriptionGroup>,
    /// Where user code waits for samples of any member.
    pub slot: ReadySlot,
}

pub(crate) struct SubscriptionGroupState {
    pub(crate) sets: CoherentSets,
    /// By index; a free index is reused.
    members: Vec<Option<GroupMember>>,
    /// Number of nested accesses.
    pub(crate) accesses: usize,
    /// Whether an access was ever started.
    has_had_access: bool,
}

#[derive(Clone)]
struct GroupMember {
    guid: Guid,
    reader: Weak<ReaderEndpoint>,
    /// Whether its machine keeps samples for lack of space here.
    held_back: bool,
}

/// A reader's membership in a group.
pub(crate) struct GroupMembership {
    pub group: Arc<SubscriptionGroup>,
    pub index: usize,
}

/// A sample that a reader took from its group.
pub(crate) struct TakenSample {
    /// A sample, and when it became ready. `None` if all queued samples had expired,
    /// which makes space as well.
    pub next: Option<(Instant, QueuedSample)>,
    /// Some reader was full and no longer is.
    pub freed_space: bool,
    /// Held-back samples of some machine have space, see
    /// [`SubscriptionGroup::take_resumed`], or the reader's timeouts have changed.
    pub resume: bool,
}

/// Updates for members, to be applied after the lock is released.
#[derive(Default)]
pub(crate) struct MemberUpdates(Vec<(Arc<ReaderEndpoint>, Option<u64>, ReaderLosses)>);

impl SubscriptionGroup {
    pub(crate) fn new(presentation: Presentation) -> Self {
        let mut sets = CoherentSets::new(presentation);
        sets.hold_group_sets();
        Self {
            presentation,
            state: Mutex::new(SubscriptionGroupState {
                sets,
                members: Vec::new(),
                accesses: 0,
                has_had_access: false,
            }),
            slot: ReadySlot::default(),
        }
    }

    /// The presentation of its readers.
    pub fn presentation(&self) -> Presentation {
        self.presentation
    }

    /// Whether an access is open.
    pub fn is_open(&self) -> bool {
        self.state.lock().accesses > 0
    }

    /// Reserves an index for a reader that is about to be created.
    pub(crate) fn add_reader(
        self: &Arc<Self>,
        guid: Guid,
        qos: &EndpointQos,
        limits: SampleLimits,
    ) -> GroupMembership {
        let mut state = self.state.lock();
        let free = state.members.iter().position(Option::is_none);
        let index = free.unwrap_or(state.members.len());
        let member = GroupMember {
            guid,
            reader: Weak::new(),
            held_back: false,
        };
        match state.members.get_mut(index) {
            Some(free) => *free = Some(member),
            None => state.members.push(Some(member)),
        }
        state.sets.put_reader(index, qos, limits);
        drop(state);
        GroupMembership {
            group: self.clone(),
            index,
        }
    }

    pub(crate) fn note_reader(&self, index: usize, reader: &Arc<ReaderEndpoint>) {
        if let Some(Some(member)) = self.state.lock().members.get_mut(index) {
            member.reader = Arc::downgrade(reader);
        }
    }

    /// Removes a reader; sets no longer wait for its part.
    pub(crate) fn remove_reader(&self, now: Instant, index: usize) {
        let mut state = self.state.lock();
        let ready = state.sets.remove_reader(now, index);
        if let Some(member) = state.members.get_mut(index) {
            *member = None;
        }
        let updates = state.enqueue_ready(ready);
        drop(state);
        self.notify(updates);
    }

    /// Accesses the sets on behalf of a reader; `None` if it was removed.
    pub(crate) fn with_sets<R>(
        &self,
        index: usize,
        guid: Guid,
        look: impl FnOnce(&mut CoherentSets) -> R,
    ) -> Option<R> {
        let mut state = self.state.lock();
        let is_member = state.guid(index) == Some(guid);
        is_member.then(|| look(&mut state.sets))
    }

    /// Changes the sets, then notifies about samples that became ready or were
    /// dropped.
    pub(crate) fn change_sets(
        &self,
        index: usize,
        guid: Guid,
        change: impl FnOnce(&mut CoherentSets) -> Vec<ReadyBatch>,
    ) {
        let mut state = self.state.lock();
        if state.guid(index) != Some(guid) {
            return;
        }
        let ready = change(&mut state.sets);
        let updates = state.enqueue_ready(ready);
        let before_first = !state.has_had_access;
        let woken = if before_first {
            state.readers()
        } else {
            Vec::new()
        };
        drop(state);
        self.notify(updates);
        // The first access to any member releases the group's sets.
        for reader in woken {
            reader.slot.mark_ready();
        }
        if before_first {
            self.slot.mark_ready();
        }
    }

    pub(crate) fn notify(&self, updates: MemberUpdates) {
        let has_samples = updates.0.iter().any(|(_, queued, _)| queued.is_some());
        for (reader, queued, losses) in updates.0 {
            if let Some(samples) = queued {
                reader.notify_ready(samples);
            }
            reader.note_losses(losses);
        }
        if has_samples {
            self.slot.mark_ready();
        }
    }

    /// Whether writers must wait for a reader.
    pub(crate) fn is_full(&self, index: usize) -> bool {
        self.state.lock().sets.ready.is_full(index, 0)
    }

    /// As [`Self::is_full`], and its machine is served when there is space.
    pub(crate) fn holds_back_when_full(&self, index: usize) -> bool {
        let mut state = self.state.lock();
        let is_full = state.sets.ready.is_full(index, 0);
        if is_full && let Some(Some(member)) = state.members.get_mut(index) {
            member.held_back = true;
        }
        is_full
    }

    /// Whether a reader could take a sample now.
    pub(crate) fn has_takeable(&self, index: usize) -> bool {
        let state = self.state.lock();
        !state.has_had_access || state.sets.ready.has_takeable(index)
    }

    pub(crate) fn totals(&self, index: usize) -> CoherentSetTotals {
        self.state.lock().sets.totals(index)
    }

    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        self.state.lock().sets.wakes_at()
    }

    /// A reader's oldest item that can be taken.
    pub(crate) fn take_of(&self, index: usize, now: impl Fn() -> Instant) -> TakenSample {
        let mut state = self.state.lock();
        let (opened, updates) = state.open_on_first_access(&now);
        let full = state.count_full();
        let next = state.sets.ready.take_of(index, &now);
        // Expired samples may belong to several readers.
        let freed_space = state.count_full() < full;
        let resume = opened || state.resumed().next().is_some();
        drop(state);
        self.notify(updates);
        TakenSample {
            next,
            freed_space,
            resume,
        }
    }

    /// Readers whose machines kept samples and that have space now; each is
    /// returned once.
    pub(crate) fn take_resumed(&self) -> Vec<Arc<ReaderEndpoint>> {
        self.state.lock().take_resumed()
    }

    /// Releases the sets on the first access. Returns the requested reader with the
    /// next sample.
    pub(crate) fn next_reader(
        &self,
        now: impl Fn() -> Instant,
        among: impl Fn(Guid) -> bool,
    ) -> Option<Arc<ReaderEndpoint>> {
        let mut state = self.state.lock();
        let (opened, updates) = state.open_on_first_access(&now);
        let readers = state.readers();
        drop(state);
        self.notify(updates);
        debug_assert!(!opened || self.state.lock().has_had_access);
        // Samples released by the time-based filter are not held back by a set.
        let released = readers
            .iter()
            .find(|r| among(r.data.guid) && !r.cache().is_empty());
        if released.is_some() {
            return released.cloned();
        }
        let state = self.state.lock();
        let is_asked_for = |index| state.guid(index).is_some_and(&among);
        let index = state.sets.ready.next_reader(is_asked_for)?;
        state.members.get(index)?.as_ref()?.reader.upgrade()
    }
}

impl SubscriptionGroupState {
    fn guid(&self, index: usize) -> Option<Guid> {
        Some(self.members.get(index)?.as_ref()?.guid)
    }

    pub(crate) fn readers(&self) -> Vec<Arc<ReaderEndpoint>> {
        let members = self.members.iter().flatten();
        members.filter_map(|m| m.reader.upgrade()).collect()
    }

    /// Number of full readers.
    pub(crate) fn count_full(&self) -> usize {
        let places = 0..self.members.len();
        places
            .filter(|index| self.sets.ready.is_full(*index, 0))
            .count()
    }

    /// Indices of held-back readers with space.
    fn resumed(&self) -> impl Iterator<Item = usize> {
        let members = self.members.iter().enumerate();
        let held_back = members.filter(|(_, m)| m.as_ref().is_some_and(|m| m.held_back));
        let places = held_back.map(|(index, _)| index);
        places.filter(|index| self.sets.ready.is_half_empty(*index))
    }

    pub(crate) fn take_resumed(&mut self) -> Vec<Arc<ReaderEndpoint>> {
        let places: Vec<usize> = self.resumed().collect();
        let mut readers = Vec::new();
        for index in places {
            if let Some(Some(member)) = self.members.get_mut(index) {
                member.held_back = false;
                readers.extend(member.reader.upgrade());
            }
        }
        readers
    }

    /// Queues ready batches.
    fn enqueue_ready(&mut self, ready: Vec<ReadyBatch>) -> MemberUpdates {
        let mut queued = BTreeMap::<usize, u64>::new();
        for batch in ready {
            let mut counts = BTreeMap::<usize, u64>::new();
            for (reader, item) in &batch.items {
                *counts.entry(*reader).or_default() += u64::from(!item.is_end());
            }
            if self.sets.enqueue(batch) {
                for (reader, count) in counts {
                    *queued.entry(reader).or_default() += count;
                }
            }
        }
        let mut updates = MemberUpdates::default();
        for (index, member) in self.members.iter().enumerate() {
            let losses = self.sets.losses(index);
            let queued = queued.get(&index).copied();
            if queued.is_none() && losses == ReaderLosses::default() {
                continue;
            }
            let reader = member.as_ref().and_then(|m| m.reader.upgrade());
            updates
                .0
                .extend(reader.map(|reader| (reader, queued, losses)));
        }
        updates
    }

    /// Releases earlier sets on the first access. Returns whether this was the
    /// first.
    pub(crate) fn open_on_first_access(
        &mut self,
        now: impl Fn() -> Instant,
    ) -> (bool, MemberUpdates) {
        if std::mem::replace(&mut self.has_had_access, true) {
            return (false, MemberUpdates::default());
        }
        let ready = self.sets.release_group_sets(now());
        (true, self.enqueue_ready(ready))
    }
}

impl fmt::Debug for SubscriptionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionGroup")
            .field("presentation", &self.presentation)
            .finish_non_exhaustive()
    }
}
