//! Pauses before a process is started again.

use std::time::Duration;

use crate::plan::{RESPAWN_PAUSE_MAX, Respawn};

/// Who has run for so long did not fail at its start.
const SETTLED: Duration = Duration::from_secs(10);
/// What is doubled where no delay is given.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The pauses of one process: the delay given, and twice as long each time that it
/// ends soon after its start.
#[derive(Debug)]
pub struct Pauses {
    respawn: Option<Respawn>,
    restarts: u32,
    quick_ends: u32,
}

impl Pauses {
    /// Of a process that is respawned so, or not at all.
    pub fn new(respawn: Option<Respawn>) -> Self {
        Self {
            respawn,
            restarts: 0,
            quick_ends: 0,
        }
    }

    /// How long to wait after it has run for `ran`; none where it is not started
    /// again.
    pub fn next(&mut self, ran: Duration) -> Option<Duration> {
        let respawn = self.respawn?;
        if respawn
            .retries_max
            .is_some_and(|most| self.restarts >= most)
        {
            return None;
        }
        self.restarts += 1;
        if ran >= SETTLED {
            self.quick_ends = 0;
        }
        let doubled = self.quick_ends;
        self.quick_ends = doubled.saturating_add(1);
        if doubled == 0 {
            return Some(respawn.delay);
        }
        let factor = 1u32.checked_shl(doubled - 1).unwrap_or(u32::MAX);
        let pause = respawn.delay.max(PAUSE_MIN).saturating_mul(factor);
        let pause = match respawn.delay >= PAUSE_MIN {
            true => pause.saturating_mul(2),
            false => pause,
        };
        Some(pause.min(RESPAWN_PAUSE_MAX.max(respawn.delay)))
    }
}
