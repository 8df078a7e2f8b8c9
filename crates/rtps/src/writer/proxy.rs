//! Reader proxy (RTPS 2.5 §8.4.7.5, ReaderProxy): the state of one matched reader,
//! and the destination (reader locator, §8.4.7.4) that several readers may share.
//!
//! What a reader requests again is in [`super::requested_changes`], the counts of its
//! ACKNACKs and NACK_FRAGs in [`super::acknack_counts`].

use alloc::boxed::Box;
use alloc::sync::Arc;

use bytes::Bytes;

use super::ack_answer::AckAnswer;
use super::ack_progress::AckProgress;
use super::ack_withdrawal::{AckWithdrawal, WithdrawalStatus};
use super::acknack_counts::AckNackCounts;
use super::config::{HeartbeatConfig, PayloadForm, ReaderProxyConfig};
use super::heartbeat_schedule::HeartbeatSchedule;
use super::reader_reset::ReaderResetDetector;
use super::requested_changes::RequestedChanges;
use super::retransmission_credit::{
    AckRoundTrip, ChangeSizes, RetransmissionCredit, RetransmissionProof,
};
use crate::change::{ChangeKind, WriterChange};
use crate::content_filter::ContentFilter;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::interval::NumberRun;
use crate::locator::Route;
use crate::retransmission_window::RetransmissionWindow;
use crate::time::Instant;
use crate::wire::SequenceSet;

/// Heartbeats without an answer, finally every 200 ms, until a reader that never
/// answered is sent the true last number.
const UNANSWERED_MAX: u32 = 10;

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
    /// Changes below are history: they are sent to this reader alone.
    pub history_end: i64,
    /// What it requests again.
    pub requests: RequestedChanges,
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
    /// Suspected reset: it requests acknowledged samples.
    pub reset_detector: Option<ReaderResetDetector>,
    /// It withdraws acknowledgements, most often not.
    withdrawal: Option<Box<AckWithdrawal>>,
    /// The counts of its ACKNACKs and NACK_FRAGs.
    pub counts: AckNackCounts,
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
            history_end: start,
            requests: RequestedChanges::default(),
            proof: RetransmissionProof::default(),
            replay: None,
            pending_gap: None,
            heartbeat_due: false,
            starts_at_match: true,
            wants_set_ends: config.qos.presentation.holds_samples(),
            reset_detector: None,
            withdrawal: None,
            counts: AckNackCounts::default(),
            ack_answer: AckAnswer::NONE,
            progress: AckProgress::NEW,
        }
    }

    /// Whether it is reliable and has never answered a heartbeat. It may not have
    /// received one yet.
    pub fn is_unconfirmed(&self) -> bool {
        self.reliable && !self.counts.has_acknowledged()
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

    /// Notes the base of any of its ACKNACKs, before the count is judged. `end`: the first
    /// unsent number, beyond which a base means nothing.
    pub fn note_ack_base(&mut self, base: i64, end: i64) {
        if let Some(withdrawal) = self.withdrawal.as_mut().filter(|_| base <= end) {
            withdrawal.note_base(base, self.acked);
            if withdrawal.is_idle() {
                self.withdrawal = None;
            }
        }
    }

    /// Evaluates whether an ACKNACK that counts withdraws acknowledgements.
    pub fn observe_withdrawal(&mut self, now: Instant, base: i64) -> WithdrawalStatus {
        let base = base.max(self.start);
        if base >= self.acked && self.withdrawal.is_none() {
            return WithdrawalStatus::None;
        }
        let withdrawal = self.withdrawal.get_or_insert_default();
        let status = withdrawal.observe(now, base, self.acked);
        if status == WithdrawalStatus::Believed {
            self.proof.note_withdrawn();
        }
        status
    }

    /// Whether this number was acknowledged, so that it earns no credit.
    pub fn is_earned(&self, number: i64) -> bool {
        match &self.withdrawal {
            Some(withdrawal) => withdrawal.is_earned(number, self.acked),
            None => number < self.acked,
        }
    }

    /// Whether this number is unacknowledged.
    pub fn is_unacked(&self, number: i64) -> bool {
        self.reliable && self.acked <= number
    }
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

    /// Resets the back-off after new data for it, or after its progress.
    pub fn reset_heartbeat_backoff(&mut self, config: &HeartbeatConfig) {
        let has_acknowledged = self.unconfirmed == 0;
        self.heartbeat_schedule.reset(config, has_acknowledged);
    }

    /// Notes when an ACKNACK of one of its readers came.
    pub fn note_round_trip(
        &mut self,
        now: Instant,
        state: &SequenceSet,
        requests: &mut RequestedChanges,
    ) {
        let base = state.base().0;
        self.round_trip.note_acknack(now, base, !state.is_empty());
        if let Some(at) = requests.take_history_sent(base) {
            self.round_trip.note_at_most(now.since(at));
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
        let acked = reader.acked;
        let withdrawal = reader.withdrawal.as_mut();
        if let Some(run) = withdrawal.and_then(|it| it.take_earned(base, acked)) {
            let of_fragments = reader
                .requests
                .take_proved_fragments(run.last.saturating_add(1))
                .saturating_mul(fragment_bytes);
            let bytes = sizes.of_run(run).saturating_sub(of_fragments);
            let (again, _) = reader.proof.note_acked(bytes, 0);
            self.credit.earn(again, sizes.mean);
        }
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
                .requests
                .take_proved_fragments(base)
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
