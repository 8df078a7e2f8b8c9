//! Reference model of the tf buffer: random trees, changing parents and random
//! times. Every result is compared with that of a linear search.

use pteros::clock::Time;
use pteros::tf::{Isometry, LATEST, LookupError, TransformBuffer};

use super::{at, ms};

const FRAMES: usize = 8;
/// Transforms are kept for 10 s; stamps stay within.
const MILLIS: i64 = 9_000;

/// Repeatable random numbers (linear congruential generator, Knuth's constants).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.below(2_000_001)).unwrap()) / 1e6 - 1.0
    }

    fn isometry(&mut self) -> Isometry {
        let mut three = || [self.unit(), self.unit(), self.unit()];
        let (translation, rpy) = (three(), three());
        Isometry::from_rpy(translation, rpy.map(|angle| angle * 3.0))
    }
}

/// All transforms inserted: child, time, parent, transform; those of one child in
/// order of time.
#[derive(Default)]
struct Reference {
    told: Vec<(usize, i64, usize, Isometry)>,
    fixed: Vec<(usize, usize, Isometry)>,
}

impl Reference {
    /// Parent and transform at that time; `None` at a root, an error outside of the
    /// known times.
    fn parent(&self, child: usize, time: i64) -> Result<Option<(usize, Isometry)>, ()> {
        if let Some((_, parent, isometry)) = self.fixed.iter().find(|f| f.0 == child) {
            return Ok(Some((*parent, *isometry)));
        }
        let mine: Vec<_> = self.told.iter().filter(|told| told.0 == child).collect();
        if mine.is_empty() {
            return Ok(None);
        }
        let before = mine.iter().rev().find(|told| told.1 <= time).ok_or(())?;
        let after = mine.iter().find(|told| told.1 >= time).ok_or(())?;
        if before.1 == after.1 || before.2 != after.2 {
            return Ok(Some((before.2, before.3)));
        }
        let millis = |span: i64| f64::from(i32::try_from(span).unwrap());
        let fraction = millis(time - before.1) / millis(after.1 - before.1);
        Ok(Some((before.2, before.3.interpolate(&after.3, fraction))))
    }

    fn newest(&self, child: usize) -> Option<(Option<i64>, usize)> {
        if let Some((_, parent, _)) = self.fixed.iter().find(|f| f.0 == child) {
            return Some((None, *parent));
        }
        let last = self.told.iter().rfind(|told| told.0 == child)?;
        Some((Some(last.1), last.2))
    }

    /// The path upwards: frames, each with the transform from the first to it, and
    /// whether it ended at a root.
    fn path(&self, from: usize, time: i64) -> (Vec<(usize, Isometry)>, bool) {
        let mut path = vec![(from, Isometry::IDENTITY)];
        loop {
            let (frame, isometry) = path[path.len() - 1];
            match self.parent(frame, time) {
                Ok(Some((parent, step))) => path.push((parent, step * isometry)),
                Ok(None) => return (path, true),
                Err(()) => return (path, false),
            }
        }
    }

    fn lookup(&self, target: usize, source: usize, time: i64) -> Option<Isometry> {
        let (up, _) = self.path(source, time);
        let (down, _) = self.path(target, time);
        let (meeting, of_source) = up.iter().find(|(f, _)| down.iter().any(|(g, _)| f == g))?;
        let (_, of_target) = down.iter().find(|(frame, _)| frame == meeting)?;
        Some(of_target.inverse() * *of_source)
    }

    fn latest(&self, target: usize, source: usize) -> Option<i64> {
        let path = |mut frame: usize| {
            let mut path = vec![(frame, i64::MAX)];
            while let Some((stamp, parent)) = self.newest(frame) {
                let so_far = path[path.len() - 1].1;
                path.push((parent, so_far.min(stamp.unwrap_or(i64::MAX))));
                frame = parent;
            }
            path
        };
        let (up, down) = (path(source), path(target));
        let (meeting, of_source) = up.iter().find(|(f, _)| down.iter().any(|(g, _)| f == g))?;
        let (_, of_target) = down.iter().find(|(frame, _)| frame == meeting)?;
        Some(*of_source.min(of_target))
    }
}

fn name(frame: usize) -> String {
    format!("frame{frame}")
}

/// Parents have lower numbers than their children, so that there is no cycle.
fn random_tree(random: &mut Random) -> (TransformBuffer, Reference) {
    let (buffer, mut reference) = (TransformBuffer::default(), Reference::default());
    let mut told = Vec::new();
    for child in 1..FRAMES {
        if random.below(6) == 0 {
            continue; // A root of its own.
        }
        if random.below(3) == 0 {
            let (parent, isometry) = (random.below(child), random.isometry());
            buffer
                .set_transform(&at(0, &name(parent), &name(child), isometry), "test", true)
                .unwrap();
            reference.fixed.push((child, parent, isometry));
            continue;
        }
        let mut parent = random.below(child);
        let mut time = i64::try_from(random.below(3_000)).unwrap() + 1;
        while time < MILLIS {
            if random.below(8) == 0 {
                parent = random.below(child);
            }
            told.push((child, time, parent, random.isometry()));
            time += i64::try_from(random.below(1_500)).unwrap() + 1;
        }
    }
    reference.told.clone_from(&told);
    // Inserted in any order.
    for left in (1..told.len()).rev() {
        told.swap(left, random.below(left + 1));
    }
    for (child, time, parent, isometry) in told {
        let transform = at(time, &name(parent), &name(child), isometry);
        buffer.set_transform(&transform, "test", false).unwrap();
    }
    (buffer, reference)
}

fn close(a: &Isometry, b: &Isometry) -> bool {
    [[0.0; 3], [1.0, -2.0, 0.5]].iter().all(|point| {
        let (a, b) = (a.point(*point), b.point(*point));
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6)
    })
}

#[test]
fn random_trees_match_the_reference_model() {
    let (mut found, mut missed) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let (buffer, reference) = random_tree(&mut random);
        for _ in 0..40 {
            let (target, source) = (random.below(FRAMES), random.below(FRAMES));
            let millis = i64::try_from(random.below(usize::try_from(MILLIS).unwrap())).unwrap() + 1;
            let known = |frame: usize| buffer.frames().iter().any(|f| f.edge.frame == name(frame));
            let answer = buffer.lookup_transform(&name(target), &name(source), ms(millis));
            let expected = reference.lookup(target, source, millis);
            match (&answer, expected) {
                (Ok(answer), Some(expected)) => {
                    assert!(
                        close(&(&answer.transform).into(), &expected),
                        "seed {seed}: {answer:?}"
                    );
                    assert_eq!(Time::from(&answer.header.stamp), ms(millis));
                    found += 1;
                }
                (Err(LookupError::UnknownFrame { .. }), _) => {
                    assert!(!known(target) || !known(source), "seed {seed}");
                }
                (Err(_), None) => missed += 1,
                _ => panic!(
                    "seed {seed}, {source} in {target} at {millis}: {answer:?} and not {expected:?}"
                ),
            }
            assert_eq!(
                answer.is_ok(),
                buffer.can_transform(&name(target), &name(source), ms(millis))
            );
            if !known(target) || !known(source) {
                continue;
            }
            // The latest: by the newest parents first, then as at that time.
            let latest = reference.latest(target, source);
            let answer = buffer.lookup_transform(&name(target), &name(source), LATEST);
            if target == source {
                assert!(answer.is_ok());
                continue;
            }
            let expected = latest.map(|time| if time == i64::MAX { 0 } else { time });
            let then = expected.and_then(|time| reference.lookup(target, source, time));
            match (answer, then) {
                (Ok(answer), Some(isometry)) => {
                    assert_eq!(Time::from(&answer.header.stamp), ms(expected.unwrap()));
                    assert!(close(&(&answer.transform).into(), &isometry), "seed {seed}");
                }
                (Err(_), None) => {}
                (answer, then) => panic!("seed {seed}: {answer:?} and not {then:?}"),
            }
        }
    }
    assert!(
        found > 2_000 && missed > 1_000,
        "{found} found, {missed} missed: the test asks too little"
    );
}

#[test]
fn time_travel_keeps_a_static_frame_in_place() {
    let buffer = TransformBuffer::default();
    let tell = |millis, parent: &str, child: &str, x| {
        let transform = at(millis, parent, child, Isometry::planar(x, 0.0, 0.0));
        buffer.set_transform(&transform, "test", false).unwrap();
    };
    // A robot moves a metre per second; a ball was seen 3 m ahead at one second.
    for second in 0..=4 {
        tell(
            second * 1_000,
            "world",
            "robot",
            f64::from(i32::try_from(second).unwrap()),
        );
    }
    tell(1_000, "robot", "ball", 3.0);
    let seen = buffer
        .lookup_transform_full("robot", ms(3_500), "ball", ms(1_000), "world")
        .unwrap();
    assert!(
        (seen.transform.translation.x - 0.5).abs() < 1e-9,
        "{seen:?}"
    );
    assert_eq!(Time::from(&seen.header.stamp), ms(3_500));
    assert_eq!(
        (&*seen.header.frame_id, &*seen.child_frame_id),
        ("robot", "ball")
    );
}
