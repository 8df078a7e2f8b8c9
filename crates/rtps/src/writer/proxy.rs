//! Reader proxy (RTPS 2.5 §8.4.7.5, ReaderProxy): the state of one matched reader,
//! and the destination (reader locator, §8.4.7.4) that several readers may share.
//!
//! `ReaderProxy` has a field per fact that the specification or retransmission
//! needs about a reader. Nothing but the writer reads them.

use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use super::ack_answer::AckAnswer;
use super::ack_plausibility::{AckPlausibility, Claim};
use super::ack_progress::AckProgress;
use super::config::{HeartbeatConfig, PayloadForm, ReaderProxyConfig};
use super::fragment_requests::FragmentRequests;
use super::heartbeat_schedule::HeartbeatSchedule;
use super::reader_reset::ReaderResetDetector;
use super::retransmission_credit::{
    AckRoundTrip, ChangeSizes, RecentlyServed, RetransmissionCredit, RetransmissionProof,
};
use crate::change::{ChangeKind, WriterChange};
use crate::content_filter::ContentFilter;
use crate::heartbeat_counts::{CountLeap, is_count_jump};
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::interval::NumberRun;
use crate::locator::Route;
use crate::retransmission_window::RetransmissionWindow;
use crate::seq::SequenceNumber;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, FragmentSet, SequenceSet};

/// Samples whose proved fragments are known: all that one ACKNACK can name. They are
/// kept until acknowledged, so fewer would leave later proofs without credit.
const PROVED_SAMPLES_MAX: usize = SequenceSet::SPAN_MAX as usize;
/// An ACKNACK whose count does not grow is a repeat, unless the reader was silent
/// this long: then it lost its state and counts from zero.
const COUNT_MEMORY: Duration = Duration::from_millis(500);
/// Some readers answer heartbeats with empty, non-final ACKNACKs. From this number
/// on they count as answers.
const UNSOLICITED_MAX: u8 = 2;
/// Heartbeats without an answer, finally every 200 ms, until a reader that never
/// answered is sent the true last number.
const UNANSWERED_MAX: u32 = 10;

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

/// One matched reader.
#[derive(Debug)]
pub(super) struct ReaderProxy {
    pub guid: Guid,
    /// Whether it acknowledges and requests retransmissions.
    pub reliable: bool,
    /// Index of its destination.
    pub destination: usize,
    /// The first sequence number relevant to it.
    pub start: i64,
    /// All numbers below are acknowledged.
    pub acked: i64,
    /// The last number of a directed write to it, or one that passed its filter.
    pub last_directed: i64,
    /// Its content filter; `None` accepts everything.
    pub filter: Option<Arc<ContentFilter>>,
    /// Sequence numbers to retransmit.
    pub requested: SequenceSet,
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
    /// Changes below are history: they are sent to this reader alone.
    pub history_end: i64,
    /// The fragments that each partial sample was proved to have.
    pub proved_fragments: Vec<(SequenceNumber, u32)>,
    /// Retransmissions to this reader alone, as credit.
    pub proof: RetransmissionProof,
    /// History that a best-effort late joiner still gets.
    pub replay: Option<NumberRun>,
    /// Irrelevant numbers to declare to this reader alone, since another reader of
    /// its destination may need them.
    pub pending_gap: Option<NumberRun>,
    /// A heartbeat for this reader is due.
    pub heartbeat_due: bool,
    /// It gets changes from its match on, no history.
    pub starts_at_match: bool,
    /// It receives the ends of coherent sets.
    pub wants_set_ends: bool,
    has_acknowledged: bool,
    unsolicited_acknacks: u8,
    /// Suspected reset: it requests acknowledged samples.
    pub reset_detector: Option<ReaderResetDetector>,
    acknack_count: Option<u32>,
    acknack_leap: CountLeap,
    acknack_at: Instant,
    nack_frag_count: Option<u32>,
    nack_frag_at: Instant,
    ack_plausibility: AckPlausibility,
    /// When its ACKNACKs are answered.
    pub ack_answer: AckAnswer,
    /// Notices that it acknowledges nothing.
    pub progress: AckProgress,
}

impl ReaderProxy {
    pub fn new(config: &ReaderProxyConfig, reliable: bool, destination: usize, start: i64) -> Self {
        Self {
            guid: config.guid,
            reliable,
            destination,
            start,
            acked: start,
            last_directed: 0,
            filter: config.content_filter.clone(),
            requested: SequenceSet::empty(SequenceNumber::FIRST),
            irrelevant_declared: false,
            partly_sent: PartlySentSample::NONE,
            fragments: FragmentRequests::default(),
            round_served_below: SequenceNumber::FIRST,
            retransmit_at: Instant::FAR_FUTURE,
            last_retransmission: Instant::ZERO,
            recently_served: RecentlyServed::default(),
            served_whole_through: SequenceNumber::ZERO,
            history_end: start,
            proved_fragments: Vec::new(),
            proof: RetransmissionProof::default(),
            replay: None,
            pending_gap: None,
            heartbeat_due: false,
            starts_at_match: true,
            wants_set_ends: config.qos.presentation.holds_samples(),
            has_acknowledged: false,
            unsolicited_acknacks: 0,
            reset_detector: None,
            acknack_count: None,
            acknack_leap: CountLeap::default(),
            acknack_at: Instant::ZERO,
            nack_frag_count: None,
            nack_frag_at: Instant::ZERO,
            ack_plausibility: AckPlausibility::NONE,
            ack_answer: AckAnswer::NONE,
            progress: AckProgress::NEW,
        }
    }

    /// Whether it is reliable and has never answered a heartbeat. It may not have
    /// received one yet.
    pub fn is_unconfirmed(&self) -> bool {
        self.reliable && !self.has_acknowledged
    }

    /// Notes an ACKNACK if it answers a heartbeat; true for the first answer.
    ///
    /// Preemptive ACKNACKs come from readers that only know our announcement, and
    /// request nothing but a heartbeat (Cyclone DDS, Fast DDS).
    pub fn note_acknack(&mut self, acknack: &AckNack) -> bool {
        self.unsolicited_acknacks = self.unsolicited_acknacks.saturating_add(1);
        let is_answer = acknack.is_final || !acknack.state.is_empty();
        if self.has_acknowledged || !(is_answer || self.unsolicited_acknacks > UNSOLICITED_MAX) {
            return false;
        }
        self.has_acknowledged = true;
        true
    }

    /// Whether the change is relevant to it.
    pub fn is_relevant(&self, change: &WriterChange) -> bool {
        change.sequence.0 >= self.start
            && change.directed_to.is_none_or(|only| only == self.guid)
            && change.passes_filter_of(self.guid)
            && (self.wants_set_ends || !change.is_set_end())
    }

    /// The highest number relevant to it; `shared` is the last undirected one.
    pub fn last_relevant(&self, shared: i64) -> i64 {
        let is_for_it = self.filter.is_none() && shared >= self.start;
        let shared = if is_for_it { shared } else { 0 };
        shared.max(self.last_directed)
    }

    /// Whether it has unacknowledged changes.
    pub fn has_unacked(&self, shared: i64) -> bool {
        self.reliable && self.acked <= self.last_relevant(shared)
    }

    /// Whether this number is unacknowledged.
    pub fn is_unacked(&self, number: i64) -> bool {
        self.reliable && self.acked <= number
    }

    /// Whether something is to be retransmitted.
    pub fn has_requests(&self) -> bool {
        !self.requested.is_empty() || !self.fragments.is_empty()
    }

    /// Whether the count of an ACKNACK is not above that of the last one.
    pub fn count_went_back(&self, count: u32) -> bool {
        let last = self.acknack_count;
        last.is_some_and(|last| count.wrapping_sub(last).cast_signed() <= 0)
    }

    /// Whether to wait for a second ACKNACK that agrees with this one. `end`: the
    /// number after the last one sent.
    pub fn is_acknack_unconfirmed(&mut self, now: Instant, acknack: &AckNack, end: i64) -> bool {
        let claim = Claim {
            count: acknack.count,
            jumps: is_count_jump(self.acknack_count, acknack.count),
            is_unsent: acknack.state.base().0 > end,
        };
        self.ack_plausibility.is_unconfirmed(now, claim)
    }

    /// The same of a NACK_FRAG.
    pub fn is_nack_frag_unconfirmed(&mut self, now: Instant, count: u32) -> bool {
        let claim = Claim {
            count,
            jumps: is_count_jump(self.nack_frag_count, count),
            is_unsent: false,
        };
        self.ack_plausibility.is_unconfirmed(now, claim)
    }

    /// Whether an ACKNACK with this count is new.
    pub fn accepts_acknack(&mut self, now: Instant, count: u32) -> bool {
        let last = self.acknack_count;
        let is_new = accept_count(now, count, &mut self.acknack_count, &mut self.acknack_at);
        if is_new {
            self.acknack_leap.note(last, count);
        }
        is_new
    }

    /// Whether the counts before this one went on where they were before a forged one.
    /// Then that is forgotten.
    pub fn forgets_forged_acknack(&mut self, count: u32) -> bool {
        let is_forged = self.acknack_leap.ends_with(self.acknack_count, count);
        if is_forged {
            self.acknack_count = Some(count.wrapping_sub(1));
        }
        is_forged
    }

    /// Whether a NACK_FRAG with this count is new.
    pub fn accepts_nack_frag(&mut self, now: Instant, count: u32) -> bool {
        accept_count(
            now,
            count,
            &mut self.nack_frag_count,
            &mut self.nack_frag_at,
        )
    }

    /// Adds a whole sample to the requests of the last ACKNACK. False when it is
    /// too far from those.
    pub fn request_sample(&mut self, sequence: SequenceNumber) -> bool {
        if self.requested.is_empty() {
            self.requested = SequenceSet::empty(sequence);
        }
        self.irrelevant_declared = false;
        self.requested.insert(sequence)
    }

    /// Adds requested fragments, see [`FragmentRequests::insert`].
    pub fn request_fragments(&mut self, sequence: SequenceNumber, mut set: FragmentSet) -> bool {
        if self.requested.contains(sequence) {
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
                self.requested.remove(sequence);
            }
        }
        set.is_empty() || self.fragments.insert(sequence, set)
    }

    /// The lowest number not served in this round.
    pub fn next_request(&self) -> Option<SequenceNumber> {
        let is_left = |sequence: &SequenceNumber| *sequence >= self.round_served_below;
        let whole = self.requested.iter().find(is_left);
        let partly = self.fragments.sequences().filter(is_left);
        whole.into_iter().chain(partly).min()
    }

    /// Whether this number is served whole for the first time, and was begun or begins
    /// with credit. It is then completed whatever its size: a part of a sample is of no
    /// use. A probe is no credit, or each would send a large sample.
    pub fn is_first_transmission(&self, sequence: SequenceNumber, has_credit: bool) -> bool {
        let is_begun = self.partly_sent.sequence == sequence && self.partly_sent.is_first;
        sequence > self.served_whole_through
            && self.requested.contains(sequence)
            && (has_credit || is_begun)
    }

    /// Whether its next request is the rest of such a sample.
    pub fn continues_first_transmission(&self) -> bool {
        self.next_request()
            .is_some_and(|sequence| self.is_first_transmission(sequence, false))
    }

    /// Notes that all requested parts of this sample were retransmitted.
    pub fn note_served(&mut self, sequence: SequenceNumber) {
        self.requested.remove(sequence);
        self.fragments.remove(sequence);
        self.round_served_below = sequence.next();
    }

    /// Notes the fragments of a sample that a NACK_FRAG proves. Returns the number of
    /// those not proved before.
    pub fn note_proved_fragments(&mut self, sequence: SequenceNumber, set: &FragmentSet) -> u32 {
        let last = set.iter().last().map_or(0, |last| last.0);
        // Another NACK_FRAG of the same request may name lower ones.
        let lower = self.fragments.count_below(sequence, set.base());
        let missing = set.len().saturating_add(lower);
        let proved = last.saturating_sub(u32::try_from(missing).unwrap_or(u32::MAX));
        let mut known = self.proved_fragments.iter_mut();
        if let Some((_, before)) = known.find(|(of, _)| *of == sequence) {
            let more = proved.saturating_sub(*before);
            *before = proved.max(*before);
            return more;
        }
        if self.proved_fragments.len() >= PROVED_SAMPLES_MAX {
            return 0;
        }
        self.proved_fragments.push((sequence, proved));
        proved
    }

    /// Forgets the proved fragments of acknowledged samples. Returns their number.
    pub fn take_proved_fragments(&mut self) -> usize {
        let acked = self.acked;
        let mut taken = 0_usize;
        self.proved_fragments.retain(|(sequence, proved)| {
            let is_acked = sequence.0 < acked;
            if is_acked {
                taken = taken.saturating_add(usize::try_from(*proved).unwrap_or(0));
            }
            !is_acked
        });
        taken
    }

    /// Begins a round if nothing is requested. Call it before a request is added.
    pub fn begin_round_if_idle(&mut self) {
        if !self.has_requests() {
            self.round_served_below = SequenceNumber::FIRST;
        }
    }
}

fn accept_count(now: Instant, count: u32, last: &mut Option<u32>, at: &mut Instant) -> bool {
    let is_new = last.is_none_or(|last| count.wrapping_sub(last).cast_signed() > 0);
    if !is_new && now.since(*at) < COUNT_MEMORY {
        return false;
    }
    *last = Some(count);
    *at = now;
    true
}

/// One destination: readers of one participant with the same route and payload form.
/// Each new change is sent to it once.
#[derive(Debug)]
pub(super) struct Destination {
    pub prefix: GuidPrefix,
    pub route: Route,
    /// Converts payloads for its readers.
    pub payload_form: Option<PayloadForm>,
    /// Its readers; a destination without readers is a free slot.
    pub readers: usize,
    /// Its reliable readers.
    pub reliable: usize,
    /// Its reliable readers that have acknowledged nothing yet.
    pub unconfirmed: usize,
    /// Limit of announced numbers while all readers start at their match and none has
    /// acknowledged: the last number before their start. `None` for readers of Pteros.
    /// See [`Destination::announce`].
    pub announce_max: Option<i64>,
    /// When the next heartbeat to this destination is due.
    pub heartbeat_schedule: HeartbeatSchedule,
    /// Retransmissions that it may receive.
    pub credit: RetransmissionCredit,
    /// Time from a change that requests an acknowledgement to that acknowledgement.
    pub round_trip: AckRoundTrip,
    /// The peer is Pteros.
    pub is_pteros: bool,
    /// Its only reader, or UNKNOWN for several.
    pub sole_reader: EntityId,
    /// The lowest number relevant to any of its readers.
    pub start: i64,
    /// Some reader receives the ends of coherent sets.
    pub wants_set_ends: bool,
    /// Irrelevant numbers that no GAP has declared yet.
    pub pending_gap: Option<NumberRun>,
    /// A heartbeat that requests acknowledgements is due.
    pub heartbeat_due: bool,
    /// A heartbeat that asserts liveliness is due.
    pub assertion_due: bool,
    /// A heartbeat with the group sequence number is due.
    pub group_info_due: bool,
}

impl Destination {
    pub fn new(
        prefix: GuidPrefix,
        route: Route,
        payload_form: Option<PayloadForm>,
        heartbeat: &HeartbeatConfig,
    ) -> Self {
        Self {
            prefix,
            route,
            payload_form,
            readers: 0,
            reliable: 0,
            unconfirmed: 0,
            announce_max: None,
            heartbeat_schedule: HeartbeatSchedule::new(heartbeat),
            credit: RetransmissionCredit::new(RetransmissionWindow::new()),
            round_trip: AckRoundTrip::UNKNOWN,
            is_pteros: false,
            sole_reader: EntityId::UNKNOWN,
            start: i64::MAX,
            wants_set_ends: false,
            pending_gap: None,
            heartbeat_due: false,
            assertion_due: false,
            group_info_due: false,
        }
    }

    /// The last number to announce in a heartbeat sent now.
    ///
    /// Cyclone DDS starts a volatile reader after the last number of its first heartbeat,
    /// and drops data while it is still matching. So heartbeats name no sample that these
    /// readers need until one of them has acknowledged.
    ///
    /// Readers of Pteros start at the first number instead. They treat a writer that
    /// names less than they have received as implausible.
    pub fn announce(&self, last: i64) -> i64 {
        match self.announce_max {
            Some(announce_max) if self.heartbeat_schedule.unanswered() < UNANSWERED_MAX => {
                last.min(announce_max)
            }
            _ => last,
        }
    }

    /// Notes that one of its readers acknowledged all below `base`, and `ahead` bytes
    /// beyond. That proves bytes, as credit for retransmissions; those of fragments
    /// are proved already.
    pub fn note_progress(
        &mut self,
        reader: &mut ReaderProxy,
        (base, ahead): (i64, usize),
        sizes: ChangeSizes<'_>,
        fragment_bytes: usize,
    ) {
        if base <= reader.acked && ahead == 0 {
            // Credit earned beyond the base is kept.
            return;
        }
        let acked = (base > reader.acked).then_some(NumberRun {
            first: reader.acked,
            last: base.saturating_sub(1),
        });
        let (again, earned_below) = if reader.proof.is_empty() {
            (0, 0)
        } else {
            let below = acked.map_or(0, |acked| sizes.of_run(acked));
            reader.proof.note_acked(below, ahead)
        };
        let mut bytes = 0;
        if let Some(acked) = acked {
            reader.acked = base;
            let own_below = reader.history_end;
            bytes = self
                .credit
                .newly_proved(acked, own_below, |run| sizes.of_run(run));
            let of_fragments = reader
                .take_proved_fragments()
                .saturating_mul(fragment_bytes);
            bytes = bytes
                .saturating_sub(of_fragments)
                .saturating_sub(earned_below);
        }
        self.credit.earn(again.saturating_add(bytes), sizes.mean);
    }

    /// The payload of a change in the form that its readers read; `None` if that is
    /// the form in which it was written.
    pub fn converted(&self, change: &WriterChange) -> Option<Bytes> {
        let form = self.payload_form?;
        (change.kind == ChangeKind::Alive).then(|| form.0(&change.payload))
    }

    /// Notes a number as irrelevant to this destination.
    pub fn add_to_gap(&mut self, number: i64) {
        match &mut self.pending_gap {
            Some(run) => run.last = number,
            None => {
                self.pending_gap = Some(NumberRun {
                    first: number,
                    last: number,
                });
            }
        }
    }
}
