//! Respawn back-off: when a process is started again that has ended by itself. XML, YAML
//! and Python launch files share this.
//!
//! A `respawn_delay` stays as it is, as in ROS 2. Without one, a process that keeps
//! failing at its start would take a whole CPU, so its delay grows.

use std::time::Duration;

use crate::plan::{RESPAWN_BACKOFF_MAX, RespawnPolicy};

/// A process that has run this long did not fail at its start.
const STABLE_RUN_TIME: Duration = Duration::from_secs(10);
/// The first delay that is not zero, without a `respawn_delay`.
const BACKOFF_MIN: Duration = Duration::from_millis(100);

/// Respawns of one process.
#[derive(Debug)]
pub struct RespawnBackoff {
    respawn: Option<RespawnPolicy>,
    restarts: u32,
    quick_ends: u32,
}

impl RespawnBackoff {
    /// Respawns by this policy, or none.
    pub fn new(respawn: Option<RespawnPolicy>) -> Self {
        Self {
            respawn,
            restarts: 0,
            quick_ends: 0,
        }
    }

    /// The delay after a run of `ran`; none if the process is not respawned.
    pub fn next_delay(&mut self, ran: Duration) -> Option<Duration> {
        let respawn = self.respawn?;
        if respawn
            .retries_max
            .is_some_and(|most| self.restarts >= most)
        {
            return None;
        }
        self.restarts += 1;
        if ran >= STABLE_RUN_TIME {
            self.quick_ends = 0;
        }
        let before = self.quick_ends;
        self.quick_ends = before.saturating_add(1);
        if before == 0 || !respawn.delay.is_zero() {
            return Some(respawn.delay);
        }
        let factor = 1u32.checked_shl(before - 1).unwrap_or(u32::MAX);
        Some(BACKOFF_MIN.saturating_mul(factor).min(RESPAWN_BACKOFF_MAX))
    }
}
