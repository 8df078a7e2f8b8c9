//! Workloads of whole nodes that every test run executes: actions, parameters,
//! lifecycle nodes, components and executors under fault injection.

use pteros_sim::harness::options::Options;
use pteros_sim::harness::{Workload, run};
use pteros_sim::world::nodes::NodeWorkload;

/// Seeds of each workload. `cargo xtask sim --nodes all --seeds N` runs more.
const SEEDS: std::ops::Range<u64> = 1..9;

fn assert_sound(workload: NodeWorkload) {
    let options = Options::default();
    for seed in SEEDS {
        let outcome = run(&workload, seed, &options);
        assert!(
            outcome.violations.is_empty(),
            "{:#?}\nreplay: {}",
            outcome.violations,
            options.replay_command(&workload.selection(), seed)
        );
    }
}

#[test]
fn goals_are_accepted_once_and_end_once() {
    assert_sound(NodeWorkload::ACTIONS);
}

#[test]
fn parameters_are_set_atomically_and_once() {
    assert_sound(NodeWorkload::PARAMETERS);
}

#[test]
fn lifecycle_nodes_make_legal_transitions_and_wait_for_dependencies() {
    assert_sound(NodeWorkload::LIFECYCLE);
}

#[test]
fn components_are_loaded_once_and_freed() {
    assert_sound(NodeWorkload::COMPONENTS);
}

#[test]
fn executors_lose_no_sample_and_keep_their_period() {
    assert_sound(NodeWorkload::EXECUTORS);
}

#[test]
fn requests_to_a_dead_process_end() {
    assert_sound(NodeWorkload::CRASHES);
}

#[test]
fn crowds_take_no_more_than_their_share() {
    assert_sound(NodeWorkload::CROWDS);
}

#[test]
fn secured_participants_admit_nobody_else_and_lose_nothing() {
    assert_sound(NodeWorkload::SECURED);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let options = Options::default();
    for workload in NodeWorkload::ALL {
        let [one, again, other] = [3, 3, 4].map(|seed| run(&workload, seed, &options));
        assert_eq!(
            (one.hash, one.counts),
            (again.hash, again.counts),
            "{workload}"
        );
        assert_ne!(one.hash, other.hash, "{workload}");
    }
}
