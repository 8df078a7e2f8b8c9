//! Test cases and their verdicts.

use std::path::PathBuf;

/// How a test case ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Passed,
    Skipped,
    Failed,
}

/// A test case of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    pub name: String,
    pub verdict: Verdict,
}

impl Case {
    pub fn new(name: &str, verdict: Verdict) -> Self {
        let name = name.to_owned();
        Self { name, verdict }
    }
}

/// What one test program did.
pub struct ProgramRun {
    /// The program, without the name of a middleware.
    pub program: String,
    pub cases: Vec<Case>,
    /// It failed at first and passed when it was repeated.
    pub was_repeated: bool,
    pub log: PathBuf,
}

/// The name of the case that stands for a program that ended early.
pub const CRASHED: &str = "ended-early";
