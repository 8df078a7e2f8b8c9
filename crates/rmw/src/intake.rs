//! Where samples enter a subscription, whatever path they took: the owner is
//! asked first, then the time filter, then the queue with its order.
//!
//! Policies that a subscription does not ask for have no judge here and cost
//! one look at an empty option.

use pteros_rtps::id::Guid;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Instant;

use crate::ownership::Owners;
use crate::sample::{Item, SampleQueue};
use crate::separation::Separation;

/// The way into one subscription's queue.
pub(crate) struct Intake {
    pub(crate) queue: SampleQueue,
    pub(crate) owners: Option<Owners>,
    separation: Option<Separation>,
}

/// What became of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Entered {
    /// It waits to be taken.
    Queued,
    /// It was filtered, held or too late; its publisher was heard.
    Heard,
    /// Another publisher owns the topic.
    Outranked,
}

impl Intake {
    pub(crate) fn new(qos: &EndpointQos) -> Self {
        Self {
            queue: SampleQueue::new(qos),
            owners: Owners::new(qos),
            separation: Separation::new(qos),
        }
    }

    /// Whether the reader's machine must be at hand for each sample.
    pub(crate) fn judges(qos: &EndpointQos) -> bool {
        Owners::new(qos).is_some() || Separation::new(qos).is_some()
    }

    /// Takes in a sample; KEEP_LAST makes room for it. `alive` is asked only
    /// about owners.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        item: Item,
        alive: impl Fn(Guid) -> bool,
    ) -> Entered {
        if let Some(owners) = &mut self.owners
            && !owners.admits(now, item.meta.publisher, alive)
        {
            return Entered::Outranked;
        }
        let passed = match &mut self.separation {
            None => Some(item),
            Some(separation) => separation.offer(now, item),
        };
        if passed.is_none() && self.queue.is_full() {
            // Whoever makes room asks for what is held.
            self.queue.hold_back();
        }
        match passed.is_some_and(|item| self.queue.push_or_drop_oldest(item)) {
            true => Entered::Queued,
            false => Entered::Heard,
        }
    }

    /// Hands over what the time filter held long enough. Whether it waits to
    /// be taken now; a full queue leaves it where it is.
    pub(crate) fn release(&mut self, now: Instant) -> bool {
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

    /// When [`Intake::release`] has something to do; `None` while the queue
    /// is too full for it.
    pub(crate) fn release_at(&self) -> Option<Instant> {
        let at = self.separation.as_ref()?.release_at();
        at.filter(|_| !self.queue.is_full())
    }

    pub(crate) fn filtered(&self) -> u64 {
        self.separation.as_ref().map_or(0, |s| s.filtered)
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
        assert_eq!((intake.outranked(), intake.filtered()), (1, 0));
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
        assert_eq!(intake.release_at(), None);
        assert!(!intake.release(at_ms(110)));
        let popped = intake.queue.pop(|| Instant::ZERO);
        assert!(popped.item.is_some() && popped.resume);
        assert_eq!(intake.release_at(), Some(at_ms(110)));
        assert!(intake.release(at_ms(300)));
        assert_eq!(taken(&mut intake), Some(2));
    }
}
