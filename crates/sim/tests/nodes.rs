//! Workloads of whole nodes that every test run executes: actions, parameters,
//! lifecycle nodes, components and executors under fault injection.

use pteros_sim::nodes::{Workload, replay_command, run as run_workload};

/// Seeds of each workload. `cargo xtask sim --nodes all --seeds N` runs more.
const SEEDS: std::ops::Range<u64> = 1..9;

fn assert_sound(workload: Workload) {
    for seed in SEEDS {
        let outcome = run_workload(workload, seed, None, false);
        assert!(
            outcome.violations.is_empty(),
            "{:#?}\nreplay: {}",
            outcome.violations,
            replay_command(workload, seed)
        );
    }
}

#[test]
fn goals_are_accepted_once_and_end_once() {
    assert_sound(Workload::Actions);
}

#[test]
fn parameters_are_set_atomically_and_once() {
    assert_sound(Workload::Parameters);
}

#[test]
fn lifecycle_nodes_make_legal_transitions_and_wait_for_dependencies() {
    assert_sound(Workload::Lifecycle);
}

#[test]
fn components_are_loaded_once_and_freed() {
    assert_sound(Workload::Components);
}

#[test]
fn executors_lose_no_sample_and_keep_their_period() {
    assert_sound(Workload::Executors);
}

#[test]
fn requests_to_a_dead_process_end() {
    assert_sound(Workload::Crashes);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for workload in Workload::ALL {
        let [one, other] = [(); 2].map(|()| run_workload(workload, 3, None, false));
        assert_eq!(
            (one.hash, one.asked),
            (other.hash, other.asked),
            "{workload}"
        );
        assert_ne!(
            one.hash,
            run_workload(workload, 4, None, false).hash,
            "{workload}"
        );
    }
}
