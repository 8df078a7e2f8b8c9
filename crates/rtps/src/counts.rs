//! The counts of a peer's heartbeats: repeats are told from news, and a peer
//! that began anew under its old identity from one that goes on.
//!
//! A count only grows (RTPS 2.5 §8.3.8.6). One that went back is a straggler,
//! or its sender forgot us, or it is another process with the GUID of the one
//! before: container number one on the same host is enough for stacks that
//! make GUIDs of host and process id (Fast DDS). So its sender is asked, and
//! if all it says for a while counts lower than before, it has begun anew.
//! OpenDDS does the same with the numbers of announcements.
//!
//! One that counts as high as the one before and has written as much is told
//! by its readers, which lack what the other had acknowledged (`writer/lapse`);
//! if we had nothing to tell, only a lease, or a goodbye, ends the old match.

use crate::time::{Duration, Instant};

/// A count that does not grow is a repeat, unless its sender has been silent
/// this long: then it may count anew.
const MEMORY: Duration = Duration::from_millis(500);
/// A sender has begun anew when it counted lower, or had less, so often ...
const LOWER_MIN: u32 = 3;
/// ... over this long, which is longer than datagrams are late.
const DOUBT: Duration = Duration::from_millis(1_200);
/// The pause between our questions meanwhile.
const QUESTION_PAUSE: Duration = Duration::from_millis(200);

/// The counts of one sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    last: Option<u32>,
    at: Instant,
    doubt: Option<Doubt>,
}

/// It has counted lower than before, or had less.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The highest count before.
    highest: u32,
    since: Instant,
    lower: u32,
    ask_at: Instant,
}

impl Counts {
    /// Whether a heartbeat with this count is new. `has_less`: it says that its
    /// sender has written less than an earlier one said.
    pub fn accept(&mut self, now: Instant, count: u32, has_less: bool) -> bool {
        let is_above = |other: u32| count.wrapping_sub(other).cast_signed() > 0;
        let went_back = self.last.filter(|last| !is_above(*last));
        if went_back.is_some() && now.since(self.at) < MEMORY {
            return false;
        }
        if (went_back.is_some() || has_less) && self.doubt.is_none() {
            self.doubt = Some(Doubt {
                highest: self.last.unwrap_or(count),
                since: now,
                lower: 0,
                ask_at: now,
            });
        }
        self.doubt = match self.doubt {
            Some(doubt) if is_above(doubt.highest) && !has_less => None,
            Some(doubt) => Some(Doubt {
                lower: doubt.lower.saturating_add(1),
                ..doubt
            }),
            None => None,
        };
        self.last = Some(count);
        self.at = now;
        true
    }

    /// When its sender is to be asked where it stands; far future unless in
    /// doubt.
    pub fn ask_at(&self) -> Instant {
        self.doubt.map_or(Instant::FAR_FUTURE, |doubt| doubt.ask_at)
    }

    /// It was asked.
    pub fn note_asked(&mut self, now: Instant) {
        if let Some(doubt) = &mut self.doubt {
            doubt.ask_at = now.after(QUESTION_PAUSE);
        }
    }

    /// Whether it is certain that its sender began anew.
    pub fn began_anew(&self, now: Instant) -> bool {
        self.doubt
            .is_some_and(|d| d.lower >= LOWER_MIN && now.since(d.since) >= DOUBT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn repeats_are_refused_for_a_while() {
        let mut counts = Counts::default();
        assert!(counts.accept(at(0), 7, false));
        assert!(!counts.accept(at(10), 7, false));
        assert!(!counts.accept(at(400), 3, false));
        assert!(counts.accept(at(400), 8, false));
    }

    #[test]
    fn a_straggler_raises_a_doubt_that_the_next_count_ends() {
        let mut counts = Counts::default();
        counts.accept(at(0), 7, false);
        assert!(counts.accept(at(700), 5, false));
        assert_eq!(counts.ask_at(), at(700));
        counts.note_asked(at(700));
        assert_eq!(counts.ask_at(), at(900));
        assert!(counts.accept(at(910), 8, false));
        assert_eq!(counts.ask_at(), Instant::FAR_FUTURE);
    }

    #[test]
    fn who_goes_on_counting_low_has_begun_anew() {
        let mut counts = Counts::default();
        counts.accept(at(0), 70, false);
        for (ms, count) in [(700, 1), (900, 2), (1_100, 3), (1_300, 4)] {
            assert!(counts.accept(at(ms), count, false));
            assert!(!counts.began_anew(at(ms)), "{ms}");
        }
        assert!(counts.accept(at(1_950), 5, false));
        assert!(counts.began_anew(at(1_950)));
    }

    #[test]
    fn who_goes_on_having_less_has_begun_anew_however_it_counts() {
        let mut counts = Counts::default();
        counts.accept(at(0), 7, false);
        for (ms, count) in [(100, 20), (400, 21), (1_400, 22)] {
            assert!(counts.accept(at(ms), count, true));
        }
        assert!(counts.began_anew(at(1_400)));
        counts.accept(at(1_500), 23, false);
        assert!(!counts.began_anew(at(1_500)));
    }
}
