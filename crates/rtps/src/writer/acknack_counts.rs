//! Counts of the ACKNACKs and NACK_FRAGs of one reader (RTPS 2.5 §8.3.8.1.2, §8.3.8.12.2):
//! which one is new, which one is implausible, and whether the reader has answered.

use super::ack_plausibility::{AckPlausibility, Claim};
use crate::heartbeat_counts::{CountLeap, is_count_jump};
use crate::time::{Duration, Instant};
use crate::wire::AckNack;

/// An ACKNACK whose count does not grow is a repeat, unless the reader was silent
/// this long: then it lost its state and counts from zero.
const COUNT_MEMORY: Duration = Duration::from_millis(500);
/// Some readers answer heartbeats with empty, non-final ACKNACKs. From this number
/// on they count as answers.
const UNSOLICITED_MAX: u8 = 2;

/// The counts that one reader has sent.
#[derive(Debug)]
pub(super) struct AckNackCounts {
    has_acknowledged: bool,
    unsolicited_acknacks: u8,
    acknack_count: Option<u32>,
    acknack_leap: CountLeap,
    acknack_at: Instant,
    nack_frag_count: Option<u32>,
    nack_frag_at: Instant,
    ack_plausibility: AckPlausibility,
}

impl Default for AckNackCounts {
    fn default() -> Self {
        Self {
            has_acknowledged: false,
            unsolicited_acknacks: 0,
            acknack_count: None,
            acknack_leap: CountLeap::default(),
            acknack_at: Instant::ZERO,
            nack_frag_count: None,
            nack_frag_at: Instant::ZERO,
            ack_plausibility: AckPlausibility::NONE,
        }
    }
}

impl AckNackCounts {
    /// Whether the reader has answered a heartbeat.
    pub const fn has_acknowledged(&self) -> bool {
        self.has_acknowledged
    }

    /// Notes an ACKNACK if it answers a heartbeat; true for the first answer.
    ///
    /// Preemptive ACKNACKs come from readers that only know our announcement, and
    /// request nothing but a heartbeat (Cyclone DDS, Fast DDS).
    pub fn note_acknack(&mut self, acknack: &AckNack) -> bool {
        self.unsolicited_acknacks = self.unsolicited_acknacks.saturating_add(1);
        let is_answer = acknack.is_final || !acknack.state.is_empty();
        if self.has_acknowledged || !(is_answer || self.unsolicited_acknacks > UNSOLICITED_MAX) {
            return false;
        }
        self.has_acknowledged = true;
        true
    }

    /// Whether the count of an ACKNACK is not above that of the last one.
    pub fn count_went_back(&self, count: u32) -> bool {
        let last = self.acknack_count;
        last.is_some_and(|last| count.wrapping_sub(last).cast_signed() <= 0)
    }

    /// Whether to wait for a second ACKNACK that agrees with this one. `end`: the
    /// number after the last one sent.
    pub fn is_acknack_unconfirmed(&mut self, now: Instant, acknack: &AckNack, end: i64) -> bool {
        let claim = Claim {
            count: acknack.count,
            jumps: is_count_jump(self.acknack_count, acknack.count),
            is_unsent: acknack.state.base().0 > end,
        };
        self.ack_plausibility.is_unconfirmed(now, claim)
    }

    /// The same of a NACK_FRAG.
    pub fn is_nack_frag_unconfirmed(&mut self, now: Instant, count: u32) -> bool {
        let claim = Claim {
            count,
            jumps: is_count_jump(self.nack_frag_count, count),
            is_unsent: false,
        };
        self.ack_plausibility.is_unconfirmed(now, claim)
    }

    /// Whether an ACKNACK with this count is new.
    pub fn accepts_acknack(&mut self, now: Instant, count: u32) -> bool {
        let last = self.acknack_count;
        let is_new = accept_count(now, count, &mut self.acknack_count, &mut self.acknack_at);
        if is_new {
            self.acknack_leap.note(last, count);
        }
        is_new
    }

    /// Whether the counts before this one went on where they were before a forged one.
    /// Then that is forgotten.
    pub fn forgets_forged_acknack(&mut self, count: u32) -> bool {
        let is_forged = self.acknack_leap.ends_with(self.acknack_count, count);
        if is_forged {
            self.acknack_count = Some(count.wrapping_sub(1));
        }
        is_forged
    }

    /// Whether a NACK_FRAG with this count is new.
    pub fn accepts_nack_frag(&mut self, now: Instant, count: u32) -> bool {
        accept_count(
            now,
            count,
            &mut self.nack_frag_count,
            &mut self.nack_frag_at,
        )
    }
}

fn accept_count(now: Instant, count: u32, last: &mut Option<u32>, at: &mut Instant) -> bool {
    let is_new = last.is_none_or(|last| count.wrapping_sub(last).cast_signed() > 0);
    if !is_new && now.since(*at) < COUNT_MEMORY {
        return false;
    }
    *last = Some(count);
    *at = now;
    true
}
