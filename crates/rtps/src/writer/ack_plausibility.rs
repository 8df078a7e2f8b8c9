//! Plausibility check of an ACKNACK or NACK_FRAG: a claim that no correct reader makes.
//!
//! Without security anyone who spoofs an address can acknowledge in a reader's name,
//! and so free samples that it lacks. An ACKNACK is not believed at once if its count
//! jumps, or if it acknowledges what was never sent. A second one confirms a count at
//! once, and unsent numbers after a second. A reader that believed a forged HEARTBEAT
//! needs that long to notice. Called by [`super::proxy`].

use crate::heartbeat_counts::is_count_jump;
use crate::time::{Duration, Instant};

/// How long a reader must keep acknowledging what was not sent.
const UNSENT_MIN: Duration = Duration::from_secs(1);
/// A pause after which that begins again.
const UNSENT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Doubtful properties of an ACKNACK or NACK_FRAG.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub count: u32,
    /// Its count jumps.
    pub jumps: bool,
    /// It acknowledges numbers that were not sent.
    pub is_unsent: bool,
}

/// Open plausibility checks of one reader; most often none.
#[derive(Debug)]
pub(super) struct AckPlausibility {
    /// The count that jumped.
    count: Option<u32>,
    /// When it began to acknowledge unsent numbers, and the last time.
    unsent: Option<(Instant, Instant)>,
}

impl AckPlausibility {
    pub const NONE: Self = Self {
        count: None,
        unsent: None,
    };

    /// Whether to wait for another one.
    pub fn is_unconfirmed(&mut self, now: Instant, claim: Claim) -> bool {
        if claim.jumps && !self.confirms_count(claim.count) {
            self.count = Some(claim.count);
            return true;
        }
        self.count = None;
        if !claim.is_unsent {
            self.unsent = None;
            return false;
        }
        let open = self
            .unsent
            .filter(|(_, last)| now.since(*last) <= UNSENT_PAUSE_MAX);
        let since = open.map_or(now, |(since, _)| since);
        self.unsent = Some((since, now));
        now.since(since) < UNSENT_MIN
    }

    fn confirms_count(&self, count: u32) -> bool {
        self.count.is_some_and(|before| {
            count.wrapping_sub(before).cast_signed() > 0 && !is_count_jump(Some(before), count)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_count_that_jumps_is_believed_with_the_next_one() {
        let mut plausibility = AckPlausibility::NONE;
        let mut claim = |count, jumps| {
            let is_unsent = false;
            plausibility.is_unconfirmed(
                at(0),
                Claim {
                    count,
                    jumps,
                    is_unsent,
                },
            )
        };
        assert!(claim(1 << 30, true));
        assert!(!claim(7, false));
        assert!(claim(1 << 30, true));
        assert!(claim(1 << 30, true), "the same count proves nothing");
        assert!(!claim((1 << 30) + 1, true));
    }

    #[test]
    fn unsent_numbers_are_acknowledged_by_a_reader_that_insists() {
        let mut plausibility = AckPlausibility::NONE;
        let mut claim = |ms, is_unsent| {
            plausibility.is_unconfirmed(
                at(ms),
                Claim {
                    count: 1,
                    jumps: false,
                    is_unsent,
                },
            )
        };
        assert!(claim(0, true));
        assert!(claim(900, true));
        assert!(!claim(1_000, true));
        assert!(!claim(1_100, false));
        assert!(claim(1_200, true), "an honest one in between ends it");
        assert!(claim(2_500, true), "after a pause it begins again");
    }
}
