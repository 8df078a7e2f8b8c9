//! Workloads of whole nodes that every test run executes: actions, parameters,
//! lifecycle nodes, components and executors under fault injection.

use crate::sound::assert_sound;
use pteros_sim::harness::options::Options;
use pteros_sim::harness::run;
use pteros_sim::world::nodes::NodeWorkload;

/// Seeds of each workload. `cargo xtask sim --nodes all --seeds N` runs more.
const SEEDS: std::ops::Range<u64> = 1..9;

fn run_seeds(workload: NodeWorkload) {
    for seed in SEEDS {
        assert_sound(&workload, seed, &Options::default());
    }
}

#[test]
fn goals_are_accepted_once_and_end_once() {
    run_seeds(NodeWorkload::ACTIONS);
}

#[test]
fn parameters_are_set_atomically_and_once() {
    run_seeds(NodeWorkload::PARAMETERS);
}

#[test]
fn lifecycle_nodes_make_legal_transitions_and_wait_for_dependencies() {
    run_seeds(NodeWorkload::LIFECYCLE);
}

#[test]
fn components_are_loaded_once_and_freed() {
    run_seeds(NodeWorkload::COMPONENTS);
}

#[test]
fn executors_lose_no_sample_and_keep_their_period() {
    run_seeds(NodeWorkload::EXECUTORS);
}

#[test]
fn requests_to_a_dead_process_end() {
    run_seeds(NodeWorkload::CRASHES);
}

#[test]
fn crowds_take_no_more_than_their_share() {
    run_seeds(NodeWorkload::CROWDS);
}

#[test]
fn floods_neither_disturb_a_flow_nor_keep_a_newcomer_out() {
    run_seeds(NodeWorkload::FLOODS);
}

#[test]
fn secured_participants_admit_nobody_else_and_lose_nothing() {
    run_seeds(NodeWorkload::SECURED);
}

/// An acknowledgement that an outage delayed made the round trip long, and repeated
/// requests were ignored until the talker crashed.
#[test]
fn requests_are_served_at_once_after_an_outage_652() {
    assert_sound(&NodeWorkload::SECURED, 652, &Options::default());
}

/// The last message of a handshake was lost three times, with ever longer pauses between.
#[test]
fn a_newcomer_joins_although_messages_are_lost_770() {
    assert_sound(&NodeWorkload::SECURED, 770, &Options::default());
}

#[test]
fn recorders_account_for_every_message() {
    run_seeds(NodeWorkload::RECORDINGS);
}

/// Chunks of a snapshot begin with messages of one time. The bag's reader swapped them.
#[test]
fn messages_of_one_time_are_read_in_the_order_of_the_bag_43() {
    assert_sound(&NodeWorkload::RECORDINGS, 43, &Options::default());
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
