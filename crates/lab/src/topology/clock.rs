//! One clock for all processes of a run: the host's monotonic one, shown as wall
//! time. What one process stamps another can subtract, whoever sets the time
//! meanwhile; and a process of another framework sees times of today.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time plus what the wall clock was ahead when the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunClock {
    ahead_ns: i64,
}

impl RunClock {
    /// The clock of a run that begins now.
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH);
        let wall = wall.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0));
        Self {
            ahead_ns: wall - monotonic_ns(),
        }
    }

    /// The clock of a run that another process began.
    pub fn of(ahead_ns: i64) -> Self {
        Self { ahead_ns }
    }

    /// What other processes of the run need for theirs.
    pub fn ahead_ns(self) -> i64 {
        self.ahead_ns
    }

    /// Nanoseconds since 1970.
    pub fn now_ns(self) -> i64 {
        monotonic_ns() + self.ahead_ns
    }
}

/// The host's monotonic clock: one for all processes and network namespaces.
fn monotonic_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
