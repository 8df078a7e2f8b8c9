//! Requested changes of a reader (RTPS 2.5 §8.4.7.5, `requested_changes` of a
//! ReaderProxy): the samples and fragments that its ACKNACKs and NACK_FRAGs request, and
//! how far the writer has served them.

use alloc::vec::Vec;

use super::fragment_requests::FragmentRequests;
use super::retransmission_credit::RecentlyServed;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::{FragmentSet, NackFrag, SequenceSet};

/// Samples whose proved fragments are known: all that one ACKNACK can name. They are
/// kept until acknowledged, so fewer would leave later proofs without credit.
const PROVED_SAMPLES_MAX: usize = SequenceSet::SPAN_MAX as usize;

/// A sample of which a retransmission has sent only the first fragments.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartlySentSample {
    /// Zero if none.
    pub sequence: SequenceNumber,
    pub next_fragment: u32,
    /// It was begun with credit, and is completed whatever its size.
    pub is_first: bool,
}

impl PartlySentSample {
    pub const NONE: Self = Self {
        sequence: SequenceNumber::ZERO,
        next_fragment: 0,
        is_first: false,
    };
}

/// Fragments of a partial sample that its reader proved to have.
#[derive(Clone, Copy, Debug)]
struct ProvedFragments {
    sequence: SequenceNumber,
    proved: u32,
    /// The count of the last NACK_FRAG, the last fragment that it requests, and how many its
    /// request names in all.
    count: u32,
    last: u32,
    missing: u32,
}

/// What one reader requests.
#[derive(Debug)]
pub(super) struct RequestedChanges {
    /// Sequence numbers to retransmit.
    pub samples: SequenceSet,
    /// The irrelevant ones among these were declared by a GAP.
    pub irrelevant_declared: bool,
    /// The sample in which the last burst ended.
    pub partly_sent: PartlySentSample,
    /// Fragments to retransmit.
    pub fragments: FragmentRequests,
    /// Requests are served in rounds, lowest number first. All below this number is
    /// served in this round. A repeated request waits for the next round, so that
    /// every round ends.
    pub round_served_below: SequenceNumber,
    /// When to serve the requests (NACK response delay and suppression).
    pub retransmit_at: Instant,
    /// When requests were last served.
    pub last_retransmission: Instant,
    /// Changes retransmitted within the last round trip.
    pub recently_served: RecentlyServed,
    /// The highest number retransmitted whole. Up to there a request is a repeat.
    pub served_whole_through: SequenceNumber,
    /// A change of the history, and when it was first sent.
    history_sent: Option<(Instant, SequenceNumber)>,
    /// Fragments that each partial sample was proved to have.
    proved_fragments: Vec<ProvedFragments>,
}

impl Default for RequestedChanges {
    fn default() -> Self {
        Self {
            samples: SequenceSet::empty(SequenceNumber::FIRST),
            irrelevant_declared: false,
            partly_sent: PartlySentSample::NONE,
            fragments: FragmentRequests::default(),
            round_served_below: SequenceNumber::FIRST,
            retransmit_at: Instant::FAR_FUTURE,
            last_retransmission: Instant::ZERO,
            recently_served: RecentlyServed::default(),
            served_whole_through: SequenceNumber::ZERO,
            history_sent: None,
            proved_fragments: Vec::new(),
        }
    }
}

impl RequestedChanges {
    /// Whether something is to be retransmitted.
    pub fn is_pending(&self) -> bool {
        !self.samples.is_empty() || !self.fragments.is_empty()
    }

    /// Takes the requests of an ACKNACK. Earlier requests stay pending until served (RTPS
    /// 2.5 §8.4.9.2.9): a reader need not repeat them. `crossing`: requests for what was
    /// served within this time crossed it on the way.
    pub fn note_acknack(
        &mut self,
        now: Instant,
        mut requested: SequenceSet,
        crossing: Option<Duration>,
    ) {
        if let Some(crossing) = crossing {
            let recent = &self.recently_served;
            requested = recent.without_samples(now, crossing, requested);
        }
        for pending in self.samples.iter() {
            if pending >= requested.base() {
                requested.insert(pending);
            }
        }
        self.samples = requested;
        self.irrelevant_declared = false;
    }

    /// Adds a whole sample to the requests of the last ACKNACK. False when it is
    /// too far from those.
    pub fn request_sample(&mut self, sequence: SequenceNumber) -> bool {
        if self.samples.is_empty() {
            self.samples = SequenceSet::empty(sequence);
        }
        self.irrelevant_declared = false;
        self.samples.insert(sequence)
    }

    /// Adds requested fragments, see [`FragmentRequests::insert`].
    pub fn request_fragments(&mut self, sequence: SequenceNumber, mut set: FragmentSet) -> bool {
        if self.samples.contains(sequence) {
            // It was requested as a whole, and part of it arrived since.
            let PartlySentSample {
                sequence: partly_sent,
                next_fragment,
                ..
            } = self.partly_sent;
            if partly_sent == sequence && next_fragment > 0 {
                let lost = set.iter().filter(|fragment| fragment.0 <= next_fragment);
                set = FragmentSet::from_numbers(set.base(), lost);
            } else {
                self.samples.remove(sequence);
            }
        }
        set.is_empty() || self.fragments.insert(sequence, set)
    }

    /// The lowest number not served in this round.
    pub fn next_request(&self) -> Option<SequenceNumber> {
        let is_left = |sequence: &SequenceNumber| *sequence >= self.round_served_below;
        let whole = self.samples.iter().find(is_left);
        let partly = self.fragments.sequences().filter(is_left);
        whole.into_iter().chain(partly).min()
    }

    /// Whether this number is served whole for the first time, and was begun or begins
    /// with credit. It is then completed whatever its size: a part of a sample is of no
    /// use. A probe is no credit, or each would send a large sample.
    pub fn is_first_transmission(&self, sequence: SequenceNumber, has_credit: bool) -> bool {
        let is_begun = self.partly_sent.sequence == sequence && self.partly_sent.is_first;
        sequence > self.served_whole_through
            && self.samples.contains(sequence)
            && (has_credit || is_begun)
    }

    /// Whether its next request is the rest of such a sample.
    pub fn continues_first_transmission(&self) -> bool {
        self.next_request()
            .is_some_and(|sequence| self.is_first_transmission(sequence, false))
    }

    /// Notes that all requested parts of this sample were retransmitted.
    pub fn note_served(&mut self, sequence: SequenceNumber) {
        self.samples.remove(sequence);
        self.fragments.remove(sequence);
        self.round_served_below = sequence.next();
    }

    /// Notes that a change of its history was sent whole to this reader, for the first time.
    pub fn note_history_sent(&mut self, now: Instant, sequence: SequenceNumber) {
        self.history_sent.get_or_insert((now, sequence));
    }

    /// When such a change was sent that an ACKNACK with this base acknowledges. It took a
    /// round trip at least.
    pub fn take_history_sent(&mut self, base: i64) -> Option<Instant> {
        let sent = self.history_sent;
        let (at, _) = sent.filter(|(_, sequence)| sequence.0 < base)?;
        self.history_sent = None;
        Some(at)
    }

    /// Notes the fragments of a sample that a NACK_FRAG proves: all below its last one that
    /// it does not request. Returns the number of those not proved before.
    pub fn note_proved_fragments(&mut self, sequence: SequenceNumber, nack: &NackFrag) -> u32 {
        let state = &nack.state;
        let last = state.iter().last().map_or(0, |last| last.0);
        let missing = u32::try_from(state.len()).unwrap_or(u32::MAX);
        let mut known = self.proved_fragments.iter_mut();
        let Some(known) = known.find(|of| of.sequence == sequence) else {
            if self.proved_fragments.len() >= PROVED_SAMPLES_MAX {
                return 0;
            }
            let proved = last.saturating_sub(missing);
            self.proved_fragments.push(ProvedFragments {
                sequence,
                proved,
                count: nack.count,
                last,
                missing,
            });
            return proved;
        };
        // The next NACK_FRAG of the same request: the one before it names lower ones.
        let continues = nack.count == known.count.wrapping_add(1) && state.base().0 > known.last;
        let lower = if continues { known.missing } else { 0 };
        known.count = nack.count;
        known.last = last;
        known.missing = missing.saturating_add(lower);
        let proved = last.saturating_sub(known.missing);
        let more = proved.saturating_sub(known.proved);
        known.proved = known.proved.max(proved);
        more
    }

    /// Forgets the proved fragments of acknowledged samples. Returns their number.
    ///
    /// `acked`: all numbers below are.
    pub fn take_proved_fragments(&mut self, acked: i64) -> usize {
        let mut taken = 0_usize;
        self.proved_fragments.retain(|of| {
            let is_acked = of.sequence.0 < acked;
            if is_acked {
                taken = taken.saturating_add(usize::try_from(of.proved).unwrap_or(0));
            }
            !is_acked
        });
        taken
    }

    /// Begins a round if nothing is requested. Call it before a request is added.
    pub fn begin_round_if_idle(&mut self) {
        if !self.is_pending() {
            self.round_served_below = SequenceNumber::FIRST;
        }
    }
}
