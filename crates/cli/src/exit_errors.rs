//! Errors that only set the exit code, since the verb has reported them already.

use std::fmt;

/// `topic why` has reported a pair of endpoints that does not match.
#[derive(Debug)]
pub struct EndpointsUnmatched;

impl fmt::Display for EndpointsUnmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not every publisher and subscription match")
    }
}

impl std::error::Error for EndpointsUnmatched {}

/// The verb has reported a failure.
#[derive(Debug)]
pub struct Failed;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not everything was done")
    }
}

impl std::error::Error for Failed {}

/// Ctrl-C ended a verb before its work was done.
#[derive(Debug)]
pub struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}
