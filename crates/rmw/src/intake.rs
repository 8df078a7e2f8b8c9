//! Where samples enter a subscription, whatever path they took: whether they
//! were had before, then the owner, then the time filter, then the queue with
//! its order. Where the topic has a key all that is per instance, see
//! [`Instances`].
//!
//! Policies that a subscription does not ask for have no judge here and cost
//! one look at an empty option.

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{DestinationOrder, EndpointQos};
use pteros_rtps::seq::SampleIdentity;
use pteros_rtps::time::Instant;

use crate::backlog::Backlog;
use crate::coherent::{Batch, SOLE, Sets};
use crate::instance::{Instances, KeyHash, Lifecycle, Totals};
use crate::originals::Originals;
use crate::ownership::Owners;
use crate::sample::{Item, Popped, SampleQueue};
use crate::separation::Separation;

/// The way into one subscription's queue.
pub(crate) struct Intake {
    pub(crate) queue: SampleQueue,
    pub(crate) owners: Option<Owners>,
    /// In place of queue and filter, where the topic has a key.
    pub(crate) instances: Option<Box<Instances>>,
    /// Since a publisher matched whose samples outlive it.
    pub(crate) originals: Option<Box<Originals>>,
    separation: Option<Separation>,
    /// Samples that came past all judges.
    pub(crate) received: u64,
    /// Coherent sets, and the order within publishers.
    pub(crate) sets: Option<Box<Sets>>,
    /// What publishers of this process kept and there is no room for yet.
    pub(crate) backlog: Option<Box<Backlog>>,
}

/// What the judges say.
enum Judged {
    Passed(Item),
    /// Filtered or held; its publisher was heard.
    Heard,
    /// Another publisher owns the topic.
    Outranked,
}

/// What became of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// It waits to be taken.
    Queued,
    /// The end of an instance waits to be taken.
    Noted,
    /// It was filtered, held or too late; its publisher was heard.
    Heard,
    /// Another publisher owns the topic, or its instance.
    Outranked,
    /// There are as many instances as the limits allow, or none can be told.
    Rejected,
}

impl Intake {
    pub(crate) fn new(qos: &EndpointQos) -> Self {
        let queue = SampleQueue::new(qos);
        let depth = queue.room().0;
        Self {
            queue,
            owners: Owners::new(qos),
            instances: None,
            originals: None,
            separation: Separation::new(qos),
            received: 0,
            sets: None,
            backlog: None,
        }
        .with_room_for_sets(qos, (depth, depth))
    }

    /// One that tells instances apart.
    pub(crate) fn keyed(qos: &EndpointQos, instances: Instances) -> Self {
        let room = instances.room();
        Self {
            separation: None,
            instances: Some(Box::new(instances)),
            ..Self::new(qos)
        }
        .with_room_for_sets(qos, room)
    }

    fn with_room_for_sets(mut self, qos: &EndpointQos, room: (usize, usize)) -> Self {
        if qos.presentation.holds_samples() {
            let mut sets = Sets::new(qos.presentation);
            sets.put_reader(SOLE, qos, room);
            self.sets = Some(Box::new(sets));
            // Sets are put in order before they get there.
            self.queue = SampleQueue::new(&EndpointQos {
                destination_order: DestinationOrder::ByReception,
                ..qos.clone()
            });
        }
        self
    }

    /// Takes over what may change of the reader's policies.
    pub(crate) fn set_qos(&mut self, now: Instant, qos: &EndpointQos, lifecycle: Lifecycle) {
        if let Some(owners) = &mut self.owners {
            owners.set_deadline(qos.deadline);
        }
        match &mut self.instances {
            None => Separation::change(&mut self.separation, qos),
            Some(instances) => instances.set_qos(now, qos, lifecycle),
        }
    }

    /// Lets a group hold the sets instead; returns how many samples may wait, of
    /// one instance and in all.
    pub(crate) fn give_up_sets(&mut self) -> (usize, usize) {
        self.sets = None;
        let depth = self.queue.room().0;
        let instances = self.instances.as_ref();
        instances.map_or((depth, depth), |instances| instances.room())
    }

    /// Whether another sample has no room, or others come first; `key` is its
    /// instance's, if that is known.
    pub(crate) fn is_full_for(&self, key: Option<&KeyHash>) -> bool {
        self.backlog.is_some() || self.lacks_room_for(key)
    }

    /// The same, whoever waits.
    pub(crate) fn lacks_room_for(&self, key: Option<&KeyHash>) -> bool {
        if let Some(sets) = &self.sets {
            return sets.waiting.is_full(SOLE, self.len());
        }
        match (&self.instances, key) {
            (None, _) => self.queue.is_full(),
            (Some(instances), None) => instances.is_full(),
            (Some(instances), Some(key)) => instances.is_full_for(key),
        }
    }

    /// Notes that samples were left behind for lack of room.
    pub(crate) fn hold_back(&mut self) {
        match &mut self.instances {
            None => self.queue.hold_back(),
            Some(instances) => instances.hold_back(),
        }
    }

    /// Takes the oldest sample, or end of an instance.
    pub(crate) fn pop(&mut self, now: impl FnOnce() -> Instant) -> Popped {
        match &mut self.instances {
            None => self.queue.pop(now),
            Some(instances) => instances.pop(now),
        }
    }

    /// Samples that wait behind no set.
    pub(crate) fn len(&self) -> usize {
        match &self.instances {
            None => self.queue.len(),
            Some(instances) => instances.len(),
        }
    }

    /// Whether nothing waits, in sets or by itself.
    pub(crate) fn has_nothing(&self) -> bool {
        self.is_empty()
            && self
                .sets
                .as_ref()
                .is_none_or(|sets| sets.waiting.is_empty())
    }

    /// Whether nothing waits but in sets.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.instances {
            None => self.queue.is_empty(),
            Some(instances) => instances.is_empty(),
        }
    }

    /// Whether the reader's machine must be at hand for each sample.
    pub(crate) fn judges(qos: &EndpointQos) -> bool {
        Owners::new(qos).is_some()
            || Separation::new(qos).is_some()
            || qos.presentation.holds_samples()
    }

    /// Whether a sample was had in an earlier life of its publisher; if not, it
    /// is from now on.
    pub(crate) fn is_repeated(
        &mut self,
        writer: Guid,
        sequence: i64,
        original: Option<SampleIdentity>,
    ) -> bool {
        let originals = self.originals.as_mut();
        originals.is_some_and(|originals| !originals.admits(writer, sequence, original))
    }

    /// As [`Intake::is_repeated`], of a sample of this process.
    pub(crate) fn is_repeated_item(&mut self, item: &Item) -> bool {
        let (meta, original) = (&item.meta, item.original());
        self.is_repeated(meta.publisher, meta.sequence, original)
    }

    /// Takes in a sample; KEEP_LAST makes room for it. `alive` is asked only
    /// about owners.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        item: Item,
        alive: impl Fn(Guid) -> bool,
    ) -> Entered {
        if let Some(instances) = &mut self.instances {
            return instances.offer(now, item, self.owners.as_mut(), alive);
        }
        match self.judge(now, item, alive) {
            Judged::Passed(item) => match self.queue.push_or_drop_oldest(item) {
                true => Entered::Queued,
                false => Entered::Heard,
            },
            Judged::Heard => Entered::Heard,
            Judged::Outranked => Entered::Outranked,
        }
    }

    /// Asks the judges, not the queue.
    fn judge(&mut self, now: Instant, item: Item, alive: impl Fn(Guid) -> bool) -> Judged {
        if let Some(owners) = &mut self.owners
            && !owners.admits(now, item.meta.publisher, alive)
        {
            return Judged::Outranked;
        }
        let passed = match &mut self.separation {
            None => Some(item),
            Some(separation) => separation.offer(now, item),
        };
        if passed.is_none() && self.queue.is_full() {
            // Whoever makes room asks for what is held.
            self.queue.hold_back();
        }
        passed.map_or(Judged::Heard, Judged::Passed)
    }

    /// Does something to the sets, and judges what became ready; how many samples
    /// wait to be taken for it, if anything does. Where instances are told apart
    /// they are asked when a set is taken.
    pub(crate) fn with_sets(
        &mut self,
        now: Instant,
        alive: impl Fn(Guid) -> bool,
        change: impl FnOnce(&mut Sets) -> Vec<Batch>,
    ) -> Option<u64> {
        let mut sets = self.sets.take()?;
        let mut queued = None;
        for Batch {
            is_set,
            at,
            mut items,
        } in change(&mut sets)
        {
            if self.instances.is_none() {
                let judged = items.into_iter().filter_map(|(reader, item)| {
                    match self.judge(now, item, &alive) {
                        Judged::Passed(item) => Some((reader, item)),
                        Judged::Heard | Judged::Outranked => None,
                    }
                });
                items = judged.collect();
            }
            let is_sample = |(_, item): &&(usize, Item)| !item.is_end();
            let samples = items.iter().filter(is_sample).count() as u64;
            if !items.is_empty() && sets.shelve(Batch { is_set, at, items }) {
                *queued.get_or_insert(0) += samples;
            }
        }
        self.sets = Some(sets);
        queued
    }

    /// Does what is due: hands over what the time filter held long enough,
    /// unless the queue is full, and looks after instances. How many samples
    /// wait to be taken by it.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> u64 {
        match &mut self.instances {
            None => u64::from(self.release(now)),
            Some(instances) => instances.handle_timeout(now),
        }
    }

    fn release(&mut self, now: Instant) -> bool {
        let Some(separation) = &mut self.separation else {
            return false;
        };
        if separation.release_at().is_none_or(|at| at > now) {
            return false;
        }
        if self.queue.is_full() {
            self.queue.hold_back();
            return false;
        }
        let held = separation.release(now);
        held.is_some_and(|item| self.queue.push_or_drop_oldest(item))
    }

    /// When [`Intake::handle_timeout`] has something to do; `None` while the
    /// queue is too full for it.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let sets = self.sets.as_ref().and_then(|sets| sets.wakes_at());
        let own = match &self.instances {
            Some(instances) => instances.next_timeout(),
            None => {
                let held = self.separation.as_ref().and_then(Separation::release_at);
                held.filter(|_| !self.queue.is_full())
            }
        };
        [own, sets].into_iter().flatten().min()
    }

    /// What became of samples that were not handed over.
    pub(crate) fn totals(&self) -> Totals {
        match &self.instances {
            Some(instances) => instances.totals,
            None => Totals {
                overwritten: self.queue.overwritten,
                expired: self.queue.expired,
                filtered: self.separation.as_ref().map_or(0, |s| s.filtered),
                late: self.queue.late(),
                ..Totals::default()
            },
        }
    }

    pub(crate) fn repeated(&self) -> u64 {
        self.originals.as_ref().map_or(0, |o| o.repeated)
    }

    pub(crate) fn outranked(&self) -> u64 {
        self.owners.as_ref().map_or(0, |o| o.outranked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::{item, item_of};
    use pteros_rtps::qos::{History, Ownership, ResourceLimits};
    use pteros_rtps::time::Duration;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn filtered() -> EndpointQos {
        EndpointQos {
            time_based_filter: Duration::from_millis(100),
            ..EndpointQos::default()
        }
    }

    fn taken(intake: &mut Intake) -> Option<i64> {
        let item = intake.queue.pop(|| Instant::ZERO).item?;
        Some(item.meta.sequence)
    }

    #[test]
    fn without_policies_nobody_judges() {
        assert!(!Intake::judges(&EndpointQos::default()));
        assert!(Intake::judges(&filtered()));
    }

    #[test]
    fn who_is_not_heard_does_not_use_up_the_time_filter() {
        let mut intake = Intake::new(&EndpointQos {
            ownership: Ownership::Exclusive,
            ..filtered()
        });
        let owners = intake.owners.as_mut().unwrap();
        for (n, strength) in [(1, 5), (2, 3)] {
            owners.note_strength(item_of(n, 0).meta.publisher, strength);
        }
        let mut offer = |ms, writer, n| intake.offer(at_ms(ms), item_of(writer, n), |_| true);
        assert_eq!(offer(0, 1, 10), Entered::Queued);
        assert_eq!(offer(150, 2, 20), Entered::Outranked);
        assert_eq!(offer(160, 1, 11), Entered::Queued);
        assert_eq!(offer(170, 1, 12), Entered::Heard);
        assert_eq!((intake.outranked(), intake.totals().filtered), (1, 0));
    }

    #[test]
    fn a_held_sample_waits_for_room_and_is_asked_for_when_there_is() {
        let mut intake = Intake::new(&EndpointQos {
            history: History::KeepAll,
            resource_limits: ResourceLimits {
                max_samples: Some(1),
                ..ResourceLimits::default()
            },
            ..filtered()
        });
        intake.offer(at_ms(0), item(1), |_| true);
        assert_eq!(intake.offer(at_ms(10), item(2), |_| true), Entered::Heard);
        assert_eq!(intake.next_timeout(), None);
        assert!(intake.handle_timeout(at_ms(110)) == 0);
        let popped = intake.queue.pop(|| Instant::ZERO);
        assert!(popped.item.is_some() && popped.resume);
        assert_eq!(intake.next_timeout(), Some(at_ms(110)));
        assert!(intake.handle_timeout(at_ms(300)) == 1);
        assert_eq!(taken(&mut intake), Some(2));
    }
}
