//! Keyed ready queue: samples and ends of all instances of a subscription, in order
//! and bounded.

use alloc::collections::BTreeMap;

use pteros_rtps::qos::{EndpointQos, History};

use super::reader_instance::{QueuePosition, ReaderInstance};
use crate::sample::queued_sample::QueuedSample;
use crate::sample::sample_limits::{KEEP_ALL_SAMPLES_DEFAULT, SampleLimits};

/// Bytes of serialized samples queued at one keyed subscription, those of
/// time-based filters included; as many as a publisher keeps.
///
/// Full: with KEEP_LAST the oldest sample of all instances is dropped, with
/// KEEP_ALL writers are blocked, and a time-based filter drops its sample. The
/// newest sample always stays, whatever its size.
pub(crate) const BYTES_MAX: usize = 256 << 20;

/// Samples and ends of instances.
pub(super) struct KeyedReadyQueue {
    samples: BTreeMap<QueuePosition, QueuedSample>,
    ends: BTreeMap<QueuePosition, QueuedSample>,
    /// Bytes of the samples here and of those in time-based filters.
    bytes: usize,
    bytes_max: usize,
    keep_all: bool,
    per_instance: usize,
    samples_max: usize,
}

impl KeyedReadyQueue {
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

    /// Whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty() && self.ends.is_empty()
    }

    /// Number of waiting samples.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether a full queue blocks writers (KEEP_ALL).
    pub fn keeps_all(&self) -> bool {
        self.keep_all
    }

    /// The maximum number of waiting samples.
    pub fn sample_limits(&self) -> SampleLimits {
        let all = self.samples_max.min(KEEP_ALL_SAMPLES_DEFAULT);
        SampleLimits {
            per_instance: self.per_instance.min(all),
            total: all,
        }
    }

    /// Whether no sample of any instance has space.
    pub fn is_full(&self) -> bool {
        let full = self.samples.len() >= self.samples_max || self.bytes >= self.bytes_max;
        self.keep_all && full
    }

    /// Whether this instance has no space for another sample.
    pub fn is_instance_full(&self, record: &ReaderInstance) -> bool {
        self.keep_all && record.queued.len() >= self.per_instance
    }

    /// Whether there is enough space to ask for held-back samples.
    pub fn is_half_empty(&self) -> bool {
        self.samples.len() <= self.samples_max / 2 && self.bytes <= self.bytes_max / 2
    }

    /// The first entry.
    pub fn first(&self) -> Option<(QueuePosition, &QueuedSample)> {
        let sample = self.samples.first_key_value();
        let end = self.ends.first_key_value();
        let first = match (sample, end) {
            (Some(sample), Some(end)) if end.0 < sample.0 => Some(end),
            (sample, end) => sample.or(end),
        };
        first.map(|(position, item)| (*position, item))
    }

    pub fn put(&mut self, position: QueuePosition, item: QueuedSample) {
        if item.is_end() {
            self.ends.insert(position, item);
        } else {
            self.note_filter_bytes(0, item.weight());
            self.samples.insert(position, item);
        }
    }

    pub fn remove(&mut self, position: QueuePosition) -> Option<QueuedSample> {
        if let Some(sample) = self.samples.remove(&position) {
            self.note_filter_bytes(sample.weight(), 0);
            return Some(sample);
        }
        self.ends.remove(&position)
    }

    /// The sample that must be dropped after one of this instance was added.
    pub fn sample_to_drop(&self, record: &ReaderInstance) -> Option<QueuePosition> {
        if self.keep_all {
            return None;
        }
        if record.queued.len() > self.per_instance {
            return record.queued.first().copied();
        }
        let too_large = self.exceeds_bytes() && self.samples.len() > 1;
        let (oldest, _) = self.samples.first_key_value()?;
        (too_large || self.samples.len() > self.samples_max).then_some(*oldest)
    }

    /// The oldest other sample of the writer of this one, if its samples leave no
    /// memory for another one and KEEP_LAST may drop some. O(samples).
    pub fn crowded_by(&self, newest: QueuePosition) -> Option<QueuePosition> {
        let charge = &self.samples.get(&newest)?.charge;
        if self.keep_all || !charge.is_crowded() {
            return None;
        }
        let is_older = |at: &QueuePosition, item: &QueuedSample| {
            *at != newest && item.charge.is_of_same_writer(charge)
        };
        let found = self.samples.iter().find(|(at, item)| is_older(at, item));
        found.map(|(at, _)| *at)
    }

    /// Updates the bytes that a time-based filter holds.
    pub fn note_filter_bytes(&mut self, before: usize, after: usize) {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
    }

    /// Whether the byte limit is exceeded.
    pub fn exceeds_bytes(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// The first limit that is exceeded: what, how much is held, the limit.
    pub fn exceeded_limit<'r>(
        &self,
        records: impl Iterator<Item = &'r ReaderInstance>,
    ) -> Option<(&'static str, usize, usize)> {
        let (mut most, mut held) = (0, 0);
        for record in records {
            most = most.max(record.queued.len());
            held += usize::from(record.time_filter.is_some());
        }
        // An instance that ends releases the sample of its filter, full or not.
        let of_each = usize::from(held > 0);
        let largest = self.samples.values().map(QueuedSample::weight).max();
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
    use crate::sample::queued_sample::SampleBody;
    use crate::sample::queued_sample::tests::item;
    use alloc::sync::Arc;
    use pteros_msg::cdr::Encoder;
    use pteros_msg::message::Encode;

    #[test]
    fn a_queue_beyond_its_limit_is_reported() {
        let mut queue = KeyedReadyQueue::new(&EndpointQos {
            history: History::KeepAll,
            ..EndpointQos::default()
        });
        for n in 0..=KEEP_ALL_SAMPLES_DEFAULT {
            assert_eq!(queue.exceeded_limit([].into_iter()), None);
            let position = QueuePosition::by_reception(n as u64);
            queue.put(position, item(n as i64));
        }
        let exceeded = ("samples to take", 5_001, 5_000);
        assert_eq!(queue.exceeded_limit([].into_iter()), Some(exceeded));
    }

    /// A message of 36 bytes of CDR with its header, as a publisher of the process has it.
    struct Value;

    impl Encode for Value {
        fn encode(&self, out: &mut Encoder<'_>) {
            out.primitive_array(&[7_u64; 4]);
        }
    }

    #[test]
    fn values_of_this_process_count_against_the_limit_of_bytes() {
        let mut queue = KeyedReadyQueue::new(&EndpointQos::default());
        queue.bytes_max = 100;
        for n in 1..=3 {
            assert!(!queue.exceeds_bytes(), "{} bytes", queue.bytes);
            let value = QueuedSample {
                body: SampleBody::Shared(Arc::new(Value)),
                ..item(n)
            };
            queue.put(QueuePosition::by_reception(n as u64), value);
        }
        assert!(queue.exceeds_bytes());
        queue.remove(QueuePosition::by_reception(1));
        assert_eq!((queue.bytes, queue.exceeds_bytes()), (72, false));
    }
}
