//! Hosts with several addresses on several networks: while one network connects two
//! hosts, their flows go on (I21), and after the last change all is whole.

#[path = "support/forced.rs"]
mod forced;
#[path = "support/sound.rs"]
mod sound;

use forced::run_seeds;
use pteros_sim::harness::options::Fault;

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
