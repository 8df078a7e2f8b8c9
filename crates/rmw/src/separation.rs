//! TIME_BASED_FILTER at a subscription: at most one sample per
//! `minimum_separation` (DDS 1.4 §2.2.3.12).
//!
//! A sample that comes too early is filtered, not lost. A reliable
//! subscription still gets the last value of a publisher that falls silent:
//! the newest filtered sample is held, and handed over when nothing newer came
//! for one separation. Time is the monotonic clock's at reception, so wall
//! clocks that differ or jump do no harm.

use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::time::{Duration, Instant};

use crate::sample::Item;

/// The filter of one subscription; holds at most one sample.
pub(crate) struct Separation {
    minimum: Duration,
    /// Whether the last value of a burst must arrive.
    keeps_last: bool,
    /// When the last sample passed.
    passed_at: Option<Instant>,
    /// With the time at which it came.
    held: Option<(Instant, Item)>,
    /// Samples that came too early and were not handed over.
    pub(crate) filtered: u64,
}

impl Separation {
    /// `None` where every sample passes.
    pub(crate) fn new(reader: &EndpointQos) -> Option<Self> {
        (reader.time_based_filter > Duration::ZERO).then(|| Self {
            minimum: reader.time_based_filter,
            keeps_last: reader.reliability == Reliability::Reliable,
            passed_at: None,
            held: None,
            filtered: 0,
        })
    }

    /// Makes one where the reader asks for it, or changes the separation: of
    /// what is held, too.
    pub(crate) fn change(this: &mut Option<Self>, reader: &EndpointQos) {
        match this {
            None => *this = Self::new(reader),
            Some(separation) => separation.minimum = reader.time_based_filter,
        }
    }

    /// Gives the sample back if it may pass now.
    pub(crate) fn offer(&mut self, now: Instant, item: Item) -> Option<Item> {
        let opens_at = self.passed_at.map(|at| at.after(self.minimum));
        let passes = opens_at.is_none_or(|at| now >= at);
        let replaced = self.held.take().is_some();
        self.filtered += u64::from(replaced);
        if passes {
            self.passed_at = Some(now);
            return Some(item);
        }
        if self.keeps_last {
            self.held = Some((now, item));
        } else {
            self.filtered += 1;
        }
        None
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Bytes of what it holds.
    pub(crate) fn weight(&self) -> usize {
        self.held.as_ref().map_or(0, |(_, item)| item.weight())
    }

    /// What it holds is filtered.
    pub(crate) fn drop_held(&mut self) {
        self.filtered += u64::from(self.held.take().is_some());
    }

    /// When [`Separation::release`] has something.
    pub(crate) fn release_at(&self) -> Option<Instant> {
        let (came, _) = self.held.as_ref()?;
        Some(came.after(self.minimum))
    }

    /// The held sample, when its time has come.
    pub(crate) fn release(&mut self, now: Instant) -> Option<Item> {
        self.release_at().filter(|at| *at <= now)?;
        let (_, item) = self.held.take()?;
        self.passed_at = Some(now);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::item;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn filter(reliability: Reliability) -> Separation {
        Separation::new(&EndpointQos {
            time_based_filter: Duration::from_millis(100),
            reliability,
            ..EndpointQos::default()
        })
        .unwrap()
    }

    /// The times of the samples that pass out of one each `period_ms`.
    fn passed(filter: &mut Separation, period_ms: u64, count: u64) -> Vec<u64> {
        let times = (0..count).map(|n| n * period_ms);
        times
            .filter(|ms| filter.offer(at_ms(*ms), item(*ms as i64)).is_some())
            .collect()
    }

    #[test]
    fn without_a_filter_nothing_stands_in_the_way() {
        assert!(Separation::new(&EndpointQos::default()).is_none());
    }

    #[test]
    fn samples_pass_no_closer_than_the_separation_and_always_fresh() {
        for reliability in [Reliability::BestEffort, Reliability::Reliable] {
            let mut filter = filter(reliability);
            assert_eq!(passed(&mut filter, 30, 11), [0, 120, 240]);
            let held = u64::from(filter.release_at().is_some());
            assert_eq!(filter.filtered + held, 8, "{reliability:?}");
        }
    }

    #[test]
    fn a_slow_publisher_is_not_filtered() {
        let mut filter = filter(Reliability::Reliable);
        assert_eq!(passed(&mut filter, 100, 4), [0, 100, 200, 300]);
        assert_eq!(filter.filtered, 0);
    }

    #[test]
    fn the_last_value_of_a_burst_reaches_a_reliable_subscription() {
        let mut filter = filter(Reliability::Reliable);
        assert_eq!(passed(&mut filter, 10, 5), [0]);
        assert_eq!(filter.release_at(), Some(at_ms(140)));
        assert!(filter.release(at_ms(139)).is_none());
        assert_eq!(filter.release(at_ms(140)).unwrap().meta.sequence, 40);
        assert!(filter.release(at_ms(500)).is_none());
        assert_eq!(filter.filtered, 3);
        // It counts as any other: the next keeps its distance.
        assert!(filter.offer(at_ms(200), item(1)).is_none());
    }

    #[test]
    fn a_separation_that_changes_holds_for_what_is_held_too() {
        let mut kept = Some(filter(Reliability::Reliable));
        let shorter = |ms| EndpointQos {
            time_based_filter: Duration::from_millis(ms),
            ..EndpointQos::default()
        };
        assert_eq!(passed(kept.as_mut().unwrap(), 10, 5), [0]);
        Separation::change(&mut kept, &shorter(20));
        let filter = kept.as_mut().unwrap();
        assert_eq!(filter.release_at(), Some(at_ms(60)));
        assert!(filter.offer(at_ms(41), item(5)).is_some());
        assert!(filter.offer(at_ms(50), item(6)).is_none());
        Separation::change(&mut kept, &shorter(0));
        let filter = kept.as_mut().unwrap();
        assert_eq!(filter.release(at_ms(50)).unwrap().meta.sequence, 6);
        assert!(filter.offer(at_ms(50), item(7)).is_some());
        let mut none = None;
        Separation::change(&mut none, &EndpointQos::default());
        assert!(none.is_none());
    }

    #[test]
    fn a_best_effort_subscription_gets_no_sample_late() {
        let mut filter = filter(Reliability::BestEffort);
        assert_eq!(passed(&mut filter, 10, 5), [0]);
        assert_eq!(filter.release_at(), None);
        assert_eq!(filter.filtered, 4);
    }
}
