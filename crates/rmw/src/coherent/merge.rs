//! What the writers of one publisher wrote, put together for one subscriber in
//! the publisher's own order (RTPS 2.5 §8.7.5, §8.7.6, access scope GROUP).
//!
//! A set is handed on when every matched writer of the publisher has told its
//! end; when one has moved past it without, or its part has a hole, nobody sees
//! anything of it. In ordered access a sample waits until no matched writer can
//! still come with an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::id::Guid;
use pteros_rtps::time::{Duration, Instant};

use super::part::{Part, Piece};
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

/// Sets and samples of one publisher that wait at a time; beyond it the oldest is
/// given up, or handed on if it is no set.
const UNITS_MAX: usize = 5_000;

/// Samples in them.
const SAMPLES_MAX: usize = 20_000;

/// One publisher with several writers.
pub(crate) struct Merge {
    ordered: bool,
    ways: BTreeMap<Way, Progress>,
    /// By the place of their first sample.
    units: BTreeMap<i64, Unit>,
    /// All places up to here are through.
    through: i64,
    /// All places up to here have come, whoever has them.
    floor: i64,
    /// Samples in the units.
    held: usize,
    /// The writers that discovery shows, as sets name them.
    pub known: Option<[u8; 4]>,
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
    items: Vec<(i64, usize, Item)>,
    received: BTreeMap<usize, u64>,
    ended: BTreeSet<Way>,
    end: Option<i64>,
    writers: Option<[u8; 4]>,
    spoiled: bool,
    since: Instant,
}

/// What is to be done with the first unit.
#[derive(PartialEq, Eq)]
enum Verdict {
    Release,
    Drop,
    Wait,
}

impl Merge {
    pub fn new(ordered: bool) -> Self {
        Self {
            ordered,
            ways: BTreeMap::new(),
            units: BTreeMap::new(),
            through: 0,
            floor: 0,
            held: 0,
            known: None,
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
                if place <= self.through {
                    dropped.late(way.0);
                    return;
                }
                let unit = self.unit(now, place);
                unit.items.push((place, way.0, item));
                self.held += 1;
            }
            Piece::Part(part) => self.take_part(now, way, part, dropped),
        }
    }

    fn note_passed(&mut self, way: Way, place: i64) {
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
            // The set was given up before this part of it came.
            dropped.samples(way.0, part.received);
            return;
        }
        self.held += part.items.len();
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

    /// Hands on what has become ready, in order.
    pub fn advance(&mut self, now: Instant, dropped: &mut Dropped, mut out: impl FnMut(Batch)) {
        loop {
            let full = self.units.len() > UNITS_MAX || self.held > SAMPLES_MAX;
            let Some((place, unit)) = self.units.first_key_value() else {
                return;
            };
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
            let last = unit.items.iter().map(|(place, ..)| *place).max();
            let end = unit.end.or(last).unwrap_or(place);
            self.through = self.through.max(end).max(place);
            if verdict == Verdict::Drop {
                for (reader, count) in unit.received {
                    dropped.set(reader, count);
                }
                continue;
            }
            unit.items.sort_by_key(|(place, ..)| *place);
            let items: Vec<_> = unit.items.into_iter().map(|(_, r, i)| (r, i)).collect();
            if !items.is_empty() {
                out(Batch {
                    is_set: unit.is_set,
                    items,
                });
            }
        }
    }

    fn judge(&self, now: Instant, place: i64, unit: &Unit) -> Verdict {
        if unit.is_set {
            return self.judge_set(now, unit);
        }
        // Without order a sample waits only for the sets before it.
        let before = place.saturating_sub(1);
        let must_wait = self.ordered && before > self.through.max(self.floor);
        let waited = now >= unit.since.after(ORDER_PATIENCE);
        let is_behind = |p: &Progress| p.passed < before && (p.tells || !waited);
        match must_wait && self.ways.values().any(is_behind) {
            true => Verdict::Wait,
            false => Verdict::Release,
        }
    }

    fn judge_set(&self, now: Instant, unit: &Unit) -> Verdict {
        if unit.spoiled {
            return Verdict::Drop;
        }
        let mut all = true;
        for (way, progress) in &self.ways {
            if unit.ended.contains(way) {
                continue;
            }
            if unit.end.is_some_and(|end| progress.passed >= end) {
                return Verdict::Drop;
            }
            all = false;
        }
        let named = unit.writers.is_none() || unit.writers == self.known;
        match all && (named || now >= unit.since.after(DISCOVERY_PATIENCE)) {
            true => Verdict::Release,
            false => Verdict::Wait,
        }
    }

    /// When patience with the first unit ends.
    pub fn wakes_at(&self) -> Option<Instant> {
        let (_, unit) = self.units.first_key_value()?;
        let all = self.ways.keys().all(|way| unit.ended.contains(way));
        match (unit.is_set, all) {
            (false, _) => Some(unit.since.after(ORDER_PATIENCE)),
            (true, true) => Some(unit.since.after(DISCOVERY_PATIENCE)),
            (true, false) => None,
        }
    }
}
