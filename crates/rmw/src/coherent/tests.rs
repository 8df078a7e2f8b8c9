//! What becomes of sets when samples, ends or writers go missing.

use crate::instance::{KeyHash, Keyed};
use crate::sample::Body;
use bytes::Bytes;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::mark::{Mark, MarkKind};
use pteros_rtps::qos::{EndpointQos, History, Presentation};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};

use super::{Arrival, Assembly, Batch, Dropped, Losses, Match, Waiting};
use crate::sample::tests::item_of;

const TOPIC: u8 = 1;
const GROUP: u8 = 2;

struct Scene {
    assembly: Assembly,
    of_group: bool,
    now: Instant,
    /// Whom samples come for.
    reader: usize,
    seen: Vec<Vec<(u8, i64)>>,
}

fn guid(writer: u8) -> pteros_rtps::id::Guid {
    item_of(writer, 1).meta.publisher
}

impl Scene {
    fn new(access_scope: u8, writers: &[u8]) -> Self {
        let mut assembly = Assembly::new(Presentation {
            access_scope,
            coherent: true,
            ordered: false,
        });
        assembly.put_reader(0, 4);
        for writer in writers {
            assembly.join(Match {
                reader: 0,
                writer: guid(*writer),
                publisher: match access_scope {
                    GROUP => guid(100),
                    _ => guid(*writer),
                },
                tells: true,
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

    /// Writers of one publisher in its order, each of which tells where it is or
    /// does not.
    fn ordered(writers: &[(u8, bool)]) -> Self {
        Self::in_order(writers, false)
    }

    /// The same, with sets if `coherent`.
    fn in_order(writers: &[(u8, bool)], coherent: bool) -> Self {
        let mut scene = Self::new(GROUP, &[]);
        scene.assembly = Assembly::new(Presentation {
            access_scope: GROUP,
            coherent,
            ordered: true,
        });
        scene.assembly.put_reader(0, 4);
        for (writer, tells) in writers {
            scene.join_reader(0, *writer);
            if !tells {
                continue;
            }
            scene
                .assembly
                .settle(scene.now, (0, guid(*writer)), 0, 0, |_| {});
        }
        scene
    }

    fn join_reader(&mut self, reader: usize, writer: u8) {
        self.assembly.join(Match {
            reader,
            writer: guid(writer),
            publisher: guid(100),
            tells: false,
        });
    }

    /// A sample of no set, at a place of the publisher.
    fn loose(&mut self, writer: u8, sequence: i64, place: i64) {
        let mark = Mark {
            group_sequence: Some(SequenceNumber(place)),
            ..Mark::default()
        };
        self.offer(writer, sequence, mark);
    }

    fn wake(&mut self, now: Instant) {
        self.now = now;
        let seen = &mut self.seen;
        self.assembly.wake(now, |b| Self::note(seen, &b));
    }

    fn note(seen: &mut Vec<Vec<(u8, i64)>>, batch: &Batch) {
        let of = |(_, item): &(usize, crate::sample::Item)| {
            (item.meta.publisher.prefix.0[0], item.meta.sequence)
        };
        seen.push(batch.items.iter().map(of).collect());
    }

    fn offer(&mut self, writer: u8, sequence: i64, mark: Mark) {
        let is_sample = mark.kind == MarkKind::Change;
        let arrival = Arrival {
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

    /// A sample of the set that began with `first` at its writer and `set`
    /// within the publisher, at that place.
    fn sample(&mut self, writer: u8, sequence: i64, first: i64, (set, place): (i64, i64)) {
        let of_group = self.of_group;
        self.offer(
            writer,
            sequence,
            Mark {
                set: Some(SequenceNumber(first)),
                group_set: of_group.then_some(SequenceNumber(set)),
                group_sequence: of_group.then_some(SequenceNumber(place)),
                ..Mark::default()
            },
        );
    }

    fn end(&mut self, writer: u8, sequence: i64, (set, place): (i64, i64)) {
        let of_group = self.of_group;
        self.offer(
            writer,
            sequence,
            Mark {
                kind: MarkKind::End,
                group_set: of_group.then_some(SequenceNumber(set)),
                group_sequence: of_group.then_some(SequenceNumber(place)),
                ..Mark::default()
            },
        );
    }

    fn leave(&mut self, writer: u8) {
        let seen = &mut self.seen;
        self.assembly
            .leave(self.now, 0, guid(writer), |b| Self::note(seen, &b));
    }

    fn losses(&mut self) -> Losses {
        self.assembly.dropped.take(0)
    }
}

#[test]
fn a_set_with_a_hole_is_dropped_whichever_of_its_samples_is_missing() {
    for missing in 1..=4 {
        let mut scene = Scene::new(TOPIC, &[1]);
        for n in (1..=3).filter(|n| *n != missing) {
            scene.sample(1, n, 1, (0, 0));
        }
        if missing != 4 {
            scene.end(1, 4, (0, 0));
        }
        // The next one ends it, too, if its end was lost.
        scene.sample(1, 5, 5, (0, 0));
        scene.end(1, 6, (0, 0));
        assert_eq!(scene.seen, [[(1, 5)]], "{missing}");
        assert_eq!(scene.losses().sets, 1);
    }
}

#[test]
fn the_next_set_ends_one_that_needs_no_end_of_its_own() {
    let mut scene = Scene::new(TOPIC, &[1]);
    scene.sample(1, 1, 1, (0, 0));
    scene.sample(1, 2, 1, (0, 0));
    scene.sample(1, 3, 3, (0, 0));
    assert_eq!(scene.seen, [[(1, 1), (1, 2)]]);
    scene.offer(1, 4, Mark::default());
    assert_eq!(scene.seen[1..], [[(1, 3)], [(1, 4)]]);
    assert_eq!(scene.losses(), Losses::default());
}

#[test]
fn a_writer_that_dies_within_a_set_takes_it_along() {
    for scope in [TOPIC, GROUP] {
        let mut scene = Scene::new(scope, &[1, 2]);
        scene.sample(1, 1, 1, (1, 1));
        scene.sample(2, 1, 1, (1, 2));
        scene.leave(1);
        scene.end(2, 2, (1, 3));
        let survives: &[Vec<(u8, i64)>] = match scope {
            // There the other writer's set is another one.
            TOPIC => &[vec![(2, 1)]],
            _ => &[],
        };
        assert_eq!(scene.seen, survives);
        assert!(scene.losses().samples >= 1);
    }
}

#[test]
fn a_groups_set_waits_for_all_its_writers_and_keeps_the_groups_order() {
    let mut scene = Scene::new(GROUP, &[1, 2]);
    scene.sample(1, 1, 1, (1, 2));
    scene.end(1, 2, (1, 4));
    assert!(scene.seen.is_empty());
    scene.sample(2, 1, 1, (1, 1));
    scene.sample(2, 2, 1, (1, 3));
    scene.end(2, 3, (1, 4));
    assert_eq!(scene.seen, [[(2, 1), (1, 1), (2, 2)]]);
}

#[test]
fn a_group_writer_that_moves_past_a_set_without_ending_it_spoils_it() {
    let mut scene = Scene::new(GROUP, &[1, 2]);
    scene.sample(1, 1, 1, (1, 1));
    scene.end(1, 2, (1, 2));
    // Its end of the first set was lost, and who knows what with it.
    scene.sample(2, 2, 2, (3, 3));
    scene.end(2, 3, (3, 4));
    scene.end(1, 3, (3, 4));
    assert_eq!(scene.seen, [[(2, 2)]]);
    assert_eq!(scene.losses().sets, 1);
}

#[test]
fn a_set_larger_than_the_reader_keeps_is_not_even_held() {
    let mut scene = Scene::new(TOPIC, &[1]);
    for n in 1..=1_000 {
        scene.sample(1, n, 1, (0, 0));
    }
    scene.end(1, 1_001, (0, 0));
    assert!(scene.seen.is_empty());
    let expected = Losses {
        sets: 1,
        samples: 1_000,
        late: 0,
    };
    assert_eq!(scene.losses(), expected);
}

#[test]
fn a_set_of_writers_that_discovery_does_not_show_waits_a_while_and_no_longer() {
    let mut scene = Scene::new(GROUP, &[1]);
    scene.sample(1, 1, 1, (1, 1));
    scene.offer(
        1,
        2,
        Mark {
            kind: MarkKind::End,
            group_set: Some(SequenceNumber(1)),
            group_sequence: Some(SequenceNumber(2)),
            writers: Some([1, 2, 3, 4]),
            ..Mark::default()
        },
    );
    assert!(scene.seen.is_empty());
    let wakes_at = scene.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, scene.now.after(Duration::from_secs(1)));
    let seen = &mut scene.seen;
    scene.assembly.wake(wakes_at, |b| Scene::note(seen, &b));
    assert_eq!(scene.seen, [[(1, 1)]]);
}

#[test]
fn a_set_waits_a_while_for_a_writer_that_says_nothing_and_is_dropped_then() {
    let mut scene = Scene::new(GROUP, &[1, 2]);
    scene.sample(1, 1, 1, (1, 1));
    scene.end(1, 2, (1, 2));
    let wakes_at = scene.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, scene.now.after(Duration::from_secs(5)));
    let seen = &mut scene.seen;
    scene.assembly.wake(wakes_at, |b| Scene::note(seen, &b));
    assert!(scene.seen.is_empty());
    assert_eq!(scene.losses().sets, 1);
    assert_eq!(scene.assembly.wakes_at(), None);
    // What comes of it later is lost as well; the next set is whole again.
    scene.now = wakes_at;
    scene.sample(2, 1, 1, (1, 2));
    scene.end(2, 2, (1, 2));
    assert_eq!(scene.losses().samples, 1);
    scene.sample(2, 3, 3, (3, 3));
    scene.end(1, 3, (3, 4));
    scene.end(2, 4, (3, 4));
    assert_eq!(scene.seen, [[(2, 3)]]);
}

/// Seed 4359 of the simulator: a set with a hole was dropped at once, and what
/// was written before it and came after counted as late.
#[test]
fn a_set_that_nobody_will_see_makes_nothing_late_that_was_written_before_it() {
    let mut scene = Scene::in_order(&[(1, true), (2, true)], true);
    scene.sample(1, 2, 1, (2, 3));
    scene.end(1, 3, (2, 4));
    scene.loose(2, 1, 1);
    scene.end(2, 2, (2, 4));
    scene.loose(2, 3, 5);
    assert_eq!(scene.seen, [[(2, 1)], [(2, 3)]]);
    let expected = Losses {
        sets: 1,
        samples: 1,
        late: 0,
    };
    assert_eq!(scene.losses(), expected);
}

/// As long as any sample waits for others: then the dropped set is over, too.
#[test]
fn a_set_that_nobody_will_see_waits_for_no_silent_writer_for_ever() {
    let mut scene = Scene::in_order(&[(1, true), (2, true)], true);
    scene.sample(1, 2, 1, (2, 3));
    scene.end(1, 3, (2, 4));
    let wakes_at = scene.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, scene.now.after(Duration::from_secs(5)));
    scene.wake(wakes_at);
    assert_eq!(scene.losses().sets, 1);
    assert_eq!(scene.assembly.wakes_at(), None);
}

#[test]
fn an_ordered_sample_waits_for_no_silent_writer_for_ever() {
    let mut scene = Scene::ordered(&[(1, true), (2, true)]);
    scene.loose(1, 1, 2);
    assert!(scene.seen.is_empty(), "the second may have the first place");
    let wakes_at = scene.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, scene.now.after(Duration::from_secs(5)));
    scene.wake(wakes_at);
    assert_eq!(scene.seen, [[(1, 1)]]);
    scene.loose(2, 1, 1);
    assert_eq!(scene.losses().late, 1);
}

#[test]
fn an_ordered_sample_waits_briefly_for_writers_that_do_not_tell_and_then_for_those_that_do() {
    let mut scene = Scene::ordered(&[(1, true), (2, false), (3, true)]);
    scene.loose(1, 1, 3);
    let brief = scene.assembly.wakes_at().unwrap();
    assert_eq!(brief, scene.now.after(Duration::from_millis(100)));
    scene.wake(brief);
    assert!(scene.seen.is_empty());
    let long = scene.assembly.wakes_at().unwrap();
    assert_eq!(long, Instant::ZERO.after(Duration::from_secs(5)));
    scene.now = long;
    scene.loose(3, 1, 2);
    scene.wake(long.after(Duration::from_millis(100)));
    assert_eq!(scene.seen, [[(3, 1)], [(1, 1)]]);
}

#[test]
fn a_writer_alone_or_without_places_is_never_waited_for() {
    let mut alone = Scene::ordered(&[(1, false)]);
    alone.loose(1, 1, 7);
    assert_eq!(alone.seen, [[(1, 1)]]);
    let mut strangers = Scene::ordered(&[(1, false), (2, false)]);
    strangers.offer(2, 1, Mark::default());
    strangers.offer(1, 1, Mark::default());
    assert_eq!(strangers.seen, [[(2, 1)], [(1, 1)]]);
}

#[test]
fn what_a_filter_keeps_back_spoils_no_set_wherever_it_stood_in_it() {
    for filtered in [1, 2, 3] {
        let mut scene = Scene::new(TOPIC, &[1]);
        for n in 1..=3 {
            let kind = match n == filtered {
                true => MarkKind::Filtered,
                false => MarkKind::Change,
            };
            let set = Some(SequenceNumber(1));
            scene.offer(
                1,
                n,
                Mark {
                    kind,
                    set,
                    ..Mark::default()
                },
            );
        }
        scene.end(1, 4, (0, 0));
        let left: Vec<_> = (1..=3).filter(|n| *n != filtered).map(|n| (1, n)).collect();
        assert_eq!(scene.seen, [left]);
        assert_eq!(scene.losses(), Losses::default());
    }
}

#[test]
fn without_order_a_writers_late_sample_is_no_later_than_it_is() {
    let mut scene = Scene::new(GROUP, &[1, 2]);
    scene.loose(2, 1, 2);
    scene.loose(1, 1, 1);
    assert_eq!(scene.seen, [[(2, 1)], [(1, 1)]]);
    assert_eq!(scene.losses(), Losses::default());
}

#[test]
fn in_order_two_readers_of_one_writer_both_get_its_samples() {
    let mut scene = Scene::ordered(&[(1, true)]);
    scene.assembly.put_reader(1, 4);
    scene.join_reader(1, 1);
    for n in 1..=2 {
        for reader in [0, 1] {
            scene.reader = reader;
            scene.loose(1, n, n);
        }
    }
    assert_eq!(scene.seen, [[(1, 1)], [(1, 1)], [(1, 2)], [(1, 2)]]);
    assert_eq!(scene.losses(), Losses::default());
}

#[test]
fn in_order_a_copy_that_is_repaired_later_than_the_other_readers_is_not_late() {
    let mut scene = Scene::ordered(&[(1, true)]);
    scene.assembly.put_reader(1, 4);
    scene.join_reader(1, 1);
    // Both are reliable.
    scene.assembly.settle(scene.now, (1, guid(1)), 0, 0, |_| {});
    for n in 1..=3 {
        scene.loose(1, n, n);
    }
    assert!(scene.seen.is_empty(), "the second reader has nothing yet");
    scene.reader = 1;
    for n in 1..=2 {
        scene.loose(1, n, n);
    }
    assert_eq!(scene.seen, [[(1, 1), (1, 1)], [(1, 2), (1, 2)]]);
    let losses = [0, 1].map(|reader| scene.assembly.dropped.take(reader));
    assert_eq!(losses, [Losses::default(); 2]);
    // Nor is a reader waited for that gets nothing any more.
    let wakes_at = scene.assembly.wakes_at().unwrap();
    assert_eq!(wakes_at, scene.now.after(Duration::from_secs(5)));
    scene.wake(wakes_at);
    assert_eq!(scene.seen.last().unwrap()[..], [(1, 3)]);
    assert_eq!(scene.assembly.wakes_at(), None);
}

#[test]
fn ends_of_instances_that_nobody_takes_are_as_many_as_instances_may_be() {
    for history in [History::KeepLast(4), History::KeepAll] {
        let qos = EndpointQos {
            history,
            ..EndpointQos::default()
        };
        let mut waiting = Waiting::default();
        waiting.put_reader(0, &qos, (4, 4));
        let mut taken_in = 0;
        for n in 0..20_000 {
            if waiting.is_full(0, 0) {
                break;
            }
            let mut item = item_of(1, n);
            let key = KeyHash([1; 16]);
            item.instance = Some(Box::new(Keyed::new(
                key,
                ChangeKind::Disposed,
                Bytes::new(),
            )));
            let batch = Batch {
                is_set: false,
                at: Instant::ZERO,
                items: [(0, item)].into(),
            };
            waiting.push_or_drop_oldest(batch, &mut Dropped::default());
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
fn sets_that_wait_for_a_writer_that_ends_none_are_bounded_by_their_bytes() {
    let mut scene = Scene::new(GROUP, &[1, 2]);
    for set in 0..10 {
        let (first, place) = (set * 2 + 1, set * 3 + 1);
        let mut item = item_of(1, first);
        item.body = Body::Serialized(Bytes::from(vec![0; 16 << 20]));
        let mark = Mark {
            set: Some(SequenceNumber(first)),
            group_set: Some(SequenceNumber(place)),
            group_sequence: Some(SequenceNumber(place)),
            ..Mark::default()
        };
        let arrival = Arrival {
            writer: guid(1),
            sequence: first,
            mark: Some(Box::new(mark)),
            items: vec![item],
            in_order: false,
        };
        scene.assembly.offer(scene.now, 0, arrival, |_| ());
        scene.end(1, first + 1, (place, place + 1));
        assert_eq!(scene.assembly.exceeded_limit(0), None);
    }
    // Four of 16 MiB wait.
    assert_eq!(scene.losses().sets, 6);
    assert!(scene.seen.is_empty());
}

// Found by the simulator, seed 1982: its samples were lost, and no set dropped.
#[test]
fn a_set_that_comes_after_what_was_written_later_counts_once() {
    let mut scene = Scene::new(GROUP, &[1, 2]);
    scene.loose(1, 1, 5);
    scene.sample(2, 1, 1, (2, 2));
    scene.sample(2, 2, 1, (2, 3));
    scene.end(2, 3, (2, 4));
    let dropped = Losses {
        sets: 1,
        samples: 2,
        late: 0,
    };
    assert_eq!(scene.losses(), dropped);
    assert_eq!(scene.seen, [[(1, 1)]]);
}
