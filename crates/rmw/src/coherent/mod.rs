//! PRESENTATION at a subscription: coherent sets are seen whole or not at all,
//! and a publisher's samples in its own order (DDS 1.4 §2.2.3.6; RTPS 2.5 §8.7.5,
//! §8.7.6). The same for every path: what comes, comes in each writer's order.
//!
//! [`part`] collects one writer's sets, [`merge`] puts those of a publisher's
//! writers together where the access scope is GROUP, and what is ready waits
//! here, set by set, until it is taken. A set that is larger than what its
//! reader may keep is dropped and counted, as one with a hole is; when newer
//! sets need room, the oldest goes as a whole.

mod delivery;
mod merge;
mod part;
mod sets;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::id::Guid;
use pteros_rtps::mark::Mark;
use pteros_rtps::qos::{DestinationOrder, History, Presentation};
use pteros_rtps::time::Instant;

use crate::instance::KeyHash;
use crate::sample::Item;
use crate::source_order::{Place, place_of};
pub(crate) use delivery::changes_publishers;
use merge::Merge;
use part::{Heard, Piece, Stream};
pub(crate) use sets::Sets;

/// A set, or a sample of none, with the reader each sample is for.
pub(crate) struct Batch {
    /// Its samples belong together.
    pub is_set: bool,
    /// In order.
    pub items: Vec<(usize, Item)>,
}

/// What one reader did not get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Sets dropped: something was missing, or they were too large.
    pub sets: u64,
    /// Samples received and dropped with them.
    pub samples: u64,
    /// Samples older than what was handed on.
    pub late: u64,
}

/// What was dropped lately, by reader.
#[derive(Default)]
pub(crate) struct Dropped(BTreeMap<usize, Losses>);

impl Dropped {
    fn set(&mut self, reader: usize, samples: u64) {
        self.0.entry(reader).or_default().sets += 1;
        self.samples(reader, samples);
    }

    fn samples(&mut self, reader: usize, samples: u64) {
        self.0.entry(reader).or_default().samples += samples;
    }

    fn late(&mut self, reader: usize) {
        self.0.entry(reader).or_default().late += 1;
    }

    /// What there is, which is then forgotten.
    pub fn take(&mut self, reader: usize) -> Losses {
        self.0.remove(&reader).unwrap_or_default()
    }
}

/// One way from a writer to a reader, as it is announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match {
    /// The reader's place in the subscriber.
    pub reader: usize,
    /// The writer.
    pub writer: Guid,
    /// The publisher it belongs to; itself, if it is alone.
    pub publisher: Guid,
    /// It tells where it is even when it is silent.
    pub tells: bool,
}

/// What holds samples back until they may be seen.
pub(crate) struct Assembly {
    presentation: Presentation,
    /// The most samples of one set, by reader.
    depths: Vec<usize>,
    ways: BTreeMap<(usize, Guid), (Guid, Stream)>,
    publishers: BTreeMap<Guid, Merge>,
    pub dropped: Dropped,
}

impl Assembly {
    pub fn new(presentation: Presentation) -> Self {
        Self {
            presentation,
            depths: Vec::new(),
            ways: BTreeMap::new(),
            publishers: BTreeMap::new(),
            dropped: Dropped::default(),
        }
    }

    /// Adds a reader that can keep so many samples; its place.
    pub fn add_reader(&mut self, depth: usize) -> usize {
        self.depths.push(depth);
        self.depths.len() - 1
    }

    /// Whether writers are put together.
    fn merges(&self) -> bool {
        self.presentation.is_of_group()
    }

    /// A writer is matched.
    pub fn join(&mut self, new: Match) {
        let depth = self.depths.get(new.reader).copied().unwrap_or(1);
        let of_group = self.merges();
        let way = (new.reader, new.writer);
        self.ways
            .entry(way)
            .or_insert_with(|| (new.publisher, Stream::new(of_group, depth)));
        if of_group {
            let ordered = self.presentation.ordered;
            let merge = self.publishers.entry(new.publisher);
            let merge = merge.or_insert_with(|| Merge::new(ordered));
            merge.join(way, new.tells);
        }
    }

    /// The writer is gone, and all it sent has been heard.
    pub fn leave(&mut self, now: Instant, reader: usize, writer: Guid, mut out: impl FnMut(Batch)) {
        let way = (reader, writer);
        let Some((publisher, mut stream)) = self.ways.remove(&way) else {
            return;
        };
        let open = stream.abandon();
        let Some(merge) = self.publishers.get_mut(&publisher) else {
            if let Some(part) = open {
                self.dropped.set(reader, part.received);
            }
            return;
        };
        if let Some(part) = open {
            merge.take(now, way, Piece::Part(part), &mut self.dropped);
        }
        merge.leave(way);
        merge.advance(now, &mut self.dropped, &mut out);
        if merge.is_over() {
            self.publishers.remove(&publisher);
        }
    }

    /// All up to a number is settled, and the publisher is at `place`.
    pub fn settle(
        &mut self,
        now: Instant,
        (reader, writer): (usize, Guid),
        sequence: i64,
        place: i64,
        mut out: impl FnMut(Batch),
    ) {
        let way = (reader, writer);
        let Some((publisher, stream)) = self.ways.get_mut(&way) else {
            return;
        };
        stream.settle(sequence, place);
        if let Some(merge) = self.publishers.get_mut(publisher) {
            merge.pass(way, place);
            merge.advance(now, &mut self.dropped, &mut out);
        }
    }

    /// Discovery shows these writers of a publisher.
    pub fn note_writers(
        &mut self,
        now: Instant,
        publisher: Guid,
        known: [u8; 4],
        mut out: impl FnMut(Batch),
    ) {
        if let Some(merge) = self.publishers.get_mut(&publisher) {
            merge.known = Some(known);
            merge.advance(now, &mut self.dropped, &mut out);
        }
    }

    /// Takes what a writer sent next. `in_order`: everything that its publisher
    /// wrote before has been taken, for no network lies between.
    pub fn offer(
        &mut self,
        now: Instant,
        reader: usize,
        arrival: Arrival,
        mut out: impl FnMut(Batch),
    ) {
        let way = (reader, arrival.writer);
        let Some((publisher, stream)) = self.ways.get_mut(&way) else {
            // Not matched: seen in the moment between two locks.
            return;
        };
        let mut mark = arrival.mark.as_deref().copied().unwrap_or_default();
        if !self.presentation.coherent {
            mark.set = None;
        }
        let place = mark.group_sequence;
        let heard = Heard {
            sequence: arrival.sequence,
            mark,
            items: arrival.items,
        };
        let dropped = &mut self.dropped;
        match self.publishers.get_mut(publisher) {
            None => stream.hear(heard, |piece| match piece {
                Piece::Loose(_, item) => out(Batch {
                    is_set: false,
                    items: vec![(reader, item)],
                }),
                Piece::Part(part) if part.is_whole => out(Batch {
                    is_set: true,
                    items: part.items.into_iter().map(|(_, i)| (reader, i)).collect(),
                }),
                Piece::Part(part) => dropped.set(reader, part.received),
            }),
            Some(merge) => {
                if let Some(place) = place.filter(|_| arrival.in_order) {
                    merge.raise_floor(place.previous().0);
                }
                stream.hear(heard, |piece| merge.take(now, way, piece, dropped));
                merge.advance(now, dropped, &mut out);
            }
        }
    }

    /// The publishers that writers are matched of.
    pub fn publishers(&self) -> Vec<Guid> {
        self.publishers.keys().copied().collect()
    }

    /// Whether patience may end some day.
    pub fn wakes_at(&self) -> Option<Instant> {
        let publishers = self.publishers.values();
        publishers.filter_map(Merge::wakes_at).min()
    }

    /// Hands on what patience has ended for.
    pub fn wake(&mut self, now: Instant, mut out: impl FnMut(Batch)) {
        for merge in self.publishers.values_mut() {
            merge.advance(now, &mut self.dropped, &mut out);
        }
    }
}

/// What a writer sent next.
pub(crate) struct Arrival {
    pub writer: Guid,
    pub sequence: i64,
    pub mark: Option<Box<Mark>>,
    /// The sample, the end of an instance, both or nothing.
    pub items: Vec<Item>,
    /// See [`Assembly::offer`].
    pub in_order: bool,
}

/// What is ready and has not been taken, set by set.
pub(crate) struct Waiting {
    batches: VecDeque<Batch>,
    shelves: Vec<Shelf>,
    /// By the source stamp of their first sample instead of arrival.
    by_source: bool,
    /// The place by source of the last sample taken.
    left: Option<Place>,
}

/// What one reader may keep, and keeps.
struct Shelf {
    /// Of one instance.
    each: usize,
    /// In all.
    all: usize,
    keep_all: bool,
    waiting: usize,
    of_instances: BTreeMap<Option<KeyHash>, usize>,
    /// Samples that made room for newer ones.
    overwritten: u64,
}

impl Waiting {
    pub fn new(order: DestinationOrder) -> Self {
        Self {
            batches: VecDeque::new(),
            shelves: Vec::new(),
            by_source: order == DestinationOrder::BySource,
            left: None,
        }
    }

    /// Adds a reader, in the order of their places.
    pub fn add_reader(&mut self, each: usize, all: usize, history: History) {
        self.shelves.push(Shelf {
            each,
            all,
            keep_all: history == History::KeepAll,
            waiting: 0,
            of_instances: BTreeMap::new(),
            overwritten: 0,
        });
    }

    /// Whether writers must wait for a reader, which has `taken` more samples.
    pub fn is_full(&self, reader: usize, taken: usize) -> bool {
        let shelf = self.shelves.get(reader);
        shelf.is_some_and(|shelf| shelf.keep_all && shelf.waiting + taken >= shelf.all)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Samples of a reader that made room for newer ones.
    pub fn overwritten(&self, reader: usize) -> u64 {
        self.shelves
            .get(reader)
            .map_or(0, |shelf| shelf.overwritten)
    }

    /// Adds what has become ready. KEEP_LAST makes room, whole sets at a time,
    /// the oldest first. False when a set is too large for a reader, or older
    /// by source than what was taken; then nobody gets it.
    pub fn push_or_drop_oldest(&mut self, batch: Batch, dropped: &mut Dropped) -> bool {
        let counts = Counts::of(&batch);
        if batch.is_set && !counts.fit_alone(&self.shelves) {
            for (reader, count) in counts.in_all {
                dropped.set(reader, count as u64);
            }
            return false;
        }
        let first = batch.items.first().map(|(_, item)| place_of(item));
        if self.by_source && first < self.left {
            for (reader, _) in &batch.items {
                dropped.late(*reader);
            }
            return false;
        }
        while !counts.fit_besides(&self.shelves) {
            let Some(oldest) = self.pop() else {
                break;
            };
            for (reader, _) in &oldest.items {
                if let Some(shelf) = self.shelves.get_mut(*reader) {
                    shelf.overwritten += 1;
                }
            }
        }
        for (reader, item) in batch.items.iter().filter(|(_, item)| !item.is_end()) {
            if let Some(shelf) = self.shelves.get_mut(*reader) {
                shelf.waiting += 1;
                *shelf.of_instances.entry(instance_of(item)).or_default() += 1;
            }
        }
        let mut at = self.batches.len();
        if self.by_source {
            let place = |batch: &Batch| batch.items.first().map(|(_, item)| place_of(item));
            let newer = self.batches.iter().rev();
            at -= newer.take_while(|batch| place(batch) > first).count();
        }
        self.batches.insert(at, batch);
        true
    }

    /// The oldest batch.
    pub fn pop(&mut self) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        for (reader, item) in &batch.items {
            if self.by_source {
                self.left = self.left.max(Some(place_of(item)));
            }
            if let Some(shelf) = self.shelves.get_mut(*reader)
                && !item.is_end()
            {
                shelf.waiting = shelf.waiting.saturating_sub(1);
                let instance = instance_of(item);
                if let Some(count) = shelf.of_instances.get_mut(&instance) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        shelf.of_instances.remove(&instance);
                    }
                }
            }
        }
        Some(batch)
    }
}

fn instance_of(item: &Item) -> Option<KeyHash> {
    item.instance.as_deref().map(|keyed| keyed.info.key)
}

/// How many samples a batch has, by reader; ends of instances take no room.
#[derive(Default)]
struct Counts {
    of_instances: BTreeMap<(usize, Option<KeyHash>), usize>,
    in_all: BTreeMap<usize, usize>,
}

impl Counts {
    fn of(batch: &Batch) -> Self {
        let mut counts = Self::default();
        for (reader, item) in batch.items.iter().filter(|(_, item)| !item.is_end()) {
            let instance = instance_of(item);
            *counts.of_instances.entry((*reader, instance)).or_default() += 1;
            *counts.in_all.entry(*reader).or_default() += 1;
        }
        counts
    }

    /// Whether every reader has places enough when nothing waits.
    fn fit_alone(&self, shelves: &[Shelf]) -> bool {
        self.of_instances.iter().all(|((reader, _), count)| {
            let in_all = self.in_all.get(reader).copied().unwrap_or(0);
            let shelf = shelves.get(*reader);
            shelf.is_none_or(|shelf| *count <= shelf.each && in_all <= shelf.all)
        })
    }

    /// Whether every KEEP_LAST reader has places enough besides what waits.
    fn fit_besides(&self, shelves: &[Shelf]) -> bool {
        self.of_instances.iter().all(|((reader, instance), count)| {
            let in_all = self.in_all.get(reader).copied().unwrap_or(0);
            let Some(shelf) = shelves.get(*reader).filter(|shelf| !shelf.keep_all) else {
                return true;
            };
            let waiting = shelf.of_instances.get(instance).copied().unwrap_or(0);
            waiting + count <= shelf.each && shelf.waiting + in_all <= shelf.all
        })
    }
}
