//! Retransmission to single readers: the samples and fragments that they requested
//! (RTPS 2.5 §8.4.9.2.12), and once the history for a best-effort late joiner.
//! `writer/retransmission_credit.rs` limits how much a destination is sent again.

use super::burst_writer::BurstWriter;
use super::data_encoder::DataEncoder;
use super::matched_readers::MatchedReaders;
use super::proxy::{Destination, ReaderProxy};
use super::requested_changes::PartlySentSample;
use super::timers::{TIMER_RETRANSMISSION, WriterTimers};
use super::writer_cache::WriterCache;
use crate::change::WriterChange;
use crate::history::HistoryCache;
use crate::id::Guid;
use crate::interval::NumberRun;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::{Duration, Instant};
use crate::wire::{FragmentSet, Gap, SequenceSet};

impl MatchedReaders {
    /// Retransmits what one reader requested, lowest number first. `sent_below`: all
    /// lower numbers were sent. False when the burst is over.
    pub(super) fn retransmit(
        &mut self,
        at: usize,
        now: Instant,
        cache: &mut WriterCache,
        sent_below: i64,
        timers: &mut WriterTimers,
        burst: &mut BurstWriter<'_>,
    ) -> bool {
        let Some(reader) = self.proxies.get(at) else {
            return true;
        };
        if !reader.requests.is_pending() || reader.requests.retransmit_at > now {
            return true;
        }
        if burst.is_exhausted() {
            return false;
        }
        let is_same_host_only = self.is_same_host_only();
        let Some(reader) = self.proxies.get_mut(at) else {
            return true;
        };
        let Some(destination) = self.destinations.get_mut(reader.destination) else {
            return true;
        };
        let nack_suppression = burst.config.nack_suppression;
        let is_limited = !destination.route.is_shared_memory();
        let crossing = destination.round_trip.crossing_time(nack_suppression);
        let mut left = if is_limited {
            destination.credit.available(now)
        } else {
            usize::MAX
        };
        if left == 0 && !reader.requests.continues_first_transmission() {
            let again = destination.credit.next_at(now);
            burst.stats.requests_limited.tally();
            // The next probe begins with the lowest request: when that is acknowledged,
            // all above it earn credit.
            reader.requests.round_served_below = SequenceNumber::FIRST;
            reader.schedule_retransmission(again, timers);
            return true;
        }
        let is_probe = is_limited && !destination.credit.has_credit();
        // Once per request: a slow retransmission takes many bursts.
        if !reader.requests.irrelevant_declared {
            reader.declare_irrelevant(cache, sent_below, destination, burst);
        }
        while let Some(sequence) = reader.requests.next_request() {
            let has_credit = left > 0 && !is_probe;
            let is_first = reader.requests.is_first_transmission(sequence, has_credit);
            let limit = if is_first { usize::MAX } else { left };
            if limit == 0 {
                break;
            }
            if reader.requests.samples.contains(sequence) {
                cache.fix_fragment_size(sequence, burst.config, is_same_host_only);
            }
            burst.budget.begin_limit(limit);
            let history = &cache.history;
            let is_served = reader.serve((now, crossing), sequence, history, destination, burst);
            let bytes = burst.budget.end_limit();
            if is_limited {
                left = left.saturating_sub(bytes);
                destination.credit.spend(now, bytes);
            }
            reader.proof.note_sent(bytes);
            if reader.requests.partly_sent.sequence == sequence {
                reader.requests.partly_sent.is_first = is_first;
            }
            if !is_served && left > 0 {
                if is_probe {
                    destination.credit.shorten_probe(left);
                }
                return false;
            }
            if is_served {
                if is_first && sequence.0 < reader.history_end {
                    reader.requests.note_history_sent(now, sequence);
                }
                reader.requests.note_served(sequence);
            } else if burst.is_exhausted() {
                return false;
            } else {
                break;
            }
        }
        let mut again = now.after(nack_suppression);
        if is_limited {
            again = again.max(destination.credit.next_at(now));
        }
        reader.schedule_retransmission(again, timers);
        reader.requests.round_served_below = SequenceNumber::FIRST;
        reader.requests.last_retransmission = now;
        // Its answer shows at once whether the retransmission arrived.
        reader.heartbeat_due = true;
        true
    }

    /// Sends the history to a best-effort late joiner, once. False when the burst is over.
    pub(super) fn replay(
        &mut self,
        at: usize,
        now: Instant,
        cache: &mut WriterCache,
        burst: &mut BurstWriter<'_>,
    ) -> bool {
        while let Some((run, reader)) = self.proxies.get(at).and_then(|r| Some((r.replay?, r))) {
            let kept = cache.history.iter_from(SequenceNumber(run.first));
            let number = kept
                .take_while(|change| change.sequence.0 <= run.last)
                .find(|change| reader.is_relevant(change) && change.expires_at > now)
                .map(|change| change.sequence.0);
            // Samples rejected by its filter are irrelevant, not lost.
            let end = number.unwrap_or(run.last.saturating_add(1));
            let gap = (reader.filter.is_some() && run.first < end).then(|| NumberRun {
                first: run.first,
                last: end.saturating_sub(1),
            });
            let is_same_host_only = self.is_same_host_only();
            let Some(reader) = self.proxies.get_mut(at) else {
                return true;
            };
            let destination = self.destinations.get(reader.destination);
            let is_complete = match (number, destination) {
                (Some(number), Some(destination)) => {
                    let sequence = SequenceNumber(number);
                    cache.fix_fragment_size(sequence, burst.config, is_same_host_only);
                    reader.retransmit_sample(sequence, gap, &cache.history, destination, burst)
                }
                (Some(_), None) => true,
                (None, destination) => burst.send_gap(destination, reader.guid.entity, gap),
            };
            if !is_complete {
                return false;
            }
            reader.replay = number
                .filter(|number| *number < run.last)
                .map(|number| NumberRun {
                    first: number.saturating_add(1),
                    last: run.last,
                });
        }
        true
    }

    /// Declares the pending GAP to one reader. False when the burst is over.
    pub(super) fn send_pending_gap(&mut self, at: usize, burst: &mut BurstWriter<'_>) -> bool {
        let Some(reader) = self.proxies.get_mut(at) else {
            return true;
        };
        let destination = self.destinations.get(reader.destination);
        if !burst.send_gap(destination, reader.guid.entity, reader.pending_gap) {
            return false;
        }
        reader.pending_gap = None;
        true
    }
}

impl ReaderProxy {
    /// Serves the remaining requests at `again`.
    fn schedule_retransmission(&mut self, again: Instant, timers: &mut WriterTimers) {
        self.requests.retransmit_at = if self.requests.is_pending() {
            again
        } else {
            Instant::FAR_FUTURE
        };
        timers.set_no_later(TIMER_RETRANSMISSION, self.requests.retransmit_at);
    }

    /// Retransmits the requested parts of one sample. False when the burst ended before
    /// that was complete. `crossing`: how long a request crosses its answer.
    fn serve(
        &mut self,
        (now, crossing): (Instant, Duration),
        sequence: SequenceNumber,
        history: &HistoryCache,
        destination: &Destination,
        burst: &mut BurstWriter<'_>,
    ) -> bool {
        let is_whole = self.requests.samples.contains(sequence);
        if is_whole {
            if !self.retransmit_sample(sequence, None, history, destination, burst) {
                return false;
            }
            let requests = &mut self.requests;
            requests.samples.remove(sequence);
            requests.served_whole_through = requests.served_whole_through.max(sequence);
            requests
                .recently_served
                .note_sample(now, crossing, sequence);
        }
        self.retransmit_fragments(now, sequence, history, destination, burst)
    }

    /// Declares the irrelevant ones of its requested numbers by one GAP, and keeps the
    /// others.
    fn declare_irrelevant(
        &mut self,
        cache: &WriterCache,
        sent_below: i64,
        destination: &Destination,
        burst: &mut BurstWriter<'_>,
    ) {
        let mut wanted = SequenceSet::empty(self.requests.samples.base());
        let mut gap: Option<Gap> = None;
        for sequence in self.requests.samples.iter() {
            let number = sequence.0;
            if number >= sent_below {
                // Not sent yet.
                break;
            }
            let next = cache.history.from(sequence);
            if next.is_some_and(|change| change.sequence == sequence && self.is_relevant(change)) {
                wanted.insert(sequence);
                continue;
            }
            if number <= cache.retention.lost_through && number >= self.start {
                // The heartbeat's first number declares it lost.
                continue;
            }
            match &mut gap {
                Some(gap) => {
                    gap.list.insert(sequence);
                }
                None => {
                    let end = match next {
                        Some(change) if change.sequence == sequence => number.saturating_add(1),
                        Some(change) => change.sequence.0.min(sent_below),
                        None => sent_below,
                    };
                    // Nothing below its start is relevant, in the history or not.
                    let end = if number < self.start {
                        end.max(self.start.min(sent_below))
                    } else {
                        end
                    };
                    gap = Some(Gap::range(
                        self.guid.entity,
                        burst.config.guid.entity,
                        sequence,
                        SequenceNumber(end).previous(),
                    ));
                }
            }
        }
        if let Some(gap) = gap {
            burst.write_gap(destination, &gap);
        }
        self.requests.samples = wanted;
        self.requests.irrelevant_declared = true;
    }

    /// Retransmits one change. False when the burst is over.
    fn retransmit_sample(
        &mut self,
        sequence: SequenceNumber,
        gap: Option<NumberRun>,
        history: &HistoryCache,
        destination: &Destination,
        burst: &mut BurstWriter<'_>,
    ) -> bool {
        let Some(change) = history.find(sequence) else {
            return true;
        };
        if burst.is_exhausted() {
            return false;
        }
        let encoder = self.encoder(burst.config.guid, destination, gap, change);
        let partly_sent = self.requests.partly_sent;
        let from = if partly_sent.sequence == sequence {
            partly_sent.next_fragment
        } else {
            0
        };
        let next = encoder.send(change, from, burst);
        self.requests.partly_sent = match next {
            Some(next_fragment) => PartlySentSample {
                sequence,
                next_fragment,
                is_first: false,
            },
            None => PartlySentSample::NONE,
        };
        if next.is_none() {
            burst.stats.samples_retransmitted.tally();
        }
        next.is_none()
    }

    /// Retransmits the requested fragments of one sample.
    fn retransmit_fragments(
        &mut self,
        now: Instant,
        sequence: SequenceNumber,
        history: &HistoryCache,
        destination: &Destination,
        burst: &mut BurstWriter<'_>,
    ) -> bool {
        let change = history
            .find(sequence)
            .filter(|change| change.fragment_size > 0 && self.is_relevant(change));
        let Some(change) = change else { return true };
        let encoder = self.encoder(burst.config.guid, destination, None, change);
        let requests = &mut self.requests;
        if requests.fragments.first_mut(sequence).is_none() {
            return true;
        }
        if destination.route.is_shared_memory() {
            if burst.is_exhausted() {
                return false;
            }
            // Requested before the shared-memory connection existed: the sample
            // goes whole.
            encoder.send(change, 0, burst);
            burst.stats.samples_retransmitted.tally();
            return true;
        }
        let total = encoder.fragments_total(change);
        while let Some(set) = requests.fragments.first_mut(sequence) {
            let mut rest = set.iter().filter(|number| (1..=total).contains(&number.0));
            while let Some(number) = rest.next() {
                if burst.is_exhausted() {
                    let open = core::iter::once(number).chain(rest);
                    *set = FragmentSet::from_numbers(number, open);
                    return false;
                }
                let index = number.0.saturating_sub(1);
                encoder.send_fragment(change, index, false, burst);
                burst.stats.fragments_retransmitted.tally();
            }
            let served = *set;
            requests
                .recently_served
                .note_fragments(now, sequence, served);
            requests.fragments.remove_first(sequence);
        }
        true
    }

    fn encoder<'a>(
        &self,
        writer: Guid,
        destination: &'a Destination,
        gap: Option<NumberRun>,
        change: &WriterChange,
    ) -> DataEncoder<'a> {
        DataEncoder {
            writer,
            destination,
            reader: self.guid.entity,
            leading_heartbeat: None,
            gap,
            heartbeat: None,
            may_omit_info_dst: false,
            converted: destination.converted(change),
        }
    }
}
