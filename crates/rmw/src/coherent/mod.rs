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
mod waiting;

use std::collections::{BTreeMap, VecDeque};

use pteros_rtps::id::Guid;
use pteros_rtps::mark::{Mark, MarkKind};
use pteros_rtps::qos::Presentation;
use pteros_rtps::time::Instant;

use crate::sample::Item;
pub(crate) use delivery::changes_publishers;
use merge::Merge;
use part::{Heard, Piece, Stream};
pub(crate) use sets::{SetTotals, Sets};
use waiting::Waiting;

/// The place of a reader that stands alone.
pub(crate) const SOLE: usize = 0;

/// A set, or a sample of none, with the reader each sample is for.
pub(crate) struct Batch {
    /// Its samples belong together.
    pub is_set: bool,
    /// When it became ready.
    pub at: Instant,
    /// In order.
    pub items: VecDeque<(usize, Item)>,
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
    /// Sets of several writers may be handed on.
    is_open: bool,
    pub dropped: Dropped,
}

impl Assembly {
    pub fn new(presentation: Presentation) -> Self {
        Self {
            presentation,
            depths: Vec::new(),
            ways: BTreeMap::new(),
            publishers: BTreeMap::new(),
            is_open: true,
            dropped: Dropped::default(),
        }
    }

    /// Hands on nothing of several writers, as far as the limits allow, until
    /// [`Assembly::open`].
    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// Hands on what has become ready meanwhile, and all that will.
    pub fn open(&mut self, now: Instant, mut out: impl FnMut(Batch)) {
        self.is_open = true;
        for merge in self.publishers.values_mut() {
            merge.is_open = true;
            merge.advance(now, &mut self.dropped, &mut out);
        }
    }

    /// Puts a reader that can keep so many samples of a set in a place, which
    /// is free.
    pub fn put_reader(&mut self, reader: usize, depth: usize) {
        if self.depths.len() <= reader {
            self.depths.resize(reader + 1, 0);
        }
        if let Some(place) = self.depths.get_mut(reader) {
            *place = depth;
        }
    }

    /// A reader is gone: its part is missed by nobody.
    pub fn remove_reader(&mut self, now: Instant, reader: usize, mut out: impl FnMut(Batch)) {
        self.ways.retain(|(of, _), _| *of != reader);
        for merge in self.publishers.values_mut() {
            merge.forget_reader(reader);
            merge.advance(now, &mut self.dropped, &mut out);
        }
        self.publishers.retain(|_, merge| !merge.is_over());
        self.dropped.0.remove(&reader);
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
            let (ordered, is_open) = (self.presentation.ordered, self.is_open);
            let merge = self.publishers.entry(new.publisher);
            let merge = merge.or_insert_with(|| Merge::new(ordered, is_open));
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
        let is_filtered = mark.kind == MarkKind::Filtered;
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
                    at: now,
                    items: [(reader, item)].into(),
                }),
                Piece::Part(part) if part.is_whole => out(Batch {
                    is_set: true,
                    at: now,
                    items: part.items.into_iter().map(|(_, i)| (reader, i)).collect(),
                }),
                Piece::Part(part) => dropped.set(reader, part.received),
            }),
            Some(merge) => {
                if let Some(place) = place.filter(|_| arrival.in_order) {
                    merge.raise_floor(place.previous().0);
                }
                stream.hear(heard, |piece| merge.take(now, way, piece, dropped));
                if let Some(place) = place.filter(|_| is_filtered) {
                    merge.note_passed(way, place.0);
                }
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

    /// The first limit that is exceeded for a reader, with what is held and what
    /// may be.
    pub fn exceeded_limit(&self, reader: usize) -> Option<(&'static str, usize, usize)> {
        let ways = self.ways.iter().filter(|((of, _), _)| *of == reader);
        let of_streams = ways.flat_map(|(_, (_, stream))| stream.held());
        let of_merges = self.publishers.values().flat_map(Merge::held);
        let mut all = of_streams.chain(of_merges);
        all.find(|(_, held, max)| held > max)
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
