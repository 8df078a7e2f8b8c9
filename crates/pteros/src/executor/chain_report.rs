//! How long chains take.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::chain::Chain;

/// What a chain's instances took, from release to the end of the last callback.
///
/// An instance is released when its timer is due, or when its first message
/// reaches the process; waiting for the executor counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainReport {
    /// The chain.
    pub chain: String,
    /// Its priority.
    pub priority: u32,
    /// Instances that came to the end.
    pub count: u64,
    /// The quickest.
    pub min: Duration,
    /// The mean.
    pub mean: Duration,
    /// What 99 of 100 did not exceed, to within 4 %.
    pub p99: Duration,
    /// The slowest.
    pub max: Duration,
    /// What they may take.
    pub deadline: Option<Duration>,
    /// Instances that took longer.
    pub deadline_misses: u64,
}

/// Reads the reports of a [`ChainExecutor`](crate::ChainExecutor), from any
/// thread and while it spins. Cheap to clone.
#[derive(Clone, Default)]
pub struct ChainReports {
    meters: Arc<Mutex<Vec<Meter>>>,
}

impl ChainReports {
    /// Of all chains, in the order in which they were added.
    pub fn all(&self) -> Vec<ChainReport> {
        self.meters.lock().iter().map(Meter::report).collect()
    }

    /// Forgets what was measured so far.
    pub fn reset(&self) {
        for meter in self.meters.lock().iter_mut() {
            meter.times = Times::default();
        }
    }

    pub(super) fn add(&self, chain: &Chain) {
        self.meters.lock().push(Meter {
            chain: chain.name.clone(),
            priority: chain.priority,
            deadline: chain.deadline,
            times: Times::default(),
        });
    }

    /// Notes what an instance of each chain of `mask` took.
    pub(super) fn note(&self, mask: u64, nanos: u64) {
        let mut meters = self.meters.lock();
        for (at, meter) in meters.iter_mut().enumerate() {
            if mask & (1 << at) != 0 {
                meter.note(nanos);
            }
        }
    }
}

impl fmt::Debug for ChainReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all()).finish()
    }
}

struct Meter {
    chain: String,
    priority: u32,
    deadline: Option<Duration>,
    times: Times,
}

impl Meter {
    fn note(&mut self, nanos: u64) {
        let late = |limit: Duration| u128::from(nanos) > limit.as_nanos();
        self.times.misses += u64::from(self.deadline.is_some_and(late));
        self.times.note(nanos);
    }

    fn report(&self) -> ChainReport {
        let times = &self.times;
        ChainReport {
            chain: self.chain.clone(),
            priority: self.priority,
            count: times.count,
            min: Duration::from_nanos(times.min),
            mean: Duration::from_nanos(times.sum.checked_div(times.count).unwrap_or(0)),
            p99: Duration::from_nanos(times.quantile(99)),
            max: Duration::from_nanos(times.max),
            deadline: self.deadline,
            deadline_misses: times.misses,
        }
    }
}

/// Buckets per power of two: one is at most 1/32 wide.
const STEPS: u64 = 32;
const BUCKETS: usize = 60 * STEPS as usize;

/// A histogram of nanoseconds of fixed size.
struct Times {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    misses: u64,
    buckets: Box<[u32]>,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            count: 0,
            sum: 0,
            min: 0,
            max: 0,
            misses: 0,
            buckets: vec![0; BUCKETS].into(),
        }
    }
}

impl Times {
    fn note(&mut self, nanos: u64) {
        self.min = match self.count {
            0 => nanos,
            _ => self.min.min(nanos),
        };
        self.max = self.max.max(nanos);
        self.count += 1;
        self.sum = self.sum.saturating_add(nanos);
        if let Some(bucket) = self.buckets.get_mut(bucket_of(nanos)) {
            *bucket = bucket.saturating_add(1);
        }
    }

    /// The upper end of the bucket in which so many per cent are.
    fn quantile(&self, per_cent: u64) -> u64 {
        let wanted = (self.count * per_cent).div_ceil(100);
        let mut seen = 0;
        for (at, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= wanted && seen > 0 {
                return end_of(at).min(self.max);
            }
        }
        self.max
    }
}

/// Below `STEPS` one per nanosecond, above it `STEPS` per power of two.
fn bucket_of(nanos: u64) -> usize {
    if nanos < STEPS {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - STEPS.ilog2();
    let at = u64::from(shift + 1) * STEPS + ((nanos >> shift) - STEPS);
    (at as usize).min(BUCKETS - 1)
}

/// The greatest value of a bucket.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    ((STEPS + bucket % STEPS + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_in_its_bucket_which_is_narrow() {
        let mut nanos = 0_u64;
        while nanos < 1 << 40 {
            let end = end_of(bucket_of(nanos));
            assert!(end >= nanos, "{nanos} in a bucket up to {end}");
            assert!(end - nanos <= nanos / STEPS, "{nanos} up to {end}");
            nanos += 1 + nanos / 50;
        }
    }

    #[test]
    fn a_quantile_is_what_so_many_do_not_exceed() {
        let mut times = Times::default();
        assert_eq!(times.quantile(99), 0);
        (1..=1_000_u64).for_each(|n| times.note(n * 1_000));
        let p99 = times.quantile(99);
        assert!((990_000..=990_000 * 33 / 32).contains(&p99), "{p99}");
        assert_eq!(times.quantile(100), 1_000_000);
        assert_eq!((times.min, times.max), (1_000, 1_000_000));
    }
}
