//! Clock of a run: the monotonic clock of the host as wall time, shared by all
//! processes.
//!
//! Stamps of different processes can be subtracted, whatever happens to the wall
//! clock. Processes of other frameworks see today's time.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time plus the offset of the wall clock at the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClock {
    ahead_ns: i64,
}

impl RunClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0));
        Self {
            ahead_ns: wall - monotonic_ns(),
        }
    }

    /// The clock of a run that another process started.
    pub fn of(ahead_ns: i64) -> Self {
        Self { ahead_ns }
    }

    /// The offset that other processes of the run need.
    pub fn ahead_ns(self) -> i64 {
        self.ahead_ns
    }

    /// Nanoseconds since 1970.
    pub fn now_ns(self) -> i64 {
        monotonic_ns() + self.ahead_ns
    }
}

/// The monotonic clock, common to all processes and network namespaces.
fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
