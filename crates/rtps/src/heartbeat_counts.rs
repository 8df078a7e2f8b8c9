//! Heartbeat counts of a writer: detection of repeats, and of a restarted writer
//! with the same GUID. [`CountLeap`] also serves the counts of ACKNACKs.
//!
//! A count only grows (RTPS 2.5 §8.3.8.6). A lower count has three causes: a
//! delayed heartbeat, a writer that lost its state, or another process with the
//! GUID of a dead one. The last happens with stacks that build GUIDs from host and
//! process id (Fast DDS), for instance in the first process of each container. So
//! the reader probes the writer. If all its counts are lower for a while, it has
//! restarted. OpenDDS does the same with the sequence numbers of announcements.
//!
//! A forged count that leaps ahead makes the true ones lower, too. They continue the
//! count before the leap, which a restarted writer's do not, so the leap is forgotten.
//!
//! A restarted writer with an equally high count is detected by its readers
//! (`writer/reader_reset`): they miss what the earlier one had acknowledged. If we
//! sent it nothing, only the participant lease or a dispose ends the old match.

use core::mem;

use crate::time::{Duration, Instant};

/// A count that does not grow is a repeat, unless its sender was silent this long:
/// then it may count from zero.
const COUNT_MEMORY: Duration = Duration::from_millis(500);
/// This many heartbeats prove something of their writer ...
const HEARTBEATS_MIN: u32 = 3;
/// ... over a time in which a pause between two of them counts at most so long: a process
/// that was stopped receives all that came meanwhile at once, as it continues.
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// The time over which heartbeats prove a restart, or anything else that late ones may
/// seem to: it exceeds the delay of datagrams.
pub(crate) const LATE_MAX: Duration = Duration::from_millis(1_200);
/// The period of probes meanwhile.
const PROBE_PERIOD: Duration = Duration::from_millis(200);
/// The largest step of a count that is believed at once. A forged count blocks the
/// true ones.
const COUNT_STEP_MAX: i32 = 1 << 16;

/// A step of a count that only lost or forged heartbeats explain.
const LEAP_MIN: i32 = 3;
/// After a forged leap the true counts continue at most so far above the count before.
const CONTINUED_MAX: i32 = 1 << 12;
/// A forged step up to this size is soon overtaken by the true counts.
const OVERTAKEN_MAX: u32 = 1 << 6;
/// So many counts that continue below a leap prove that it was forged, and so many above
/// it that it was not.
const PROOFS: u8 = 3;

/// Whether `count` is so far above the last one that a second message must confirm
/// it.
pub(crate) fn is_count_jump(last: Option<u32>, count: u32) -> bool {
    let step = last.map_or(0, |last| count.wrapping_sub(last).cast_signed());
    step > COUNT_STEP_MAX
}

/// The heartbeat counts of one writer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeartbeatCounts {
    last: Option<u32>,
    /// The highest count that was believed.
    highest: u32,
    at: Instant,
    suspected: Option<SuspectedReset>,
    leap: CountLeap,
}

/// A step of more than [`LEAP_MIN`], until later counts confirm or refute it. Of the
/// counts of HEARTBEATs, and of ACKNACKs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountLeap(Option<Leap>);

#[derive(Clone, Copy, Debug)]
struct Leap {
    /// The count before it.
    from: u32,
    /// The last count that continues that one.
    before: u32,
    /// The highest count.
    top: u32,
    continued: u8,
    above: u8,
}

impl CountLeap {
    /// Whether the sender has continued to count where it was before a leap. Then the
    /// leap was forged. A sender that restarted counts from zero. `last`: the last count
    /// that was believed.
    pub fn ends_with(&mut self, last: Option<u32>, count: u32) -> bool {
        let Some(leap) = &mut self.0 else {
            return false;
        };
        let step = |from: u32| count.wrapping_sub(from).cast_signed();
        if step(leap.from) <= 0 && last != Some(leap.top) {
            // It was believed after a silence, and is no continuation.
            self.0 = None;
            return false;
        }
        if step(leap.top) >= 0 || !(1..=CONTINUED_MAX).contains(&step(leap.before)) {
            return false;
        }
        let before = mem::replace(&mut leap.before, count);
        leap.continued = leap.continued.saturating_add(1);
        let is_forged = leap.continued >= PROOFS;
        if is_forged {
            self.0 = None;
            // This one may be forged, too.
            if count.wrapping_sub(before) > OVERTAKEN_MAX {
                self.note(Some(before), count);
            }
        }
        is_forged
    }

    /// Notes a count that is believed after `last`.
    pub fn note(&mut self, last: Option<u32>, count: u32) {
        let Some(last) = last else {
            return;
        };
        let step = count.wrapping_sub(last).cast_signed();
        match &mut self.0 {
            None if step > LEAP_MIN => {
                self.0 = Some(Leap {
                    from: last,
                    before: last,
                    top: count,
                    continued: 0,
                    above: 0,
                });
            }
            Some(leap) if count.wrapping_sub(leap.top).cast_signed() > 0 => {
                leap.top = count;
                leap.above = leap.above.saturating_add(1);
                if leap.above >= PROOFS {
                    self.0 = None;
                }
            }
            _ => {}
        }
    }
}

/// Heartbeats of a writer that agree about something: how many, and over what time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    heartbeats: u32,
    time: Duration,
    last_at: Instant,
}

impl Observation {
    /// That of a first heartbeat.
    pub fn begin(now: Instant) -> Self {
        Self {
            heartbeats: 1,
            time: Duration::ZERO,
            last_at: now,
        }
    }

    /// Notes a further one.
    pub fn note(&mut self, now: Instant) {
        let pause = now.since(self.last_at).min(PAUSE_MAX);
        let nanos = self.time.as_nanos().saturating_add(pause.as_nanos());
        self.heartbeats = self.heartbeats.saturating_add(1);
        self.time = Duration::from_nanos(nanos);
        self.last_at = now;
    }

    /// Whether they are enough, over at least this time.
    pub fn proves_over(&self, time: Duration) -> bool {
        self.heartbeats >= HEARTBEATS_MIN && self.time >= time
    }
}

/// The suspicion of a reset: lower counts or ranges.
#[derive(Clone, Copy, Debug)]
struct SuspectedReset {
    /// The highest count before.
    highest: u32,
    lower: Observation,
    probe_at: Instant,
    /// It began with a lower count, not only with a lower range.
    counts_went_back: bool,
}

impl HeartbeatCounts {
    /// Whether a heartbeat with this count is new. `has_less`: it names a lower
    /// last number than an earlier one.
    pub fn accept(&mut self, now: Instant, count: u32, has_less: bool) -> bool {
        if self.leap.ends_with(self.last, count) {
            self.last = Some(count);
            self.at = now;
            self.suspected = None;
            return true;
        }
        let is_above = |other: u32| count.wrapping_sub(other).cast_signed() > 0;
        let went_back = self.last.filter(|last| !is_above(*last));
        if went_back.is_some() && now.since(self.at) < COUNT_MEMORY {
            return false;
        }
        match &mut self.suspected {
            Some(suspected) if is_above(suspected.highest) && !has_less => self.suspected = None,
            Some(suspected) => suspected.lower.note(now),
            None if went_back.is_some() || has_less => {
                self.suspected = Some(SuspectedReset {
                    highest: self.last.unwrap_or(count),
                    lower: Observation::begin(now),
                    probe_at: now,
                    counts_went_back: went_back.is_some(),
                });
            }
            None => {}
        }
        self.leap.note(self.last, count);
        if self.last.is_none() || is_above(self.highest) {
            self.highest = count;
        }
        self.last = Some(count);
        self.at = now;
        true
    }

    /// Whether this count is too far above the last one to be believed at once.
    pub fn is_jump(&self, count: u32) -> bool {
        is_count_jump(self.last, count)
    }

    /// Whether the suspicion, if any, began with a lower count.
    pub fn counts_went_back(&self) -> bool {
        self.suspected
            .is_some_and(|suspected| suspected.counts_went_back)
    }

    /// Whether the last heartbeat may be a late one: a higher count came before.
    pub fn may_be_late(&self) -> bool {
        self.last.is_some_and(|last| last != self.highest)
    }

    /// Ends a suspicion, after the state of the writer was reset.
    pub fn forget_suspicion(&mut self) {
        self.suspected = None;
        self.highest = self.last.unwrap_or(self.highest);
    }

    /// When to probe the writer; far future without a suspicion.
    pub fn probe_at(&self) -> Instant {
        self.suspected
            .map_or(Instant::FAR_FUTURE, |suspected| suspected.probe_at)
    }

    /// Notes a sent probe.
    pub fn note_probed(&mut self, now: Instant) {
        if let Some(suspected) = &mut self.suspected {
            suspected.probe_at = now.after(PROBE_PERIOD);
        }
    }

    /// Whether the heartbeats so far are certainly those of a writer that has restarted,
    /// and not late ones.
    pub fn is_reset(&self) -> bool {
        let lower = self.suspected.map(|suspected| suspected.lower);
        lower.is_some_and(|lower| lower.proves_over(LATE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn repeated_counts_are_refused_for_a_while() {
        let mut counts = HeartbeatCounts::default();
        assert!(counts.accept(at(0), 7, false));
        assert!(!counts.accept(at(10), 7, false));
        assert!(!counts.accept(at(400), 3, false));
        assert!(counts.accept(at(400), 8, false));
    }

    #[test]
    fn a_delayed_heartbeat_raises_a_suspicion_that_the_next_count_ends() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 7, false);
        assert!(counts.accept(at(700), 5, false));
        assert_eq!(counts.probe_at(), at(700));
        counts.note_probed(at(700));
        assert_eq!(counts.probe_at(), at(900));
        assert!(counts.accept(at(910), 8, false));
        assert_eq!(counts.probe_at(), Instant::FAR_FUTURE);
    }

    #[test]
    fn counts_that_continue_below_a_leap_prove_it_forged() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 223, false);
        assert!(counts.accept(at(10), 4_096, false));
        assert!(!counts.accept(at(100), 226, false));
        assert!(!counts.accept(at(200), 230, false));
        assert!(counts.accept(at(300), 233, false));
        assert!(counts.accept(at(310), 234, false));
        assert!(!counts.accept(at(320), 234, false));
        assert_eq!(counts.probe_at(), Instant::FAR_FUTURE);
    }

    /// Found by the simulator (seed 98030): the writer was silent between the forged count
    /// and its next one, which was believed for that.
    #[test]
    fn counts_that_continue_below_a_leap_after_a_silence_prove_it_forged() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 53, false);
        assert!(counts.accept(at(10), 256, false));
        for (ms, count) in [(2_000, 54), (2_100, 55), (2_110, 56), (2_200, 57)] {
            assert!(counts.accept(at(ms), count, false));
        }
        assert_eq!(counts.probe_at(), Instant::FAR_FUTURE);
        counts.accept(at(3_400), 58, false);
        assert!(!counts.is_reset());
    }

    #[test]
    fn a_restart_after_a_leap_is_no_continuation() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 2, false);
        counts.accept(at(10), 40, false);
        for (ms, count) in [(700, 1), (900, 2), (1_100, 3), (1_300, 4), (1_500, 5)] {
            assert!(counts.accept(at(ms), count, false));
        }
        counts.accept(at(1_900), 6, false);
        assert!(counts.is_reset());
    }

    /// Found by the simulator (seed 8124): the forged count was only five above the last.
    #[test]
    fn counts_that_continue_below_a_small_leap_prove_it_forged() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 251, false);
        assert!(counts.accept(at(10), 256, false));
        assert!(!counts.accept(at(100), 252, false));
        assert!(!counts.accept(at(200), 253, false));
        assert!(counts.accept(at(300), 254, false));
        assert!(!counts.counts_went_back());
    }

    /// Found by the simulator (seed 10000023449): a second forged count below the first one
    /// was taken for the third that continues, and silenced the true ones again.
    #[test]
    fn a_second_forged_count_below_a_leap_is_found_too() {
        for second in [235, 1_000, 4_000] {
            let mut counts = HeartbeatCounts::default();
            counts.accept(at(0), 133, false);
            assert!(counts.accept(at(10), 6_528, false));
            assert!(!counts.accept(at(20), 134, false));
            assert!(!counts.accept(at(30), 135, false));
            counts.accept(at(40), second, false);
            for (ms, count) in [(50, 136), (60, 137)] {
                assert!(!counts.accept(at(ms), count, false), "after {second}");
            }
            assert!(counts.accept(at(70), 138, false), "after {second}");
            assert!(!counts.counts_went_back());
        }
    }

    #[test]
    fn a_leap_that_counts_continue_is_true() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 223, false);
        for (ms, count) in [(10, 900), (20, 901), (30, 902), (40, 903)] {
            assert!(counts.accept(at(ms), count, false));
        }
        for (ms, count) in [(50, 224), (51, 225), (52, 226)] {
            assert!(!counts.accept(at(ms), count, false), "a late repeat");
        }
    }

    #[test]
    fn a_writer_that_keeps_counting_lower_has_restarted() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 70, false);
        for (ms, count) in [(700, 1), (900, 2), (1_100, 3), (1_400, 4)] {
            assert!(counts.accept(at(ms), count, false));
            assert!(!counts.is_reset(), "{ms}");
        }
        assert!(counts.accept(at(1_900), 5, false));
        assert!(counts.is_reset());
    }

    /// Three lower counts and 1.2 s since the first of them are needed, and enough. Of a
    /// longer pause half a second counts.
    #[test]
    fn a_reset_is_certain_after_three_lower_counts_and_a_while() {
        let last_of = |heartbeats: &[(u64, u32)]| {
            let mut counts = HeartbeatCounts::default();
            counts.accept(at(0), 70, false);
            for (ms, count) in heartbeats {
                assert!(!counts.is_reset(), "before {ms}");
                assert!(counts.accept(at(*ms), *count, false));
            }
            counts.is_reset()
        };
        assert!(!last_of(&[(700, 1), (1_200, 2), (1_700, 3), (1_899, 4)]));
        assert!(last_of(&[(700, 1), (1_200, 2), (1_700, 3), (1_900, 4)]));
        assert!(!last_of(&[(700, 1), (5_000, 2)]), "two counts");
        // A process that was stopped for three seconds reads at once what came meanwhile.
        let stopped = [(700, 1), (900, 2), (3_900, 3), (3_901, 4), (4_300, 5)];
        assert!(!last_of(&stopped));
    }

    #[test]
    fn a_writer_that_keeps_naming_less_has_restarted_whatever_its_counts() {
        let mut counts = HeartbeatCounts::default();
        counts.accept(at(0), 7, false);
        for (ms, count) in [(100, 20), (400, 21), (900, 22), (1_300, 23)] {
            assert!(!counts.is_reset(), "{ms}");
            assert!(counts.accept(at(ms), count, true));
        }
        assert!(counts.is_reset());
        counts.accept(at(1_500), 24, false);
        assert!(!counts.is_reset());
    }
}
