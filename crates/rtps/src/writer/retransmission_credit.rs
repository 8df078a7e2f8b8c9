//! Retransmission credit: how many bytes one destination may be sent again, and how
//! often the same number (amplification limit). `writer/retransmission.rs` asks it
//! before it serves a request.
//!
//! An ACKNACK has 60 bytes and may request 256 samples. Whoever forges one could
//! direct that many bytes at an innocent reader. So retransmissions are tied to
//! progress, as a congestion window is in TCP: every acknowledged byte allows two
//! more. Together with the first transmission, a destination gets at most three
//! times what it proved to receive, beside an initial window.
//!
//! Without credit the writer still probes, so that no loss is final: a little of the
//! lowest request, less and less often until something is acknowledged.

use alloc::vec::Vec;

use crate::id::GuidPrefix;
use crate::interval::NumberRun;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::{FragmentSet, SequenceSet};

/// What a destination may be sent again before it has acknowledged anything.
const INITIAL_BYTES: usize = 1 << 20;
/// Retransmitted bytes that an acknowledged byte allows, beside the byte itself.
const BYTES_PER_ACKED_BYTE: usize = 2;
/// The most credit, unless samples are large.
const CREDIT_MAX: usize = 4 << 20;
/// The most credit, in samples of mean size.
const CREDIT_SAMPLES_MAX: usize = 2;
/// What one probe sends, exceeded by less than a datagram.
const PROBE_BYTES: usize = 16 << 10;
/// The first pause between two probes; it doubles.
const PROBE_PAUSE_MIN: Duration = Duration::from_millis(2);
/// The longest pause, as long as that between two requests of a Pteros reader.
const PROBE_PAUSE_MAX: Duration = Duration::from_millis(200);
/// No round trip is taken for longer.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(200);
/// Round trips to see before they are believed.
const ROUND_TRIPS_MIN: u8 = 2;
/// What the headers of a sample add to its payload on the wire.
pub(super) const SAMPLE_HEAD_BYTES: usize = 96;

/// The credit of one destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionCredit {
    bytes: usize,
    /// When the next probe may be sent.
    probe_at: Instant,
    probe_pause: Duration,
    /// Changes below were acknowledged by some reader of the destination.
    proved_below: i64,
}

impl RetransmissionCredit {
    pub const INITIAL: Self = Self {
        bytes: INITIAL_BYTES,
        probe_at: Instant::ZERO,
        probe_pause: PROBE_PAUSE_MIN,
        proved_below: 0,
    };

    /// The bytes that may be retransmitted at `now`: the credit, or a probe, or none.
    pub fn available(&self, now: Instant) -> usize {
        if fault!("retransmission-without-limit") {
            usize::MAX
        } else if self.bytes > 0 {
            self.bytes.max(PROBE_BYTES)
        } else if self.probe_at <= now {
            PROBE_BYTES
        } else {
            0
        }
    }

    /// When something may be sent again.
    pub fn next_at(&self, now: Instant) -> Instant {
        if self.available(now) > 0 {
            now
        } else {
            self.probe_at
        }
    }

    /// Notes retransmitted bytes.
    pub fn spend(&mut self, now: Instant, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        if self.bytes == 0 {
            self.probe_at = now.after(self.probe_pause);
            let longer = self.probe_pause.times(2);
            self.probe_pause = longer.min(PROBE_PAUSE_MAX);
        }
    }

    /// Notes that `bytes` were proved to arrive; `mean` is the size of a sample.
    pub fn earn(&mut self, bytes: usize, mean: usize) {
        if bytes == 0 {
            return;
        }
        let max = CREDIT_MAX.max(mean.saturating_mul(CREDIT_SAMPLES_MAX));
        let more = bytes.saturating_mul(BYTES_PER_ACKED_BYTE);
        self.bytes = self.bytes.saturating_add(more).min(max);
        self.probe_at = Instant::ZERO;
        self.probe_pause = PROBE_PAUSE_MIN;
    }

    /// The count of numbers that a reader's progress newly proves. Numbers up to
    /// `own_below` were sent to this reader alone. All others went to the whole
    /// destination at once: they count once, whichever of its readers is first.
    pub fn newly_proved(&mut self, acked: NumberRun, own_below: i64) -> usize {
        let count = |first: i64, end: i64| usize::try_from(end.saturating_sub(first)).unwrap_or(0);
        let end = acked.last.saturating_add(1);
        let own = count(acked.first, end.min(own_below));
        let shared_first = acked.first.max(own_below).max(self.proved_below);
        let shared = count(shared_first, end);
        self.proved_below = self.proved_below.max(end);
        own.saturating_add(shared)
    }
}

/// The bytes sent to one reader alone that it proved to have received. They earn
/// credit when they are acknowledged, even where another reader of the destination
/// acknowledged the same numbers before, and before those below them have arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct RetransmissionProof {
    /// Bytes sent to this reader alone that it has not proved.
    unproved: usize,
    /// The base of its acknowledgements and the numbers acknowledged beyond, added.
    acked: i64,
    /// Credit that was earned for numbers beyond the base.
    known: usize,
}

impl RetransmissionProof {
    /// For a reader that gets all numbers from `start` on.
    pub const fn new(start: i64) -> Self {
        Self {
            unproved: 0,
            acked: start,
            known: 0,
        }
    }

    /// Notes bytes that are sent to this reader alone.
    pub fn note_sent(&mut self, bytes: usize) {
        self.unproved = self.unproved.saturating_add(bytes);
    }

    /// Notes fragments that earned credit by themselves.
    pub fn note_fragments(&mut self, bytes: usize) {
        self.unproved = self.unproved.saturating_sub(bytes);
    }

    /// Notes an acknowledgement. Returns the bytes that it newly proves, of those sent
    /// to this reader alone.
    pub fn note_acked(&mut self, base: i64, ahead: usize, mean: usize) -> usize {
        let acked = base.saturating_add(i64::try_from(ahead).unwrap_or(i64::MAX));
        let more = usize::try_from(acked.saturating_sub(self.acked)).unwrap_or(0);
        self.acked = self.acked.max(acked);
        let bytes = more.saturating_mul(mean).min(self.unproved);
        self.unproved = self.unproved.saturating_sub(bytes);
        self.known = self.known.saturating_add(bytes);
        bytes
    }

    /// The part of the bytes below a new base that earned no credit yet.
    pub fn without_known(&mut self, bytes: usize) -> usize {
        let known = bytes.min(self.known);
        self.known = self.known.saturating_sub(known);
        bytes.saturating_sub(known)
    }

    /// Forgets what was known of numbers below the base.
    pub fn limit_known(&mut self, ahead: usize, mean: usize) {
        self.known = self.known.min(ahead.saturating_mul(mean));
    }
}

/// The round trip to a destination: from the first transmission of a change that
/// requests an acknowledgement to that acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckRoundTrip {
    /// A change without its acknowledgement, and when it was sent.
    open: Option<(Instant, i64)>,
    estimate: Duration,
    seen: u8,
}

impl AckRoundTrip {
    pub const UNKNOWN: Self = Self {
        open: None,
        estimate: ROUND_TRIP_MAX,
        seen: 0,
    };

    /// Notes that a change was sent for the first time and requests an answer.
    pub fn note_sent(&mut self, now: Instant, number: i64) {
        self.open.get_or_insert((now, number));
    }

    /// Notes an ACKNACK that acknowledges all numbers below `base`. The estimate
    /// falls at once and grows slowly. A lost change gives none (Karn's algorithm).
    pub fn note_acknack(&mut self, now: Instant, base: i64, requests: bool) {
        let Some((sent_at, number)) = self.open else {
            return;
        };
        if base > number {
            self.open = None;
            let took = now.since(sent_at).as_nanos();
            let old = self.estimate.as_nanos();
            let more = took.saturating_sub(old).max(0) / 8;
            let next = took.min(old).saturating_add(more);
            self.estimate = Duration::from_nanos(next).min(ROUND_TRIP_MAX);
            self.seen = self.seen.saturating_add(1);
        } else if requests {
            self.open = None;
        }
    }

    /// The time within which a repeated request crossed its answer: three quarters
    /// of the round trip. `shortest` while the round trip is unknown.
    pub fn crossing_time(&self, shortest: Duration) -> Duration {
        if self.seen < ROUND_TRIPS_MIN {
            return shortest;
        }
        let nanos = self.estimate.as_nanos();
        shortest.max(Duration::from_nanos(nanos.saturating_sub(nanos / 4)))
    }
}

/// What one reader was sent again within the last round trip. A repeated request for
/// it crossed the answer and is ignored.
#[derive(Clone, Debug, Default)]
pub(super) struct RecentlyServed {
    samples: Option<(Instant, SequenceSet)>,
    fragments: Option<(Instant, SequenceNumber, FragmentSet)>,
}

impl RecentlyServed {
    /// Notes a whole sample that was just served.
    pub fn note_sample(&mut self, now: Instant, crossing: Duration, sequence: SequenceNumber) {
        if let Some((at, set)) = &mut self.samples
            && now.since(*at) < crossing
            && set.insert(sequence)
        {
            return;
        }
        let mut set = SequenceSet::empty(sequence);
        set.insert(sequence);
        self.samples = Some((now, set));
    }

    /// Notes fragments that were just served.
    pub fn note_fragments(&mut self, now: Instant, sequence: SequenceNumber, set: FragmentSet) {
        self.fragments = Some((now, sequence, set));
    }

    /// A request without the samples served less than `crossing` ago.
    pub fn without_samples(
        &self,
        now: Instant,
        crossing: Duration,
        requested: SequenceSet,
    ) -> SequenceSet {
        match &self.samples {
            Some((at, served)) if now.since(*at) < crossing => {
                let mut rest = SequenceSet::empty(requested.base());
                for sequence in requested.iter().filter(|s| !served.contains(*s)) {
                    rest.insert(sequence);
                }
                rest
            }
            _ => requested,
        }
    }

    /// A request without the fragments served less than `crossing` ago.
    pub fn without_fragments(
        &self,
        now: Instant,
        crossing: Duration,
        sequence: SequenceNumber,
        requested: FragmentSet,
    ) -> FragmentSet {
        match &self.fragments {
            Some((at, of, served)) if *of == sequence && now.since(*at) < crossing => {
                let open = requested.iter().filter(|f| !served.contains(*f));
                FragmentSet::from_numbers(requested.base(), open)
            }
            _ => requested,
        }
    }
}

/// The credits of participants that left while they had less than the initial window,
/// so that leaving and matching again gives no new one.
#[derive(Debug, Default)]
pub(super) struct FormerCredits(Vec<(GuidPrefix, RetransmissionCredit)>);

impl FormerCredits {
    const MAX: usize = 64;

    /// Remembers the credit of a participant; the oldest is forgotten.
    pub fn note(&mut self, prefix: GuidPrefix, credit: RetransmissionCredit) {
        if credit.bytes >= INITIAL_BYTES {
            return;
        }
        self.0.retain(|(known, _)| *known != prefix);
        if self.0.len() >= Self::MAX {
            self.0.remove(0);
        }
        self.0.push((prefix, credit));
    }

    /// Takes the credit of a participant that matches again.
    pub fn take(&mut self, prefix: GuidPrefix) -> Option<RetransmissionCredit> {
        let at = self.0.iter().position(|(known, _)| *known == prefix)?;
        Some(self.0.remove(at).1)
    }
}
