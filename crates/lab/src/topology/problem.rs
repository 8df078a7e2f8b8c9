//! What is wrong with a topology file: where, what stands there, what may.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong, or (as a warning) that will not do what it seems to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Where in it: `node "camera", publisher 2, period_ms`; empty for the file itself.
    pub place: String,
    /// The value, as it stands in the file; empty where there is none.
    pub value: String,
    /// What is wrong and what may stand there.
    pub message: String,
}

impl fmt::Display for Problem {
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

impl std::error::Error for Problem {}
