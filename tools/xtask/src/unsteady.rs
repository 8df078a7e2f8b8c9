//! Tests that failed, read from the output of `cargo test`, so that they can run again.
//!
//! Many tests start processes and wait with deadlines. On a loaded machine one of some
//! thousand misses its deadline now and then. Up to [`REPEATED_MAX`] failed tests run
//! once more, alone. A test that fails twice fails the run. A test that passes then is
//! reported as unsteady, so that it is mended without holding up another change.

/// Number of failed tests that are repeated. More have a cause in common.
pub const REPEATED_MAX: usize = 5;

/// The failed tests of one test program.
#[derive(Debug, PartialEq, Eq)]
pub struct FailedTests {
    /// Cargo's name of the program: `-p pteros --test traces`.
    pub target: String,
    /// The full names of the tests.
    pub names: Vec<String>,
}

impl FailedTests {
    /// Cargo's arguments that select the program among `which`. The packages stay those
    /// of `which`: other packages would have other features, and be built again.
    pub fn selection<'a>(&'a self, which: &[&'a str]) -> Vec<&'a str> {
        let mut selection = Vec::new();
        let mut words = which.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "--lib" | "--bins" | "--doc" => {}
                "--test" | "--bin" => _ = words.next(),
                _ => selection.push(word),
            }
        }
        let mut words = self.target.split_whitespace();
        while let Some(word) = words.next() {
            match word {
                "-p" => _ = words.next(),
                _ => selection.push(word),
            }
        }
        selection
    }
}

/// Reads the output of `cargo test` line by line.
#[derive(Default)]
pub struct FailureCollector {
    names: Vec<String>,
    failed: Vec<FailedTests>,
}

impl FailureCollector {
    /// Reads one line.
    pub fn read_line(&mut self, line: &str) {
        let name = line
            .strip_prefix("test ")
            .and_then(|rest| rest.strip_suffix(" ... FAILED"));
        if let Some(name) = name {
            self.names.push(name.to_owned());
        }
        let target = line
            .trim_start()
            .strip_prefix("error: ")
            .and_then(|rest| rest.split_once("failed, to rerun pass `"))
            .and_then(|(_, rest)| rest.strip_suffix('`'));
        if let Some(target) = target {
            self.failed.push(FailedTests {
                target: target.to_owned(),
                names: std::mem::take(&mut self.names),
            });
        }
    }

    /// The failed tests by program, in the order of the output.
    pub fn end(self) -> Vec<FailedTests> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running tests/traces.rs (target/debug/deps/traces-ea88)
test one ... ok
test two ... FAILED
test module::three ... FAILED
test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.6s
error: test failed, to rerun pass `-p pteros --test traces`
   Doc-tests pteros_msg
test crates/msg/src/lib.rs - (line 12) ... FAILED
error: doctest failed, to rerun pass `-p pteros-msg --doc`
error: 2 targets failed:
    `-p pteros --test traces`
    `-p pteros-msg --doc`";

    fn failed() -> Vec<FailedTests> {
        let mut collector = FailureCollector::default();
        OUTPUT.lines().for_each(|line| collector.read_line(line));
        collector.end()
    }

    #[test]
    fn failed_tests_are_found_by_program() {
        let found = failed();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].target, "-p pteros --test traces");
        assert_eq!(found[0].names, ["two", "module::three"]);
        assert_eq!(found[1].names, ["crates/msg/src/lib.rs - (line 12)"]);
    }

    #[test]
    fn a_program_is_selected_among_the_same_packages() {
        let found = failed();
        let quick = ["--workspace", "--lib", "--bins", "--test", "actions"];
        assert_eq!(
            found[0].selection(&quick),
            ["--workspace", "--test", "traces"]
        );
        assert_eq!(
            found[1].selection(&["--workspace"]),
            ["--workspace", "--doc"]
        );
        let faults = [
            "-p",
            "pteros-sim",
            "--features",
            "faults",
            "--test",
            "mutants",
        ];
        assert_eq!(
            found[0].selection(&faults),
            [
                "-p",
                "pteros-sim",
                "--features",
                "faults",
                "--test",
                "traces"
            ]
        );
    }
}
