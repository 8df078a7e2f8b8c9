//! Failures that have been reported already: only the exit code is left to say.

use std::fmt;

/// `topic why` found a pair that does not match, and said so.
#[derive(Debug)]
pub struct Unmatched;

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not every publisher and subscription match")
    }
}

impl std::error::Error for Unmatched {}

/// Something was not done, and that was said.
#[derive(Debug)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not everything was done")
    }
}

impl std::error::Error for Failed {}

/// Ctrl-C ended something that should have ended by itself.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
