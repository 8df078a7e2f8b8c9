//! Index of a store without the payloads. It decides which samples a new one
//! replaces, and which one exceeds a limit. A plain value; the file follows its
//! decisions.

use std::collections::{BTreeMap, VecDeque};

use crate::retention::Retention;
use crate::sample::StoredSample;

/// The instance of a sample; `None` for topics without keys.
type Key = Option<[u8; 16]>;

/// Sample numbers are the order in which samples were written to the file.
#[derive(Debug)]
pub(crate) struct Index {
    retention: Retention,
    samples: BTreeMap<u64, (Key, u64)>,
    instances: BTreeMap<Key, Instance>,
    bytes: u64,
}

#[derive(Debug, Default)]
struct Instance {
    numbers: VecDeque<u64>,
    /// When the instance was disposed, if it was.
    ended_nanos: Option<i64>,
}

/// The limit that a sample would exceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LimitExceeded {
    Samples,
    Instances,
    SamplesOfInstance,
    Bytes,
}

impl Index {
    pub fn new(retention: Retention) -> Self {
        Self {
            retention,
            samples: BTreeMap::new(),
            instances: BTreeMap::new(),
            bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.samples.len()
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn retention(&self) -> &Retention {
        &self.retention
    }

    /// The number of the next sample.
    pub fn next_number(&self) -> u64 {
        let last = self.samples.last_key_value();
        last.map_or(0, |(number, _)| number.saturating_add(1))
    }

    /// Adds a sample at `number`, after all others, and returns the samples that it
    /// replaces.
    pub fn admit(&mut self, number: u64, sample: &StoredSample) -> Result<Vec<u64>, LimitExceeded> {
        let key = sample.key_hash;
        let weight = sample.weight();
        let (depth, replaces) = self.retention.per_instance();
        let of_instance = self.instances.get(&key).map_or(0, |i| i.numbers.len());
        if weight > self.retention.bytes_max {
            return Err(LimitExceeded::Bytes);
        }
        if of_instance == 0 && self.instances.len() >= self.retention.instances_max.max(1) {
            return Err(LimitExceeded::Instances);
        }
        if !replaces {
            if of_instance >= depth {
                return Err(LimitExceeded::SamplesOfInstance);
            }
            if self.samples.len() >= self.retention.samples_max() {
                return Err(LimitExceeded::Samples);
            }
            if self.bytes.saturating_add(weight) > self.retention.bytes_max {
                return Err(LimitExceeded::Bytes);
            }
        }
        let mut leaving = Vec::new();
        while let Some(oldest) = self.oldest_beyond(&key, depth) {
            self.remove(oldest);
            leaving.push(oldest);
        }
        while self.samples.len() >= self.retention.samples_max()
            || self.bytes.saturating_add(weight) > self.retention.bytes_max
        {
            let Some((&oldest, _)) = self.samples.first_key_value() else {
                break;
            };
            self.remove(oldest);
            leaving.push(oldest);
        }
        self.restore(number, sample);
        Ok(leaving)
    }

    /// Restores a sample of the file, regardless of limits.
    pub fn restore(&mut self, number: u64, sample: &StoredSample) {
        let key = sample.key_hash;
        self.samples.insert(number, (key, sample.weight()));
        self.bytes = self.bytes.saturating_add(sample.weight());
        let instance = self.instances.entry(key).or_default();
        instance.numbers.push_back(number);
        instance.ended_nanos = sample.disposed.then_some(sample.ended_nanos);
    }

    /// Removes instances that were disposed before the clean-up delay.
    pub fn clean_up(&mut self, wall_nanos: i64) -> Vec<u64> {
        let delay = self.retention.cleanup_nanos;
        if delay < 0 {
            return Vec::new();
        }
        let over = |ended: i64| wall_nanos.saturating_sub(ended) >= delay;
        let leaving: Vec<u64> = self
            .instances
            .values()
            .filter(|instance| instance.ended_nanos.is_some_and(over))
            .flat_map(|instance| instance.numbers.iter().copied())
            .collect();
        for number in &leaving {
            self.remove(*number);
        }
        leaving
    }

    /// Removes samples beyond the limits. `None` if that would remove samples of a
    /// KEEP_ALL store.
    pub fn shrink(&mut self) -> Option<Vec<u64>> {
        let (depth, replaces) = self.retention.per_instance();
        let mut leaving = Vec::new();
        let keys: Vec<Key> = self.instances.keys().copied().collect();
        for key in keys {
            while let Some(oldest) = self.oldest_beyond(&key, depth.saturating_add(1)) {
                self.remove(oldest);
                leaving.push(oldest);
            }
        }
        while self.samples.len() > self.retention.samples_max()
            || self.bytes > self.retention.bytes_max
        {
            let Some((&oldest, _)) = self.samples.first_key_value() else {
                break;
            };
            self.remove(oldest);
            leaving.push(oldest);
        }
        (replaces || leaving.is_empty()).then_some(leaving)
    }

    /// The oldest sample of an instance with `count` or more samples.
    fn oldest_beyond(&self, key: &Key, count: usize) -> Option<u64> {
        let numbers = &self.instances.get(key)?.numbers;
        numbers.front().copied().filter(|_| numbers.len() >= count)
    }

    fn remove(&mut self, number: u64) {
        let Some((key, weight)) = self.samples.remove(&number) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(weight);
        if let Some(instance) = self.instances.get_mut(&key) {
            // Usually the oldest.
            instance.numbers.retain(|n| *n != number);
            if instance.numbers.is_empty() {
                self.instances.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::retention::Depth;
    use crate::sample::Origin;
    use bytes::Bytes;

    fn sample(key: u8, disposed: bool, ended_nanos: i64) -> StoredSample {
        StoredSample {
            origin: Origin {
                writer: [1; 16],
                sequence: 1,
            },
            source_nanos: None,
            key_hash: (key > 0).then_some([key; 16]),
            disposed,
            ended_nanos,
            payload: Bytes::from_static(&[0; 43]),
        }
    }

    fn of(key: u8) -> StoredSample {
        sample(key, false, 0)
    }

    fn index(depth: Depth, change: impl FnOnce(&mut Retention)) -> Index {
        let mut retention = Retention {
            depth,
            ..Retention::default()
        };
        change(&mut retention);
        Index::new(retention)
    }

    #[test]
    fn keep_last_replaces_the_oldest_of_the_same_instance() {
        let mut index = index(Depth::KeepLast(2), |_| {});
        for (number, key, leaving) in [
            (0, 1, vec![]),
            (1, 2, vec![]),
            (2, 1, vec![]),
            (3, 1, vec![0]),
            (4, 2, vec![]),
            (5, 2, vec![1]),
        ] {
            assert_eq!(index.next_number(), number);
            assert_eq!(index.admit(number, &of(key)), Ok(leaving));
        }
        assert_eq!((index.len(), index.bytes()), (4, 400));
    }

    #[test]
    fn a_full_keep_last_store_drops_its_oldest_and_a_keep_all_store_refuses() {
        for limit in ["bytes", "samples"] {
            let tight = |r: &mut Retention| match limit {
                "bytes" => r.bytes_max = 250,
                _ => r.samples_max = 2,
            };
            let mut last = index(Depth::KeepLast(9), tight);
            let mut all = index(Depth::KeepAll, tight);
            for number in 0..2 {
                assert_eq!(last.admit(number, &of(0)), Ok(vec![]));
                assert_eq!(all.admit(number, &of(0)), Ok(vec![]));
            }
            assert_eq!(last.admit(2, &of(0)), Ok(vec![0]), "{limit}");
            assert!(all.admit(2, &of(0)).is_err(), "{limit}");
            assert_eq!(all.len(), 2);
        }
    }

    #[test]
    fn limits_on_instances_hold_for_both_kinds_of_history() {
        for depth in [Depth::KeepLast(3), Depth::KeepAll] {
            let mut index = index(depth, |r| r.instances_max = 2);
            assert!(index.admit(0, &of(1)).is_ok());
            assert!(index.admit(1, &of(2)).is_ok());
            assert_eq!(index.admit(2, &of(3)), Err(LimitExceeded::Instances));
            assert!(index.admit(2, &of(2)).is_ok());
        }
        let mut all = index(Depth::KeepAll, |r| r.samples_per_instance_max = 1);
        assert!(all.admit(0, &of(1)).is_ok());
        assert_eq!(all.admit(1, &of(1)), Err(LimitExceeded::SamplesOfInstance));
        assert!(all.admit(1, &of(2)).is_ok());
    }

    #[test]
    fn a_disposed_instance_is_cleaned_up_after_its_delay_unless_it_is_written_again() {
        let mut index = index(Depth::KeepAll, |r| r.cleanup_nanos = 100);
        for (number, s) in [of(1), sample(1, true, 1_000), sample(2, true, 1_000), of(2)]
            .iter()
            .enumerate()
        {
            index.admit(number as u64, s).unwrap();
        }
        assert!(index.clean_up(1_099).is_empty());
        assert_eq!(index.clean_up(1_100), [0, 1]);
        assert_eq!(index.len(), 2);
        index.retention.cleanup_nanos = -1;
        index.admit(4, &sample(2, true, 0)).unwrap();
        assert!(index.clean_up(i64::MAX).is_empty());
    }

    #[test]
    fn a_lower_limit_shrinks_keep_last_and_is_refused_by_keep_all() {
        let filled = |depth| {
            let mut index = index(depth, |_| {});
            for number in 0..4 {
                index.restore(number, &of(0));
            }
            index
        };
        let mut last = filled(Depth::KeepLast(3));
        assert_eq!(last.shrink(), Some(vec![0]));
        let mut all = filled(Depth::KeepAll);
        assert_eq!(all.shrink(), Some(vec![]));
        all.retention.bytes_max = 399;
        assert_eq!(all.shrink(), None);
    }
}
