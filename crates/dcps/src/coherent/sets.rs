//! The coherent sets of one subscription, or of a group of them. Samples wait here
//! until their set is complete, and then until it is taken.

use alloc::vec::Vec;

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::{EndpointQos, Presentation};
use pteros_rtps::time::Instant;

use super::assembly::{CoherentMatch, SetAssembly, WriterArrival};
use super::batch::{GroupDialect, MatchKey, ReaderLosses, ReadyBatch};
use super::ready_sets::ReadySets;
use crate::sample::sample_limits::SampleLimits;

/// The samples that readers hold back. Each reader has an index; a reader outside
/// of groups has the first.
pub struct CoherentSets {
    assembly: SetAssembly,
    /// Ready sets.
    pub ready: ReadySets,
    totals: Vec<CoherentSetTotals>,
}

/// Total losses of one reader.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoherentSetTotals {
    /// Sets dropped because they were incomplete or too large.
    pub incomplete: u64,
    /// Samples that arrived too late for the publisher's order.
    pub late: u64,
    /// Samples whose LIFESPAN ended while their set waited.
    pub expired: u64,
    /// Samples replaced by newer ones.
    pub overwritten: u64,
}

impl CoherentSets {
    /// Creates sets without readers.
    pub fn new(presentation: Presentation) -> Self {
        Self {
            assembly: SetAssembly::new(presentation),
            ready: ReadySets::default(),
            totals: Vec::new(),
        }
    }

    /// Adds a reader at a free index, with its sample limits.
    pub fn put_reader(&mut self, reader: usize, qos: &EndpointQos, limits: SampleLimits) {
        self.assembly.put_reader(reader, limits.total);
        self.ready.put_reader(reader, qos, limits);
        if self.totals.len() <= reader {
            self.totals.resize(reader + 1, CoherentSetTotals::default());
        }
        if let Some(totals) = self.totals.get_mut(reader) {
            *totals = CoherentSetTotals::default();
        }
    }

    /// Removes a reader, and returns the sets that only waited for it.
    pub fn remove_reader(&mut self, now: Instant, reader: usize) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.ready.remove_reader(reader);
        self.assembly(now)
            .remove_reader(now, reader, |b| ready.push(b));
        ready
    }

    /// Holds back sets of several writers until
    /// [`CoherentSets::release_group_sets`].
    pub fn hold_group_sets(&mut self) {
        self.assembly.hold_group_sets();
    }

    /// Releases sets that became ready meanwhile.
    pub fn release_group_sets(&mut self, now: Instant) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.assembly(now)
            .release_group_sets(now, |b| ready.push(b));
        ready
    }

    /// Adds a matched writer.
    pub fn add_writer(
        &mut self,
        reader: usize,
        writer: Guid,
        publisher: Option<Guid>,
        dialect: GroupDialect,
    ) {
        self.assembly.add_writer(CoherentMatch {
            reader,
            writer,
            publisher: publisher.unwrap_or(writer),
            dialect,
        });
    }

    /// Inserts a change. Returns what became ready.
    pub fn offer(
        &mut self,
        now: Instant,
        reader: usize,
        arrival: WriterArrival,
    ) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.assembly(now)
            .offer(now, reader, arrival, |b| ready.push(b));
        ready
    }

    /// Removes a writer of a reader, and returns the sets that only waited for it.
    pub fn remove_writer(&mut self, now: Instant, reader: usize, writer: Guid) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.assembly(now)
            .remove_writer(now, reader, writer, |b| ready.push(b));
        ready
    }

    /// Forgets the order of the publishers of a participant that is gone.
    pub fn forget_participant(&mut self, prefix: GuidPrefix) {
        self.assembly.forget_participant(prefix);
    }

    /// Everything of a writer up to a sequence number is settled; the publisher is
    /// at `group_sequence`.
    pub fn note_settled(
        &mut self,
        now: Instant,
        key: MatchKey,
        number: i64,
        group_sequence: i64,
    ) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.assembly(now)
            .note_settled(now, key, number, group_sequence, |b| ready.push(b));
        ready
    }

    /// Discovery shows these writers of a publisher.
    pub fn set_discovered_digest(
        &mut self,
        now: Instant,
        publisher: Guid,
        known: [u8; 4],
    ) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.assembly(now)
            .set_discovered_digest(now, publisher, known, |b| ready.push(b));
        ready
    }

    /// The publishers that have matched writers, where they matter.
    pub fn publishers(&self) -> Vec<Guid> {
        self.assembly.matched_publishers()
    }

    /// Releases sets whose waiting time has ended.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<ReadyBatch> {
        let mut ready = Vec::new();
        self.assembly(now).handle_timeout(now, |b| ready.push(b));
        ready
    }

    /// When [`CoherentSets::handle_timeout`] has work.
    pub fn wakes_at(&self) -> Option<Instant> {
        self.assembly.wakes_at()
    }

    fn assembly(&mut self, now: Instant) -> &mut SetAssembly {
        self.assembly.busy_at = self.ready.busy_at(now);
        &mut self.assembly
    }

    /// Queues a batch that passed the filters. Returns whether it was queued.
    pub fn enqueue(&mut self, batch: ReadyBatch) -> bool {
        self.ready
            .push_or_drop_oldest(batch, &mut self.assembly.dropped)
    }

    /// The total losses of a reader.
    pub fn totals(&self, reader: usize) -> CoherentSetTotals {
        CoherentSetTotals {
            expired: self.ready.expired(reader),
            overwritten: self.ready.overwritten(reader),
            ..self.totals.get(reader).copied().unwrap_or_default()
        }
    }

    /// The first limit that is exceeded for a reader: what, how much it holds, the
    /// limit.
    pub fn exceeded_limit(&self, reader: usize) -> Option<(&'static str, usize, usize)> {
        let of_waiting = self.ready.exceeded_limit(reader);
        of_waiting.or_else(|| self.assembly.exceeded_limit(reader))
    }

    /// Takes the losses of a reader since the last call.
    pub fn losses(&mut self, reader: usize) -> ReaderLosses {
        let losses = self.assembly.dropped.take(reader);
        if let Some(totals) = self.totals.get_mut(reader) {
            totals.incomplete += losses.sets;
            totals.late += losses.late;
        }
        losses
    }
}
