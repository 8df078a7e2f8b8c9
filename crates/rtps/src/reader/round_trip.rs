//! How long a writer takes to answer a request, so that it is neither repeated
//! while the answer is under way nor waited for in vain.

use crate::time::{Duration, Instant};

/// Requests to one writer and its answers. Of repeated requests it is unknown which
/// one was answered (Karn's rule): the way is no longer than since the first, and no
/// more is known of it.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// The request that is not answered yet, and what it asked for.
    open: Option<(Instant, i64)>,
    /// It was made again, or not for the first time.
    repeated: bool,
    outdated: bool,
    known: Known,
}

/// What is known of the way's length.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// So many answers to repeated requests, and the soonest of them.
    AtMost(u32, Duration),
    /// Answers to requests that were made once take so long.
    About(Duration),
}

impl RoundTrip {
    pub const fn new() -> Self {
        Self {
            open: None,
            repeated: false,
            outdated: false,
            known: Known::AtMost(0, Duration::INFINITE),
        }
    }

    /// A request was sent while `base` was the lowest number missing; `again`
    /// if that one had been asked for before.
    pub fn asked(&mut self, now: Instant, base: i64, again: bool) {
        self.repeated = again || self.open.is_some();
        if self.open.is_none() {
            self.outdated = again;
            self.open = Some((now, base));
        }
    }

    /// Something came; `lowest` is the lowest number still missing.
    pub fn heard(&mut self, now: Instant, lowest: i64) {
        let Some((asked, _)) = self.open.filter(|(_, base)| lowest > *base) else {
            return;
        };
        self.open = None;
        if self.outdated {
            // It was asked for along with what came before, who knows when.
            return;
        }
        let took = now.since(asked);
        self.known = match self.known {
            Known::AtMost(answers, soonest) if self.repeated => {
                Known::AtMost(answers.saturating_add(1), soonest.min(took))
            }
            Known::AtMost(..) => Known::About(took),
            Known::About(known) if self.repeated => Known::About(known),
            Known::About(known) => Known::About(Duration::from_nanos(
                (known.as_nanos() / 4)
                    .saturating_mul(3)
                    .saturating_add(took.as_nanos() / 4),
            )),
        };
    }

    /// A quarter longer than an answer takes, within the bounds. As long as only
    /// repeated requests were answered, which a long way brings about as well as losses
    /// do: `unknown`, doubled with each of them until one request is enough.
    pub fn pause(&self, unknown: Duration, shortest: Duration, max: Duration) -> Duration {
        let (known, most) = match self.known {
            Known::AtMost(0, _) => return unknown,
            Known::AtMost(answers, soonest) => {
                let doubled = answers.saturating_sub(1).min(16);
                (soonest, unknown.times(1 << doubled))
            }
            Known::About(known) => (known, max),
        };
        let known = known.as_nanos();
        let enough = Duration::from_nanos(known.saturating_add(known / 4));
        shortest.max(enough.min(most).min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const UNKNOWN: Duration = Duration::from_millis(5);
    const MAX: Duration = Duration::from_millis(200);

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn pause_ms(way: &RoundTrip) -> i64 {
        let pause = way.pause(UNKNOWN, Duration::from_millis(2), MAX);
        pause.as_nanos() / 1_000_000
    }

    #[test]
    fn a_long_way_lengthens_the_pause_and_a_short_one_shortens_it() {
        let mut way = RoundTrip::new();
        assert_eq!(pause_ms(&way), 5);
        way.asked(at(0), 4, false);
        way.heard(at(1), 4);
        assert_eq!(pause_ms(&way), 5, "that was no answer");
        way.heard(at(100), 5);
        assert_eq!(pause_ms(&way), 125);
        for n in 0..60 {
            way.asked(at(1000 * n), 5, false);
            way.heard(at(1000 * n + 1), 6);
        }
        assert_eq!(pause_ms(&way), 2);
    }

    /// Asks at each of these times, the last time it is answered.
    fn ask_and_hear(way: &mut RoundTrip, times: &[u64]) {
        let (heard, asked) = times.split_last().unwrap();
        for (index, time) in asked.iter().enumerate() {
            way.asked(at(*time), 1, index > 0);
        }
        way.heard(at(*heard), 2);
    }

    #[test]
    fn once_the_way_is_known_a_repeated_request_tells_nothing() {
        let mut way = RoundTrip::new();
        ask_and_hear(&mut way, &[0, 20]);
        assert_eq!(pause_ms(&way), 25);
        ask_and_hear(&mut way, &[100, 110, 900]);
        // The third had been asked for along with an earlier one.
        way.asked(at(905), 3, true);
        way.heard(at(906), 4);
        assert_eq!(pause_ms(&way), 25);
    }

    #[test]
    fn a_first_request_that_was_lost_often_does_not_pass_for_a_long_way() {
        let mut way = RoundTrip::new();
        ask_and_hear(&mut way, &[0, 5, 10, 15, 20, 25, 30, 31]);
        assert_eq!(pause_ms(&way), 5);
        ask_and_hear(&mut way, &[100, 105, 106]);
        assert_eq!(pause_ms(&way), 7, "it is no longer than that");
        ask_and_hear(&mut way, &[200, 201]);
        assert_eq!(pause_ms(&way), 2);
    }

    #[test]
    fn a_long_way_is_found_to_be_one_before_long() {
        let mut way = RoundTrip::new();
        let mut asked = Vec::new();
        for n in 1..=7 {
            let pause = u64::try_from(pause_ms(&way)).unwrap();
            let start = 1_000 * n;
            let mut times: Vec<_> = (0..100 / pause + 1).map(|k| start + k * pause).collect();
            times.retain(|time| *time < start + 100);
            asked.push(times.len());
            times.push(start + 100);
            ask_and_hear(&mut way, &times);
        }
        assert_eq!(asked, [20, 20, 10, 5, 3, 2, 1]);
        assert_eq!(pause_ms(&way), 125);
    }
}
