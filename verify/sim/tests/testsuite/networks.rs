//! Hosts with several addresses on several networks: while one network connects two
//! hosts, their flows go on (I21), and after the last change all is whole.

use crate::forced::run_seeds;
use crate::sound::assert_sound;
use pteros_sim::harness::options::{Fault, Options};
use pteros_sim::world::graph::Graphs;

#[test]
fn flows_go_on_while_networks_come_go_and_change() {
    run_seeds(&[Fault::Networks], 32..72);
}

/// Two processes of one host sent each other nothing for 2.6 s after the address in use
/// had vanished: all other links of the host were without a carrier, and their addresses
/// did not count as its own.
#[test]
fn a_host_whose_links_have_no_carrier_still_reaches_itself_61() {
    run_seeds(&[Fault::Networks], [61]);
}

/// A host that came back at an address that it had before answered from there, which
/// counted as an answer of the address that it had left. Traffic went there for a lease.
#[test]
fn a_host_that_moves_back_is_followed_86_210_272() {
    run_seeds(&[Fault::Networks], [86, 210, 272]);
}

/// The host used a network that carried nothing from it to the other one, because the
/// questions that it heard there counted as a sign of life.
#[test]
fn a_network_that_is_dead_in_one_direction_is_left_although_the_other_side_asks_64() {
    run_seeds(&[Fault::Networks], [64]);
}

/// A host kept a dead network in use and never asked the better one, of which it heard
/// requests all the time. So it missed what had been removed meanwhile.
#[test]
fn a_dead_network_is_left_although_another_one_is_never_quiet() {
    assert_sound(&Graphs, 30179, &Options::default());
    run_seeds(&[Fault::Networks, Fault::Loss, Fault::Churn], [119]);
}

/// Traffic moved to such a network, because it was the better one.
#[test]
fn no_traffic_moves_to_a_network_that_is_dead_in_one_direction_158() {
    run_seeds(&[Fault::Networks], [158]);
}

/// A host got a second address. Its announcement came from both addresses, and the copy
/// from the new one was never proven, so one peer of three knew no other path when the
/// first network died.
#[test]
fn a_second_address_is_known_to_all_peers_134() {
    run_seeds(&[Fault::Networks, Fault::Churn], [134]);
}
