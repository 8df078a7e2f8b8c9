//! Errors that only set the exit code, since the verb has reported them already.

use pteros_net::{ReceivedSignal, ShutdownSignal, shutdown_request};
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

/// A signal ended a verb before its work was done.
#[derive(Debug)]
pub struct Interrupted {
    signal: ReceivedSignal,
}

impl Interrupted {
    /// By the signal that has arrived, else by Ctrl-C.
    pub fn now() -> Self {
        let request = shutdown_request().ok();
        let received = request.and_then(ShutdownSignal::received);
        Self {
            signal: received.unwrap_or(ReceivedSignal::Interrupt),
        }
    }

    /// The exit code that shells use after the signal.
    pub fn exit_code(&self) -> u8 {
        128 + self.signal.number()
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted by {}", self.signal.name())
    }
}

impl std::error::Error for Interrupted {}
