//! Round-trip estimate: the time from a request to a writer's answer, as TCP's RTO
//! estimate.
//!
//! It keeps a request from being repeated while the answer is in transit, and from
//! waiting too long for a lost one.

use crate::time::{Duration, Instant};

/// Requests to one writer and its answers. The answer to a repeated request does
/// not show which one it answers (Karn's algorithm), so the round trip is at most
/// the time since the first request.
#[derive(Debug)]
pub(super) struct RoundTrip {
    /// When the unanswered request was sent, and the number it requested.
    open: Option<(Instant, i64)>,
    /// It was sent again, or not for the first time.
    is_repeated: bool,
    is_outdated: bool,
    estimate: RoundTripEstimate,
}

/// The present estimate.
#[derive(Clone, Copy, Debug)]
enum RoundTripEstimate {
    /// The number of answers to repeated requests, and the shortest time of them.
    AtMost(u32, Duration),
    /// The measured time of requests that were sent once.
    Measured(Duration),
}

impl RoundTrip {
    pub const fn new() -> Self {
        Self {
            open: None,
            is_repeated: false,
            is_outdated: false,
            estimate: RoundTripEstimate::AtMost(0, Duration::INFINITE),
        }
    }

    /// Notes a request sent while `base` was the lowest missing number; `again` if
    /// that number had been requested before.
    pub fn note_request(&mut self, now: Instant, base: i64, again: bool) {
        self.is_repeated = again || self.open.is_some();
        if self.open.is_none() {
            self.is_outdated = again;
            self.open = Some((now, base));
        }
    }

    /// Notes progress; `lowest` is the lowest number still missing.
    pub fn note_response(&mut self, now: Instant, lowest: i64) {
        let Some((requested_at, _)) = self.open.filter(|(_, base)| lowest > *base) else {
            return;
        };
        self.open = None;
        if self.is_outdated {
            // An earlier request included it, at an unknown time.
            return;
        }
        let took = now.since(requested_at);
        self.estimate = match self.estimate {
            RoundTripEstimate::AtMost(answers, soonest) if self.is_repeated => {
                RoundTripEstimate::AtMost(answers.saturating_add(1), soonest.min(took))
            }
            RoundTripEstimate::AtMost(..) => RoundTripEstimate::Measured(took),
            RoundTripEstimate::Measured(estimate) if self.is_repeated => {
                RoundTripEstimate::Measured(estimate)
            }
            RoundTripEstimate::Measured(estimate) => {
                RoundTripEstimate::Measured(Duration::from_nanos(
                    (estimate.as_nanos() / 4)
                        .saturating_mul(3)
                        .saturating_add(took.as_nanos() / 4),
                ))
            }
        };
    }

    /// A quarter longer than the round trip, within the limits.
    ///
    /// While only repeated requests were answered, the network is either slow or
    /// lossy. Then it returns `unknown`, doubled with each such answer until one
    /// request is enough.
    pub fn retry_delay(&self, unknown: Duration, shortest: Duration, max: Duration) -> Duration {
        let (estimate, most) = match self.estimate {
            RoundTripEstimate::AtMost(0, _) => return unknown,
            RoundTripEstimate::AtMost(answers, soonest) => {
                let doubled = answers.saturating_sub(1).min(16);
                (soonest, unknown.times(1 << doubled))
            }
            RoundTripEstimate::Measured(estimate) => (estimate, max),
        };
        let estimate = estimate.as_nanos();
        let enough = Duration::from_nanos(estimate.saturating_add(estimate / 4));
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

    fn pause_ms(round_trip: &RoundTrip) -> i64 {
        let pause = round_trip.retry_delay(UNKNOWN, Duration::from_millis(2), MAX);
        pause.as_nanos() / 1_000_000
    }

    #[test]
    fn a_long_round_trip_lengthens_the_delay_and_a_short_one_shortens_it() {
        let mut round_trip = RoundTrip::new();
        assert_eq!(pause_ms(&round_trip), 5);
        round_trip.note_request(at(0), 4, false);
        round_trip.note_response(at(1), 4);
        assert_eq!(pause_ms(&round_trip), 5, "that was no answer");
        round_trip.note_response(at(100), 5);
        assert_eq!(pause_ms(&round_trip), 125);
        for n in 0..60 {
            round_trip.note_request(at(1000 * n), 5, false);
            round_trip.note_response(at(1000 * n + 1), 6);
        }
        assert_eq!(pause_ms(&round_trip), 2);
    }

    /// Sends a request at each of these times; the last time is that of the answer.
    fn request_and_answer(round_trip: &mut RoundTrip, times: &[u64]) {
        let (answered_at, requested_at) = times.split_last().unwrap();
        for (index, time) in requested_at.iter().enumerate() {
            round_trip.note_request(at(*time), 1, index > 0);
        }
        round_trip.note_response(at(*answered_at), 2);
    }

    #[test]
    fn a_repeated_request_does_not_change_a_measured_round_trip() {
        let mut round_trip = RoundTrip::new();
        request_and_answer(&mut round_trip, &[0, 20]);
        assert_eq!(pause_ms(&round_trip), 25);
        request_and_answer(&mut round_trip, &[100, 110, 900]);
        // The third had been requested together with an earlier one.
        round_trip.note_request(at(905), 3, true);
        round_trip.note_response(at(906), 4);
        assert_eq!(pause_ms(&round_trip), 25);
    }

    #[test]
    fn a_first_request_that_was_lost_often_is_not_taken_for_a_long_round_trip() {
        let mut round_trip = RoundTrip::new();
        request_and_answer(&mut round_trip, &[0, 5, 10, 15, 20, 25, 30, 31]);
        assert_eq!(pause_ms(&round_trip), 5);
        request_and_answer(&mut round_trip, &[100, 105, 106]);
        assert_eq!(pause_ms(&round_trip), 7, "it is no longer than that");
        request_and_answer(&mut round_trip, &[200, 201]);
        assert_eq!(pause_ms(&round_trip), 2);
    }

    #[test]
    fn a_long_round_trip_is_measured_after_a_few_requests() {
        let mut round_trip = RoundTrip::new();
        let mut requested_at = Vec::new();
        for n in 1..=7 {
            let pause = u64::try_from(pause_ms(&round_trip)).unwrap();
            let start = 1_000 * n;
            let mut times: Vec<_> = (0..100 / pause + 1).map(|k| start + k * pause).collect();
            times.retain(|time| *time < start + 100);
            requested_at.push(times.len());
            times.push(start + 100);
            request_and_answer(&mut round_trip, &times);
        }
        assert_eq!(requested_at, [20, 20, 10, 5, 3, 2, 1]);
        assert_eq!(pause_ms(&round_trip), 125);
    }
}
