//! Worlds of whole nodes that every test run plays: actions, parameters, managed
//! nodes, components and executors under faults.

use pteros_sim::nodes::{Act, play, replay};

/// Seeds of each act; `cargo xtask sim --nodes all --seeds N` plays more.
const SEEDS: std::ops::Range<u64> = 1..9;

fn assert_sound(act: Act) {
    for seed in SEEDS {
        let played = play(act, seed, None, false);
        assert!(
            played.violations.is_empty(),
            "{:#?}\nreplay: {}",
            played.violations,
            replay(act, seed)
        );
    }
}

#[test]
fn goals_are_accepted_once_and_end_once() {
    assert_sound(Act::Actions);
}

#[test]
fn parameters_are_set_whole_and_once() {
    assert_sound(Act::Parameters);
}

#[test]
fn managed_nodes_take_legal_ways_and_wait_for_each_other() {
    assert_sound(Act::Lifecycle);
}

#[test]
fn components_are_loaded_once_and_leave_nothing() {
    assert_sound(Act::Components);
}

#[test]
fn executors_lose_nothing_and_keep_time() {
    assert_sound(Act::Executors);
}

#[test]
fn what_was_asked_of_a_process_that_died_ends() {
    assert_sound(Act::Crashes);
}

#[test]
fn the_same_seed_is_the_same_world() {
    for act in Act::ALL {
        let [one, other] = [(); 2].map(|()| play(act, 3, None, false));
        assert_eq!((one.hash, one.asked), (other.hash, other.asked), "{act}");
        assert_ne!(one.hash, play(act, 4, None, false).hash, "{act}");
    }
}
