//! Hosts with several addresses on several networks: while one network connects two
//! hosts, their flows go on (I21), and after the last change all is whole.

use pteros_sim::harness::options::{Fault, Options};
use pteros_sim::harness::run;
use pteros_sim::world::graph::Graphs;

fn run_seeds(forced: &[Fault], seeds: impl IntoIterator<Item = u64>) {
    for seed in seeds {
        let options = Options {
            forced: forced.to_vec(),
            ..Options::default()
        };
        let outcome = run(&Graphs, seed, &options);
        assert!(
            outcome.violations.is_empty(),
            "{:#?}\nreplay: {}",
            outcome.violations,
            options.replay_command("", seed)
        );
        let again = run(&Graphs, seed, &options);
        assert_eq!(again.hash, outcome.hash, "seed {seed} is not deterministic");
    }
}

#[test]
fn flows_go_on_while_networks_come_go_and_change() {
    run_seeds(&[Fault::Networks], 32..72);
}

/// The host used a network that carried nothing from it to the other one, because the
/// questions that it heard there counted as a sign of life.
#[test]
fn a_network_that_is_dead_in_one_direction_is_left_although_the_other_side_asks_64() {
    run_seeds(&[Fault::Networks], [64]);
}

/// Traffic moved to such a network, because it was the better one.
#[test]
fn no_traffic_moves_to_a_network_that_is_dead_in_one_direction_158() {
    run_seeds(&[Fault::Networks], [158]);
}
