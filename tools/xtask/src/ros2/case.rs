//! Test cases and their statuses.

use std::path::PathBuf;

/// How a test case ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaseStatus {
    Passed,
    Skipped,
    Failed,
}

/// A test case of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    pub name: String,
    pub status: CaseStatus,
}

impl Case {
    pub fn new(name: &str, status: CaseStatus) -> Self {
        let name = name.to_owned();
        Self { name, status }
    }
}

/// The run of one test program.
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
