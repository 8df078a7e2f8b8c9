//! Latency statistics: median, percentiles and maximum.

/// Statistics of durations, in nanoseconds. All zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyStats {
    /// The number of values.
    pub count: usize,
    /// The minimum.
    pub min: u64,
    /// The 50th percentile.
    pub median: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
}

impl LatencyStats {
    /// Statistics of these values. Percentiles use the nearest rank.
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
