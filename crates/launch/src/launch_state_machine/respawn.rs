//! Respawn back-off: delays before a process is started again.

use std::time::Duration;

use crate::plan::{RESPAWN_DELAY_MAX, RespawnPolicy};

/// A process that has run this long did not fail at its start.
const STABLE_RUN_TIME: Duration = Duration::from_secs(10);
/// The delay that is doubled if the launch file gives none.
const DELAY_MIN: Duration = Duration::from_millis(100);

/// Back-off of one process: the configured delay, doubled each time that the
/// process ends soon after its start.
#[derive(Debug)]
pub struct RespawnBackoff {
    respawn: Option<RespawnPolicy>,
    restarts: u32,
    quick_ends: u32,
}

impl RespawnBackoff {
    /// Back-off for a process with this respawn policy, or with none.
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
        let doubled = self.quick_ends;
        self.quick_ends = doubled.saturating_add(1);
        if doubled == 0 {
            return Some(respawn.delay);
        }
        let factor = 1u32.checked_shl(doubled - 1).unwrap_or(u32::MAX);
        let pause = respawn.delay.max(DELAY_MIN).saturating_mul(factor);
        let pause = if respawn.delay >= DELAY_MIN {
            pause.saturating_mul(2)
        } else {
            pause
        };
        Some(pause.min(RESPAWN_DELAY_MAX.max(respawn.delay)))
    }
}
