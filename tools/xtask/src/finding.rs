//! A finding of `cargo xtask tidy`: the place of a violation, the rule and its fix.

use std::fmt;

/// A rule violation.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path from the repository's root.
    pub path: String,
    /// Line number from 1.
    pub line: usize,
    /// The problem and its fix.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}
