//! What waits of all instances of a subscription, in order, and how much of it
//! may.

use std::collections::BTreeMap;

use pteros_rtps::qos::{EndpointQos, History};

use super::record::{Place, Record};
use crate::sample::{Item, KEEP_ALL_SAMPLES_DEFAULT};

/// Bytes of serialized samples that wait at one keyed subscription, the time
/// filter's included; as many as a publisher keeps. Full: with KEEP_LAST the
/// oldest sample of all instances makes room, with KEEP_ALL writers are held
/// back; what a time filter would hold besides is filtered. The newest sample
/// always stays, whatever its size.
pub(crate) const BYTES_MAX: usize = 256 << 20;

/// Samples and ends of instances.
pub(super) struct Shelf {
    samples: BTreeMap<Place, Item>,
    ends: BTreeMap<Place, Item>,
    /// Of the samples here and those that time filters hold.
    bytes: usize,
    bytes_max: usize,
    keep_all: bool,
    per_instance: usize,
    samples_max: usize,
}

impl Shelf {
    pub fn new(qos: &EndpointQos) -> Self {
        let limits = &qos.resource_limits;
        let limit = |n: Option<u32>| n.map_or(usize::MAX, |n| n.max(1) as usize);
        let (depth, keep_all) = match qos.history {
            History::KeepLast(depth) => (depth.max(1) as usize, false),
            History::KeepAll => (usize::MAX, true),
        };
        let samples_max = match limits.max_samples {
            None if keep_all => KEEP_ALL_SAMPLES_DEFAULT,
            max => limit(max),
        };
        Self {
            samples: BTreeMap::new(),
            ends: BTreeMap::new(),
            bytes: 0,
            bytes_max: BYTES_MAX,
            keep_all,
            per_instance: depth.min(limit(limits.max_samples_per_instance)),
            samples_max,
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.ends.is_empty()
    }

    /// Samples that wait.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether what has no room holds writers back.
    pub fn keeps_all(&self) -> bool {
        self.keep_all
    }

    /// How many samples of one instance, and of all, may wait.
    pub fn room(&self) -> (usize, usize) {
        let all = self.samples_max.min(KEEP_ALL_SAMPLES_DEFAULT);
        (self.per_instance.min(all), all)
    }

    /// Whether no sample of any instance has room.
    pub fn is_full(&self) -> bool {
        let full = self.samples.len() >= self.samples_max || self.bytes >= self.bytes_max;
        self.keep_all && full
    }

    /// Whether no more sample of this instance has room.
    pub fn is_full_of(&self, record: &Record) -> bool {
        self.keep_all && record.queued.len() >= self.per_instance
    }

    /// Whether there is room enough to ask for what was held back.
    pub fn is_half_empty(&self) -> bool {
        self.samples.len() <= self.samples_max / 2 && self.bytes <= self.bytes_max / 2
    }

    /// What comes next.
    pub fn first(&self) -> Option<(Place, &Item)> {
        let sample = self.samples.first_key_value();
        let end = self.ends.first_key_value();
        let first = match (sample, end) {
            (Some(sample), Some(end)) if end.0 < sample.0 => Some(end),
            (sample, end) => sample.or(end),
        };
        first.map(|(place, item)| (*place, item))
    }

    pub fn put(&mut self, place: Place, item: Item) {
        if item.is_end() {
            self.ends.insert(place, item);
        } else {
            self.note_held(0, item.weight());
            self.samples.insert(place, item);
        }
    }

    pub fn remove(&mut self, place: Place) -> Option<Item> {
        if let Some(sample) = self.samples.remove(&place) {
            self.note_held(sample.weight(), 0);
            return Some(sample);
        }
        self.ends.remove(&place)
    }

    /// The sample that must go after one of this instance came.
    pub fn excess(&self, record: &Record) -> Option<Place> {
        if self.keep_all {
            return None;
        }
        if record.queued.len() > self.per_instance {
            return record.queued.first().copied();
        }
        let too_large = self.is_too_large() && self.samples.len() > 1;
        let (oldest, _) = self.samples.first_key_value()?;
        (too_large || self.samples.len() > self.samples_max).then_some(*oldest)
    }

    /// A time filter holds other bytes than before.
    pub fn note_held(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
    }

    /// Whether there are more bytes than may be.
    pub fn is_too_large(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// The first limit that is exceeded, with what is held and what may be.
    pub fn exceeded_limit<'r>(
        &self,
        records: impl Iterator<Item = &'r Record>,
    ) -> Option<(&'static str, usize, usize)> {
        let (mut most, mut held) = (0, 0);
        for record in records {
            most = most.max(record.queued.len());
            held += usize::from(record.separation.is_some());
        }
        // An instance that ends hands on what its filter held, full or not.
        let of_each = usize::from(held > 0);
        let largest = self.samples.values().map(Item::weight).max();
        [
            (
                "samples to take",
                self.samples.len(),
                self.samples_max.saturating_add(held),
            ),
            (
                "samples of one instance to take",
                most,
                self.per_instance.saturating_add(of_each),
            ),
            (
                "bytes to take",
                self.bytes,
                self.bytes_max.saturating_add(largest.unwrap_or(0)),
            ),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::tests::item;
    use pteros_rtps::id::Guid;
    use pteros_rtps::time::Timestamp;

    #[test]
    fn what_is_kept_beyond_the_limit_is_noticed() {
        let mut shelf = Shelf::new(&EndpointQos {
            history: History::KeepAll,
            ..EndpointQos::default()
        });
        for n in 0..=KEEP_ALL_SAMPLES_DEFAULT {
            assert_eq!(shelf.exceeded_limit([].into_iter()), None);
            let place = (Timestamp::from_nanos(0), Guid::UNKNOWN, 0, n as u64);
            shelf.put(place, item(n as i64));
        }
        let exceeded = ("samples to take", 5_001, 5_000);
        assert_eq!(shelf.exceeded_limit([].into_iter()), Some(exceeded));
    }
}
