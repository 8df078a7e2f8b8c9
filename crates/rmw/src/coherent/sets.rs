//! The sets of a subscription that stands alone: what comes waits here until it
//! is whole, then until it is taken.

use pteros_rtps::id::Guid;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Instant;

use super::{Arrival, Assembly, Batch, Losses, Match, Waiting};
use crate::sample::Item;

/// The only reader's place.
const SOLE: usize = 0;

/// What one subscription holds back.
pub(crate) struct Sets {
    assembly: Assembly,
    waiting: Waiting,
    /// Sets dropped for being incomplete or too large, so far.
    pub incomplete: u64,
    /// Samples that came too late for the publisher's order, so far.
    pub late: u64,
    /// Samples whose lifespan ended while their set waited.
    pub expired: u64,
}

impl Sets {
    /// Nothing is held; of one instance and in all so many samples may be.
    pub fn new(qos: &EndpointQos, (each, all): (usize, usize)) -> Self {
        let mut assembly = Assembly::new(qos.presentation);
        let mut waiting = Waiting::new(qos.destination_order);
        assembly.add_reader(all);
        waiting.add_reader(each, all, qos.history);
        Self {
            assembly,
            waiting,
            incomplete: 0,
            late: 0,
            expired: 0,
        }
    }

    /// A writer is matched.
    pub fn join(&mut self, writer: Guid, publisher: Option<Guid>, tells: bool) {
        self.assembly.join(Match {
            reader: SOLE,
            writer,
            publisher: publisher.unwrap_or(writer),
            tells,
        });
    }

    /// Takes what came; hands over what has become ready.
    pub fn offer(&mut self, now: Instant, arrival: Arrival) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly.offer(now, SOLE, arrival, |b| ready.push(b));
        ready
    }

    /// A writer is gone.
    pub fn leave(&mut self, now: Instant, writer: Guid) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly.leave(now, SOLE, writer, |b| ready.push(b));
        ready
    }

    /// All of a writer's up to a number is settled; the publisher is at `place`.
    pub fn settle(&mut self, now: Instant, writer: Guid, number: i64, place: i64) -> Vec<Batch> {
        let mut ready = Vec::new();
        let way = (SOLE, writer);
        self.assembly
            .settle(now, way, number, place, |b| ready.push(b));
        ready
    }

    /// Discovery shows these writers of a publisher.
    pub fn note_writers(&mut self, now: Instant, publisher: Guid, known: [u8; 4]) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly
            .note_writers(now, publisher, known, |b| ready.push(b));
        ready
    }

    /// The publishers that writers are matched of, where they matter.
    pub fn publishers(&self) -> Vec<Guid> {
        self.assembly.publishers()
    }

    /// What patience has ended for.
    pub fn wake(&mut self, now: Instant) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly.wake(now, |b| ready.push(b));
        ready
    }

    /// When [`Sets::wake`] has something to do.
    pub fn wakes_at(&self) -> Option<Instant> {
        self.assembly.wakes_at()
    }

    /// Puts what passed the judges among what waits to be taken; whether it
    /// does.
    pub fn shelve(&mut self, batch: Batch) -> bool {
        self.waiting
            .push_or_drop_oldest(batch, &mut self.assembly.dropped)
    }

    /// The oldest that waits, as it is to be taken: a set that has begun to be
    /// taken is taken whole, so its lifespan is looked at once, here.
    pub fn next(&mut self, now: impl FnOnce() -> Instant) -> Option<Vec<Item>> {
        let mut now = Some(now);
        let mut clock = None;
        loop {
            let batch = self.waiting.pop()?;
            let mut items: Vec<Item> = batch.items.into_iter().map(|(_, item)| item).collect();
            if !batch.is_set || items.iter().all(|i| i.expires_at == Instant::FAR_FUTURE) {
                return Some(items);
            }
            if let Some(now) = now.take() {
                clock = Some(now());
            }
            let is_over = |item: &Item| clock.is_some_and(|now| item.expires_at <= now);
            if items.iter().any(is_over) {
                self.expired += items.len() as u64;
                continue;
            }
            for item in &mut items {
                item.expires_at = Instant::FAR_FUTURE;
            }
            return Some(items);
        }
    }

    /// Whether writers must wait, `taken` samples being out of here and not
    /// taken yet.
    pub fn is_full(&self, taken: usize) -> bool {
        self.waiting.is_full(SOLE, taken)
    }

    /// Whether nothing waits to be taken.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Samples that made room for newer ones, so far.
    pub fn overwritten(&self) -> u64 {
        self.waiting.overwritten(SOLE)
    }

    /// What was dropped since the last look.
    pub fn losses(&mut self) -> Losses {
        let losses = self.assembly.dropped.take(SOLE);
        self.incomplete += losses.sets;
        self.late += losses.late;
        losses
    }
}
