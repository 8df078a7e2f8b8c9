//! Transmission of a writer, in this order: retransmissions, new changes, due
//! heartbeats.
//!
//! Batching of submessages: a heartbeat goes in the datagram of a sample where
//! possible. A poll stops at the burst limit, and the next one continues there.
//! Nothing is allocated except growth of the outbox.

use super::Writer;
use super::data_encoder::{BurstBudget, DataEncoder};
use super::proxy::{Destination, ReaderProxy};
use super::send_cursor::SendCursor;
use crate::change::WriterChange;
use crate::id::{EntityId, Guid};
use crate::interval::NumberRun;
use crate::locator::RouteKind;
use crate::outbox::Outbox;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;
use crate::wire::{Gap, Heartbeat};

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
        let released = self.released();
        while self.cursor.number <= released {
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
            let requests_ack = match self.cursor.requests_ack {
                Some(requests_ack) => requests_ack,
                None => self.decide_ack_request(now, number),
            };
            self.cursor.requests_ack = Some(requests_ack);
            if !self.cursor.is_partly_sent() {
                self.cursor.destinations_total = self.destinations.len();
            }
            while self.cursor.destinations_done
                < self.destinations.len().max(self.cursor.destinations_total)
            {
                let at = self.cursor.destination_index();
                if budget.is_exhausted(out) {
                    return false;
                }
                let leading = self.leading_heartbeat(at, number);
                let piggybacked = (requests_ack || is_last)
                    .then(|| self.heartbeat(at, !requests_ack, number))
                    .filter(|_| leading.is_none());
                let heartbeats = ChangeHeartbeats {
                    leading,
                    piggybacked,
                };
                let Some(next) = self.push_to(at, number, now, heartbeats, out, budget) else {
                    self.cursor.destinations_done.tally();
                    self.cursor.fragment = 0;
                    continue;
                };
                self.cursor.fragment = next;
                return false;
            }
            self.note_pushed(number, number);
        }
        true
    }

    /// Notes that the changes from `first` to `last` were sent to every destination.
    pub(super) fn note_pushed(&mut self, first: i64, last: i64) {
        self.cursor = SendCursor::at(last.saturating_add(1));
        self.drop_surplus(SequenceNumber(first));
        if self.counts.reliable == 0 || self.counts.filtered > 0 {
            self.prune();
        }
    }

    /// The number of the next change to send. Removed numbers before it are
    /// declared irrelevant with it.
    fn next_to_push(&mut self) -> Option<i64> {
        let from = self.cursor.number;
        let next = self.history.from(SequenceNumber(from));
        let number = next.map_or(self.last.0.saturating_add(1), |change| change.sequence.0);
        if number > from {
            let first = from.max(self.retention.lost_through.saturating_add(1));
            if first < number {
                for destination in &mut self.destinations {
                    destination.add_to_gap(first);
                    destination.add_to_gap(number.saturating_sub(1));
                }
            }
            self.cursor = SendCursor::at(number);
        }
        self.fix_fragment_size(SequenceNumber(number));
        (number <= self.last.0).then_some(number)
    }

    pub(super) fn fix_fragment_size(&mut self, sequence: SequenceNumber) {
        let sizes = self.config.fragment_size;
        let near = self.is_same_host_only();
        if let Some(change) = self.history.find_mut(sequence)
            && change.fragment_size == 0
        {
            change.fragment_size = if near { sizes.same_host } else { sizes.network };
        }
    }

    /// Whether all readers are on this host.
    pub(super) fn is_same_host_only(&self) -> bool {
        self.destinations
            .iter()
            .all(|destination| destination.readers == 0 || destination.route.is_same_host())
    }

    /// Whether the heartbeat with this change requests acknowledgements.
    pub(super) fn decide_ack_request(&mut self, now: Instant, number: i64) -> bool {
        if self.counts.reliable == 0 {
            return false;
        }
        let bytes = self
            .history
            .find(SequenceNumber(number))
            .map_or(0, |change| change.payload.len());
        // With shared memory the first sample is acknowledged without a request.
        let before = self.ack_requests.bytes();
        self.ack_requests.count(bytes);
        let trusts = self.expects_unsolicited_acks();
        let bytes_since_ack_request = if trusts {
            before
        } else {
            self.ack_requests.bytes()
        };
        let half_full =
            self.is_keep_all() && self.history.samples() >= self.retention.samples_max / 2;
        let requests_ack = self.ack_requests.samples() >= self.config.heartbeat.ack_request_samples
            || bytes_since_ack_request >= self.config.heartbeat.ack_request_bytes
            || self.retention.blocked
            || half_full
            // The next write may be far away: this saves a separate heartbeat.
            || (self.ack_requests.is_first_after_idle && !trusts)
            // It replaces the separate heartbeat that is due soon.
            || self.timers.at(super::TIMER_HEARTBEAT) <= now.after(self.config.heartbeat.piggyback_window());
        self.ack_requests.is_first_after_idle &= !requests_ack;
        if requests_ack {
            self.ack_requests.restart();
            let pause = if trusts {
                self.config.heartbeat.shared_memory_period
            } else if bytes >= self.config.heartbeat.ack_request_bytes {
                self.config.heartbeat.period_after_large
            } else {
                self.config.heartbeat.period
            };
            self.ack_requests.new_data_at = now.after(pause);
            self.timers
                .set(super::TIMER_HEARTBEAT, self.ack_requests.new_data_at);
        }
        requests_ack
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
        let from = self.cursor.fragment;
        let change = self.history.find(SequenceNumber(number))?;
        let destination = self.destinations.get_mut(at)?;
        if destination.readers == 0 {
            return None;
        }
        if !is_due(change, destination, at, &self.readers, now) {
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
        let next = encoder.send(change, from, out, budget, &mut self.stats);
        let total = encoder.datagram_count(change);
        self.stats.gaps.tally_by(u64::from(gap.is_some()));
        self.stats
            .heartbeats
            .tally_by(u64::from(leading_heartbeat.is_some() && from == 0));
        destination.pending_gap = None;
        if next.is_none() {
            self.stats.samples_sent.tally();
            if requests_acks {
                self.note_ack_requested(now, at, number);
            }
        }
        let sent = next.unwrap_or(total).saturating_sub(from);
        if total > 1 {
            self.stats.fragments_sent.tally_by(u64::from(sent));
        }
        next
    }

    /// The heartbeat before a change, instead of behind it, while some reader has
    /// never answered. The heartbeat sent on matching may have arrived before that
    /// reader matched the writer. See [`Destination::announce`].
    pub(super) fn leading_heartbeat(&mut self, at: usize, number: i64) -> Option<Heartbeat> {
        let unconfirmed = self
            .destinations
            .get(at)
            .is_some_and(|destination| destination.unconfirmed > 0);
        (unconfirmed && self.cursor.fragment == 0)
            .then(|| self.heartbeat(at, false, number.saturating_sub(1)))
    }

    /// A heartbeat for a destination, naming everything up to `last`.
    pub(super) fn heartbeat(&mut self, at: usize, is_final: bool, last: i64) -> Heartbeat {
        let Some(destination) = self.destinations.get(at) else {
            return self.heartbeat_from(EntityId::UNKNOWN, 1, is_final, last);
        };
        let (reader, start) = (destination.sole_reader, destination.start);
        let last = destination.announce(last);
        self.heartbeat_from(reader, start, is_final, last)
    }

    /// A heartbeat that requests an answer from a participant that may have no
    /// matched reader. Discovery probes with it whether a participant is alive. It names
    /// the same first number as those to `reader`, as matched now or if it were.
    pub(crate) fn probe(&mut self, reader: Guid) -> Heartbeat {
        let start = match self.readers.find(reader) {
            Some(reader) => SequenceNumber(reader.start),
            None => self
                .history
                .first_of_last(usize::MAX)
                .unwrap_or(self.last.next()),
        };
        self.heartbeat_from(EntityId::UNKNOWN, start.0, false, self.last.0)
    }

    fn heartbeat_from(
        &mut self,
        reader: EntityId,
        start: i64,
        is_final: bool,
        last: i64,
    ) -> Heartbeat {
        let count = self.ack_requests.next_heartbeat_count();
        let group_info = self.group_info_up_to(last.max(self.retention.lost_through));
        // A reader that matched while samples are held back begins after those, too.
        let before = start.saturating_sub(1).max(self.retention.lost_through);
        let last = last.max(before);
        let first = before.saturating_add(1);
        Heartbeat {
            reader,
            writer: self.config.guid.entity,
            first: SequenceNumber(first.min(last.saturating_add(1)).max(1)),
            last: SequenceNumber(last.max(0)),
            count,
            is_final,
            liveliness: false,
            group_info,
        }
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
        let readers = self.readers.len();
        let first = core::mem::take(&mut self.pending.next_requester);
        if first >= readers && !self.send_heartbeats(out, budget) {
            return false;
        }
        let first = if first < readers { first } else { 0 };
        let reserved = budget.reserve_beyond(self.config.limits.retransmission_bytes_max);
        for at in (first..readers).chain(0..first) {
            let had_turn = !budget.is_exhausted(out);
            if !self.send_pending_gap(at, out, budget)
                || !self.retransmit(at, now, out, budget)
                || !self.replay(at, now, out, budget)
            {
                self.pending.next_requester = at.saturating_add(had_turn.into());
                return false;
            }
        }
        budget.bytes = budget.bytes.saturating_add(reserved);
        if !self.send_heartbeats(out, budget) {
            return false;
        }
        self.pending.any = false;
        true
    }

    /// Sends the due heartbeats of destinations and single readers.
    fn send_heartbeats(&mut self, out: &mut Outbox, budget: &mut BurstBudget) -> bool {
        let pushed = self.cursor.number.saturating_sub(1);
        for at in 0..self.destinations.len() {
            let Some(destination) = self.destinations.get(at) else {
                continue;
            };
            let (requests_ack, assert) = (destination.heartbeat_due, destination.assertion_due);
            if (!requests_ack && !assert && !destination.group_info_due) || destination.readers == 0
            {
                continue;
            }
            // Readers would request numbers that no sample has declared irrelevant.
            let gap = destination
                .pending_gap
                .filter(|_| destination.announce_max.is_none());
            let mut heartbeat = self.heartbeat(at, !requests_ack, pushed);
            heartbeat.liveliness = assert;
            if !self.send_heartbeat(at, gap, &heartbeat, out, budget) {
                return false;
            }
            if let Some(destination) = self.destinations.get_mut(at) {
                if gap.is_some() {
                    destination.pending_gap = None;
                }
                destination.heartbeat_due = false;
                destination.assertion_due = false;
                destination.group_info_due = false;
            }
        }
        for at in 0..self.readers.len() {
            let Some(reader) = self.readers.get(at).filter(|reader| reader.heartbeat_due) else {
                continue;
            };
            let (entity, start, destination) =
                (reader.guid.entity, reader.start, reader.destination);
            // Heartbeats for all readers of its participant begin lower: without
            // the GAP it would count the difference as lost.
            let is_sole_reader = self
                .destinations
                .get(destination)
                .is_none_or(|destination| destination.readers == 1);
            let gap = (start > 1 && reader.acked == start && !is_sole_reader).then(|| NumberRun {
                first: 1,
                last: start.saturating_sub(1),
            });
            let last = match self.destinations.get(destination) {
                Some(destination) => destination.announce(pushed),
                None => pushed,
            };
            let heartbeat = self.heartbeat_from(entity, start, false, last);
            if !self.send_heartbeat(destination, gap, &heartbeat, out, budget) {
                return false;
            }
            if let Some(reader) = self.readers.get_mut(at) {
                reader.heartbeat_due = false;
            }
        }
        true
    }

    pub(super) fn send_heartbeat(
        &mut self,
        destination: usize,
        gap: Option<NumberRun>,
        heartbeat: &Heartbeat,
        out: &mut Outbox,
        budget: &mut BurstBudget,
    ) -> bool {
        if budget.is_exhausted(out) {
            return false;
        }
        let Some(destination) = self.destinations.get(destination) else {
            return true;
        };
        let mut message = out.begin(
            self.config.guid.prefix,
            &destination.route.locators,
            self.config.datagram_bytes_max,
        );
        message.info_destination(destination.prefix);
        if let Some(run) = gap {
            message.gap(&Gap::range(
                heartbeat.reader,
                heartbeat.writer,
                SequenceNumber(run.first),
                SequenceNumber(run.last),
            ));
            self.stats.gaps.tally();
        }
        message.heartbeat(heartbeat);
        budget.finish(message, &mut self.stats);
        self.stats.heartbeats.tally();
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
