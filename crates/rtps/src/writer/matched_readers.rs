//! Matched readers of a writer (RTPS 2.5 §8.4.7.2, `matched_readers` of a
//! StatefulWriter): their proxies, and the destinations that they share.
//!
//! Readers of one participant with the same route share a destination. Destinations
//! change only on matching, never per write.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::{HeartbeatConfig, PayloadForm};
use super::pending_sends::PendingSends;
use super::proxy::{Destination, ReaderProxy};
use super::reader_counts::ReaderCounts;
use super::reader_proxies::ReaderProxies;
use super::retransmission_credit::FormerCredits;
use super::timers::{TIMER_HEARTBEAT, WriterTimers};
use super::transmission::Transmission;
use crate::change::WriterChange;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Route;
use crate::retransmission_window::RetransmissionWindow;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use crate::time::Instant;

/// The matched readers of one writer.
#[derive(Debug)]
pub struct MatchedReaders {
    pub(super) proxies: ReaderProxies,
    pub(super) destinations: Vec<Destination>,
    pub(super) counts: ReaderCounts,
    /// The last sequence number addressed to every reader.
    pub(super) last_undirected: i64,
    /// Every reliable reader has acknowledged everything, and that was reported.
    pub(super) all_acked: bool,
    former_credits: FormerCredits,
}

impl MatchedReaders {
    /// No readers.
    pub(super) fn new() -> Self {
        Self {
            proxies: ReaderProxies::default(),
            destinations: Vec::new(),
            counts: ReaderCounts::default(),
            last_undirected: 0,
            all_acked: true,
            former_credits: FormerCredits::default(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.proxies.len()
    }

    /// Whether there are none, so that payloads are not needed.
    pub fn is_empty(&self) -> bool {
        self.proxies.is_empty()
    }

    /// Their GUIDs.
    pub fn guids(&self) -> impl Iterator<Item = Guid> + '_ {
        self.proxies.iter().map(|reader| reader.guid)
    }

    /// Whether this reader is matched.
    pub fn contains(&self, reader: Guid) -> bool {
        self.proxies.find(reader).is_some()
    }

    /// How many are reached by a shared-memory connection.
    pub fn shared_memory_count(&self) -> usize {
        self.counts.shared_memory
    }

    /// Whether some reader has a content filter.
    pub fn has_filters(&self) -> bool {
        self.counts.filtered > 0
    }

    /// Whether every reliable reader has acknowledged every change addressed to it.
    pub fn is_acked_by_all(&self) -> bool {
        let owes = |reader: &ReaderProxy| reader.has_unacked(self.last_undirected);
        !self.proxies.iter().any(owes)
    }

    /// Whether this reader has acknowledged everything that was sent to it. True of a
    /// reader that is not matched.
    pub fn is_acked_by(&self, reader: Guid) -> bool {
        let reader = self.proxies.find(reader);
        !reader.is_some_and(|reader| reader.has_unacked(self.last_undirected))
    }

    /// The lowest number that this reader has not acknowledged, for diagnostics. `None`
    /// of a reader that is not matched or has acknowledged nothing since its match.
    pub fn first_unacked(&self, reader: Guid) -> Option<SequenceNumber> {
        let reader = self.proxies.find(reader)?;
        let has_acknowledged = reader.reliable && reader.acked > reader.start;
        has_acknowledged.then_some(SequenceNumber(reader.acked))
    }

    /// Whether this reader has acknowledged a change that was sent to it.
    pub(crate) fn has_acknowledged_a_change(&self, reader: Guid) -> bool {
        let reader = self.proxies.find(reader);
        reader.is_some_and(|reader| reader.acked > reader.start)
    }

    /// The readers that were reported as stalled and have not gone on.
    pub fn stalled(&self) -> impl Iterator<Item = Guid> {
        let stalled = self.proxies.iter().filter(|of| of.progress.is_stalled());
        stalled.map(|reader| reader.guid)
    }

    /// Whether no reader needs the change any more: it was sent (all below `sent_below`
    /// were), and every reliable reader it is relevant to has acknowledged it.
    pub(super) fn is_fully_acked(&self, change: &WriterChange, sent_below: i64) -> bool {
        let number = change.sequence.0;
        number < sent_below
            && !self
                .proxies
                .iter()
                .any(|reader| reader.is_unacked(number) && reader.is_relevant(change))
            || self.proxies.is_empty()
    }

    /// Whether all are on this host.
    pub(super) fn is_same_host_only(&self) -> bool {
        self.destinations
            .iter()
            .all(|destination| destination.readers == 0 || destination.route.is_same_host())
    }

    /// Draws a participant's initial window of retransmissions from `window`, which all
    /// writers of this participant share. Call it after
    /// [`Writer::match_reader`](super::Writer::match_reader); a writer
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

    /// The destination with this route and payload form, added if necessary.
    pub(super) fn join_destination(
        &mut self,
        prefix: GuidPrefix,
        (route, form): (&Route, Option<PayloadForm>),
        heartbeat: &HeartbeatConfig,
        transmission: &mut Transmission,
    ) -> usize {
        let same = |destination: &Destination| {
            destination.prefix == prefix
                && destination.route == *route
                && destination.payload_form == form
        };
        if let Some(at) = self.destinations.iter().position(same) {
            self.distribute_pending_gap(at, &mut transmission.pending);
            return at;
        }
        let mut destination = Destination::new(prefix, route.clone(), form, heartbeat);
        let mut others = self.destinations.iter();
        let known = others.find(|other| other.prefix == prefix);
        let known = known.map(|other| other.credit.clone());
        if let Some(credit) = known.or_else(|| self.former_credits.take(prefix)) {
            destination.credit = credit;
        }
        // A freed slot may lie behind the cursor and would then miss the current
        // change: only a new one is safe.
        if transmission.cursor.destinations_done == 0
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
    fn distribute_pending_gap(&mut self, at: usize, pending: &mut PendingSends) {
        let Some(run) = self
            .destinations
            .get_mut(at)
            .and_then(|g| g.pending_gap.take())
        else {
            return;
        };
        for reader in self
            .proxies
            .iter_mut()
            .filter(|reader| reader.destination == at)
        {
            // Reliable readers request numbers that no GAP declares.
            reader.pending_gap.get_or_insert(run);
            pending.any = true;
        }
    }

    /// Updates the destinations' summaries of their readers. True if all reliable readers
    /// used shared memory before, and one no longer does: its data in transit may be lost.
    pub(super) fn update_destinations(&mut self) -> bool {
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
        for reader in self.proxies.iter() {
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
        let only_shared_memory = self.counts.reliable > 0 && by_socket == 0;
        let was_only_shared_memory =
            core::mem::replace(&mut self.counts.only_shared_memory, only_shared_memory);
        let readers = &self.proxies;
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
        was_only_shared_memory && !only_shared_memory
    }

    /// Schedules the heartbeat of one destination at `at`, or earlier.
    pub(super) fn schedule_heartbeat_to(
        &mut self,
        destination: usize,
        at: Instant,
        config: &HeartbeatConfig,
        timers: &mut WriterTimers,
    ) {
        if let Some(destination) = self.destinations.get_mut(destination) {
            destination.reset_heartbeat_backoff(config);
            destination.heartbeat_schedule.next_at = destination.heartbeat_schedule.next_at.min(at);
            timers.set_no_later(TIMER_HEARTBEAT, at);
        }
    }
}
