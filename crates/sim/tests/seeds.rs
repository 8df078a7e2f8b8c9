//! The seeds that every test run tries: whole graphs under random faults, which
//! must keep every invariant and converge after healing.

use pteros_sim::plan::{Fault, Options};
use pteros_sim::{Outcome, run, run_guarded};

fn assert_sound(outcome: &Outcome) {
    let seed = outcome.seed;
    assert!(
        outcome.violations.is_empty(),
        "{:#?}\nreplay: {}",
        outcome.violations,
        Options::default().replay(seed)
    );
}

/// Seeds in which processes come back.
const RETURNS: std::ops::Range<u64> = 1..21;

fn assert_all_sound(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        assert_sound(&run_guarded(seed, &Options::default()));
    }
}

// Four parts, so that the test runner shares them out to its threads.

#[test]
fn graphs_survive_their_faults_1_to_50() {
    assert_all_sound(1..51);
}

#[test]
fn graphs_survive_their_faults_51_to_100() {
    assert_all_sound(51..101);
}

#[test]
fn graphs_survive_their_faults_101_to_150() {
    assert_all_sound(101..151);
}

#[test]
fn graphs_survive_their_faults_151_to_200() {
    assert_all_sound(151..201);
}

/// A sample in pieces whose lifespan ended at the writer was asked for without
/// end: requests for fragments of what is gone went unanswered.
#[test]
fn expired_samples_in_pieces_hold_nobody_up_729() {
    assert_all_sound(729..730);
}

/// A volatile reader that lost its writer through a cut in one direction got
/// the writer's whole history when it met it again.
#[test]
fn a_cut_in_one_direction_brings_nothing_twice_464() {
    assert_all_sound(464..465);
}

/// A coherent set with a hole was dropped before what its publisher had written
/// earlier had come, which then counted as too late.
#[test]
fn a_dropped_set_makes_nothing_late_4359() {
    assert_all_sound(4359..4360);
}

/// A stranger whose lease never ends is asked for acknowledgements for ever, by
/// the writer of the graph too, which was taken for traffic without reason.
#[test]
fn a_stranger_that_stays_excuses_what_it_is_asked_6050() {
    assert_all_sound(6050..6051);
}

/// A process that came back with the GUID of the one that died (same host, same
/// process id) was taken for it, and its numbers for old ones. Where the dead
/// had said just as much as its successor, one peer in a hundred still cannot
/// tell: of twenty seeds at most one may show it.
#[test]
fn a_process_that_comes_back_with_its_old_guid_is_met_again() {
    let options = Options {
        forced: vec![Fault::Crash, Fault::Return],
        ..Options::default()
    };
    let mut mistaken = Vec::new();
    for seed in RETURNS {
        let violations = run_guarded(seed, &options).violations;
        if !violations.is_empty() {
            mistaken.push(format!("{violations:#?}\nreplay: {}", options.replay(seed)));
        }
    }
    assert!(mistaken.len() <= 1, "{mistaken:#?}");
}

#[test]
fn a_seed_always_does_the_same() {
    for seed in 1..8 {
        let options = Options::default();
        let first = run(seed, &options);
        assert_eq!(first.hash, run(seed, &options).hash, "seed {seed}");
        let readable = Options {
            readable: true,
            ..options
        };
        let told = run(seed, &readable);
        assert_eq!(first.hash, told.hash, "seed {seed}: looking changes it");
        assert!(!told.lines.is_empty());
    }
}

#[test]
fn the_runs_are_worth_running() {
    let outcomes: Vec<_> = (1..21).map(|seed| run(seed, &Options::default())).collect();
    let sum = |f: fn(&Outcome) -> u64| outcomes.iter().map(f).sum::<u64>();
    assert!(sum(|o| o.messages.0) > 5_000, "too few messages");
    assert!(sum(|o| o.messages.1) > 5_000, "too few samples taken");
    assert!(sum(|o| o.matches) > 500, "too few matches");
    let records = sum(|o| o.records);
    assert!(records > 500, "{records} messages by links");
    let answered = sum(|o| o.calls.1);
    assert!(answered > 5, "{answered} calls answered");
    let in_sets = sum(|o| o.in_sets);
    assert!(in_sets > 100, "{in_sets} messages in sets");
}
