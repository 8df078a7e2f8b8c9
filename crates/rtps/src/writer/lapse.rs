//! Readers that have lost what they acknowledged.
//!
//! A reader never takes an acknowledgement back. One that asks for what it had
//! has forgotten this writer, for instance since it heard nothing of it for a
//! lease; if its counts begin anew too, it is most likely another process with
//! the GUID of the one that died. Or the ACKNACK is an old one that was late.
//! So nothing is sent again for a while: the reader of one that forgot goes on
//! asking, and any later ACKNACK of one that did not ends the doubt.

use crate::time::{Duration, Instant};

/// A reader has begun anew when it lacked what it had so often ...
const LACKS_MIN: u32 = 3;
/// ... over this long, which is longer than datagrams are late ...
const DOUBT: Duration = Duration::from_millis(1_200);
/// ... and never silent for longer than this.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// The pause between our questions meanwhile.
const QUESTION_PAUSE: Duration = Duration::from_millis(200);

/// A reader's lack of what it had.
#[derive(Debug)]
pub(super) struct Lapse {
    since: Instant,
    last: Instant,
    lacks: u32,
    ask_at: Instant,
}

/// What follows from an ACKNACK of a reader that may have lapsed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Suspicion {
    /// Nothing: it is served as ever.
    None,
    /// It is not served now; `ask` it where it stands.
    Doubt {
        /// It is time for a heartbeat.
        ask: bool,
    },
    /// It has begun anew.
    Certain,
}

impl Lapse {
    /// Judges an ACKNACK. `lacks`: it asks for what was acknowledged.
    /// `went_back`: its count is not above the last one.
    pub fn judge(
        lapse: &mut Option<Self>,
        now: Instant,
        lacks: bool,
        went_back: bool,
    ) -> Suspicion {
        let open = lapse.take();
        if !lacks {
            return Suspicion::None;
        }
        let open = open.filter(|open| now.since(open.last) <= SILENCE_MAX);
        if open.is_none() && !went_back {
            return Suspicion::None;
        }
        let mut doubt = open.unwrap_or(Self {
            since: now,
            last: now,
            lacks: 0,
            ask_at: now,
        });
        doubt.last = now;
        doubt.lacks = doubt.lacks.saturating_add(1);
        let certain = doubt.lacks >= LACKS_MIN && now.since(doubt.since) >= DOUBT;
        let ask = doubt.ask_at <= now;
        if ask {
            doubt.ask_at = now.after(QUESTION_PAUSE);
        }
        *lapse = (!certain).then_some(doubt);
        match certain {
            true => Suspicion::Certain,
            false => Suspicion::Doubt { ask },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn who_goes_on_lacking_what_it_had_has_begun_anew() {
        let mut lapse = None;
        let first = Lapse::judge(&mut lapse, at(0), true, true);
        assert_eq!(first, Suspicion::Doubt { ask: true });
        // Its counts grow from there.
        for ms in [100, 400, 900] {
            let next = Lapse::judge(&mut lapse, at(ms), true, false);
            assert_eq!(next, Suspicion::Doubt { ask: ms > 100 }, "{ms}");
        }
        let last = Lapse::judge(&mut lapse, at(1_300), true, false);
        assert_eq!(last, Suspicion::Certain);
    }

    #[test]
    fn a_straggler_is_forgiven_by_the_next_acknowledgement() {
        let mut lapse = None;
        Lapse::judge(&mut lapse, at(0), true, true);
        assert_eq!(
            Lapse::judge(&mut lapse, at(200), false, false),
            Suspicion::None
        );
        assert!(lapse.is_none());
    }

    #[test]
    fn stragglers_far_apart_do_not_add_up() {
        let mut lapse = None;
        for ms in [0, 2_000, 4_000, 6_000] {
            let each = Lapse::judge(&mut lapse, at(ms), true, true);
            assert_eq!(each, Suspicion::Doubt { ask: true }, "{ms}");
        }
    }

    #[test]
    fn who_forgot_but_counts_on_is_served() {
        let mut lapse = None;
        let each = Lapse::judge(&mut lapse, at(0), true, false);
        assert_eq!(each, Suspicion::None);
    }
}
