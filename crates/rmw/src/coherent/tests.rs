//! What becomes of sets when samples, ends or writers go missing.

use pteros_rtps::mark::{Mark, MarkKind};
use pteros_rtps::qos::Presentation;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};

use super::{Arrival, Assembly, Batch, Losses, Match};
use crate::sample::tests::item_of;

const TOPIC: u8 = 1;
const GROUP: u8 = 2;

struct Scene {
    assembly: Assembly,
    of_group: bool,
    now: Instant,
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
        assembly.add_reader(4);
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
            seen: Vec::new(),
        }
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
            .offer(self.now, 0, arrival, |batch| Self::note(seen, &batch));
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
