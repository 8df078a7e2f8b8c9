//! Numbers of tests, as every step of `cargo xtask test` reports them.

/// Numbers of passed, failed and skipped tests.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Passed tests.
    pub passed: usize,
    /// Failed tests.
    pub failed: usize,
    /// Tests that are ignored or cannot run here.
    pub skipped: usize,
}

impl Counts {
    /// Adds the numbers of another run.
    pub fn add(&mut self, more: Counts) {
        self.passed += more.passed;
        self.failed += more.failed;
        self.skipped += more.skipped;
    }
}
