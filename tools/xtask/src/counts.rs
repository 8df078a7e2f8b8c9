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

    /// Parses `test result: ok. 21 passed; 0 failed; 1 ignored; …`, as a test harness
    /// prints it.
    pub fn of_result(line: &str) -> Option<Counts> {
        let rest = line.strip_prefix("test result: ")?;
        let (_, numbers) = rest.split_once(". ")?;
        let mut counts = Counts::default();
        for part in numbers.split("; ") {
            let (number, word) = part.split_once(' ')?;
            match word {
                "passed" => counts.passed = number.parse().ok()?,
                "failed" => counts.failed = number.parse().ok()?,
                "ignored" => counts.skipped = number.parse().ok()?,
                _ => {}
            }
        }
        Some(counts)
    }

    /// The line that [`Counts::of_result`] parses.
    pub fn result_line(self) -> String {
        let Counts {
            passed,
            failed,
            skipped,
        } = self;
        let word = if failed == 0 { "ok" } else { "FAILED" };
        format!("test result: {word}. {passed} passed; {failed} failed; {skipped} ignored")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_parsed_from_the_output_of_a_test_binary() {
        let line = "test result: FAILED. 21 passed; 2 failed; 1 ignored; 0 measured; 0 filtered \
                    out; finished in 0.00s";
        let counts = Counts {
            passed: 21,
            failed: 2,
            skipped: 1,
        };
        assert_eq!(Counts::of_result(line), Some(counts));
        assert_eq!(Counts::of_result(&counts.result_line()), Some(counts));
        assert_eq!(Counts::of_result("test a ... ok"), None);
    }
}
