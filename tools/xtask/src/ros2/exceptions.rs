//! `exceptions.txt` and `wheel_exceptions.txt`: cases that fail for a reason that is not
//! the plug-in's, or that the wheel does otherwise on purpose.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::case::{CRASHED, Case, CaseStatus};
use crate::checkout::root;

/// Exceptions of the plug-in. The path begins at the root.
pub const PLUG_IN_FILE: &str = "tools/xtask/src/ros2/exceptions.txt";
/// Exceptions of the Python wheel.
pub const WHEEL_FILE: &str = "tools/xtask/src/ros2/wheel_exceptions.txt";

/// A case that fails.
struct Exception {
    suite: String,
    program: String,
    case: String,
    reason: String,
}

/// The lines of a file. What has none expects every case to pass.
#[derive(Default)]
pub struct Exceptions {
    /// The file, from the root.
    pub file: &'static str,
    list: Vec<Exception>,
}

impl Exceptions {
    /// Reads a file.
    pub fn read(file: &'static str) -> Result<Self> {
        let path = root().join(Path::new(file));
        let text = fs::read_to_string(&path).with_context(|| format!("read {file}"))?;
        Self::parse(file, &text).context(file)
    }

    /// Lines `suite program case | reason`; `#` begins a comment. A reason that begins
    /// with `sometimes: ` is for a case that measures time, and may pass.
    pub fn parse(file: &'static str, text: &str) -> Result<Self> {
        let mut list: Vec<Exception> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let parts = line.split_once(" | ").map(|(names, reason)| {
                let names: Vec<&str> = names.split_whitespace().collect();
                (names, reason.trim())
            });
            let Some((names, reason)) = parts else {
                bail!("line {number}: no ` | ` before a reason: {line:?}");
            };
            let [suite, program, case] = names.as_slice() else {
                bail!("line {number}: three names are needed, suite, program and case: {line:?}");
            };
            if list
                .iter()
                .any(|e| e.suite == *suite && e.program == *program && e.case == *case)
            {
                bail!("line {number}: {suite} {program} {case} is named twice");
            }
            list.push(Exception {
                suite: (*suite).into(),
                program: (*program).into(),
                case: (*case).into(),
                reason: reason.into(),
            });
        }
        Ok(Self { file, list })
    }

    /// Why a case may fail.
    pub fn reason(&self, suite: &str, program: &str, case: &str) -> Option<&str> {
        let mut list = self.of(suite, program);
        let found = list.find(|exception| exception.case == case);
        found.map(|exception| exception.reason.as_str())
    }

    /// Whether a case must fail: the line is stale if it passes.
    pub fn must_fail(&self, suite: &str, program: &str, case: &str) -> bool {
        let reason = self.reason(suite, program, case);
        reason.is_some_and(|reason| !reason.starts_with("sometimes: "))
    }

    /// Cases of a program that ran without them.
    pub fn unknown<'a>(&'a self, suite: &'a str, program: &'a str, cases: &[Case]) -> Vec<&'a str> {
        let names = self.of(suite, program).map(|e| e.case.as_str());
        // A program that crashed did not come to all of its cases.
        let crashed = cases
            .iter()
            .any(|c| c.status == CaseStatus::Failed && c.name == CRASHED);
        let missing = names.filter(|name| !crashed && !cases.iter().any(|c| c.name == *name));
        missing.collect()
    }

    fn of(&self, suite: &str, program: &str) -> impl Iterator<Item = &Exception> {
        self.list
            .iter()
            .filter(move |e| e.suite == suite && e.program == program)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_without_a_reason_or_with_other_than_three_names_are_refused() {
        for (line, says) in [
            ("rcl test_a B.c", "no ` | ` before a reason"),
            ("rcl B.c | why", "three names are needed"),
            (
                "rcl t c | why\nrcl t c | why",
                "line 2: rcl t c is named twice",
            ),
        ] {
            let error = Exceptions::parse("file", line).err().unwrap().to_string();
            assert!(error.contains(says), "{error}");
        }
        for file in [PLUG_IN_FILE, WHEEL_FILE] {
            let exceptions = Exceptions::read(file).unwrap().list;
            assert!(exceptions.iter().all(|e| e.reason.len() > 20), "{file}");
        }
    }
}
