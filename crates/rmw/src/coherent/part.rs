//! One writer's sets as one reader hears them: samples and ends of sets come in
//! the order of their numbers, whole parts go out (RTPS 2.5 §8.7.6).
//!
//! A part is whole when every number from the set's first to its end has come,
//! but for those that a filter of the writer's side kept back. What is missing,
//! whatever the reason, spoils it.

use pteros_rtps::fault;
use pteros_rtps::mark::{Mark, MarkKind};

use crate::sample::Item;

/// What came, in order.
pub(crate) struct Heard {
    /// The change's number at its writer.
    pub sequence: i64,
    /// What it says about its set and place.
    pub mark: Mark,
    /// The sample, the end of an instance, both or nothing.
    pub items: Vec<Item>,
}

/// What goes on.
pub(crate) enum Piece {
    /// A sample of no set, with its place in the publisher if it has one.
    Loose(Option<i64>, Item),
    /// All that came of one set.
    Part(Part),
}

/// What one writer contributed to a set.
pub(crate) struct Part {
    /// The set's first number: in the publisher where sets span its writers, at
    /// the writer otherwise.
    pub set: i64,
    /// The place of the set's end in the publisher, if it has come.
    pub end: Option<i64>,
    /// Which writers the publisher has.
    pub writers: Option<[u8; 4]>,
    /// The samples, each with its place in the publisher.
    pub items: Vec<(i64, Item)>,
    /// How many samples came, those that did not fit included.
    pub received: u64,
    /// Nothing is missing.
    pub is_whole: bool,
}

/// The state of one writer's stream.
pub(crate) struct Stream {
    /// Sets are those of the whole publisher.
    of_group: bool,
    /// Samples of one set that are held, at most.
    samples_max: usize,
    /// The last number heard of.
    last: i64,
    /// From this number on nothing is missing, but for what filters kept back.
    sound_from: i64,
    /// Since this place in the publisher nothing has been missed.
    pub covers_from: i64,
    open: Option<Part>,
    open_bytes: usize,
}

/// Bytes of one set that are held for one reader, as for reordering.
pub(crate) const SET_BYTES_MAX: usize = 64 << 20;

impl Stream {
    /// A stream that has heard nothing; `samples_max` is what the reader can
    /// keep of one set.
    pub fn new(of_group: bool, samples_max: usize) -> Self {
        Self {
            of_group,
            samples_max,
            last: 0,
            sound_from: 0,
            covers_from: 0,
            open: None,
            open_bytes: 0,
        }
    }

    /// What it holds, and at most.
    pub fn held(&self) -> [(&'static str, usize, usize); 2] {
        let open = self.open.as_ref().map_or(&[][..], |open| &open.items);
        let bytes = open.iter().map(|(_, item)| item.weight()).sum();
        [
            // A sample may come with the end of its instance.
            (
                "samples of an open set",
                open.len(),
                self.samples_max.saturating_add(1),
            ),
            ("bytes of an open set", bytes, SET_BYTES_MAX),
        ]
    }

    /// Everything up to a number is known to be settled, and the publisher is
    /// at `place`.
    pub fn settle(&mut self, sequence: i64, place: i64) {
        if self.last < sequence {
            self.note_hole(place);
            self.last = sequence;
            self.sound_from = sequence.saturating_add(1);
        }
    }

    fn note_hole(&mut self, place: i64) {
        if fault!("hole-in-a-set-overlooked") {
            return;
        }
        self.covers_from = place;
        if let Some(open) = &mut self.open {
            open.is_whole = false;
            open.items.clear();
        }
    }

    /// Takes what came next; hands on at most a finished part and a sample.
    pub fn hear(&mut self, heard: Heard, mut out: impl FnMut(Piece)) {
        let Heard {
            sequence,
            mark,
            items,
        } = heard;
        let place = mark.group_sequence.map_or(sequence, |n| n.0);
        if sequence != self.last.saturating_add(1) {
            self.note_hole(place);
            self.sound_from = sequence;
        }
        self.last = sequence;
        match mark.kind {
            MarkKind::Filtered | MarkKind::Settled => {}
            MarkKind::End => self.end(&mark, place, out),
            MarkKind::Change => match self.set_of(&mark, sequence) {
                Some(set) => {
                    if self.open.as_ref().is_some_and(|open| open.set != set) {
                        self.close(&mut out);
                    }
                    self.add(set, &mark, place, items);
                }
                None => {
                    self.close(&mut out);
                    for item in items {
                        out(Piece::Loose(mark.group_sequence.map(|n| n.0), item));
                    }
                }
            },
        }
    }

    /// The set of a sample. One that says to have begun after its own sample
    /// is nonsense, and the sample is of no set.
    fn set_of(&self, mark: &Mark, sequence: i64) -> Option<i64> {
        let set = mark.set.filter(|set| set.0 <= sequence);
        let set = set.filter(|_| !fault!("set-seen-before-its-end"))?;
        if !self.of_group {
            return Some(set.0);
        }
        let place = mark.group_sequence?;
        let set = mark.group_set.filter(|set| *set <= place)?;
        Some(set.0)
    }

    fn add(&mut self, set: i64, mark: &Mark, place: i64, items: Vec<Item>) {
        // A filter may have kept the first of them back.
        let has_beginning = mark.set.is_some_and(|first| first.0 >= self.sound_from);
        let samples_max = self.samples_max;
        let open = self.open.get_or_insert_with(|| Part {
            set,
            end: None,
            writers: None,
            items: Vec::new(),
            received: 0,
            is_whole: has_beginning,
        });
        open.received += items.iter().filter(|item| !item.is_end()).count() as u64;
        let weight: usize = items.iter().map(Item::weight).sum();
        self.open_bytes = match open.items.is_empty() {
            true => weight,
            false => self.open_bytes.saturating_add(weight),
        };
        if open.items.len() >= samples_max || self.open_bytes > SET_BYTES_MAX {
            open.is_whole = false;
            open.items.clear();
        }
        if open.is_whole {
            open.items
                .extend(items.into_iter().map(|item| (place, item)));
        }
    }

    /// The set ends by what follows it. One of a group must have had an end:
    /// it is lost, and perhaps samples with it.
    fn close(&mut self, mut out: impl FnMut(Piece)) {
        if let Some(mut part) = self.open.take() {
            part.is_whole &= !self.of_group;
            out(Piece::Part(part));
        }
    }

    fn end(&mut self, mark: &Mark, place: i64, mut out: impl FnMut(Piece)) {
        if !self.of_group {
            self.close(out);
            return;
        }
        let Some(set) = mark.group_set.map(|set| set.0) else {
            return;
        };
        if self.open.as_ref().is_some_and(|open| open.set != set) {
            self.close(&mut out);
        }
        let covered = self.covers_from < set;
        let mut part = self.open.take().unwrap_or(Part {
            set,
            end: None,
            writers: None,
            items: Vec::new(),
            received: 0,
            is_whole: covered,
        });
        part.end = Some(place);
        part.writers = mark.writers;
        out(Piece::Part(part));
    }

    /// The writer is gone: what is open will not be whole.
    pub fn abandon(&mut self) -> Option<Part> {
        let mut part = self.open.take()?;
        part.is_whole = false;
        Some(part)
    }
}
