//! The sets of one subscription, or of a group of them: what comes waits here
//! until it is whole, then until it is taken.

use pteros_rtps::id::Guid;
use pteros_rtps::qos::{EndpointQos, Presentation};
use pteros_rtps::time::Instant;

use super::{Arrival, Assembly, Batch, Losses, Match, Waiting};

/// What readers hold back. Each has a place; one that stands alone has the
/// first.
pub(crate) struct Sets {
    assembly: Assembly,
    /// What is ready.
    pub waiting: Waiting,
    totals: Vec<SetTotals>,
}

/// What one reader did not get, so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetTotals {
    /// Sets dropped for being incomplete or too large.
    pub incomplete: u64,
    /// Samples that came too late for the publisher's order.
    pub late: u64,
    /// Samples whose lifespan ended while their set waited.
    pub expired: u64,
    /// Samples that made room for newer ones.
    pub overwritten: u64,
}

impl Sets {
    /// Without readers.
    pub fn new(presentation: Presentation) -> Self {
        Self {
            assembly: Assembly::new(presentation),
            waiting: Waiting::default(),
            totals: Vec::new(),
        }
    }

    /// Adds a reader in a place that is free: of one instance and in all it may
    /// hold so many samples.
    pub fn put_reader(&mut self, reader: usize, qos: &EndpointQos, room: (usize, usize)) {
        self.assembly.put_reader(reader, room.1);
        self.waiting.put_reader(reader, qos, room);
        if self.totals.len() <= reader {
            self.totals.resize(reader + 1, SetTotals::default());
        }
        if let Some(totals) = self.totals.get_mut(reader) {
            *totals = SetTotals::default();
        }
    }

    /// A reader is gone.
    pub fn remove_reader(&mut self, now: Instant, reader: usize) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.waiting.remove_reader(reader);
        self.assembly.remove_reader(now, reader, |b| ready.push(b));
        ready
    }

    /// Hands on nothing of several writers until [`Sets::open`].
    pub fn close(&mut self) {
        self.assembly.close();
    }

    /// Hands on what became ready while it was closed.
    pub fn open(&mut self, now: Instant) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly.open(now, |b| ready.push(b));
        ready
    }

    /// A writer is matched.
    pub fn join(&mut self, reader: usize, writer: Guid, publisher: Option<Guid>, tells: bool) {
        self.assembly.join(Match {
            reader,
            writer,
            publisher: publisher.unwrap_or(writer),
            tells,
        });
    }

    /// Takes what came; hands over what has become ready.
    pub fn offer(&mut self, now: Instant, reader: usize, arrival: Arrival) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly.offer(now, reader, arrival, |b| ready.push(b));
        ready
    }

    /// A writer is gone.
    pub fn leave(&mut self, now: Instant, reader: usize, writer: Guid) -> Vec<Batch> {
        let mut ready = Vec::new();
        self.assembly.leave(now, reader, writer, |b| ready.push(b));
        ready
    }

    /// All of a writer's up to a number is settled; the publisher is at `place`.
    pub fn settle(
        &mut self,
        now: Instant,
        way: (usize, Guid),
        number: i64,
        place: i64,
    ) -> Vec<Batch> {
        let mut ready = Vec::new();
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

    /// A reader's totals.
    pub fn totals(&self, reader: usize) -> SetTotals {
        SetTotals {
            expired: self.waiting.expired(reader),
            overwritten: self.waiting.overwritten(reader),
            ..self.totals.get(reader).copied().unwrap_or_default()
        }
    }

    /// The first limit that is exceeded for a reader, with what is held and what
    /// may be.
    pub fn exceeded_limit(&self, reader: usize) -> Option<(&'static str, usize, usize)> {
        let of_waiting = self.waiting.exceeded_limit(reader);
        of_waiting.or_else(|| self.assembly.exceeded_limit(reader))
    }

    /// What a reader lost since the last look.
    pub fn losses(&mut self, reader: usize) -> Losses {
        let losses = self.assembly.dropped.take(reader);
        if let Some(totals) = self.totals.get_mut(reader) {
            totals.incomplete += losses.sets;
            totals.late += losses.late;
        }
        losses
    }
}
