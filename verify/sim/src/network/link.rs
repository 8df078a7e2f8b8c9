//! The link from one simulated process to another, with its faults.

/// Behaviour of one direction between two processes. Chances are in 1/10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Chance that a datagram is lost.
    pub loss: u32,
    /// Chance that a datagram is duplicated.
    pub duplicate: u32,
    /// Chance that one byte is changed.
    pub corrupt: u32,
    /// Minimum latency in nanoseconds.
    pub delay: u64,
    /// Maximum random extra latency in nanoseconds. Larger than the pause between
    /// datagrams, it reorders them.
    pub jitter: u64,
    /// Chance of a straggler, which takes up to a second more.
    pub straggle: u32,
    /// Larger datagrams are dropped.
    pub mtu: usize,
    /// Drops everything.
    pub cut: bool,
    /// Nothing arrives before this time. Then everything arrives at once.
    pub stalled_until: u64,
}

impl Default for Link {
    /// A link without latency and faults.
    fn default() -> Self {
        Self::perfect(0)
    }
}

impl Link {
    /// A link with a latency of `delay` nanoseconds and no faults.
    pub const fn perfect(delay: u64) -> Self {
        Self {
            loss: 0,
            duplicate: 0,
            corrupt: 0,
            delay,
            jitter: 0,
            straggle: 0,
            mtu: usize::MAX,
            cut: false,
            stalled_until: 0,
        }
    }
}
