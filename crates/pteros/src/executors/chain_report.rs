//! Chain latency reports: histograms of response times and deadline misses.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::chain::Chain;

/// Latency statistics of one chain, from release to the end of the last callback.
///
/// An instance is released when its timer is due or when its first message reaches
/// the process. Time spent waiting for the executor counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// Name of the chain.
    pub chain: String,
    /// Priority of the chain.
    pub priority: u32,
    /// Number of completed instances.
    pub count: u64,
    /// Minimum latency.
    pub min: Duration,
    /// Mean latency.
    pub mean: Duration,
    /// 99th percentile, within 4 %.
    pub p99: Duration,
    /// Maximum latency.
    pub max: Duration,
    /// Deadline of the chain, if set.
    pub deadline: Option<Duration>,
    /// Number of instances that missed the deadline.
    pub deadline_misses: u64,
}

/// Access to the reports of a [`ChainExecutor`](crate::executors::ChainExecutor) from any
/// thread, also while it spins. Cheap to clone.
#[derive(Clone, Default)]
pub struct ChainReports {
    meters: Arc<Mutex<Vec<ChainMeter>>>,
}

impl ChainReports {
    /// Returns the reports of all chains in the order in which they were added.
    pub fn all(&self) -> Vec<ChainReport> {
        self.meters.lock().iter().map(ChainMeter::report).collect()
    }

    /// Resets all measurements.
    pub fn reset(&self) {
        for meter in self.meters.lock().iter_mut() {
            meter.latencies = LatencyHistogram::default();
        }
    }

    pub(super) fn add(&self, chain: &Chain) {
        self.meters.lock().push(ChainMeter {
            chain: chain.name.clone(),
            priority: chain.priority,
            deadline: chain.deadline,
            latencies: LatencyHistogram::default(),
        });
    }

    /// Records the latency of an instance of each chain in `mask`.
    pub(super) fn record(&self, mask: u64, nanos: u64) {
        let mut meters = self.meters.lock();
        for (index, meter) in meters.iter_mut().enumerate() {
            if mask & (1 << index) != 0 {
                meter.record(nanos);
            }
        }
    }
}

impl fmt::Debug for ChainReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

struct ChainMeter {
    chain: String,
    priority: u32,
    deadline: Option<Duration>,
    latencies: LatencyHistogram,
}

impl ChainMeter {
    fn record(&mut self, nanos: u64) {
        let late = |limit: Duration| u128::from(nanos) > limit.as_nanos();
        self.latencies.misses += u64::from(self.deadline.is_some_and(late));
        self.latencies.record(nanos);
    }

    fn report(&self) -> ChainReport {
        let latencies = &self.latencies;
        ChainReport {
            chain: self.chain.clone(),
            priority: self.priority,
            count: latencies.count,
            min: Duration::from_nanos(latencies.min),
            mean: Duration::from_nanos(latencies.sum.checked_div(latencies.count).unwrap_or(0)),
            p99: Duration::from_nanos(latencies.quantile(99)),
            max: Duration::from_nanos(latencies.max),
            deadline: self.deadline,
            deadline_misses: latencies.misses,
        }
    }
}

/// Histogram buckets per power of two; a bucket is at most 1/32 wide.
const BUCKETS_PER_OCTAVE: u64 = 32;
const BUCKET_COUNT: usize = 60 * BUCKETS_PER_OCTAVE as usize;

/// Fixed-size histogram of latencies in nanoseconds.
struct LatencyHistogram {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    misses: u64,
    buckets: Box<[u32]>,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
            misses: 0,
            buckets: vec![0; BUCKET_COUNT].into(),
        }
    }
}

impl LatencyHistogram {
    fn record(&mut self, nanos: u64) {
        self.min = match self.count {
            0 => nanos,
            _ => self.min.min(nanos),
        };
        self.max = self.max.max(nanos);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        if let Some(bucket) = self.buckets.get_mut(bucket_index(nanos)) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// Upper bound of the bucket that holds the given percentile.
    fn quantile(&self, per_cent: u64) -> u64 {
        let rank = (self.count * per_cent).div_ceil(100);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank && seen > 0 {
                return bucket_upper_bound(index).min(self.max);
            }
        }
        self.max
    }
}

/// One bucket per nanosecond below `BUCKETS_PER_OCTAVE`, then `BUCKETS_PER_OCTAVE`
/// per power of two.
fn bucket_index(nanos: u64) -> usize {
    if nanos < BUCKETS_PER_OCTAVE {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - BUCKETS_PER_OCTAVE.ilog2();
    let index = u64::from(shift + 1) * BUCKETS_PER_OCTAVE + ((nanos >> shift) - BUCKETS_PER_OCTAVE);
    (index as usize).min(BUCKET_COUNT - 1)
}

/// Greatest value that falls into the bucket.
fn bucket_upper_bound(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < BUCKETS_PER_OCTAVE {
        return bucket;
    }
    let shift = bucket / BUCKETS_PER_OCTAVE - 1;
    ((BUCKETS_PER_OCTAVE + bucket % BUCKETS_PER_OCTAVE + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_lies_in_its_narrow_bucket() {
        let mut nanos = 0_u64;
        while nanos < 1 << 40 {
            let end = bucket_upper_bound(bucket_index(nanos));
            assert!(end >= nanos, "{nanos} in a bucket up to {end}");
            assert!(
                end - nanos <= nanos / BUCKETS_PER_OCTAVE,
                "{nanos} up to {end}"
            );
            nanos += 1 + nanos / 50;
        }
    }

    #[test]
    fn a_quantile_bounds_its_share_of_latencies() {
        let mut latencies = LatencyHistogram::default();
        assert_eq!(latencies.quantile(99), 0);
        (1..=1_000_u64).for_each(|n| latencies.record(n * 1_000));
        let p99 = latencies.quantile(99);
        assert!((990_000..=990_000 * 33 / 32).contains(&p99), "{p99}");
        assert_eq!(latencies.quantile(100), 1_000_000);
        assert_eq!((latencies.min, latencies.max), (1_000, 1_000_000));
    }
}
