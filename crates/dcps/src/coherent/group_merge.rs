//! Group merge: samples of all writers of one publisher in the publisher's order.
//!
//! Implements access scope GROUP of PRESENTATION (RTPS 2.5 §8.7.5, §8.7.6). A
//! coherent set is released when every matched writer of the publisher has sent its
//! end. If a writer moved past the set without an end, or its part has a gap, the
//! whole set is dropped. In ordered access, a sample waits until no matched writer
//! can still send an earlier one.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use pteros_rtps::id::Guid;
use pteros_rtps::time::{Duration, Instant};

use super::batch::{DroppedByReader, GroupDialect, MatchKey, ReadyBatch};
use super::writer_stream::{SET_BYTES_MAX, SetPart, StreamOutput};
use crate::sample::queued_sample::QueuedSample;

/// How long a complete set waits for writers that it names and discovery does not
/// show. Then it counts as complete, because a stack may name its writers in another
/// way. Our writers name them as we do, also those of best effort: their set waits for
/// [`WRITER_TIMEOUT`] and is dropped then.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an ordered sample waits for writers that do not announce their
/// position: best-effort ones, and those of stacks without group information.
const ORDER_TIMEOUT: Duration = Duration::from_millis(100);

/// How long sets and ordered samples wait for writers that announce their position:
/// as long as a lossy link needs for many retransmissions. A writer silent for
/// longer is unreachable. Other samples are released without it, and a set without
/// its part is dropped. While a reader is busy ([`GroupMerge::advance`]), it may be what
/// such writers wait for, so this time does not run.
const WRITER_TIMEOUT: Duration = Duration::from_secs(5);

/// Sets and samples of one publisher that wait at a time. Beyond it the oldest is
/// released if it is a sample, dropped if it is a set.
const UNITS_MAX: usize = 5_000;

/// Samples in them.
pub(super) const SAMPLES_MAX: usize = 20_000;

/// Bytes of them, as for one set.
const BYTES_MAX: usize = SET_BYTES_MAX;

/// Groups of writers that discovery has shown and that are remembered.
const DIGESTS_MAX: usize = 8;

/// Dropped sets that are remembered, since parts of them may still arrive. Beyond
/// it the oldest is forgotten, and counts again if a part arrives.
const GIVEN_UP_MAX: usize = 256;

/// Matches that have ended and whose position is remembered, because their writers may
/// return and send their history again. Beyond it the oldest is forgotten.
const ENDED_MATCHES_MAX: usize = 16;

/// The merge state of one publisher with several writers.
pub(crate) struct GroupMerge {
    ordered: bool,
    /// The writers name their publisher, so others may continue its order.
    has_group: bool,
    /// Whether sets and samples may be released.
    pub is_open: bool,
    progress: BTreeMap<MatchKey, WriterProgress>,
    /// The positions of writers that are gone.
    ended_matches: VecDeque<(MatchKey, i64)>,
    /// Since when no writer is matched.
    idle_since: Option<Instant>,
    /// By the group sequence number of their first sample.
    units: BTreeMap<i64, MergeUnit>,
    /// Everything up to this group sequence number was released.
    released_through: i64,
    /// The writer of the last released sample, if that was outside of sets.
    last_writer: Option<Guid>,
    /// Everything up to this group sequence number has arrived.
    complete_through: i64,
    /// Samples in the units, and their bytes.
    held: usize,
    held_bytes: usize,
    /// When the merge was last evaluated, and when a reader last was busy.
    evaluated_at: Instant,
    busy_at: Instant,
    /// The digests of the writers that discovery shows and has shown, as sets name them.
    /// A writer that is gone had its part in sets that come late.
    discovered: VecDeque<[u8; 4]>,
    /// Sets that were counted as dropped, and for which reader.
    dropped_sets: BTreeSet<(i64, usize)>,
}

struct WriterProgress {
    /// The writer has nothing more up to this group sequence number.
    passed_through: i64,
    /// The same for its last match: what it sends again of that is not late.
    passed_before: i64,
    /// The writer announces its position even when it is idle.
    sends_group_info: bool,
    /// Its sets name the writers of the publisher as we do.
    names_writers: bool,
}

#[derive(Default)]
struct MergeUnit {
    is_set: bool,
    /// The writer of a sample outside of sets.
    writer: Option<Guid>,
    items: Vec<(i64, usize, QueuedSample)>,
    received: BTreeMap<usize, u64>,
    ended: BTreeSet<MatchKey>,
    end: Option<i64>,
    writers: Option<[u8; 4]>,
    incomplete: bool,
    since: Instant,
}

impl MergeUnit {
    /// Whether the samples of a set that begins at this group sequence number have all
    /// numbers up to its end.
    fn has_every_number(&self, first: i64) -> bool {
        let numbers: BTreeSet<i64> = self.items.iter().map(|(number, ..)| *number).collect();
        let count = i64::try_from(numbers.len()).unwrap_or(i64::MAX);
        self.end
            .is_some_and(|end| end.saturating_sub(first) == count)
    }

    fn bytes(&self) -> usize {
        self.items.iter().map(|(_, _, item)| item.weight()).sum()
    }
}

/// The action for the first unit.
#[derive(PartialEq, Eq)]
enum MergeDecision {
    Release,
    Drop,
    Wait,
}

impl GroupMerge {
    pub fn new(ordered: bool, is_open: bool, has_group: bool) -> Self {
        Self {
            ordered,
            has_group,
            is_open,
            progress: BTreeMap::new(),
            ended_matches: VecDeque::new(),
            idle_since: None,
            units: BTreeMap::new(),
            released_through: 0,
            last_writer: None,
            complete_through: 0,
            held: 0,
            held_bytes: 0,
            evaluated_at: Instant::ZERO,
            busy_at: Instant::ZERO,
            discovered: VecDeque::new(),
            dropped_sets: BTreeSet::new(),
        }
    }

    /// Adds a writer matched with a reader.
    pub fn add_writer(&mut self, key: MatchKey, dialect: GroupDialect) {
        self.idle_since = None;
        let mut ended = self.ended_matches.iter();
        let before = ended.position(|(of, _)| *of == key);
        let before = before.and_then(|at| self.ended_matches.remove(at));
        self.progress.entry(key).or_insert(WriterProgress {
            passed_through: 0,
            passed_before: before.map_or(0, |(_, through)| through),
            sends_group_info: dialect.sends_group_info,
            names_writers: dialect.names_writers,
        });
    }

    /// Discovery shows these writers.
    pub fn note_discovered(&mut self, digest: [u8; 4]) {
        if self.discovered.back() == Some(&digest) {
            return;
        }
        if self.discovered.len() >= DIGESTS_MAX {
            self.discovered.pop_front();
        }
        self.discovered.push_back(digest);
    }

    /// Removes a writer after the match has ended. An open set will be incomplete:
    /// no publisher removes a writer within a set.
    pub fn remove_writer(&mut self, now: Instant, key: MatchKey) {
        if let Some(progress) = self.progress.remove(&key) {
            if self.ended_matches.len() >= ENDED_MATCHES_MAX {
                self.ended_matches.pop_front();
            }
            let through = progress.passed_through.max(progress.passed_before);
            self.ended_matches.push_back((key, through));
        }
        self.note_whether_idle(now);
        for unit in self.units.values_mut().filter(|unit| unit.is_set) {
            unit.incomplete |= !unit.ended.contains(&key);
        }
    }

    /// Removes a reader with all its samples.
    pub fn remove_reader(&mut self, now: Instant, reader: usize) {
        self.progress.retain(|key, _| key.reader != reader);
        self.ended_matches.retain(|(key, _)| key.reader != reader);
        self.note_whether_idle(now);
        for unit in self.units.values_mut() {
            let (before, bytes) = (unit.items.len(), unit.bytes());
            unit.items.retain(|(_, of, _)| *of != reader);
            self.held = self.held.saturating_sub(before - unit.items.len());
            self.held_bytes = self.held_bytes.saturating_sub(bytes - unit.bytes());
            unit.received.remove(&reader);
            unit.ended.retain(|key| key.reader != reader);
        }
    }

    /// Current sizes and their limits.
    pub fn held(&self) -> [(&'static str, usize, usize); 3] {
        let items = self.units.values().map(|unit| unit.items.len()).sum();
        let bytes = self.units.values().map(MergeUnit::bytes).sum();
        [
            ("sets of a publisher", self.units.len(), UNITS_MAX),
            ("samples in sets of a publisher", items, SAMPLES_MAX),
            ("bytes in sets of a publisher", bytes, BYTES_MAX),
        ]
    }

    fn note_whether_idle(&mut self, now: Instant) {
        if self.has_no_writers() {
            self.idle_since.get_or_insert(now);
        }
    }

    /// Since when no writer is left.
    pub fn idle_since(&self) -> Option<Instant> {
        self.idle_since
    }

    /// Whether it has writers, or further ones of the publisher continue its order.
    pub fn may_be_continued(&self) -> bool {
        let has_begun = self.released_through > 0 || !self.units.is_empty();
        !self.has_no_writers() || self.has_group && has_begun
    }

    /// Whether a writer sent this in an earlier match, too.
    fn is_sent_again(&self, key: MatchKey, group_sequence: i64) -> bool {
        let progress = self.progress.get(&key);
        progress.is_some_and(|progress| group_sequence <= progress.passed_before)
    }

    /// Whether no writer is left.
    pub fn has_no_writers(&self) -> bool {
        self.progress.is_empty()
    }

    /// The writer announces that it has nothing more up to a group sequence number.
    pub fn note_writer_passed(&mut self, key: MatchKey, group_sequence: i64) {
        if let Some(progress) = self.progress.get_mut(&key) {
            progress.passed_through = progress.passed_through.max(group_sequence);
            progress.sends_group_info = true;
        }
    }

    /// Everything up to a group sequence number was delivered. Within a process the
    /// publisher delivers in order.
    pub fn note_complete_through(&mut self, group_sequence: i64) {
        self.complete_through = self.complete_through.max(group_sequence);
    }

    /// Adds the output of one writer's stream.
    pub fn add_output(
        &mut self,
        now: Instant,
        key: MatchKey,
        piece: StreamOutput,
        dropped: &mut DroppedByReader,
    ) {
        match piece {
            StreamOutput::Single(group_sequence, item) => {
                let group_sequence =
                    group_sequence.unwrap_or(self.released_through.saturating_add(1));
                self.note_writer_position(key, group_sequence);
                // Another reader of the same writer gets the same sample.
                let is_same =
                    (group_sequence, Some(key.writer)) == (self.released_through, self.last_writer);
                if self.ordered && group_sequence <= self.released_through && !is_same {
                    if !self.is_sent_again(key, group_sequence) {
                        dropped.add_late(key.reader);
                    }
                    return;
                }
                self.held_bytes = self.held_bytes.saturating_add(item.weight());
                let unit = self.unit_at(now, group_sequence);
                unit.writer = Some(key.writer);
                unit.items.push((group_sequence, key.reader, item));
                self.held += 1;
            }
            StreamOutput::Part(part) => self.take_part(now, key, part, dropped),
        }
    }

    /// Records a writer's position, as implied by what it sent.
    pub fn note_writer_position(&mut self, key: MatchKey, group_sequence: i64) {
        if let Some(progress) = self.progress.get_mut(&key) {
            progress.passed_through = progress.passed_through.max(group_sequence);
        }
    }

    fn unit_at(&mut self, now: Instant, group_sequence: i64) -> &mut MergeUnit {
        self.units
            .entry(group_sequence)
            .or_insert_with(|| MergeUnit {
                since: now,
                ..MergeUnit::default()
            })
    }

    fn take_part(
        &mut self,
        now: Instant,
        key: MatchKey,
        part: SetPart,
        dropped: &mut DroppedByReader,
    ) {
        if let Some(end) = part.end {
            self.note_writer_position(key, end);
        }
        if part.set <= self.released_through {
            // The set was dropped, or a later sample was released, before this part
            // arrived.
            if part.received > 0 && !self.is_sent_again(key, part.set) {
                self.count_dropped_set(part.set, key.reader, part.received, dropped);
            }
            return;
        }
        self.held += part.items.len();
        let bytes: usize = part.items.iter().map(|(_, item)| item.weight()).sum();
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        let unit = self.unit_at(now, part.set);
        unit.is_set = true;
        unit.incomplete |= !part.is_whole;
        unit.end = unit.end.max(part.end);
        unit.writers = part.writers.or(unit.writers);
        *unit.received.entry(key.reader).or_default() += part.received;
        let items = part.items.into_iter();
        unit.items
            .extend(items.map(|(group_sequence, item)| (group_sequence, key.reader, item)));
        unit.ended.insert(key);
        unit.since = now;
    }

    /// Counts the samples of a set that a reader will not get, and the set once.
    fn count_dropped_set(
        &mut self,
        set: i64,
        reader: usize,
        samples: u64,
        dropped: &mut DroppedByReader,
    ) {
        if !self.dropped_sets.insert((set, reader)) {
            return dropped.add_samples(reader, samples);
        }
        dropped.add_set(reader, samples);
        if self.dropped_sets.len() > GIVEN_UP_MAX {
            self.dropped_sets.pop_first();
        }
    }

    /// Releases what has become ready, in order. `busy_at`: until then a reader had so
    /// many samples to take that it may have kept its writers waiting.
    pub fn advance(
        &mut self,
        (now, busy_at): (Instant, Instant),
        dropped: &mut DroppedByReader,
        mut out: impl FnMut(ReadyBatch),
    ) {
        self.evaluated_at = now;
        self.busy_at = busy_at;
        loop {
            let full = self.units.len() > UNITS_MAX
                || self.held > SAMPLES_MAX
                || self.held_bytes > BYTES_MAX;
            let Some((group_sequence, unit)) = self.units.first_key_value() else {
                return;
            };
            if !self.is_open && !full {
                return;
            }
            let mut decision = self.decide(now, *group_sequence, unit);
            if decision == MergeDecision::Wait && full {
                decision = if unit.is_set {
                    MergeDecision::Drop
                } else {
                    MergeDecision::Release
                };
            }
            if decision == MergeDecision::Wait {
                return;
            }
            let Some((group_sequence, mut unit)) = self.units.pop_first() else {
                return;
            };
            self.held = self.held.saturating_sub(unit.items.len());
            self.held_bytes = self.held_bytes.saturating_sub(unit.bytes());
            let last = unit
                .items
                .iter()
                .map(|(group_sequence, ..)| *group_sequence)
                .max();
            let end = unit.end.or(last).unwrap_or(group_sequence);
            if end.max(group_sequence) >= self.released_through {
                self.released_through = end.max(group_sequence);
                self.last_writer = unit.writer;
            }
            if decision == MergeDecision::Drop {
                for (reader, count) in unit.received {
                    self.count_dropped_set(group_sequence, reader, count, dropped);
                }
                continue;
            }
            unit.items
                .sort_by_key(|(group_sequence, ..)| *group_sequence);
            let items: VecDeque<_> = unit.items.into_iter().map(|(_, r, i)| (r, i)).collect();
            if !items.is_empty() {
                out(ReadyBatch {
                    is_set: unit.is_set,
                    ready_at: now,
                    items,
                });
            }
        }
    }

    fn decide(&self, now: Instant, group_sequence: i64, unit: &MergeUnit) -> MergeDecision {
        if unit.is_set {
            return self.decide_set(now, group_sequence, unit);
        }
        if self.awaits_earlier(now, group_sequence, unit) {
            MergeDecision::Wait
        } else {
            MergeDecision::Release
        }
    }

    /// Whether an earlier sample may still arrive, or another reader's copy of this
    /// one.
    ///
    /// In ordered access every unit waits for that. Without order a unit waits only
    /// for the sets before it.
    fn awaits_earlier(&self, now: Instant, group_sequence: i64, unit: &MergeUnit) -> bool {
        let waited = |timeout| now >= self.deadline(unit, timeout);
        let (waited, waited_long) = (waited(ORDER_TIMEOUT), waited(WRITER_TIMEOUT));
        let is_awaited = |sends_group_info| {
            if sends_group_info {
                !waited_long
            } else {
                !waited
            }
        };
        let mut behind = self.writers_behind(group_sequence, unit);
        self.ordered && behind.any(|progress| is_awaited(progress.sends_group_info))
    }

    /// The writers, per reader, that may still send something before or at a unit.
    /// Each reader of a writer has its own copy, which may be retransmitted later
    /// than another's.
    fn writers_behind(
        &self,
        group_sequence: i64,
        unit: &MergeUnit,
    ) -> impl Iterator<Item = &WriterProgress> {
        let before = group_sequence.saturating_sub(1);
        let has_gap = before > self.released_through.max(self.complete_through);
        let writer = unit.writer;
        let is_behind = move |(key, progress): &(&MatchKey, &WriterProgress)| {
            let has_copy = progress.sends_group_info && Some(key.writer) == writer;
            has_gap && progress.passed_through < before
                || has_copy && progress.passed_through < group_sequence
        };
        self.progress.iter().filter(is_behind).map(|(_, p)| p)
    }

    fn decide_set(&self, now: Instant, group_sequence: i64, unit: &MergeUnit) -> MergeDecision {
        if self.is_broken(unit) {
            // No reader gets it. Earlier samples must not count as late because of
            // it.
            return if self.awaits_earlier(now, group_sequence, unit) {
                MergeDecision::Wait
            } else {
                MergeDecision::Drop
            };
        }
        let all = self.has_all_ends(unit);
        let has_waited = |timeout| now >= self.deadline(unit, timeout);
        let is_known = all && self.knows_writers(group_sequence, unit);
        let is_excused = all && !self.has_own_names() && has_waited(DISCOVERY_TIMEOUT);
        if is_known || is_excused {
            MergeDecision::Release
        } else if has_waited(WRITER_TIMEOUT) {
            MergeDecision::Drop
        } else {
            MergeDecision::Wait
        }
    }

    fn has_all_ends(&self, unit: &MergeUnit) -> bool {
        self.progress.keys().all(|key| unit.ended.contains(key))
    }

    /// Whether discovery shows the writers that a set names, or no other writer can have
    /// a part of it.
    fn knows_writers(&self, group_sequence: i64, unit: &MergeUnit) -> bool {
        let mut named = unit.writers.iter();
        let is_known = named.all(|named| self.discovered.contains(named));
        is_known || unit.has_every_number(group_sequence)
    }

    /// Whether the publisher names its writers as we do.
    fn has_own_names(&self) -> bool {
        let mut all = self.progress.values();
        all.all(|progress| progress.names_writers)
    }

    /// Whether a set has a gap, or some writer is past it without having ended its
    /// part.
    fn is_broken(&self, unit: &MergeUnit) -> bool {
        let is_past = |p: &WriterProgress| unit.end.is_some_and(|end| p.passed_through >= end);
        let mut ways = self.progress.iter();
        unit.incomplete
            || ways.any(|(key, progress)| is_past(progress) && !unit.ended.contains(key))
    }

    /// When the next wait for the first unit times out.
    pub fn wakes_at(&self) -> Option<Instant> {
        let (group_sequence, unit) = self.units.first_key_value().filter(|_| self.is_open)?;
        let timeout = if unit.is_set && !self.is_broken(unit) {
            if self.has_all_ends(unit) && !self.has_own_names() {
                DISCOVERY_TIMEOUT
            } else {
                WRITER_TIMEOUT
            }
        } else {
            let mut behind = self.writers_behind(*group_sequence, unit);
            let is_over = self.evaluated_at >= self.deadline(unit, ORDER_TIMEOUT);
            if !is_over && behind.any(|p| !p.sends_group_info) {
                ORDER_TIMEOUT
            } else {
                WRITER_TIMEOUT
            }
        };
        Some(self.deadline(unit, timeout))
    }

    /// When a unit has waited for so long. A busy reader keeps only those writers waiting
    /// that announce their position.
    fn deadline(&self, unit: &MergeUnit, timeout: Duration) -> Instant {
        let since = if timeout == WRITER_TIMEOUT {
            unit.since.max(self.busy_at)
        } else {
            unit.since
        };
        since.after(timeout)
    }
}
