//! ACKNACK and NACK_FRAG scheduling of a reliable reader (RTPS 2.5 §8.4.12.2):
//! ACKNACK for whole samples, NACK_FRAG for samples of which some fragments came.
//!
//! The rule: while an announced number is missing, a request is scheduled.
//! Heartbeats accelerate it, progress resets its back-off, and only completeness
//! cancels it. NACK suppression keeps a heartbeat from repeating a recent request.

use super::Reader;
use super::config::NackConfig;
use super::proxy::WriterProxy;
use super::writer_habits::answers_base_zero_only;
use crate::id::{EntityId, Guid, GuidPrefix, VendorId};
use crate::locator::Route;
use crate::outbox::{MessageBuilder, Outbox};
use crate::qos::Reliability;
use crate::retry_backoff::RetryBackoff;
use crate::seq::{FragmentNumber, SequenceNumber};
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::{AckNack, FragmentSet, Heartbeat, NackFrag, SequenceSet};

/// After this many requests without progress, heartbeats no longer accelerate the
/// next one. Without this limit a number that never comes would be requested at
/// network speed. Such a number was refused here by a full buffer, or announced
/// falsely.
const UNSUCCESSFUL_MAX: u32 = 3;
/// Partial samples requested at a time; as many as are kept by default.
const PARTIAL_SAMPLES_MAX: usize = 8;
/// NACK_FRAGs of one request. Each spans 256 fragments, so 16 span 5 MB in datagrams
/// of the usual size.
const NACK_FRAGS_MAX: usize = 16;
/// Fragments of one sample that a request names, whatever they span. All of them come
/// at once, and must fit the receive buffer.
const FRAGMENTS_REQUESTED_MAX: usize = FragmentSet::SPAN_MAX as usize;

impl WriterProxy {
    /// Whether a heartbeat is new.
    pub(super) fn accepts_heartbeat(&mut self, now: Instant, heartbeat: &Heartbeat) -> bool {
        // A heartbeat for one new reader may name more than the next one for all.
        let has_less = self.habits.heartbeats_name_all && heartbeat.last.0 < self.sent_through;
        self.heartbeat_counts.accept(now, heartbeat.count, has_less)
    }

    /// Decides on the answer to a heartbeat, after its range was handled.
    pub(super) fn schedule_acknack(&mut self, now: Instant, is_final: bool, config: &NackConfig) {
        let missing = self.is_missing_something();
        let has_new_gaps = missing
            && self.first_missing_from(self.acks.nack.requested.saturating_add(1))
                <= self.announced;
        let is_old = now >= self.acks.nack.sent_at.after(self.suppression(config));
        if is_final && !has_new_gaps && !(missing && is_old) {
            self.schedule_unsolicited_acknack(now, missing);
            return;
        }
        self.acks.unsolicited.is_unsolicited = false;
        // The answer to a recent request may be in transit.
        self.acks.nack.only_new = !is_old;
        self.acks.due = true;
    }

    /// Schedules an unsolicited ACKNACK to a writer on a shared-memory connection,
    /// if due.
    fn schedule_unsolicited_acknack(&mut self, now: Instant, missing: bool) {
        let is_shared_memory = self.route.is_shared_memory() && self.synced && !missing;
        if is_shared_memory
            && !self.acks.due
            && self.acks.unsolicited.is_due(now, self.first_missing())
        {
            self.acks.due = true;
            self.acks.unsolicited.is_unsolicited = true;
        }
    }

    /// NACK suppression: the minimum age of a request that a heartbeat may repeat.
    pub(super) fn suppression(&self, config: &NackConfig) -> Duration {
        let (unknown, min) = (config.suppression, config.suppression_min);
        self.acks
            .nack
            .round_trip
            .retry_delay(unknown, min, config.retry_period_max)
    }

    /// The back-off of requests for newly missing numbers.
    pub(super) fn initial_backoff(&self, config: &NackConfig) -> RetryBackoff {
        let round_trip = &self.acks.nack.round_trip;
        let first = round_trip.retry_delay(
            config.retry_period,
            config.retry_period_min,
            config.retry_period_max,
        );
        RetryBackoff::new(first, config.steady_retries)
    }

    /// Starts or stops the request timer, according to the missing numbers.
    pub(super) fn schedule_nack(&mut self, now: Instant, config: &NackConfig) {
        self.acks
            .nack
            .round_trip
            .note_response(now, self.first_missing());
        if self.is_missing_something() {
            if self.acks.nack.at == Instant::FAR_FUTURE {
                self.acks.nack.backoff = self.initial_backoff(config);
                self.acks.nack.at = now.after(config.gap_delay);
            }
        } else if self.synced || self.acks.preemptive_left == 0 {
            self.acks.nack.at = Instant::FAR_FUTURE;
            self.acks.nack.requested = self.acks.nack.requested.min(self.announced);
        }
    }

    /// When to send: a request, or a probe to a writer that may have restarted.
    pub(super) fn next_timeout(&self) -> Instant {
        self.acks.nack.at.min(self.probe_at())
    }

    /// When to request a heartbeat: of a writer that may have restarted, or whose
    /// state is implausible.
    fn probe_at(&self) -> Instant {
        self.heartbeat_counts
            .probe_at()
            .min(self.plausibility.probe_at())
    }

    /// Whether something is to be sent at `now`.
    pub(super) fn has_response_due(&self, now: Instant) -> bool {
        self.acks.due || self.next_timeout() <= now
    }

    /// Whether an ACKNACK would request nothing.
    fn is_positive_ack(&self) -> bool {
        let is_request = self.is_missing_something() || self.probe_at() != Instant::FAR_FUTURE;
        self.synced && !is_request
    }

    /// The base of an ACKNACK: all numbers below are acknowledged.
    fn ack_base(&self) -> i64 {
        if !self.synced && self.habits.preemptive_base_zero {
            return 0;
        }
        self.first_missing().min(self.plausibility.ack_base_max())
    }

    /// Builds the ACKNACK of the present state and sets the timer for the next one.
    /// Also returns whether it requests missing samples.
    fn acknack(
        &mut self,
        now: Instant,
        reader: EntityId,
        full: bool,
        config: &NackConfig,
    ) -> (AckNack, bool) {
        let base = self.ack_base();
        let mut state = SequenceSet::empty(SequenceNumber(base));
        let mut requested = self.acks.nack.requested;
        let timer_due = self.acks.nack.at <= now;
        let is_request = self.synced
            && !full
            && (timer_due || self.acks.nack.unsuccessful_requests <= UNSUCCESSFUL_MAX);
        let only_new = self.acks.nack.only_new && !timer_due;
        if is_request {
            let has_progress = self.acks.progress_count != self.acks.nack.progress_seen;
            let window = self.acks.nack.window.next_request(has_progress);
            let last = self
                .announced
                .min(base.saturating_add(window).saturating_sub(1));
            let from = if only_new {
                requested.saturating_add(1)
            } else {
                base
            };
            for number in self.missing(from, last) {
                state.insert(SequenceNumber(number));
            }
            if !state.is_empty() {
                self.acks
                    .nack
                    .round_trip
                    .note_request(now, base, base <= requested);
            }
            requested = requested.max(last);
        }
        if !self.synced {
            self.acks.preemptive_left = self.acks.preemptive_left.saturating_sub(1);
        }
        let waits = self.is_missing_something() || (!self.synced && self.acks.preemptive_left > 0);
        let period_max = if self.synced {
            config.retry_period_max
        } else {
            config.preemptive_period_max
        };
        if self.acks.progress_count != self.acks.nack.progress_seen {
            self.acks.nack.progress_seen = self.acks.progress_count;
            self.acks.nack.unsuccessful_requests = 0;
            self.acks.nack.backoff = self.initial_backoff(config);
        } else if is_request && waits && !only_new {
            self.acks.nack.unsuccessful_requests =
                self.acks.nack.unsuccessful_requests.saturating_add(1);
        }
        self.acks.due = false;
        self.acks.nack.only_new = false;
        self.acks.nack.requested = requested;
        if !waits {
            self.acks.nack.at = Instant::FAR_FUTURE;
        } else if is_request && only_new && self.acks.nack.at != Instant::FAR_FUTURE {
            // Earlier requests are repeated when they are due.
        } else if is_request || !self.synced || timer_due {
            self.acks.nack.sent_at = now;
            self.acks.nack.at = now.after(self.acks.nack.backoff.delay());
            self.acks.nack.backoff.advance(period_max);
        }
        self.acks.unsolicited.note(now, base);
        self.acks.acknack_count = self.acks.acknack_count.wrapping_add(1);
        let probe_is_due = self.probe_at() <= now;
        let acknack = AckNack {
            reader,
            writer: self.guid.entity,
            state,
            count: self.acks.acknack_count,
            // Before the first heartbeat, and on a suspected reset, request one.
            is_final: self.synced && !probe_is_due,
        };
        if self.heartbeat_counts.probe_at() <= now {
            self.heartbeat_counts.note_probed(now);
        }
        if self.plausibility.probe_at() <= now {
            self.plausibility.note_probed(now);
        }
        (acknack, is_request)
    }

    /// Requests missing fragments of one partial sample with at most `max` NACK_FRAGs,
    /// each for fragments that lie within its span. Returns their number.
    fn request_fragments(
        &mut self,
        reader: EntityId,
        sequence: SequenceNumber,
        max: usize,
        message: &mut MessageBuilder<'_>,
    ) -> usize {
        let runs = self
            .defrag
            .missing(sequence, self.last_fragment_sent(sequence));
        let mut missing = runs
            .flat_map(|run| run.first..=run.last)
            .map_while(|number| u32::try_from(number).ok().map(FragmentNumber))
            .take(FRAGMENTS_REQUESTED_MAX)
            .peekable();
        let mut count = 0_usize;
        while count < max
            && let Some(first) = missing.next()
        {
            let mut state = FragmentSet::from_numbers(first, [first]);
            while missing.next_if(|next| state.insert(*next)).is_some() {}
            self.acks.nack_frag_count = self.acks.nack_frag_count.wrapping_add(1);
            let nack = NackFrag {
                reader,
                writer: self.guid.entity,
                sequence,
                state,
                count: self.acks.nack_frag_count,
            };
            if !message.nack_frag(&nack) {
                break;
            }
            count.tally();
        }
        drop(missing);
        if count > 0 {
            self.defrag.note_requested(sequence);
        }
        count
    }

    /// The lowest partial samples to request.
    fn incomplete(&self) -> ([SequenceNumber; PARTIAL_SAMPLES_MAX], usize) {
        let mut found = [SequenceNumber::ZERO; PARTIAL_SAMPLES_MAX];
        let overdue = self.first_missing();
        let mut count = 0_usize;
        let requested_samples = self
            .defrag
            .sequences()
            .filter(|sequence| sequence.0 <= self.sent_through || sequence.0 == overdue);
        for (slot, sequence) in found.iter_mut().zip(requested_samples) {
            *slot = sequence;
            count.tally();
        }
        (found, count)
    }
}

impl Reader {
    /// An ACKNACK that asks a writer, matched or not, for a HEARTBEAT and nothing else.
    pub(crate) fn probe(&mut self, writer: Guid, vendor: VendorId) -> AckNack {
        let (base, count) = match self.writers.get_mut(&writer) {
            Some(proxy) => {
                proxy.acks.acknack_count = proxy.acks.acknack_count.wrapping_add(1);
                (proxy.ack_base(), proxy.acks.acknack_count)
            }
            None => {
                self.last_count = self.last_count.wrapping_add(1);
                let base = i64::from(!answers_base_zero_only(vendor));
                (base, self.last_count)
            }
        };
        AckNack {
            reader: self.config.guid.entity,
            writer: writer.entity,
            state: SequenceSet::empty(SequenceNumber(base)),
            count,
            is_final: false,
        }
    }

    /// Answers a HEARTBEAT of a writer that was refused here, although its stack may take
    /// this reader for matched: every sample counts as received. Otherwise a reliable
    /// writer waits for it, and its other readers wait, too.
    ///
    /// Does nothing for a matched writer, a heartbeat for another reader or without need
    /// of an answer, and for a best-effort reader, which no writer waits for.
    pub fn acknowledge_refused(
        &mut self,
        source: GuidPrefix,
        heartbeat: &Heartbeat,
        route: &Route,
        out: &mut Outbox,
    ) {
        let reader = self.config.guid;
        let is_asked = !heartbeat.is_final
            && (heartbeat.reader == EntityId::UNKNOWN || heartbeat.reader == reader.entity);
        let is_refused = self.config.qos.reliability == Reliability::Reliable
            && !self.writers.contains_key(&source.with(heartbeat.writer));
        if !is_asked || !is_refused {
            return;
        }
        self.last_count = self.last_count.wrapping_add(1);
        let next = heartbeat.last.0.max(0).saturating_add(1);
        let acknack = AckNack {
            reader: reader.entity,
            writer: heartbeat.writer,
            state: SequenceSet::empty(SequenceNumber(next)),
            count: self.last_count,
            is_final: true,
        };
        let datagram_bytes_max = self.config.datagram_bytes_max;
        let mut message = out.begin(reader.prefix, &route.locators, datagram_bytes_max);
        message.info_destination(source);
        message.acknack(&acknack);
        message.finish();
        self.stats.acknacks.tally();
    }

    /// Whether there are only positive ACKNACKs to send, which may wait a moment.
    pub fn has_only_positive_acks(&self) -> bool {
        let mut queued_writers = self.writers_to_answer.iter();
        !self.writers_to_answer.is_empty()
            && queued_writers.all(|guid| {
                let proxy = self.writers.get(guid);
                proxy.is_none_or(|proxy| proxy.is_positive_ack())
            })
    }

    /// Puts due ACKNACKs and NACK_FRAGs into `out`.
    ///
    /// True when the outbox is full: send, clear and call again.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.clock = now;
        while let Some(guid) = self.writers_to_answer.last().copied() {
            if out.is_full() {
                return true;
            }
            self.writers_to_answer.pop();
            let Some(proxy) = self.writers.get_mut(&guid) else {
                continue;
            };
            proxy.acks.queued = false;
            if !proxy.has_response_due(now) {
                continue;
            }
            let full = !self.ready.has_space();
            let reader = self.config.guid;
            let is_deferrable =
                proxy.acks.unsolicited.is_unsolicited && !proxy.is_missing_something();
            let (acknack, is_request) = proxy.acknack(now, reader.entity, full, &self.config.nack);
            let mut message = out.begin(
                reader.prefix,
                &proxy.route.locators,
                self.config.datagram_bytes_max,
            );
            message.info_destination(guid.prefix);
            message.acknack(&acknack);
            if is_deferrable {
                message.set_deferrable();
            }
            self.stats.acknacks.tally();
            if is_request {
                let (incomplete, count) = proxy.incomplete();
                let mut left = NACK_FRAGS_MAX;
                for sequence in incomplete.into_iter().take(count) {
                    let sent = proxy.request_fragments(reader.entity, sequence, left, &mut message);
                    left = left.saturating_sub(sent);
                    self.stats
                        .nack_frags
                        .tally_by(u64::try_from(sent).unwrap_or(0));
                }
            }
            message.finish();
            if proxy.next_timeout() != Instant::FAR_FUTURE {
                self.timers
                    .set_no_later(super::TIMER_WRITERS, proxy.next_timeout());
            }
        }
        false
    }
}
