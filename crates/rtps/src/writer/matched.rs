//! Endpoint matching of a writer: adds and removes readers (RTPS 2.5 §8.4.7.4).
//!
//! Readers of one participant with the same route share a destination. Destinations
//! change only on matching, never per write.

use alloc::sync::Arc;

use super::Writer;
use super::config::{PayloadForm, ReaderProxyConfig};
use super::proxy::{Destination, ReaderProxy};
use super::send_cursor::SendCursor;
use crate::id::{EntityId, Guid, GuidPrefix, VendorId};
use crate::interval::NumberRun;
use crate::locator::Route;
use crate::qos::{self, Durability, Reliability};
use crate::retransmission_window::RetransmissionWindow;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;

impl Writer {
    /// Matches a reader, or updates the route and filter of a matched one. False
    /// when the limit of readers is reached.
    ///
    /// A volatile reader gets later changes only. A transient-local late joiner
    /// first gets the history; a Pteros reader, whose depth is known, gets no more
    /// than that depth.
    pub fn match_reader(&mut self, now: Instant, mut config: ReaderProxyConfig) -> bool {
        self.clock = now;
        if self.reader_mut(config.guid).is_some() {
            self.update_route(config.guid, config.route);
            self.set_content_filter(config.guid, config.content_filter);
            return true;
        }
        if self.readers.len() >= self.config.limits.readers_max {
            return false;
        }
        let is_filtered = config.content_filter.is_some();
        config.content_filter = self.accept_filter(config.guid, config.content_filter.take());
        let next_number = self.last.next().0;
        let wants_history =
            self.keeps_for_late_joiners() && config.qos.durability >= Durability::TransientLocal;
        let kept = if wants_history {
            let depth = match config.qos.history {
                qos::History::KeepLast(depth)
                    if config.vendor == VendorId::PTEROS && !config.guid.entity.is_keyed() =>
                {
                    usize::try_from(depth.max(1)).unwrap_or(usize::MAX)
                }
                _ => usize::MAX,
            };
            match &config.content_filter {
                // A reader of coherent sets takes a missing number for a loss.
                Some(filter) if !config.qos.presentation.holds_samples() => {
                    self.filter_history(config.guid, filter, depth)
                }
                filter => {
                    // A reader that filters by itself finds the last samples that
                    // pass.
                    let filters_by_itself = is_filtered && filter.is_none();
                    let depth = if filters_by_itself { usize::MAX } else { depth };
                    let start = self.history.first_of_last(depth);
                    start.map(|s| (s.0, self.last_undirected))
                }
            }
        } else {
            None
        };
        let (start, last_passing) = kept.unwrap_or((next_number, 0));
        let reliable = self.config.qos.reliability == Reliability::Reliable
            && config.qos.reliability == Reliability::Reliable;
        let form = config.payload_form;
        let destination = self.join_destination(config.guid.prefix, &config.route, form);
        if let Some(destination) = self.destinations.get_mut(destination) {
            destination.is_pteros = config.vendor == VendorId::PTEROS;
        }
        let mut reader = ReaderProxy::new(&config, reliable, destination, start);
        reader.starts_at_match = !wants_history;
        reader.last_directed = last_passing;
        reader.history_end = next_number;
        let pushed = self.cursor.number.saturating_sub(1);
        if reliable {
            reader.heartbeat_due = true;
            self.pending.any = true;
            if start < next_number {
                self.all_acked = false;
                self.schedule_stall_check(now);
                self.schedule_heartbeat_to(destination, now.after(self.config.heartbeat.period));
            }
        } else if start <= pushed {
            reader.replay = Some(NumberRun {
                first: start,
                last: pushed,
            });
            self.pending.any = true;
        }
        self.readers.push(reader);
        self.count_filters();
        self.update_destinations();
        true
    }

    /// Draws a participant's initial window of retransmissions from `window`, which all
    /// writers of this participant share. Call it after [`Self::match_reader`]; a writer
    /// without this call has a window of its own.
    pub fn share_retransmission_window(
        &mut self,
        prefix: GuidPrefix,
        window: &Arc<RetransmissionWindow>,
    ) {
        for destination in &mut self.destinations {
            if destination.prefix == prefix {
                destination.credit.share(window.clone());
            }
        }
    }

    /// Suppresses the heartbeat for a reader just matched, while nothing was
    /// written. For a reader that already knows this writer and sends no preemptive
    /// ACKNACK.
    pub fn suppress_initial_heartbeat(&mut self, guid: Guid) {
        let is_new = self.last.0 == 0;
        if let Some(reader) = self.reader_mut(guid).filter(|_| is_new) {
            reader.heartbeat_due = false;
        }
    }

    /// Unmatches a reader. Changes that only it still needed are dropped.
    pub fn unmatch_reader(&mut self, guid: Guid) {
        if let Some(reader) = self.readers.find_mut(guid) {
            reader.progress.end_stall(true, guid, &mut self.events);
        }
        self.readers.remove(guid);
        if self.counts.filtered > 0 {
            self.forget_filter_of(guid);
        }
        self.update_destinations();
        if self.readers.is_empty() {
            let sent = SequenceNumber(self.cursor.number);
            self.cursor = SendCursor::at(self.last.next().0);
            self.drop_surplus(sent);
        }
        self.prune();
    }

    /// Changes the route to a reader.
    pub fn update_route(&mut self, guid: Guid, route: Route) {
        let Some(old) = self.reader_mut(guid).map(|reader| reader.destination) else {
            return;
        };
        let form = self.destinations.get(old).and_then(|old| old.payload_form);
        let destination = self.join_destination(guid.prefix, &route, form);
        let old = self.destinations.get(old);
        let known = old.map(|old| (old.pending_gap, old.is_pteros));
        if let Some(new) = self
            .destinations
            .get_mut(destination)
            .filter(|new| new.readers == 0)
            && let Some((undeclared, is_pteros)) = known
        {
            new.pending_gap = undeclared;
            new.is_pteros = is_pteros;
        }
        if let Some(reader) = self.reader_mut(guid) {
            reader.destination = destination;
        }
        self.update_destinations();
        if !self.all_acked {
            self.schedule_heartbeat_to(destination, self.clock.after(self.config.heartbeat.period));
        }
    }

    /// The destination with this route and payload form, added if necessary.
    pub(super) fn join_destination(
        &mut self,
        prefix: GuidPrefix,
        route: &Route,
        form: Option<PayloadForm>,
    ) -> usize {
        let same = |destination: &Destination| {
            destination.prefix == prefix
                && destination.route == *route
                && destination.payload_form == form
        };
        if let Some(at) = self.destinations.iter().position(same) {
            self.distribute_pending_gap(at);
            return at;
        }
        let heartbeat = &self.config.heartbeat;
        let mut destination = Destination::new(prefix, route.clone(), form, heartbeat);
        let mut others = self.destinations.iter();
        let known = others.find(|other| other.prefix == prefix);
        let known = known.map(|other| other.credit.clone());
        if let Some(credit) = known.or_else(|| self.former_credits.take(prefix)) {
            destination.credit = credit;
        }
        // A freed slot may lie behind the cursor and would then miss the current
        // change: only a new one is safe.
        if self.cursor.destinations_done == 0
            && let Some(at) = self
                .destinations
                .iter()
                .position(|destination| destination.readers == 0)
            && let Some(free) = self.destinations.get_mut(at)
        {
            self.former_credits.note(free.prefix, &free.credit);
            *free = destination;
            return at;
        }
        self.destinations.push(destination);
        self.destinations.len().saturating_sub(1)
    }

    /// A reader joins a destination: the pending GAP is declared to each of the
    /// others alone, since the new reader may need these changes.
    fn distribute_pending_gap(&mut self, at: usize) {
        let Some(run) = self
            .destinations
            .get_mut(at)
            .and_then(|g| g.pending_gap.take())
        else {
            return;
        };
        for reader in self
            .readers
            .iter_mut()
            .filter(|reader| reader.destination == at)
        {
            // Reliable readers request numbers that no GAP declares.
            reader.pending_gap.get_or_insert(run);
            self.pending.any = true;
        }
    }

    /// Updates the destinations' summaries of their readers.
    pub(super) fn update_destinations(&mut self) {
        for destination in &mut self.destinations {
            destination.readers = 0;
            destination.reliable = 0;
            destination.unconfirmed = 0;
            destination.announce_max = None;
            destination.start = i64::MAX;
            destination.wants_set_ends = false;
        }
        self.counts.reliable = 0;
        self.counts.shared_memory = 0;
        let mut by_socket = 0_usize;
        for reader in self.readers.iter() {
            let Some(destination) = self.destinations.get_mut(reader.destination) else {
                continue;
            };
            destination.readers.tally();
            destination.sole_reader = if destination.readers == 1 {
                reader.guid.entity
            } else {
                EntityId::UNKNOWN
            };
            destination.reliable.tally_by(reader.reliable.into());
            destination
                .unconfirmed
                .tally_by(reader.is_unconfirmed().into());
            destination.start = destination.start.min(reader.start);
            destination.wants_set_ends |= reader.wants_set_ends;
            self.counts.reliable.tally_by(reader.reliable.into());
            let is_shared_memory = destination.route.is_shared_memory();
            self.counts.shared_memory.tally_by(is_shared_memory.into());
            by_socket.tally_by(
                (reader.reliable && (!is_shared_memory || reader.is_unconfirmed())).into(),
            );
        }
        self.note_only_shared_memory(self.counts.reliable > 0 && by_socket == 0);
        let readers = &self.readers;
        for (at, destination) in self.destinations.iter_mut().enumerate() {
            let here = || {
                readers
                    .iter()
                    .filter(move |r| r.destination == at && r.reliable)
            };
            let is_silent = here().all(|reader| reader.is_unconfirmed() && reader.starts_at_match);
            destination.announce_max = if is_silent && !destination.is_pteros {
                here().map(|reader| reader.start.saturating_sub(1)).min()
            } else {
                None
            };
        }
        for destination in self
            .destinations
            .iter_mut()
            .filter(|destination| destination.readers == 0)
        {
            // The next reader in this slot needs no earlier GAP.
            destination.pending_gap = None;
            destination.heartbeat_due = false;
        }
        while self
            .destinations
            .last()
            .is_some_and(|destination| destination.readers == 0)
        {
            if let Some(left) = self.destinations.pop() {
                self.former_credits.note(left.prefix, &left.credit);
            }
        }
    }

    pub(super) fn reader_mut(&mut self, guid: Guid) -> Option<&mut ReaderProxy> {
        self.readers.find_mut(guid)
    }
}
