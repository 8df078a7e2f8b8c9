//! Withdrawn acknowledgements: a reader whose ACKNACKs fall below what it acknowledged.
//!
//! A correct reader takes no acknowledgement back, unless it lost its state of this
//! writer. That happens with each end of a match that only the reader sees. Its counts
//! go on, so it is served (`reader_reset.rs`), and all that it gets was acknowledged
//! before. Acknowledged bytes earn credit once, so it would live on probes alone, at
//! 16 KiB in 200 ms.
//!
//! So a withdrawal is believed after [`OBSERVATION_TIME`]. Meanwhile the writer asks the
//! reader by heartbeats. One that still has everything contradicts by any ACKNACK,
//! whatever its count. Then the numbers from the withdrawn base on earn credit once more,
//! as far as they were sent to this reader alone.

use crate::interval::NumberRun;
use crate::time::{Duration, Instant};

/// How long all ACKNACKs must agree, and how many heartbeats must have asked for them.
/// At 30 % loss in each direction the answers to all of them are lost once in 30 times
/// for five, and once in 800 times for ten.
const OBSERVATION_TIME: Duration = Duration::from_secs(1);
const QUESTIONS_MIN: u32 = 5;
/// The least time before such a heartbeat and between two of them. One delayed ACKNACK
/// causes none, and neither does a forger while the reader answers.
const QUESTION_PERIOD: Duration = Duration::from_millis(100);
/// A longer silence begins the observation again.
const SILENCE_MAX: Duration = Duration::from_millis(500);

/// The state of a reader that withdraws acknowledgements. The default is that of a reader
/// that never did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AckWithdrawal {
    open: Option<SuspectedWithdrawal>,
    /// Numbers from here on earn credit again, up to the first unacknowledged one.
    earns_from: Option<i64>,
}

/// The suspicion that a reader lost its state.
#[derive(Clone, Copy, Debug)]
struct SuspectedWithdrawal {
    since: Instant,
    last: Instant,
    asked_at: Instant,
    questions: u32,
}

/// The conclusion from an ACKNACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WithdrawalStatus {
    /// It withdraws nothing, or nothing more, or it was asked a moment ago.
    None,
    /// A heartbeat is to ask the reader.
    Ask,
    /// The reader lost its state: the acknowledgement counts as withdrawn.
    Believed,
}

impl AckWithdrawal {
    /// Notes the base of any ACKNACK of the reader, before its count is judged. One that
    /// acknowledges all that counts as acknowledged contradicts the others.
    pub fn note_base(&mut self, base: i64, acked: i64) {
        if base >= self.earns_from.unwrap_or(acked) {
            self.open = None;
        }
    }

    /// Evaluates an ACKNACK that counts. Numbers below `acked` were acknowledged before.
    pub fn observe(&mut self, now: Instant, base: i64, acked: i64) -> WithdrawalStatus {
        if base >= self.earns_from.unwrap_or(acked) {
            return WithdrawalStatus::None;
        }
        let open = self.open.filter(|open| now.since(open.last) <= SILENCE_MAX);
        let mut open = open.unwrap_or(SuspectedWithdrawal {
            since: now,
            last: now,
            asked_at: now,
            questions: 0,
        });
        open.last = now;
        self.open = Some(open);
        if now.since(open.since) >= OBSERVATION_TIME && open.questions >= QUESTIONS_MIN {
            *self = Self {
                open: None,
                earns_from: Some(base),
            };
            return WithdrawalStatus::Believed;
        }
        if now.since(open.asked_at) < QUESTION_PERIOD {
            return WithdrawalStatus::None;
        }
        open.asked_at = now;
        open.questions = open.questions.saturating_add(1);
        self.open = Some(open);
        WithdrawalStatus::Ask
    }

    /// The numbers below `base` that earn credit again, if any. They do not from now on.
    pub fn take_earned(&mut self, base: i64, acked: i64) -> Option<NumberRun> {
        let first = self.earns_from?;
        let end = base.min(acked);
        self.earns_from = (base < acked).then_some(first.max(end));
        (first < end).then_some(NumberRun {
            first,
            last: end.saturating_sub(1),
        })
    }

    /// Whether this number was acknowledged and earns nothing again.
    pub fn is_earned(&self, number: i64, acked: i64) -> bool {
        number < self.earns_from.unwrap_or(acked)
    }

    /// Whether it says no more than the default.
    pub fn is_idle(&self) -> bool {
        self.open.is_none() && self.earns_from.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos((10_000 + ms) * 1_000_000)
    }

    fn run(first: i64, last: i64) -> Option<NumberRun> {
        Some(NumberRun { first, last })
    }

    /// ACKNACKs with this base each 50 ms. Returns the questions, and when it was believed.
    fn insist(
        withdrawal: &mut AckWithdrawal,
        base: i64,
        times: core::ops::Range<u64>,
    ) -> (u32, Option<u64>) {
        let mut questions = 0;
        for ms in times.step_by(50) {
            withdrawal.note_base(base, 100);
            match withdrawal.observe(at(ms), base, 100) {
                WithdrawalStatus::None => {}
                WithdrawalStatus::Ask => questions += 1,
                WithdrawalStatus::Believed => return (questions, Some(ms)),
            }
        }
        (questions, None)
    }

    #[test]
    fn a_reader_that_insists_for_a_second_earns_once_more_what_it_withdrew() {
        let mut withdrawal = AckWithdrawal::default();
        assert!(withdrawal.is_earned(99, 100) && !withdrawal.is_earned(100, 100));
        assert_eq!(insist(&mut withdrawal, 40, 0..3_000), (9, Some(1_000)));
        assert!(withdrawal.is_earned(39, 100) && !withdrawal.is_earned(40, 100));
        assert_eq!(withdrawal.take_earned(40, 100), None);
        assert_eq!(withdrawal.take_earned(60, 100), run(40, 59));
        assert_eq!(withdrawal.take_earned(50, 100), None, "an older one");
        assert_eq!(withdrawal.take_earned(130, 100), run(60, 99));
        assert_eq!(withdrawal.take_earned(130, 130), None);
        assert!(withdrawal.is_idle());
    }

    #[test]
    fn one_acknack_that_has_everything_contradicts_whenever_it_comes() {
        let mut withdrawal = AckWithdrawal::default();
        for turn in 0..10 {
            let begin = turn * 1_000;
            assert_eq!(insist(&mut withdrawal, 1, begin..begin + 950).1, None);
            withdrawal.note_base(100, 100);
        }
        // A base that is lower than before, but not the whole, does not.
        assert_eq!(insist(&mut withdrawal, 1, 20_000..20_500).1, None);
        withdrawal.note_base(99, 100);
        assert_eq!(insist(&mut withdrawal, 1, 20_500..30_000).1, Some(21_000));
        // The next one takes as long again.
        assert_eq!(withdrawal.take_earned(50, 100), run(1, 49));
        assert_eq!(insist(&mut withdrawal, 1, 21_050..30_000).1, Some(22_050));
    }

    #[test]
    fn silence_and_few_questions_prove_nothing() {
        let mut withdrawal = AckWithdrawal::default();
        for ms in (0..20_000).step_by(501) {
            let each = withdrawal.observe(at(ms), 1, 100);
            assert_eq!(each, WithdrawalStatus::None, "{ms}");
        }
        let mut withdrawal = AckWithdrawal::default();
        assert_eq!(withdrawal.observe(at(0), 1, 100), WithdrawalStatus::None);
        for ms in [490, 980, 1_470, 1_960, 2_060] {
            assert_eq!(withdrawal.observe(at(ms), 1, 100), WithdrawalStatus::Ask);
        }
        let last = withdrawal.observe(at(2_070), 1, 100);
        assert_eq!(last, WithdrawalStatus::Believed);
    }
}
