//! Cost of a test case: the peak memory of this thread, and time.

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

    /// By how many bytes this thread's memory has grown at most; 0 in a program without
    /// the counting allocator.
    pub fn peak(&self) -> usize {
        usize::try_from(allocations::live_bytes().1 - self.held).unwrap_or(0)
    }

    /// Under a fuzzer always zero: libFuzzer watches the time, and its checks slow
    /// everything.
    pub fn took(&self) -> Duration {
        if cfg!(fuzzing) {
            return Duration::ZERO;
        }
        self.began.elapsed()
    }
}
