//! Transmission of a writer, in this order: retransmissions, new changes, due
//! heartbeats.
//!
//! Batching of submessages: a heartbeat goes in the datagram of a sample where
//! possible. A poll stops at the burst limit, and the next one continues there.
//! Nothing is allocated except growth of the outbox.

use super::Writer;
use super::burst_writer::{BurstBudget, BurstWriter};
use super::data_encoder::DataEncoder;
use super::heartbeats::HeartbeatSource;
use super::proxy::{Destination, ReaderProxy};
use super::send_cursor::SendCursor;
use super::transmission::Transmission;
use crate::change::WriterChange;
use crate::id::{EntityId, Guid};
use crate::locator::RouteKind;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::Heartbeat;

/// The heartbeats that go with a change to one destination.
#[derive(Clone, Copy, Debug)]
struct ChangeHeartbeats {
    /// In front of the first fragment.
    leading: Option<Heartbeat>,
    /// Behind the last fragment.
    piggybacked: Option<Heartbeat>,
}

impl Writer {
    /// Puts at most one burst of datagrams into `out`.
    ///
    /// True if there is more: send, clear `out` and call again.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Outbox) -> bool {
        self.poll_transmit_up_to(now, self.config.burst, out)
    }

    /// Sends new changes to every destination. False when the burst is over.
    pub(super) fn push_new_changes(
        &mut self,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let released = self.transmission.released(self.cache.last);
        while self.transmission.cursor.number <= released {
            let Some(number) = self.next_to_push() else {
                return true;
            };
            if number > released {
                return true;
            }
            match self.push_batch(number, now, out, budget) {
                None => {}
                Some(true) => continue,
                Some(false) => return false,
            }
            let is_last = number == released;
            let requests_ack = match self.transmission.cursor.requests_ack {
                Some(requests_ack) => requests_ack,
                None => self.heartbeats.decide_ack_request(
                    now,
                    number,
                    &self.config,
                    &self.matched.counts,
                    &self.cache,
                    &mut self.timers,
                ),
            };
            self.transmission.cursor.requests_ack = Some(requests_ack);
            if !self.transmission.cursor.is_partly_sent() {
                self.transmission.cursor.destinations_total = self.matched.destinations.len();
            }
            while self.transmission.cursor.destinations_done
                < self
                    .matched
                    .destinations
                    .len()
                    .max(self.transmission.cursor.destinations_total)
            {
                let at = self.transmission.cursor.destination_index();
                if budget.is_exhausted(out) {
                    return false;
                }
                let destination = self.matched.destinations.get(at);
                let cursor = &self.transmission.cursor;
                let source = HeartbeatSource::new(&self.config, &self.cache, cursor);
                let heartbeats = &mut self.heartbeats;
                let leading = heartbeats.leading_heartbeat(destination, number, source);
                let piggybacked = (requests_ack || is_last)
                    .then(|| heartbeats.heartbeat(destination, !requests_ack, number, source))
                    .filter(|_| leading.is_none());
                let heartbeats = ChangeHeartbeats {
                    leading,
                    piggybacked,
                };
                let Some(next) = self.push_to(at, number, now, heartbeats, out, budget) else {
                    self.transmission.cursor.destinations_done.tally();
                    self.transmission.cursor.fragment = 0;
                    continue;
                };
                self.transmission.cursor.fragment = next;
                return false;
            }
            self.note_pushed(number, number);
        }
        true
    }

    /// Notes that the changes from `first` to `last` were sent to every destination.
    pub(super) fn note_pushed(&mut self, first: i64, last: i64) {
        self.transmission.cursor = SendCursor::at(last.saturating_add(1));
        self.drop_surplus(SequenceNumber(first));
        if self.matched.counts.reliable == 0 || self.matched.counts.filtered > 0 {
            self.prune();
        }
    }

    /// The number of the next change to send. Removed numbers before it are
    /// declared irrelevant with it.
    fn next_to_push(&mut self) -> Option<i64> {
        let from = self.transmission.cursor.number;
        let next = self.cache.history.from(SequenceNumber(from));
        let number = next.map_or(self.cache.last.0.saturating_add(1), |change| {
            change.sequence.0
        });
        if number > from {
            let first = from.max(self.cache.retention.lost_through.saturating_add(1));
            if first < number {
                for destination in &mut self.matched.destinations {
                    destination.add_to_gap(first);
                    destination.add_to_gap(number.saturating_sub(1));
                }
            }
            self.transmission.cursor = SendCursor::at(number);
        }
        let is_same_host_only = self.matched.is_same_host_only();
        self.cache
            .fix_fragment_size(SequenceNumber(number), &self.config, is_same_host_only);
        (number <= self.cache.last.0).then_some(number)
    }

    /// Sends one change to one destination. Returns the next fragment, or `None`
    /// when the change is complete there.
    fn push_to(
        &mut self,
        at: usize,
        number: i64,
        now: Instant,
        heartbeats: ChangeHeartbeats,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> Option<u32> {
        let ChangeHeartbeats {
            leading: leading_heartbeat,
            piggybacked: heartbeat,
        } = heartbeats;
        let from = self.transmission.cursor.fragment;
        let change = self.cache.history.find(SequenceNumber(number))?;
        let destination = self.matched.destinations.get_mut(at)?;
        if destination.readers == 0 {
            return None;
        }
        if !is_due(change, destination, at, &self.matched.proxies, now) {
            destination.add_to_gap(number);
            return None;
        }
        let reader = change
            .directed_to
            .map_or(destination.sole_reader, |only| only.entity);
        let gap = destination.pending_gap;
        let reliable = destination.reliable > 0;
        let requests_acks = reliable && heartbeat.is_some_and(|heartbeat| !heartbeat.is_final);
        let encoder = DataEncoder {
            writer: self.config.guid,
            destination,
            reader,
            leading_heartbeat,
            gap,
            heartbeat: heartbeat.filter(|_| reliable),
            may_omit_info_dst: self.config.omits_info_dst
                && destination.route.kind == RouteKind::Network
                && change.directed_to.is_none()
                && change.filter_outcome.is_none(),
            converted: destination.converted(change),
        };
        let mut burst = BurstWriter {
            config: &self.config,
            out,
            budget,
            stats: &mut self.stats,
        };
        let next = encoder.send(change, from, &mut burst);
        let total = encoder.datagram_count(change);
        self.stats.gaps.tally_by(u64::from(gap.is_some()));
        self.stats
            .heartbeats
            .tally_by(u64::from(leading_heartbeat.is_some() && from == 0));
        destination.pending_gap = None;
        if next.is_none() {
            self.stats.samples_sent.tally();
            if requests_acks {
                let heartbeats = &mut self.heartbeats;
                let (config, timers) = (&self.config.heartbeat, &mut self.timers);
                heartbeats.note_ack_requested(now, config, destination, number, timers);
            }
        }
        let sent = next.unwrap_or(total).saturating_sub(from);
        if total > 1 {
            self.stats.fragments_sent.tally_by(u64::from(sent));
        }
        next
    }

    /// A heartbeat that requests an answer from a participant that may have no
    /// matched reader. Discovery probes with it whether a participant is alive. It names
    /// the same first number as those to `reader`, as matched now or if it were.
    pub(crate) fn probe(&mut self, reader: Guid) -> Heartbeat {
        let start = match self.matched.proxies.find(reader) {
            Some(reader) => SequenceNumber(reader.start),
            None => self
                .cache
                .history
                .first_of_last(usize::MAX)
                .unwrap_or(self.cache.last.next()),
        };
        let cursor = &self.transmission.cursor;
        let source = HeartbeatSource::new(&self.config, &self.cache, cursor);
        let last = self.cache.last.0;
        self.heartbeats
            .heartbeat_from((EntityId::UNKNOWN, start.0), false, last, source)
    }

    /// Sends retransmissions, history replays, GAPs and heartbeats. False when the
    /// burst is over. The next burst continues with the next reader, so that one
    /// reader with many requests does not starve the others.
    pub(super) fn send_pending(
        &mut self,
        now: Instant,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        let readers = self.matched.len();
        let Transmission {
            cursor, pending, ..
        } = &mut self.transmission;
        let mut burst = BurstWriter {
            config: &self.config,
            out,
            budget,
            stats: &mut self.stats,
        };
        let first = core::mem::take(&mut pending.next_requester);
        if first >= readers {
            let source = HeartbeatSource::new(&self.config, &self.cache, cursor);
            let sends = &mut self.heartbeats;
            if !sends.send_due(&mut self.matched, source, &mut burst) {
                return false;
            }
        }
        let first = if first < readers { first } else { 0 };
        let bytes_max = self.config.limits.retransmission_bytes_max;
        let reserved = burst.budget.reserve_beyond(bytes_max);
        let sent_below = cursor.number;
        let (matched, cache, timers) = (&mut self.matched, &mut self.cache, &mut self.timers);
        for at in (first..readers).chain(0..first) {
            let had_turn = !burst.is_exhausted();
            if !matched.send_pending_gap(at, &mut burst)
                || !matched.retransmit(at, now, cache, sent_below, timers, &mut burst)
                || !matched.replay(at, now, cache, &mut burst)
            {
                pending.next_requester = at.saturating_add(had_turn.into());
                return false;
            }
        }
        burst.budget.bytes = burst.budget.bytes.saturating_add(reserved);
        let source = HeartbeatSource::new(&self.config, cache, cursor);
        if !self.heartbeats.send_due(matched, source, &mut burst) {
            return false;
        }
        pending.any = false;
        true
    }
}

/// Whether a change is to be sent to the destination with index `at`.
pub(super) fn is_due(
    change: &WriterChange,
    destination: &Destination,
    at: usize,
    readers: &[ReaderProxy],
    now: Instant,
) -> bool {
    let is_for_it = change.directed_to.is_none_or(|only| {
        only.prefix == destination.prefix
            && readers
                .iter()
                .any(|reader| reader.guid == only && reader.destination == at)
    });
    let accepts_set_end = destination.wants_set_ends || !change.is_set_end();
    is_for_it
        && accepts_set_end
        && destination.start <= change.sequence.0
        && change.expires_at > now
        && change.is_relevant_at(readers, at)
}
