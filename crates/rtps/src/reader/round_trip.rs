//! How long a writer takes to answer a request, so that it is neither repeated
//! while the answer is under way nor waited for in vain.

use crate::time::{Duration, Instant};

/// Requests to one writer and its answers. Repeated requests tell nothing about
/// the way's length, as it is unknown which one was answered (Karn's rule);
/// only where nothing better is known the whole wait counts.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// The first request that is not answered yet, and what it asked for.
    open: Option<(Instant, i64)>,
    repeated: bool,
    estimate: Option<Duration>,
}

impl RoundTrip {
    pub const fn new() -> Self {
        Self {
            open: None,
            repeated: false,
            estimate: None,
        }
    }

    /// A request was sent while `base` was the lowest number missing; `again`
    /// if that one had been asked for before.
    pub fn asked(&mut self, now: Instant, base: i64, again: bool) {
        self.repeated = again || self.open.is_some();
        self.open = self.open.or(Some((now, base)));
    }

    /// Something came; `lowest` is the lowest number still missing.
    pub fn heard(&mut self, now: Instant, lowest: i64) {
        let Some((asked, _)) = self.open.filter(|(_, base)| lowest > *base) else {
            return;
        };
        self.open = None;
        let took = now.since(asked);
        self.estimate = match self.estimate {
            None => Some(took),
            Some(known) if self.repeated => Some(known),
            Some(known) => Some(Duration::from_nanos(
                (known.as_nanos() / 4)
                    .saturating_mul(3)
                    .saturating_add(took.as_nanos() / 4),
            )),
        };
    }

    /// A quarter longer than an answer takes, within the bounds; `unknown`
    /// before the first one came.
    pub fn pause(&self, unknown: Duration, shortest: Duration, max: Duration) -> Duration {
        let Some(known) = self.estimate.map(Duration::as_nanos) else {
            return unknown;
        };
        let enough = Duration::from_nanos(known.saturating_add(known / 4));
        shortest.max(enough.min(max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_repeated_request_tells_nothing_unless_nothing_is_known() {
        let mut way = RoundTrip::new();
        way.asked(at(0), 1, false);
        way.asked(at(10), 1, true);
        way.heard(at(20), 2);
        assert_eq!(pause_ms(&way), 25);
        way.asked(at(100), 2, false);
        way.asked(at(110), 2, true);
        way.heard(at(900), 3);
        // The third had been asked for along with an earlier one.
        way.asked(at(905), 3, true);
        way.heard(at(906), 4);
        assert_eq!(pause_ms(&way), 25);
    }
}
