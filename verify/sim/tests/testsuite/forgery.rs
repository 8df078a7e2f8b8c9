//! Packets in the name of living participants: from elsewhere they change nothing,
//! with spoofed addresses nothing for long.

use crate::forced::run_seeds;
use crate::sound::assert_sound;
use pteros_sim::harness::options::{Fault, Options};
use pteros_sim::world::graph::Graphs;

#[test]
fn claims_far_from_the_truth_break_no_invariant() {
    let disturbs = Fault::ALL.iter().copied();
    let mut without: Vec<Fault> = disturbs
        .filter(|fault| !matches!(fault, Fault::Loss | Fault::Duplicate | Fault::Forgery))
        .collect();
    without.sort();
    for seed in 401..409 {
        let options = Options {
            forced: vec![Fault::Forgery],
            without: without.clone(),
            ..Options::default()
        };
        assert_sound(&Graphs, seed, &options);
    }
}

#[test]
fn packets_from_another_address_break_no_invariant() {
    run_seeds(&[Fault::Forgery], 1..13);
}

#[test]
fn packets_from_another_host_do_not_disturb_pairs_that_share_memory() {
    run_seeds(&[Fault::Forgery, Fault::SharedMemory], 101..107);
}

#[test]
fn every_flow_is_whole_two_seconds_after_the_last_spoofed_packet() {
    run_seeds(&[Fault::SpoofedForgery], 201..217);
}

#[test]
fn flows_by_shared_memory_are_whole_after_spoofed_packets() {
    run_seeds(&[Fault::SpoofedForgery, Fault::SharedMemory], 301..307);
}

/// A forged heartbeat count of discovery made its writer look restarted, so the
/// participant was lost for a moment, 2.1 s after the last forged packet.
#[test]
fn a_forged_count_does_not_make_a_writer_look_restarted_1001() {
    run_seeds(&[Fault::SpoofedForgery], 1001..1002);
}

#[test]
fn every_flow_is_whole_after_spoofed_packets_on_networks_that_change() {
    run_seeds(&[Fault::SpoofedForgery, Fault::Networks], 401..413);
}

/// A forged HEARTBEAT was the first that a reader of discovery got. It requested what was
/// never sent, and the writer gave no answer for a second.
#[test]
fn a_request_of_what_was_never_sent_is_answered_at_once_91117() {
    run_seeds(&[Fault::SpoofedForgery], [91_117, 95_121, 95_134]);
}

/// A forged GAP came while announcements were read again. They counted as irrelevant, so
/// the endpoints were removed for good.
#[test]
fn endpoints_hidden_while_announcements_are_read_again_come_back_120086() {
    run_seeds(&[Fault::SpoofedForgery], [120_086]);
}

/// A forged number was the first that came late to a best-effort reader. It followed its
/// writer again only above that number, so never.
#[test]
fn a_forged_number_among_late_samples_is_not_waited_for_56() {
    run_seeds(&[Fault::SpoofedForgery], [56]);
}
