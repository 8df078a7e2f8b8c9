//! How times are spread: median and tail.

/// Of some times, in nanoseconds. All zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// The smallest.
    pub min: u64,
    /// Half are not larger.
    pub median: u64,
    /// 95 of 100 are not larger.
    pub p95: u64,
    /// 99 of 100 are not larger.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl Spread {
    /// Of these: each percentile is one of them, the nearest rank.
    pub fn of(times: impl IntoIterator<Item = u64>) -> Self {
        let mut sorted: Vec<u64> = times.into_iter().collect();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied().unwrap_or(0)
        };
        Self {
            count: sorted.len(),
            min: sorted.first().copied().unwrap_or(0),
            median: rank(50),
            p95: rank(95),
            p99: rank(99),
            max: sorted.last().copied().unwrap_or(0),
        }
    }
}
