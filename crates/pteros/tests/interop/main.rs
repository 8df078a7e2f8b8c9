//! Pteros and the DDS stacks that others wrote: Debian's Cyclone DDS and Fast
//! DDS, PyPI's Cyclone. Every story is played with each of them.
//!
//! `cargo xtask test` builds the peers (interop/README.md) and runs this in a
//! private network, once with and once without multicast on loopback. Without
//! either a story is skipped, and says why in a line that xtask counts.

#[path = "../../../../interop/keystore.rs"]
mod keystore;
#[path = "../../../../interop/peer.rs"]
mod peer;

mod actions;
mod announce;
mod changed_files;
mod content_filter;
mod departure;
mod history;
mod instances;
mod mismatch;
mod ownership;
mod parameters;
mod secured;
mod services;
mod set_qos;
mod sizes;
mod stage;
mod talk;
mod vitality;

use stage::{Stack, play};

macro_rules! stories {
    ($($file:ident: $($story:ident),+;)+) => {
        stories!(@stack cyclone, Stack::Cyclone, $($file: $($story),+;)+);
        stories!(@stack fastdds, Stack::FastDds, $($file: $($story),+;)+);
        stories!(@stack python, Stack::Python, $($file: $($story),+;)+);
    };
    (@stack $name:ident, $stack:expr, $($file:ident: $($story:ident),+;)+) => {
        mod $name {
            use super::*;
            $($(
                #[test]
                fn $story() {
                    play($stack, stringify!($story), $file::$story);
                }
            )+)+
        }
    };
}

stories! {
    talk:
        they_hear_us,
        we_hear_them,
        best_effort_they_hear_us,
        best_effort_we_hear_them,
        a_best_effort_reader_hears_a_reliable_writer,
        a_peer_that_comes_again_is_met_again,
        we_restart_at_once;
    sizes:
        every_size_arrives_at_theirs,
        every_size_arrives_at_ours,
        an_empty_string_goes_both_ways;
    history:
        their_late_joiner_gets_the_depth_in_order,
        our_late_joiner_gets_the_depth_in_order,
        they_get_all_of_our_fast_writer,
        we_get_all_of_their_fast_writer,
        they_get_all_of_our_large_samples,
        we_get_all_of_their_large_samples;
    vitality:
        a_missed_deadline_of_ours_is_told_on_both_sides,
        a_missed_deadline_of_theirs_is_told_on_both_sides,
        we_stay_alive_for_them_without_a_word,
        they_stay_alive_for_us_without_a_word,
        our_participant_must_be_asserted,
        our_topic_must_be_asserted,
        their_participant_must_be_asserted,
        their_topic_must_be_asserted;
    mismatch:
        our_offer_that_does_not_fit_is_told_on_both_sides,
        their_offer_that_does_not_fit_is_told_on_both_sides;
    content_filter:
        we_get_what_we_want_of_theirs,
        we_get_what_we_want_of_theirs_by_best_effort;
    ownership:
        we_hear_their_stronger_writer_while_it_is_there,
        they_hear_our_stronger_writer_while_it_is_there;
    announce:
        their_type_hash_is_read,
        our_announcements_match_theirs;
    departure:
        a_killed_peer_is_noticed_by_its_lease,
        a_peer_that_ends_is_noticed_at_once,
        they_notice_our_killed_process_by_its_lease,
        they_notice_our_end_at_once;
}

#[test]
fn they_answer_us() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        play(stack, "they_answer_us", services::they_answer_us);
    }
}

#[test]
fn they_answer_a_client_that_was_there_before() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        let name = "they_answer_a_client_that_was_there_before";
        play(
            stack,
            name,
            services::they_answer_a_client_that_was_there_before,
        );
    }
}

#[test]
fn we_answer_them() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        play(stack, "we_answer_them", services::we_answer_them);
    }
}

/// Requests of Fast DDS's clients name their reader, which must be there.
#[test]
fn our_answer_waits_for_their_reader() {
    play(
        Stack::Cyclone,
        "our_answer_waits_for_their_reader",
        services::our_answer_waits_for_their_reader,
    );
}

macro_rules! of_both {
    ($($file:ident: $($story:ident),+;)+) => {
        $($(
            #[test]
            fn $story() {
                for stack in [Stack::Cyclone, Stack::FastDds] {
                    play(stack, stringify!($story), $file::$story);
                }
            }
        )+)+
    };
}

of_both! {
    actions:
        their_goals_are_worked_on_by_our_server,
        their_goals_are_cancelled_at_our_server,
        our_goals_are_worked_on_by_their_server,
        our_goals_are_cancelled_at_their_server;
    parameters:
        they_read_our_parameters,
        they_set_our_parameters_and_hear_of_it,
        we_read_and_set_their_parameters,
        we_know_their_node_by_name;
    secured:
        they_hear_us_by_every_kind_of_protection,
        we_hear_them_by_every_kind_of_protection,
        strangers_are_not_heard_and_hear_nothing;
}

#[test]
fn changed_files_act_on_cyclone_dds_while_it_listens() {
    play(
        Stack::Cyclone,
        "changed_files_act_while_they_listen",
        changed_files::changed_files_act_while_they_listen,
    );
}

#[test]
fn changed_files_act_on_fast_dds_while_it_listens() {
    play(
        Stack::FastDds,
        "changed_files_act_while_they_listen",
        changed_files::changed_files_act_while_they_listen,
    );
}

/// By name only: `-- --ignored all_that_can_be_protected`.
#[test]
#[ignore = "a minute and a half"]
fn all_that_can_be_protected() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        let name = "all_that_can_be_protected";
        play(stack, name, secured::all_that_can_be_protected);
    }
}

#[test]
fn we_follow_their_strength_and_user_data() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        let name = "we_follow_their_strength_and_user_data";
        play(stack, name, set_qos::we_follow_their_strength_and_user_data);
    }
}

#[test]
fn they_follow_our_partition_and_strength() {
    play(
        Stack::FastDds,
        "they_follow_our_partition_and_strength",
        set_qos::they_follow_our_partition_and_strength,
    );
}

#[test]
fn we_follow_them_to_another_partition() {
    play(
        Stack::FastDds,
        "we_follow_them_to_another_partition",
        set_qos::we_follow_them_to_another_partition,
    );
}

#[test]
fn our_type_hash_is_read() {
    play(
        Stack::Python,
        "our_type_hash_is_read",
        announce::our_type_hash_is_read,
    );
}

#[test]
fn our_types_are_shown() {
    play(
        Stack::Python,
        "our_types_are_shown",
        announce::our_types_are_shown,
    );
}

#[test]
fn their_types_are_understood() {
    play(
        Stack::Python,
        "their_types_are_understood",
        announce::their_types_are_understood,
    );
}

#[test]
fn their_instances_end_for_us() {
    play(
        Stack::Python,
        "their_instances_end_for_us",
        instances::their_instances_end_for_us,
    );
}

#[test]
fn our_instances_end_for_them() {
    play(
        Stack::Python,
        "our_instances_end_for_them",
        instances::our_instances_end_for_them,
    );
}

#[test]
fn they_get_what_they_want_of_ours() {
    play(
        Stack::FastDds,
        "they_get_what_they_want_of_ours",
        content_filter::they_get_what_they_want_of_ours,
    );
}
