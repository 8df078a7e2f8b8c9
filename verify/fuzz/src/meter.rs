//! Replaces the meter of the regression tests: here libFuzzer watches memory and
//! time.

use std::time::Duration;

pub struct Meter;

impl Meter {
    pub fn start() -> Self {
        Self
    }

    pub fn peak(&self) -> usize {
        0
    }

    pub fn took(&self) -> Duration {
        Duration::ZERO
    }
}
