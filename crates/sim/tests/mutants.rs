//! The simulator notices bugs: a short hunt for each of them, few seeds long.
//! `cargo xtask sim --mutants` is the long one. Only where fault points are
//! compiled in (`--features faults`).
#![cfg(feature = "faults")]

use pteros_sim::mutants::{bugs_named, hunt};
use pteros_sim::plan::{Fault, Options};
use pteros_sim::run_guarded;

/// Seeds of the short hunt, and how many bugs it must catch: more than half.
const SEEDS: u64 = 6;
const CAUGHT_MIN: usize = 33;

#[test]
fn half_of_the_bugs_are_noticed_within_six_seeds() {
    let verdicts: Vec<_> = bugs_named("")
        .map(|bug| hunt(bug, 1, SEEDS, &Options::default()))
        .collect();
    let caught = verdicts.iter().filter(|v| v.caught.is_some()).count();
    let missed: Vec<_> = verdicts.iter().filter(|v| v.caught.is_none()).collect();
    let missed: Vec<_> = missed.iter().map(|v| v.name).collect();
    assert!(caught >= CAUGHT_MIN, "{caught} caught, missed {missed:?}");
}

#[test]
fn a_caught_bug_is_replayed_and_reduced() {
    let verdict = hunt(("repair-not-sent", ""), 1, SEEDS, &Options::default());
    let (outcome, _) = verdict.caught.expect("a bug that nobody can miss");
    let options = Options {
        bug: Some("repair-not-sent"),
        readable: true,
        ..Options::default()
    };
    let again = run_guarded(outcome.seed, &options);
    assert_eq!(again.violations, outcome.violations);
    assert_eq!(again.hash, outcome.hash);
    let reduced = pteros_sim::reduce(&outcome, &options);
    assert!(!reduced.without.is_empty());
    let smaller = run_guarded(outcome.seed, &reduced);
    assert!(!smaller.violations.is_empty(), "reduced too far");
    let command = reduced.replay(outcome.seed);
    assert!(command.contains("--bug repair-not-sent --") || command.ends_with("repair-not-sent"));
}

#[test]
fn seeds_with_mishaps_are_sound() {
    for seed in 1..31 {
        let options = Options {
            forced: vec![Fault::Mishap],
            ..Options::default()
        };
        let outcome = run_guarded(seed, &options);
        assert!(
            outcome.violations.is_empty(),
            "{:#?}\nreplay: {}",
            outcome.violations,
            options.replay(seed)
        );
    }
}
