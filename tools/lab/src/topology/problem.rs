//! A problem of a topology file: place, value, and what is expected.

use std::fmt;
use std::path::PathBuf;

/// An error, or a warning about a field without effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyProblem {
    pub file: PathBuf,
    /// The place: `node "camera", publisher 2, period_ms`. Empty for the file.
    pub place: String,
    /// The value in the file. Empty if there is none.
    pub value: String,
    /// The problem and the expected value.
    pub message: String,
}

impl fmt::Display for TopologyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        if !self.value.is_empty() {
            write!(f, "{}: ", self.value)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for TopologyProblem {}
