//! The simulator notices bugs: a short hunt for the plain ones, few seeds long.
//! `cargo xtask sim --mutants` is the long one. Only where fault points are
//! compiled in (`--features faults`).
#![cfg(feature = "faults")]

use pteros_sim::faults::{BUGS, NODE_BUGS};
use pteros_sim::mutants::hunt;
use pteros_sim::plan::{Fault, Options};
use pteros_sim::run_guarded;
use pteros_sim::scenario::failing_with;

/// Seeds of the short hunt.
const SEEDS: u64 = 24;

/// Bugs that nearly every seed notices, of all parts of the engine; most within
/// one run, so that they go on being noticed when seeds come to mean other
/// graphs.
const PLAIN: &[&str] = &[
    "acknowledged-one-too-early",
    "acknowledges-one-too-many",
    "announced-only-at-birth",
    "best-effort-runs-back",
    "durability-not-compared",
    "end-of-match-not-counted",
    "end-of-match-not-told",
    "endings-not-told",
    "final-gap-dropped",
    "gap-ignored",
    "gap-one-too-long",
    "gone-reader-not-forgotten",
    "heartbeat-begins-too-high",
    "heartbeat-ends-too-low",
    "hole-skipped",
    "late-joiner-gets-no-history",
    "lease-never-ends",
    "lease-not-renewed",
    "lease-on-the-wrong-clock",
    "liveliness-not-asserted",
    "misfit-not-told",
    "nack-leaves-out-the-last",
    "overwritten-not-counted",
    "piece-in-the-wrong-place",
    "repair-not-sent",
    "runs-merge-over-a-hole",
    "sample-dropped-too-early",
    "whole-without-its-last-piece",
    "writer-dies-unnoticed",
];

#[test]
fn plain_bugs_are_noticed_within_two_dozen_seeds() {
    let hunted = BUGS.iter().filter(|(name, _)| PLAIN.contains(name));
    let verdicts: Vec<_> = hunted
        .map(|bug| hunt(*bug, 1, SEEDS, &Options::default()))
        .collect();
    assert_eq!(verdicts.len(), PLAIN.len(), "a name that is no bug");
    let missed: Vec<_> = verdicts.iter().filter(|v| v.caught.is_none()).collect();
    let missed: Vec<_> = missed.iter().map(|v| v.name).collect();
    assert!(missed.is_empty(), "missed {missed:?}");
}

#[test]
fn bugs_that_graphs_seldom_meet_are_noticed_by_scenarios() {
    for bug in [
        "forgets-where-it-left-off",
        // Seen only by who looks soon after an outage: since slow writers ask with each
        // message, no heartbeat's pause matters otherwise.
        "heartbeat-pause-not-reset",
        "history-counts-as-lost",
        "publishing-proves-no-life",
    ] {
        assert!(failing_with(bug).is_some(), "missed {bug}");
    }
}

#[test]
fn bugs_of_whole_nodes_are_noticed_within_a_dozen_seeds() {
    let mut missed = Vec::new();
    for (name, what, _) in NODE_BUGS {
        let verdict = hunt((*name, *what), 1, 12, &Options::default());
        if verdict.caught.is_none() {
            missed.push(*name);
        }
    }
    assert!(missed.is_empty(), "missed {missed:?}");
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
