//! The time-based filter (TIME_BASED_FILTER): at most one sample per
//! `minimum_separation` (DDS 1.4 §2.2.3.12).
//!
//! A sample that arrives too early is filtered, not lost. A reliable subscription
//! still gets the last value of a burst: the newest filtered sample is held, and
//! delivered when nothing newer arrived for one separation. Time is the monotonic
//! clock at reception, so differing or jumping wall clocks have no effect.

use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::time::{Duration, Instant};

use crate::sample::queued_sample::QueuedSample;

/// The filter of one subscription or instance; holds at most one sample.
pub struct TimeBasedFilter {
    minimum_separation: Duration,
    /// Whether the last value of a burst must be delivered.
    keeps_last: bool,
    /// When the last sample passed.
    passed_at: Option<Instant>,
    /// The held sample, with its time of arrival.
    held: Option<(Instant, QueuedSample)>,
    /// Samples that arrived too early and were not delivered.
    pub filtered: u64,
}

impl TimeBasedFilter {
    /// `None` where every sample passes.
    pub fn new(reader: &EndpointQos) -> Option<Self> {
        (reader.time_based_filter > Duration::ZERO).then(|| Self {
            minimum_separation: reader.time_based_filter,
            keeps_last: reader.reliability == Reliability::Reliable,
            passed_at: None,
            held: None,
            filtered: 0,
        })
    }

    /// Creates the filter if the reader requests one, or changes its separation,
    /// also for the held sample.
    pub fn update(this: &mut Option<Self>, reader: &EndpointQos) {
        match this {
            None => *this = Self::new(reader),
            Some(separation) => separation.minimum_separation = reader.time_based_filter,
        }
    }

    /// Returns the sample if it may pass now.
    pub fn offer(&mut self, now: Instant, item: QueuedSample) -> Option<QueuedSample> {
        let opens_at = self.passed_at.map(|at| at.after(self.minimum_separation));
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
    pub fn is_empty(&self) -> bool {
        self.held.is_none()
    }

    /// Bytes of the held sample.
    pub fn weight(&self) -> usize {
        self.held.as_ref().map_or(0, |(_, item)| item.weight())
    }

    /// Drops the held sample as filtered.
    pub fn drop_held(&mut self) {
        self.filtered += u64::from(self.held.take().is_some());
    }

    /// When [`TimeBasedFilter::release`] returns something.
    pub fn release_at(&self) -> Option<Instant> {
        let (came, _) = self.held.as_ref()?;
        Some(came.after(self.minimum_separation))
    }

    /// The held sample, once its time has come.
    pub fn release(&mut self, now: Instant) -> Option<QueuedSample> {
        self.release_at().filter(|at| *at <= now)?;
        let (_, item) = self.held.take()?;
        self.passed_at = Some(now);
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::queued_sample::tests::item;
    use alloc::vec::Vec;

    fn at_ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn filter(reliability: Reliability) -> TimeBasedFilter {
        TimeBasedFilter::new(&EndpointQos {
            time_based_filter: Duration::from_millis(100),
            reliability,
            ..EndpointQos::default()
        })
        .unwrap()
    }

    /// The times of the samples that pass, out of one per `period_ms`.
    fn passed(filter: &mut TimeBasedFilter, period_ms: u64, count: u64) -> Vec<u64> {
        let times = (0..count).map(|n| n * period_ms);
        times
            .filter(|ms| filter.offer(at_ms(*ms), item(*ms as i64)).is_some())
            .collect()
    }

    #[test]
    fn without_a_filter_every_sample_passes() {
        assert!(TimeBasedFilter::new(&EndpointQos::default()).is_none());
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
        // It counts as any other: the next one keeps its distance.
        assert!(filter.offer(at_ms(200), item(1)).is_none());
    }

    #[test]
    fn a_changed_separation_applies_to_the_held_sample_too() {
        let mut kept = Some(filter(Reliability::Reliable));
        let shorter = |ms| EndpointQos {
            time_based_filter: Duration::from_millis(ms),
            ..EndpointQos::default()
        };
        assert_eq!(passed(kept.as_mut().unwrap(), 10, 5), [0]);
        TimeBasedFilter::update(&mut kept, &shorter(20));
        let filter = kept.as_mut().unwrap();
        assert_eq!(filter.release_at(), Some(at_ms(60)));
        assert!(filter.offer(at_ms(41), item(5)).is_some());
        assert!(filter.offer(at_ms(50), item(6)).is_none());
        TimeBasedFilter::update(&mut kept, &shorter(0));
        let filter = kept.as_mut().unwrap();
        assert_eq!(filter.release(at_ms(50)).unwrap().meta.sequence, 6);
        assert!(filter.offer(at_ms(50), item(7)).is_some());
        let mut none = None;
        TimeBasedFilter::update(&mut none, &EndpointQos::default());
        assert!(none.is_none());
    }

    #[test]
    fn a_best_effort_subscription_gets_no_held_sample() {
        let mut filter = filter(Reliability::BestEffort);
        assert_eq!(passed(&mut filter, 10, 5), [0]);
        assert_eq!(filter.release_at(), None);
        assert_eq!(filter.filtered, 4);
    }
}
