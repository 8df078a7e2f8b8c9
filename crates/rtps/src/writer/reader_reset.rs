//! Reader reset detection: a matched reader that lost its state.
//!
//! A reader never takes an acknowledgement back. A reader that requests
//! acknowledged samples has dropped its state of this writer, for instance after
//! its lease expired. If its counts start again too, it is most likely another
//! process with the GUID of a dead one. Or the ACKNACK was delayed. So the writer
//! retransmits nothing for a while: a reset reader continues to request, and any
//! later ACKNACK of a healthy one ends the suspicion.

use crate::time::{Duration, Instant};

/// A reset is confirmed after this many requests of acknowledged samples ...
const REQUESTS_MIN: u32 = 3;
/// ... over this time, which exceeds the delay of datagrams ...
const OBSERVATION_TIME: Duration = Duration::from_millis(1_200);
/// ... without a longer silence than this.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// The period of heartbeats meanwhile.
const PROBE_PERIOD: Duration = Duration::from_millis(200);

/// The suspicion that one reader has reset.
#[derive(Debug)]
pub(super) struct ReaderResetDetector {
    since: Instant,
    last: Instant,
    requests_acked: u32,
    probe_at: Instant,
}

/// The conclusion from an ACKNACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ReaderResetStatus {
    /// No suspicion: the reader is served normally.
    None,
    /// Suspected: requests are not served now, but heartbeats request its state.
    Suspected {
        /// When the next heartbeat is due.
        probe_at: Instant,
    },
    /// The reader has reset.
    Confirmed,
}

impl ReaderResetDetector {
    /// Evaluates an ACKNACK. `requests_acked`: it requests acknowledged samples.
    /// `count_went_back`: its count is not above the last one.
    pub fn observe(
        reset_detector: &mut Option<Self>,
        now: Instant,
        requests_acked: bool,
        count_went_back: bool,
    ) -> ReaderResetStatus {
        let open = reset_detector.take();
        if !requests_acked {
            return ReaderResetStatus::None;
        }
        let open = open.filter(|open| now.since(open.last) <= SILENCE_MAX);
        if open.is_none() && !count_went_back {
            return ReaderResetStatus::None;
        }
        let mut suspected = open.unwrap_or(Self {
            since: now,
            last: now,
            requests_acked: 0,
            probe_at: now,
        });
        suspected.last = now;
        suspected.requests_acked = suspected.requests_acked.saturating_add(1);
        let certain = suspected.requests_acked >= REQUESTS_MIN
            && now.since(suspected.since) >= OBSERVATION_TIME;
        let probe_at = suspected.probe_at;
        *reset_detector = (!certain).then_some(suspected);
        if certain {
            ReaderResetStatus::Confirmed
        } else {
            ReaderResetStatus::Suspected { probe_at }
        }
    }

    /// Whether a heartbeat is due. A reader that asks ever more rarely would confirm its
    /// reset late without one. A long silence ends the suspicion.
    pub fn probe(reset_detector: &mut Option<Self>, now: Instant) -> bool {
        let Some(open) = reset_detector else {
            return false;
        };
        if now.since(open.last) > SILENCE_MAX {
            *reset_detector = None;
            return false;
        }
        let is_due = open.probe_at <= now;
        if is_due {
            open.probe_at = now.after(PROBE_PERIOD);
        }
        is_due
    }

    /// When the next heartbeat is due.
    pub const fn probe_at(&self) -> Instant {
        self.probe_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_reader_that_keeps_requesting_acknowledged_samples_has_reset() {
        let mut reset_detector = None;
        let first = ReaderResetDetector::observe(&mut reset_detector, at(0), true, true);
        assert_eq!(first, ReaderResetStatus::Suspected { probe_at: at(0) });
        // Its counts grow from there.
        for ms in [100, 400, 900] {
            let next = ReaderResetDetector::observe(&mut reset_detector, at(ms), true, false);
            assert_eq!(
                next,
                ReaderResetStatus::Suspected { probe_at: at(0) },
                "{ms}"
            );
        }
        let last = ReaderResetDetector::observe(&mut reset_detector, at(1_300), true, false);
        assert_eq!(last, ReaderResetStatus::Confirmed);
    }

    #[test]
    fn a_suspected_reader_is_probed_until_it_is_silent() {
        let mut reset_detector = None;
        ReaderResetDetector::observe(&mut reset_detector, at(0), true, true);
        for (ms, is_due) in [
            (0, true),
            (199, false),
            (200, true),
            (399, false),
            (1_000, true),
        ] {
            let probe = ReaderResetDetector::probe(&mut reset_detector, at(ms));
            assert_eq!(probe, is_due, "{ms}");
        }
        assert_eq!(reset_detector.as_ref().unwrap().probe_at(), at(1_200));
        assert!(!ReaderResetDetector::probe(&mut reset_detector, at(1_001)));
        assert!(reset_detector.is_none());
    }

    #[test]
    fn a_delayed_acknack_is_forgiven_by_the_next_one() {
        let mut reset_detector = None;
        ReaderResetDetector::observe(&mut reset_detector, at(0), true, true);
        assert_eq!(
            ReaderResetDetector::observe(&mut reset_detector, at(200), false, false),
            ReaderResetStatus::None
        );
        assert!(reset_detector.is_none());
    }

    #[test]
    fn delayed_acknacks_far_apart_do_not_add_up() {
        let mut reset_detector = None;
        for ms in [0, 2_000, 4_000, 6_000] {
            let each = ReaderResetDetector::observe(&mut reset_detector, at(ms), true, true);
            assert_eq!(
                each,
                ReaderResetStatus::Suspected { probe_at: at(ms) },
                "{ms}"
            );
        }
    }

    #[test]
    fn a_reader_that_lost_its_state_but_counts_on_is_served() {
        let mut reset_detector = None;
        let each = ReaderResetDetector::observe(&mut reset_detector, at(0), true, false);
        assert_eq!(each, ReaderResetStatus::None);
    }
}
