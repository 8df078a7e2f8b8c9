//! Coherent sets when samples, ends or writers are missing.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use bytes::Bytes;
use pteros_msg::key::KeyHash;
use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::history::ChangeKind;
use pteros_rtps::qos::{EndpointQos, History, Presentation};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};

use super::assembly::{CoherentMatch, SetAssembly, WriterArrival};
use super::batch::{DroppedByReader, GroupDialect, MatchKey, ReaderLosses, ReadyBatch};
use super::ready_sets::ReadySets;
use super::sets::CoherentSets;
use crate::sample::instance_info::SampleInstance;
use crate::sample::queued_sample::SampleBody;
use crate::sample::queued_sample::tests::item_of;
use crate::sample::sample_limits::SampleLimits;

const TOPIC: u8 = 1;
const GROUP: u8 = 2;

struct Harness {
    assembly: SetAssembly,
    of_group: bool,
    now: Instant,
    /// The reader that receives the samples.
    reader: usize,
    seen: Vec<Vec<(u8, i64)>>,
}

fn match_key(reader: usize, writer: u8) -> MatchKey {
    MatchKey {
        reader,
        writer: guid(writer),
    }
}

fn guid(writer: u8) -> pteros_rtps::id::Guid {
    item_of(writer, 1).meta.publisher
}

/// A reliable writer of ours.
const OWN: GroupDialect = GroupDialect {
    sends_group_info: true,
    names_writers: true,
};

impl Harness {
    fn new(access_scope: u8, writers: &[u8]) -> Self {
        Self::with_dialect(access_scope, writers, OWN)
    }

    fn with_dialect(access_scope: u8, writers: &[u8], dialect: GroupDialect) -> Self {
        let mut assembly = SetAssembly::new(Presentation {
            access_scope,
            coherent: true,
            ordered: false,
        });
        assembly.put_reader(0, 4);
        for writer in writers {
            assembly.add_writer(CoherentMatch {
                reader: 0,
                writer: guid(*writer),
                publisher: match access_scope {
                    GROUP => guid(100),
                    _ => guid(*writer),
                },
                dialect,
            });
        }
        Self {
            assembly,
            of_group: access_scope == GROUP,
            now: Instant::ZERO,
            reader: 0,
            seen: Vec::new(),
        }
    }

    /// Writers of one publisher in ordered access, each with or without position
    /// announcements.
    fn ordered(writers: &[(u8, bool)]) -> Self {
        Self::in_order(writers, false)
    }

    /// The same, with sets if `coherent`.
    fn in_order(writers: &[(u8, bool)], coherent: bool) -> Self {
        let mut harness = Self::new(GROUP, &[]);
        harness.assembly = SetAssembly::new(Presentation {
            access_scope: GROUP,
            coherent,
            ordered: true,
        });
        harness.assembly.put_reader(0, 4);
        for (writer, sends_group_info) in writers {
            harness.join_reader(0, *writer);
            if !sends_group_info {
                continue;
            }
            harness
                .assembly
                .note_settled(harness.now, match_key(0, *writer), 0, 0, |_| {});
        }
        harness
    }

    fn join_reader(&mut self, reader: usize, writer: u8) {
        self.assembly.add_writer(CoherentMatch {
            reader,
            writer: guid(writer),
            publisher: guid(100),
            dialect: GroupDialect::default(),
        });
    }

    /// A sample outside of sets, at a group sequence number.
    fn single(&mut self, writer: u8, sequence: i64, group_sequence: i64) {
        let mark = CoherentMark {
            group_sequence: Some(SequenceNumber(group_sequence)),
            ..CoherentMark::default()
        };
        self.offer(writer, sequence, mark);
    }

    fn wake(&mut self, now: Instant) {
        self.now = now;
        let seen = &mut self.seen;
        self.assembly.handle_timeout(now, |b| Self::note(seen, &b));
    }

    fn note(seen: &mut Vec<Vec<(u8, i64)>>, batch: &ReadyBatch) {
        let of = |(_, item): &(usize, crate::sample::queued_sample::QueuedSample)| {
            (item.meta.publisher.prefix.0[0], item.meta.sequence)
        };
        seen.push(batch.items.iter().map(of).collect());
    }

    fn offer(&mut self, writer: u8, sequence: i64, mark: CoherentMark) {
        let is_sample = mark.kind == CoherentMarkKind::CacheChange;
        let arrival = WriterArrival {
            writer: guid(writer),
            sequence,
            mark: Some(Box::new(mark)),
            items: is_sample
                .then(|| item_of(writer, sequence))
                .into_iter()
                .collect(),
            in_order: false,
        };
        let seen = &mut self.seen;
        self.assembly
            .offer(self.now, self.reader, arrival, |batch| {
                Self::note(seen, &batch)
            });
    }

    /// A sample of the set that began with `first` at its writer and with `set` in
    /// the group, at group sequence number `place`.
    fn sample(&mut self, writer: u8, sequence: i64, first: i64, (set, group_sequence): (i64, i64)) {
        let of_group = self.of_group;
        self.offer(
            writer,
            sequence,
            CoherentMark {
                coherent_set: Some(SequenceNumber(first)),
                group_coherent_set: of_group.then_some(SequenceNumber(set)),
                group_sequence: of_group.then_some(SequenceNumber(group_sequence)),
                ..CoherentMark::default()
            },
        );
    }

    fn end(&mut self, writer: u8, sequence: i64, (set, group_sequence): (i64, i64)) {
        let of_group = self.of_group;
        self.offer(
            writer,
            sequence,
            CoherentMark {
                kind: CoherentMarkKind::SetEnd,
                group_coherent_set: of_group.then_some(SequenceNumber(set)),
                group_sequence: of_group.then_some(SequenceNumber(group_sequence)),
                ..CoherentMark::default()
            },
        );
    }

    fn leave(&mut self, writer: u8) {
        let seen = &mut self.seen;
        self.assembly
            .remove_writer(self.now, 0, guid(writer), |b| Self::note(seen, &b));
    }

    fn losses(&mut self) -> ReaderLosses {
        self.assembly.dropped.take(0)
    }
}

#[test]
fn a_set_with_a_gap_is_dropped_whichever_sample_is_missing() {
    for missing in 1..=4 {
        let mut harness = Harness::new(TOPIC, &[1]);
        for n in (1..=3).filter(|n| *n != missing) {
            harness.sample(1, n, 1, (0, 0));
        }
        if missing != 4 {
            harness.end(1, 4, (0, 0));
        }
        // The next set ends this one, too, if its end was lost.
        harness.sample(1, 5, 5, (0, 0));
        harness.end(1, 6, (0, 0));
        assert_eq!(harness.seen, [[(1, 5)]], "{missing}");
        assert_eq!(harness.losses().sets, 1);
    }
}

#[test]
fn the_next_set_ends_one_without_an_explicit_end() {
    let mut harness = Harness::new(TOPIC, &[1]);
    harness.sample(1, 1, 1, (0, 0));
    harness.sample(1, 2, 1, (0, 0));
    harness.sample(1, 3, 3, (0, 0));
    assert_eq!(harness.seen, [[(1, 1), (1, 2)]]);
    harness.offer(1, 4, CoherentMark::default());
    assert_eq!(harness.seen[1..], [[(1, 3)], [(1, 4)]]);
    assert_eq!(harness.losses(), ReaderLosses::default());
}

#[test]
fn a_writer_removed_within_a_set_drops_the_set() {
    for scope in [TOPIC, GROUP] {
        let mut harness = Harness::new(scope, &[1, 2]);
        harness.sample(1, 1, 1, (1, 1));
        harness.sample(2, 1, 1, (1, 2));
        harness.leave(1);
        harness.end(2, 2, (1, 3));
        let survives: &[Vec<(u8, i64)>] = match scope {
            // Here the set of the other writer is a different one.
            TOPIC => &[vec![(2, 1)]],
            _ => &[],
        };
        assert_eq!(harness.seen, survives);
        assert!(harness.losses().samples >= 1);
    }
}

#[test]
fn a_group_set_waits_for_all_its_writers_and_keeps_the_group_order() {
    let mut harness = Harness::new(GROUP, &[1, 2]);
    harness.sample(1, 1, 1, (1, 2));
    harness.end(1, 2, (1, 4));
    assert!(harness.seen.is_empty());
    harness.sample(2, 1, 1, (1, 1));
    harness.sample(2, 2, 1, (1, 3));
    harness.end(2, 3, (1, 4));
    assert_eq!(harness.seen, [[(2, 1), (1, 1), (2, 2)]]);
}

#[test]
fn a_group_writer_that_moves_past_a_set_without_an_end_drops_the_set() {
    let mut harness = Harness::new(GROUP, &[1, 2]);
    harness.sample(1, 1, 1, (1, 1));
    harness.end(1, 2, (1, 2));
    // Its end of the first set was lost, and perhaps more with it.
    harness.sample(2, 2, 2, (3, 3));
    harness.end(2, 3, (3, 4));
    harness.end(1, 3, (3, 4));
    assert_eq!(harness.seen, [[(2, 2)]]);
    assert_eq!(harness.losses().sets, 1);
}

#[test]
fn a_set_larger_than_the_reader_keeps_is_not_held() {
    let mut harness = Harness::new(TOPIC, &[1]);
    for n in 1..=1_000 {
        harness.sample(1, n, 1, (0, 0));
    }
    harness.end(1, 1_001, (0, 0));
    assert!(harness.seen.is_empty());
    let expected = ReaderLosses {
        sets: 1,
        samples: 1_000,
        late: 0,
    };
    assert_eq!(harness.losses(), expected);
}

/// The end of a set with group sequence numbers 1 to `end`, that names writers which
/// discovery does not show.
fn end_of_undiscovered(harness: &mut Harness, end: i64) {
    harness.offer(
        1,
        2,
        CoherentMark {
            kind: CoherentMarkKind::SetEnd,
            group_coherent_set: Some(SequenceNumber(1)),
            group_sequence: Some(SequenceNumber(end)),
            writer_group_digest: Some([1, 2, 3, 4]),
            ..CoherentMark::default()
        },
    );
}

/// Lets the next timeout pass. Returns after how long it was due.
fn pass_timeout(harness: &mut Harness) -> Option<Duration> {
    let wakes_at = harness.assembly.wakes_at()?;
    let waited = wakes_at.since(harness.now);
    harness.now = wakes_at;
    let seen = &mut harness.seen;
    let assembly = &mut harness.assembly;
    assembly.handle_timeout(wakes_at, |b| Harness::note(seen, &b));
    Some(waited)
}

#[test]
fn a_set_with_undiscovered_writers_waits_until_the_timeout() {
    // Another stack may name its writers in another way.
    let mut harness = Harness::in_order(&[(1, false)], true);
    harness.sample(1, 1, 1, (1, 1));
    end_of_undiscovered(&mut harness, 3);
    assert!(harness.seen.is_empty());
    assert_eq!(pass_timeout(&mut harness), Some(Duration::from_secs(1)));
    assert_eq!(harness.seen, [[(1, 1)]]);
}

/// Found by the simulator (seeds 41959, and 88001722 for a reader of best effort, whose
/// writer announces no position).
#[test]
fn a_set_of_ours_is_never_delivered_without_an_undiscovered_writer() {
    for sends_group_info in [true, false] {
        let dialect = GroupDialect {
            sends_group_info,
            ..OWN
        };
        let mut harness = Harness::with_dialect(GROUP, &[1], dialect);
        harness.sample(1, 1, 1, (1, 1));
        // Number 2 is of the writer that discovery does not show.
        end_of_undiscovered(&mut harness, 3);
        assert_eq!(pass_timeout(&mut harness), Some(Duration::from_secs(5)));
        assert!(harness.seen.is_empty());
        assert_eq!(harness.losses().sets, 1);
    }
}

#[test]
fn a_set_with_all_numbers_needs_no_undiscovered_writer() {
    let mut harness = Harness::new(GROUP, &[1]);
    harness.sample(1, 1, 1, (1, 1));
    end_of_undiscovered(&mut harness, 2);
    assert_eq!(harness.seen, [[(1, 1)]]);
}

#[test]
fn a_set_with_a_writer_that_is_gone_meanwhile_is_delivered() {
    let mut harness = Harness::new(GROUP, &[1]);
    let (assembly, now) = (&mut harness.assembly, harness.now);
    for digest in [[1, 2, 3, 4], [9; 4]] {
        assembly.set_discovered_digest(now, guid(100), digest, |_| {});
    }
    harness.sample(1, 1, 1, (1, 1));
    end_of_undiscovered(&mut harness, 3);
    assert_eq!(harness.seen, [[(1, 1)]]);
}

#[test]
fn a_set_waits_for_a_silent_writer_until_the_timeout_and_is_dropped() {
    let mut harness = Harness::new(GROUP, &[1, 2]);
    harness.sample(1, 1, 1, (1, 1));
    harness.end(1, 2, (1, 2));
    let wakes_at = harness.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, harness.now.after(Duration::from_secs(5)));
    let seen = &mut harness.seen;
    harness
        .assembly
        .handle_timeout(wakes_at, |b| Harness::note(seen, &b));
    assert!(harness.seen.is_empty());
    assert_eq!(harness.losses().sets, 1);
    assert_eq!(harness.assembly.wakes_at(), None);
    // Later parts of it are lost as well; the next set is complete again.
    harness.now = wakes_at;
    harness.sample(2, 1, 1, (1, 2));
    harness.end(2, 2, (1, 2));
    assert_eq!(harness.losses().samples, 1);
    harness.sample(2, 3, 3, (3, 3));
    harness.end(1, 3, (3, 4));
    harness.end(2, 4, (3, 4));
    assert_eq!(harness.seen, [[(2, 3)]]);
}

/// Seed 4359 of the simulator: a set with a gap was dropped at once, and earlier
/// samples that arrived afterwards counted as late.
#[test]
fn a_dropped_set_makes_no_earlier_sample_late() {
    let mut harness = Harness::in_order(&[(1, true), (2, true)], true);
    harness.sample(1, 2, 1, (2, 3));
    harness.end(1, 3, (2, 4));
    harness.single(2, 1, 1);
    harness.end(2, 2, (2, 4));
    harness.single(2, 3, 5);
    assert_eq!(harness.seen, [[(2, 1)], [(2, 3)]]);
    let expected = ReaderLosses {
        sets: 1,
        samples: 1,
        late: 0,
    };
    assert_eq!(harness.losses(), expected);
}

/// Seed 740000915 of the simulator: a slow application kept the writers of a full reader
/// waiting, which was taken for silence of theirs after 5 s.
#[test]
fn in_order_the_time_of_a_busy_reader_is_no_silence_of_its_writers() {
    let qos = EndpointQos {
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    let mut sets = CoherentSets::new(Presentation {
        access_scope: GROUP,
        coherent: false,
        ordered: true,
    });
    sets.put_reader(0, &qos, SampleLimits::without_key(2));
    for writer in [1, 2] {
        sets.add_writer(0, guid(writer), Some(guid(100)), OWN);
    }
    let offer = |sets: &mut CoherentSets, now, writer, sequence, group_sequence| {
        let mark = CoherentMark {
            group_sequence: Some(SequenceNumber(group_sequence)),
            ..CoherentMark::default()
        };
        let arrival = WriterArrival {
            writer: guid(writer),
            sequence,
            mark: Some(Box::new(mark)),
            items: vec![item_of(writer, sequence)],
            in_order: false,
        };
        sets.offer(now, 0, arrival)
    };
    let mut now = Instant::ZERO;
    for n in [1, 2] {
        for batch in offer(&mut sets, now, 1, n, n) {
            assert!(sets.enqueue(batch));
        }
    }
    assert!(offer(&mut sets, now, 1, 3, 4).is_empty());
    now = now.after(Duration::from_secs(6));
    assert!(sets.handle_timeout(now).is_empty());
    assert!(sets.ready.next(|| now).is_some());
    now = now.after(Duration::from_secs(4));
    assert!(sets.handle_timeout(now).is_empty());
    assert_eq!(offer(&mut sets, now, 2, 1, 3).len(), 2);
    assert_eq!(sets.losses(0).late, 0);
    // Then silence counts.
    assert!(offer(&mut sets, now, 1, 4, 6).is_empty());
    now = now.after(Duration::from_secs(5));
    assert_eq!(sets.wakes_at(), Some(now));
    assert_eq!(sets.handle_timeout(now).len(), 1);
}

/// A full reader keeps no writers waiting but those of its own that announce positions.
#[test]
fn the_time_of_a_busy_reader_counts_for_writers_without_group_information_and_discovery() {
    let keep_all = EndpointQos {
        history: History::KeepAll,
        ..EndpointQos::default()
    };
    for coherent in [false, true] {
        let mut sets = CoherentSets::new(Presentation {
            access_scope: GROUP,
            coherent,
            ordered: true,
        });
        sets.put_reader(0, &keep_all, SampleLimits::without_key(2));
        let last = if coherent { 1 } else { 2 };
        for writer in 1..=last {
            sets.add_writer(0, guid(writer), Some(guid(100)), GroupDialect::default());
        }
        let offer = |sets: &mut CoherentSets, writer, sequence, mark: CoherentMark| {
            let arrival = WriterArrival {
                writer: guid(writer),
                sequence,
                items: match mark.kind {
                    CoherentMarkKind::CacheChange => vec![item_of(writer, sequence)],
                    _ => Vec::new(),
                },
                mark: Some(Box::new(mark)),
                in_order: false,
            };
            sets.offer(Instant::ZERO, 0, arrival)
        };
        let at = |number| CoherentMark {
            group_sequence: Some(SequenceNumber(number)),
            ..CoherentMark::default()
        };
        for n in [1, 2] {
            for batch in offer(&mut sets, 1, n, at(n)) {
                assert!(sets.enqueue(batch));
            }
        }
        let timeout = if coherent {
            let set = CoherentMark {
                group_coherent_set: Some(SequenceNumber(3)),
                ..CoherentMark::default()
            };
            let sample = CoherentMark {
                coherent_set: Some(SequenceNumber(3)),
                group_sequence: Some(SequenceNumber(3)),
                ..set
            };
            let end = CoherentMark {
                kind: CoherentMarkKind::SetEnd,
                group_sequence: Some(SequenceNumber(5)),
                writer_group_digest: Some([1, 2, 3, 4]),
                ..set
            };
            assert!(offer(&mut sets, 1, 3, sample).is_empty());
            assert!(offer(&mut sets, 1, 4, end).is_empty());
            Duration::from_secs(1)
        } else {
            assert!(offer(&mut sets, 1, 3, at(4)).is_empty());
            Duration::from_millis(100)
        };
        let due = Instant::ZERO.after(timeout);
        let before = Instant::from_nanos(due.as_nanos() - 1);
        assert!(sets.handle_timeout(before).is_empty());
        assert_eq!(sets.wakes_at(), Some(due));
        assert_eq!(sets.handle_timeout(due).len(), 1);
    }
}

/// Seed 740002244 of the simulator: discovery replaced all writers of a publisher by
/// another one, and what that had written before came after later samples.
#[test]
fn in_order_a_further_writer_continues_where_the_last_one_ended() {
    let mut harness = Harness::ordered(&[(1, true)]);
    harness.single(1, 1, 5);
    let seen = &mut harness.seen;
    let now = harness.now;
    harness
        .assembly
        .remove_writer(now, 0, guid(1), |batch| Harness::note(seen, &batch));
    assert_eq!(harness.assembly.matched_publishers(), []);
    harness.join_reader(0, 2);
    harness.single(2, 1, 4);
    harness.single(2, 2, 6);
    assert_eq!(harness.losses().late, 1);
    // Another participant with its GUID begins anew.
    let seen = &mut harness.seen;
    harness
        .assembly
        .remove_writer(now, 0, guid(2), |batch| Harness::note(seen, &batch));
    harness.assembly.forget_participant(guid(100).prefix);
    harness.join_reader(0, 3);
    harness.single(3, 1, 1);
    assert_eq!(harness.seen, [[(1, 1)], [(2, 2)], [(3, 1)]]);
    assert_eq!(harness.losses().late, 0);
}

/// A writer of a publisher comes, delivers this group sequence number, and leaves.
fn visit(harness: &mut Harness, (publisher, writer): (u8, u8), group_sequence: i64) {
    harness.assembly.add_writer(CoherentMatch {
        reader: 0,
        writer: guid(writer),
        publisher: guid(publisher),
        dialect: OWN,
    });
    harness.single(writer, group_sequence, group_sequence);
    harness.leave(writer);
}

#[test]
fn in_order_the_order_of_a_publisher_without_writers_outlasts_a_reader_but_not_the_last_one() {
    let mut harness = Harness::ordered(&[]);
    harness.assembly.put_reader(1, 4);
    visit(&mut harness, (100, 1), 5);
    let now = harness.now;
    harness.assembly.remove_reader(now, 1, |_| {});
    visit(&mut harness, (100, 2), 4);
    assert_eq!(harness.losses().late, 1);
    harness.assembly.remove_reader(now, 0, |_| {});
    harness.assembly.put_reader(0, 4);
    visit(&mut harness, (100, 3), 4);
    assert_eq!(harness.losses().late, 0);
    assert_eq!(harness.seen, [[(1, 5)], [(3, 4)]]);
}

#[test]
fn in_order_the_publisher_without_writers_for_the_longest_time_is_forgotten() {
    let mut harness = Harness::ordered(&[]);
    let later = |harness: &mut Harness| harness.now = harness.now.after(Duration::from_secs(1));
    // From the highest GUID down, so that age and GUID differ.
    for publisher in (101..=164).rev() {
        visit(&mut harness, (publisher, 1), 5);
        later(&mut harness);
    }
    // Nothing continues the order of these two.
    for writer in [11, 12] {
        visit(&mut harness, (writer, writer), 5);
    }
    harness.join_reader(0, 13);
    harness.leave(13);
    visit(&mut harness, (164, 2), 4);
    assert_eq!(harness.losses().late, 1, "64 are remembered");
    later(&mut harness);
    visit(&mut harness, (200, 1), 5);
    for (publisher, late) in [(164, 1), (200, 1), (162, 1), (101, 1), (163, 0)] {
        visit(&mut harness, (publisher, 3), 4);
        assert_eq!(harness.losses().late, late, "{publisher}");
    }
}

/// Found in review: the history of a writer that is matched again counted as lost.
#[test]
fn in_order_what_a_writer_sends_again_after_a_new_match_is_not_late() {
    let mut harness = Harness::in_order(&[(1, true), (2, true)], true);
    harness.single(1, 1, 1);
    harness.sample(1, 2, 2, (2, 2));
    harness.end(1, 3, (2, 3));
    harness.end(2, 1, (2, 3));
    harness.single(2, 2, 4);
    harness.leave(1);
    assert_eq!(harness.losses(), ReaderLosses::default());
    let seen = harness.seen.clone();
    for others_leave in [false, true] {
        if others_leave {
            harness.leave(2);
        }
        harness.join_reader(0, 1);
        harness.single(1, 1, 1);
        harness.sample(1, 2, 2, (2, 2));
        harness.end(1, 3, (2, 3));
        harness.leave(1);
        assert_eq!(harness.losses(), ReaderLosses::default());
        assert_eq!(harness.seen, seen);
    }
    // Samples that it did not send before count.
    harness.join_reader(0, 1);
    harness.single(1, 4, 4);
    assert_eq!(harness.losses().late, 1);
}

/// As long as any sample waits for others: then the dropped set is over, too.
#[test]
fn a_dropped_set_stops_waiting_for_a_silent_writer() {
    let mut harness = Harness::in_order(&[(1, true), (2, true)], true);
    harness.sample(1, 2, 1, (2, 3));
    harness.end(1, 3, (2, 4));
    let wakes_at = harness.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, harness.now.after(Duration::from_secs(5)));
    harness.wake(wakes_at);
    assert_eq!(harness.losses().sets, 1);
    assert_eq!(harness.assembly.wakes_at(), None);
}

#[test]
fn an_ordered_sample_stops_waiting_for_a_silent_writer() {
    let mut harness = Harness::ordered(&[(1, true), (2, true)]);
    harness.single(1, 1, 2);
    assert!(
        harness.seen.is_empty(),
        "the second may have the first place"
    );
    let wakes_at = harness.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, harness.now.after(Duration::from_secs(5)));
    harness.wake(wakes_at);
    assert_eq!(harness.seen, [[(1, 1)]]);
    harness.single(2, 1, 1);
    assert_eq!(harness.losses().late, 1);
}

#[test]
fn an_ordered_sample_waits_briefly_for_writers_without_group_information_and_longer_for_the_others()
{
    let mut harness = Harness::ordered(&[(1, true), (2, false), (3, true)]);
    harness.single(1, 1, 3);
    let brief = harness.assembly.wakes_at().unwrap();
    assert_eq!(brief, harness.now.after(Duration::from_millis(100)));
    harness.wake(brief);
    assert!(harness.seen.is_empty());
    let long = harness.assembly.wakes_at().unwrap();
    assert_eq!(long, Instant::ZERO.after(Duration::from_secs(5)));
    harness.now = long;
    harness.single(3, 1, 2);
    harness.wake(long.after(Duration::from_millis(100)));
    assert_eq!(harness.seen, [[(3, 1)], [(1, 1)]]);
}

#[test]
fn a_single_writer_or_one_without_group_sequence_is_never_waited_for() {
    let mut alone = Harness::ordered(&[(1, false)]);
    alone.single(1, 1, 7);
    assert_eq!(alone.seen, [[(1, 1)]]);
    let mut unauthenticated = Harness::ordered(&[(1, false), (2, false)]);
    unauthenticated.offer(2, 1, CoherentMark::default());
    unauthenticated.offer(1, 1, CoherentMark::default());
    assert_eq!(unauthenticated.seen, [[(2, 1)], [(1, 1)]]);
}

#[test]
fn a_filtered_sample_spoils_no_set_at_any_position() {
    for filtered in [1, 2, 3] {
        let mut harness = Harness::new(TOPIC, &[1]);
        for n in 1..=3 {
            let kind = if n == filtered {
                CoherentMarkKind::Filtered
            } else {
                CoherentMarkKind::CacheChange
            };
            let set = Some(SequenceNumber(1));
            harness.offer(
                1,
                n,
                CoherentMark {
                    kind,
                    coherent_set: set,
                    ..CoherentMark::default()
                },
            );
        }
        harness.end(1, 4, (0, 0));
        let left: Vec<_> = (1..=3).filter(|n| *n != filtered).map(|n| (1, n)).collect();
        assert_eq!(harness.seen, [left]);
        assert_eq!(harness.losses(), ReaderLosses::default());
    }
}

#[test]
fn without_ordered_access_a_late_sample_is_delivered() {
    let mut harness = Harness::new(GROUP, &[1, 2]);
    harness.single(2, 1, 2);
    harness.single(1, 1, 1);
    assert_eq!(harness.seen, [[(2, 1)], [(1, 1)]]);
    assert_eq!(harness.losses(), ReaderLosses::default());
}

#[test]
fn in_order_two_readers_of_one_writer_both_get_its_samples() {
    let mut harness = Harness::ordered(&[(1, true)]);
    harness.assembly.put_reader(1, 4);
    harness.join_reader(1, 1);
    for n in 1..=2 {
        for reader in [0, 1] {
            harness.reader = reader;
            harness.single(1, n, n);
        }
    }
    assert_eq!(harness.seen, [[(1, 1)], [(1, 1)], [(1, 2)], [(1, 2)]]);
    assert_eq!(harness.losses(), ReaderLosses::default());
}

#[test]
fn in_order_a_copy_retransmitted_later_than_the_other_readers_is_not_late() {
    let mut harness = Harness::ordered(&[(1, true)]);
    harness.assembly.put_reader(1, 4);
    harness.join_reader(1, 1);
    // Both are reliable.
    harness
        .assembly
        .note_settled(harness.now, match_key(1, 1), 0, 0, |_| {});
    for n in 1..=3 {
        harness.single(1, n, n);
    }
    assert!(harness.seen.is_empty(), "the second reader has nothing yet");
    harness.reader = 1;
    for n in 1..=2 {
        harness.single(1, n, n);
    }
    assert_eq!(harness.seen, [[(1, 1), (1, 1)], [(1, 2), (1, 2)]]);
    let losses = [0, 1].map(|reader| harness.assembly.dropped.take(reader));
    assert_eq!(losses, [ReaderLosses::default(); 2]);
    // A reader that receives nothing any more is not waited for either.
    let wakes_at = harness.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, harness.now.after(Duration::from_secs(5)));
    harness.wake(wakes_at);
    assert_eq!(harness.seen.last().unwrap()[..], [(1, 3)]);
    assert_eq!(harness.assembly.wakes_at(), None);
}

#[test]
fn untaken_ends_of_instances_are_bounded_by_the_instance_limit() {
    for history in [History::KeepLast(4), History::KeepAll] {
        let qos = EndpointQos {
            history,
            ..EndpointQos::default()
        };
        let mut waiting = ReadySets::default();
        waiting.put_reader(0, &qos, SampleLimits::without_key(4));
        let mut taken_in = 0;
        for n in 0..20_000 {
            if waiting.is_full(0, 0) {
                break;
            }
            let mut item = item_of(1, n);
            let key = KeyHash([1; 16]);
            item.instance = Some(Box::new(SampleInstance::new(
                key,
                ChangeKind::Disposed,
                Bytes::new(),
            )));
            let batch = ReadyBatch {
                is_set: false,
                ready_at: Instant::ZERO,
                items: [(0, item)].into(),
            };
            waiting.push_or_drop_oldest(batch, &mut DroppedByReader::default());
            taken_in += 1;
        }
        let held = std::iter::from_fn(|| waiting.next(|| Instant::ZERO)).count();
        assert_eq!(held, 10_000);
        let expected = match history {
            History::KeepAll => 10_000,
            History::KeepLast(_) => 20_000,
        };
        assert_eq!(taken_in, expected);
    }
}

#[test]
fn sets_that_wait_for_a_silent_writer_are_bounded_by_bytes() {
    let mut harness = Harness::new(GROUP, &[1, 2]);
    for set in 0..10 {
        let (first, group_sequence) = (set * 2 + 1, set * 3 + 1);
        let mut item = item_of(1, first);
        item.body = SampleBody::Serialized(Bytes::from(vec![0; 16 << 20]));
        let mark = CoherentMark {
            coherent_set: Some(SequenceNumber(first)),
            group_coherent_set: Some(SequenceNumber(group_sequence)),
            group_sequence: Some(SequenceNumber(group_sequence)),
            ..CoherentMark::default()
        };
        let arrival = WriterArrival {
            writer: guid(1),
            sequence: first,
            mark: Some(Box::new(mark)),
            items: vec![item],
            in_order: false,
        };
        harness.assembly.offer(harness.now, 0, arrival, |_| ());
        harness.end(1, first + 1, (group_sequence, group_sequence + 1));
        assert_eq!(harness.assembly.exceeded_limit(0), None);
    }
    // Four of 16 MiB wait.
    assert_eq!(harness.losses().sets, 6);
    assert!(harness.seen.is_empty());
}

// Found by the simulator, seed 1982: its samples were lost, but no set was dropped.
#[test]
fn a_set_that_arrives_after_later_samples_counts_once() {
    let mut harness = Harness::new(GROUP, &[1, 2]);
    harness.single(1, 1, 5);
    harness.sample(2, 1, 1, (2, 2));
    harness.sample(2, 2, 1, (2, 3));
    harness.end(2, 3, (2, 4));
    let dropped = ReaderLosses {
        sets: 1,
        samples: 2,
        late: 0,
    };
    assert_eq!(harness.losses(), dropped);
    assert_eq!(harness.seen, [[(1, 1)]]);
}
