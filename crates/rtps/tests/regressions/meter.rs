//! Cost of a test case: the peak memory of this thread, and time.
#![allow(
    clippy::disallowed_methods,
    dead_code,
    reason = "an attack that takes seconds is one that worked"
)]

use std::time::{Duration, Instant};

use crate::allocations;

/// Since when.
pub struct Meter {
    held: i64,
    began: Instant,
}

impl Meter {
    pub fn start() -> Self {
        allocations::reset_peak();
        Self {
            held: allocations::live_bytes().0,
            began: Instant::now(),
        }
    }

    /// By how many bytes this thread's memory has grown at most.
    pub fn peak(&self) -> usize {
        usize::try_from(allocations::live_bytes().1 - self.held).unwrap_or(0)
    }

    pub fn took(&self) -> Duration {
        self.began.elapsed()
    }
}
