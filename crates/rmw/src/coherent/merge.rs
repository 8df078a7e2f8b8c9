//! What the writers of one publisher wrote, put together for one subscriber in
//! the publisher's own order (RTPS 2.5 §8.7.5, §8.7.6, access scope GROUP).
//!
//! A set is handed on when every matched writer of the publisher has told its
//! end; when one has moved past it without, or its part has a hole, nobody sees
//! anything of it. In ordered access a sample waits until no matched writer can
//! still come with an earlier one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pteros_rtps::fault;
use pteros_rtps::id::Guid;
use pteros_rtps::time::{Duration, Instant};

use super::part::{Part, Piece, SET_BYTES_MAX};
use super::{Batch, Dropped};
use crate::sample::Item;

/// A writer as one reader of the subscriber hears it.
pub(crate) type Way = (usize, Guid);

/// How long a finished set waits for writers of the publisher that the set names
/// and discovery has not shown yet; then it is taken for whole. They may be of a
/// stack that names them in another way.
const DISCOVERY_PATIENCE: Duration = Duration::from_secs(1);

/// How long an ordered sample waits for writers that do not tell where they are:
/// best-effort ones, and those of stacks that send no group information.
const ORDER_PATIENCE: Duration = Duration::from_millis(100);

/// How long sets and ordered samples wait for writers that do tell where they
/// are: as long as a lossy link needs to repair much. One that has not said
/// anything by then is on the other side of a cut, and what came goes on
/// without it; a set of which its part is missing is dropped.
const WRITER_PATIENCE: Duration = Duration::from_secs(5);

/// Sets and samples of one publisher that wait at a time; beyond it the oldest is
/// given up, or handed on if it is no set.
const UNITS_MAX: usize = 5_000;

/// Samples in them.
pub(super) const SAMPLES_MAX: usize = 20_000;

/// Bytes of them, as of one set.
const BYTES_MAX: usize = SET_BYTES_MAX;

/// Sets that were given up and are remembered, since parts of them may still
/// come. Beyond it the oldest is forgotten, and counts again if one does.
const GIVEN_UP_MAX: usize = 256;

/// One publisher with several writers.
pub(crate) struct Merge {
    ordered: bool,
    /// Sets and samples may be handed on.
    pub is_open: bool,
    ways: BTreeMap<Way, Progress>,
    /// By the place of their first sample.
    units: BTreeMap<i64, Unit>,
    /// All places up to here are through.
    through: i64,
    /// Who wrote what came through last, if it was of no set.
    last_writer: Option<Guid>,
    /// All places up to here have come, whoever has them.
    floor: i64,
    /// Samples in the units, and their bytes.
    held: usize,
    held_bytes: usize,
    /// When it was last decided what goes on.
    looked_at: Instant,
    /// The writers that discovery shows, as sets name them.
    pub known: Option<[u8; 4]>,
    /// Sets that were counted as dropped, and for which reader.
    given_up: BTreeSet<(i64, usize)>,
}

struct Progress {
    /// It has nothing more at or below this place.
    passed: i64,
    /// It tells where it is even when it is silent.
    tells: bool,
}

#[derive(Default)]
struct Unit {
    is_set: bool,
    /// Who wrote a sample of no set.
    writer: Option<Guid>,
    items: Vec<(i64, usize, Item)>,
    received: BTreeMap<usize, u64>,
    ended: BTreeSet<Way>,
    end: Option<i64>,
    writers: Option<[u8; 4]>,
    spoiled: bool,
    since: Instant,
}

impl Unit {
    fn bytes(&self) -> usize {
        self.items.iter().map(|(_, _, item)| item.weight()).sum()
    }
}

/// What is to be done with the first unit.
#[derive(PartialEq, Eq)]
enum Verdict {
    Release,
    Drop,
    Wait,
}

impl Merge {
    pub fn new(ordered: bool, is_open: bool) -> Self {
        Self {
            ordered,
            is_open,
            ways: BTreeMap::new(),
            units: BTreeMap::new(),
            through: 0,
            last_writer: None,
            floor: 0,
            held: 0,
            held_bytes: 0,
            looked_at: Instant::ZERO,
            known: None,
            given_up: BTreeSet::new(),
        }
    }

    /// A writer is matched with a reader. `tells`: it is known to send group
    /// information.
    pub fn join(&mut self, way: Way, tells: bool) {
        let passed = 0;
        self.ways.entry(way).or_insert(Progress { passed, tells });
    }

    /// The match has ended. Whatever set is open here will not be whole: no
    /// publisher loses a writer within one.
    pub fn leave(&mut self, way: Way) {
        self.ways.remove(&way);
        for unit in self.units.values_mut().filter(|unit| unit.is_set) {
            unit.spoiled |= !unit.ended.contains(&way);
        }
    }

    /// A reader is gone, with all that came for it.
    pub fn forget_reader(&mut self, reader: usize) {
        self.ways.retain(|(of, _), _| *of != reader);
        for unit in self.units.values_mut() {
            let (before, bytes) = (unit.items.len(), unit.bytes());
            unit.items.retain(|(_, of, _)| *of != reader);
            self.held = self.held.saturating_sub(before - unit.items.len());
            self.held_bytes = self.held_bytes.saturating_sub(bytes - unit.bytes());
            unit.received.remove(&reader);
            unit.ended.retain(|(of, _)| *of != reader);
        }
    }

    /// What it holds, and at most.
    pub fn held(&self) -> [(&'static str, usize, usize); 3] {
        let items = self.units.values().map(|unit| unit.items.len()).sum();
        let bytes = self.units.values().map(Unit::bytes).sum();
        [
            ("sets of a publisher", self.units.len(), UNITS_MAX),
            ("samples in sets of a publisher", items, SAMPLES_MAX),
            ("bytes in sets of a publisher", bytes, BYTES_MAX),
        ]
    }

    /// Whether no writer is left.
    pub fn is_over(&self) -> bool {
        self.ways.is_empty()
    }

    /// The writer has nothing more at or below a place, and says so by itself.
    pub fn pass(&mut self, way: Way, place: i64) {
        if let Some(progress) = self.ways.get_mut(&way) {
            progress.passed = progress.passed.max(place);
            progress.tells = true;
        }
    }

    /// Everything up to a place has been handed over already: within a process
    /// the publisher does so in order.
    pub fn raise_floor(&mut self, place: i64) {
        self.floor = self.floor.max(place);
    }

    /// Takes what one writer's stream hands on.
    pub fn take(&mut self, now: Instant, way: Way, piece: Piece, dropped: &mut Dropped) {
        match piece {
            Piece::Loose(place, item) => {
                let place = place.unwrap_or(self.through.saturating_add(1));
                self.note_passed(way, place);
                // Another reader of the same writer gets the same sample.
                let is_same = (place, Some(way.1)) == (self.through, self.last_writer);
                if self.ordered && place <= self.through && !is_same {
                    dropped.late(way.0);
                    return;
                }
                self.held_bytes = self.held_bytes.saturating_add(item.weight());
                let unit = self.unit(now, place);
                unit.writer = Some(way.1);
                unit.items.push((place, way.0, item));
                self.held += 1;
            }
            Piece::Part(part) => self.take_part(now, way, part, dropped),
        }
    }

    /// The writer is at a place, as what it sent there says.
    pub fn note_passed(&mut self, way: Way, place: i64) {
        if let Some(progress) = self.ways.get_mut(&way) {
            progress.passed = progress.passed.max(place);
        }
    }

    fn unit(&mut self, now: Instant, place: i64) -> &mut Unit {
        self.units.entry(place).or_insert_with(|| Unit {
            since: now,
            ..Unit::default()
        })
    }

    fn take_part(&mut self, now: Instant, way: Way, part: Part, dropped: &mut Dropped) {
        if let Some(end) = part.end {
            self.note_passed(way, end);
        }
        if part.set <= self.through {
            // The set was given up, or what came later was handed on, before
            // this part of it came.
            if part.received > 0 {
                self.give_up(part.set, way.0, part.received, dropped);
            }
            return;
        }
        self.held += part.items.len();
        let bytes: usize = part.items.iter().map(|(_, item)| item.weight()).sum();
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        let unit = self.unit(now, part.set);
        unit.is_set = true;
        unit.spoiled |= !part.is_whole;
        unit.end = unit.end.max(part.end);
        unit.writers = part.writers.or(unit.writers);
        *unit.received.entry(way.0).or_default() += part.received;
        let items = part.items.into_iter();
        unit.items
            .extend(items.map(|(place, item)| (place, way.0, item)));
        unit.ended.insert(way);
        unit.since = now;
    }

    /// Counts what came of a set that a reader will not see, and the set once.
    fn give_up(&mut self, set: i64, reader: usize, samples: u64, dropped: &mut Dropped) {
        if !self.given_up.insert((set, reader)) {
            return dropped.samples(reader, samples);
        }
        dropped.set(reader, samples);
        if self.given_up.len() > GIVEN_UP_MAX {
            self.given_up.pop_first();
        }
    }

    /// Hands on what has become ready, in order.
    pub fn advance(&mut self, now: Instant, dropped: &mut Dropped, mut out: impl FnMut(Batch)) {
        self.looked_at = now;
        loop {
            let full = self.units.len() > UNITS_MAX
                || self.held > SAMPLES_MAX
                || self.held_bytes > BYTES_MAX;
            let Some((place, unit)) = self.units.first_key_value() else {
                return;
            };
            if !self.is_open && !full {
                return;
            }
            let mut verdict = self.judge(now, *place, unit);
            if verdict == Verdict::Wait && full {
                verdict = match unit.is_set {
                    true => Verdict::Drop,
                    false => Verdict::Release,
                };
            }
            if verdict == Verdict::Wait {
                return;
            }
            let Some((place, mut unit)) = self.units.pop_first() else {
                return;
            };
            self.held = self.held.saturating_sub(unit.items.len());
            self.held_bytes = self.held_bytes.saturating_sub(unit.bytes());
            let last = unit.items.iter().map(|(place, ..)| *place).max();
            let end = unit.end.or(last).unwrap_or(place);
            if end.max(place) >= self.through {
                self.through = end.max(place);
                self.last_writer = unit.writer;
            }
            if verdict == Verdict::Drop {
                for (reader, count) in unit.received {
                    self.give_up(place, reader, count, dropped);
                }
                continue;
            }
            unit.items.sort_by_key(|(place, ..)| *place);
            let items: VecDeque<_> = unit.items.into_iter().map(|(_, r, i)| (r, i)).collect();
            if !items.is_empty() {
                out(Batch {
                    is_set: unit.is_set,
                    at: now,
                    items,
                });
            }
        }
    }

    fn judge(&self, now: Instant, place: i64, unit: &Unit) -> Verdict {
        if unit.is_set {
            return self.judge_set(now, place, unit);
        }
        match self.awaits_earlier(now, place, unit) {
            true => Verdict::Wait,
            false => Verdict::Release,
        }
    }

    /// In ordered access: whether some writer may still come with what belongs
    /// before a unit, or another reader with its copy of it. Without order a unit
    /// waits only for the sets before it.
    fn awaits_earlier(&self, now: Instant, place: i64, unit: &Unit) -> bool {
        let must_wait = self.ordered && !fault!("order-of-a-group-ignored");
        let waited = |patience| now >= unit.since.after(patience);
        let (waited, waited_long) = (waited(ORDER_PATIENCE), waited(WRITER_PATIENCE));
        let is_awaited = |tells| if tells { !waited_long } else { !waited };
        let mut behind = self.behind(place, unit);
        must_wait && behind.any(|progress| is_awaited(progress.tells))
    }

    /// The ways by which something may still come that belongs before a unit, or
    /// to it: each reader of its writer has a copy, which may be repaired later
    /// than another's.
    fn behind(&self, place: i64, unit: &Unit) -> impl Iterator<Item = &Progress> {
        let before = place.saturating_sub(1);
        let has_gap = before > self.through.max(self.floor);
        let writer = unit.writer;
        let is_behind = move |(way, progress): &(&Way, &Progress)| {
            let has_copy = progress.tells && Some(way.1) == writer;
            has_gap && progress.passed < before || has_copy && progress.passed < place
        };
        self.ways.iter().filter(is_behind).map(|(_, p)| p)
    }

    fn judge_set(&self, now: Instant, place: i64, unit: &Unit) -> Verdict {
        if self.is_broken(unit) {
            // Nobody will see it; what was written before it shall not be taken
            // for late because of it.
            return match self.awaits_earlier(now, place, unit) {
                true => Verdict::Wait,
                false => Verdict::Drop,
            };
        }
        let all = self.ways.keys().all(|way| unit.ended.contains(way));
        if !all && now >= unit.since.after(WRITER_PATIENCE) {
            return Verdict::Drop;
        }
        let named = unit.writers.is_none() || unit.writers == self.known;
        match all && (named || now >= unit.since.after(DISCOVERY_PATIENCE)) {
            true => Verdict::Release,
            false => Verdict::Wait,
        }
    }

    /// Whether a set has a hole, or some writer is past it without having ended
    /// its part.
    fn is_broken(&self, unit: &Unit) -> bool {
        let is_past = |p: &Progress| unit.end.is_some_and(|end| p.passed >= end);
        let mut ways = self.ways.iter();
        unit.spoiled && !fault!("lost-part-of-a-set-overlooked")
            || ways.any(|(way, progress)| is_past(progress) && !unit.ended.contains(way))
    }

    /// When patience with the first unit ends, or ends next.
    pub fn wakes_at(&self) -> Option<Instant> {
        let (place, unit) = self.units.first_key_value().filter(|_| self.is_open)?;
        let patience = match unit.is_set && !self.is_broken(unit) {
            true if self.ways.keys().all(|way| unit.ended.contains(way)) => DISCOVERY_PATIENCE,
            true => WRITER_PATIENCE,
            false => {
                let mut behind = self.behind(*place, unit);
                let is_over = self.looked_at >= unit.since.after(ORDER_PATIENCE);
                match !is_over && behind.any(|p| !p.tells) {
                    true => ORDER_PATIENCE,
                    false => WRITER_PATIENCE,
                }
            }
        };
        Some(unit.since.after(patience))
    }
}
