//! Interoperability with other DDS implementations: Debian's Cyclone DDS and Fast
//! DDS, PyPI's Cyclone DDS. Every test case runs with each of them. The crates rustdds and
//! dust_dds run the cases of topics, discovery and loss.
//!
//! `cargo xtask test` builds the peers (verify/interop/README.md) and runs this in a
//! private network, once with and once without multicast on loopback. Without peers
//! or network a test case is skipped, and prints the reason in a line that xtask
//! counts.

mod actions;
mod content_filter;
mod harness;
mod history;
mod instances;
mod liveliness;
mod message_sizes;
mod ownership;
mod parameters;
mod participant_loss;
mod pub_sub;
mod qos_mismatch;
mod revalidation;
mod secured;
mod services;
mod set_qos;
mod type_announcement;

use harness::{Stack, run};

macro_rules! test_cases {
    (@each $cases:tt $($name:ident $stack:ident),+) => {
        $(test_cases!(@stack $name $stack $cases);)+
    };
    (@stack $name:ident $stack:ident {$($file:ident: $($test_case:ident),+;)+}) => {
        mod $name {
            use super::*;
            $($(
                #[test]
                fn $test_case() {
                    run(Stack::$stack, stringify!($test_case), $file::$test_case);
                }
            )+)+
        }
    };
    ([$($stacks:tt)+] $($cases:tt)+) => {
        test_cases!(@each {$($cases)+} $($stacks)+);
    };
}

test_cases! {
    [cyclone Cyclone, fastdds FastDds, python Python]
    pub_sub:
        their_subscription_gets_our_messages,
        our_subscription_gets_their_messages,
        their_best_effort_subscription_gets_our_messages,
        our_best_effort_subscription_gets_their_messages,
        a_best_effort_reader_gets_messages_of_a_reliable_writer,
        a_restarted_peer_is_matched_again,
        our_restart_is_matched_at_once;
    message_sizes:
        every_size_arrives_at_their_reader,
        every_size_arrives_at_our_reader,
        an_empty_string_arrives_in_both_directions;
    history:
        their_late_joiner_gets_the_depth_in_order,
        our_late_joiner_gets_the_depth_in_order,
        their_reader_gets_every_sample_of_our_fast_writer,
        our_reader_gets_every_sample_of_their_fast_writer,
        their_reader_gets_every_large_sample_of_ours,
        our_reader_gets_every_large_sample_of_theirs;
    liveliness:
        our_missed_deadline_is_reported_on_both_sides,
        their_missed_deadline_is_reported_on_both_sides,
        our_automatic_liveliness_is_kept_without_messages,
        their_automatic_liveliness_is_kept_without_messages,
        our_participant_must_be_asserted,
        our_topic_must_be_asserted,
        their_participant_must_be_asserted,
        their_topic_must_be_asserted;
    qos_mismatch:
        our_incompatible_offer_is_reported_on_both_sides,
        their_incompatible_offer_is_reported_on_both_sides;
    content_filter:
        our_content_filter_selects_their_samples,
        our_content_filter_selects_their_best_effort_samples;
    ownership:
        our_reader_follows_their_stronger_writer,
        their_reader_follows_our_stronger_writer;
    type_announcement:
        their_type_hash_is_read,
        our_type_announcements_match_theirs;
    participant_loss:
        a_killed_peer_is_removed_when_its_lease_ends,
        a_peer_that_exits_is_removed_at_once,
        our_killed_process_is_removed_when_its_lease_ends,
        our_exit_is_noticed_by_the_peer_at_once;
}

test_cases! {
    [rustdds RustDds, dust_dds DustDds]
    pub_sub:
        their_subscription_gets_our_messages,
        our_subscription_gets_their_messages,
        their_best_effort_subscription_gets_our_messages,
        our_best_effort_subscription_gets_their_messages,
        a_best_effort_reader_gets_messages_of_a_reliable_writer,
        a_restarted_peer_is_matched_again,
        our_restart_is_matched_at_once;
    message_sizes:
        every_size_arrives_at_their_reader,
        every_size_arrives_at_our_reader,
        an_empty_string_arrives_in_both_directions;
    history:
        their_late_joiner_gets_the_depth_in_order,
        our_late_joiner_gets_the_depth_in_order,
        their_reader_gets_every_sample_of_our_fast_writer,
        our_reader_gets_every_sample_of_their_fast_writer,
        their_reader_gets_every_large_sample_of_ours,
        our_reader_gets_every_large_sample_of_theirs;
    participant_loss:
        a_killed_peer_is_removed_when_its_lease_ends,
        a_peer_that_exits_is_removed_at_once,
        our_killed_process_is_removed_when_its_lease_ends,
        our_exit_is_noticed_by_the_peer_at_once;
}

#[test]
fn their_server_answers_our_client() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        run(
            stack,
            "their_server_answers_our_client",
            services::their_server_answers_our_client,
        );
    }
}

#[test]
fn their_server_answers_a_client_that_started_earlier() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        let name = "their_server_answers_a_client_that_started_earlier";
        run(
            stack,
            name,
            services::their_server_answers_a_client_that_started_earlier,
        );
    }
}

#[test]
fn our_server_answers_their_client() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        run(
            stack,
            "our_server_answers_their_client",
            services::our_server_answers_their_client,
        );
    }
}

/// Requests of Fast DDS clients name their reply reader, which must be matched.
#[test]
fn our_response_waits_for_their_reply_reader() {
    run(
        Stack::Cyclone,
        "our_response_waits_for_their_reply_reader",
        services::our_response_waits_for_their_reply_reader,
    );
}

macro_rules! on_cyclone_and_fast_dds {
    ($($file:ident: $($test_case:ident),+;)+) => {
        $($(
            #[test]
            fn $test_case() {
                for stack in [Stack::Cyclone, Stack::FastDds] {
                    run(stack, stringify!($test_case), $file::$test_case);
                }
            }
        )+)+
    };
}

on_cyclone_and_fast_dds! {
    actions:
        their_goals_are_worked_on_by_our_server,
        their_goals_are_cancelled_at_our_server,
        our_goals_are_worked_on_by_their_server,
        our_goals_are_cancelled_at_their_server;
    parameters:
        they_read_our_parameters,
        they_set_our_parameters_and_get_the_events,
        we_read_and_set_their_parameters,
        their_node_has_its_name_in_our_graph;
    secured:
        their_subscription_gets_our_messages_with_every_protection_kind,
        our_subscription_gets_their_messages_with_every_protection_kind,
        unauthenticated_participants_neither_send_nor_receive;
}

#[test]
fn changed_files_act_on_cyclone_dds_while_it_listens() {
    run(
        Stack::Cyclone,
        "changed_permissions_apply_while_a_peer_is_matched",
        revalidation::changed_permissions_apply_while_a_peer_is_matched,
    );
}

#[test]
fn changed_files_act_on_fast_dds_while_it_listens() {
    run(
        Stack::FastDds,
        "changed_permissions_apply_while_a_peer_is_matched",
        revalidation::changed_permissions_apply_while_a_peer_is_matched,
    );
}

/// By name only: `-- --ignored all_that_can_be_protected`.
#[test]
#[ignore = "a minute and a half"]
fn all_that_can_be_protected() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        let name = "all_that_can_be_protected";
        run(stack, name, secured::all_that_can_be_protected);
    }
}

#[test]
fn we_follow_their_strength_and_user_data() {
    for stack in [Stack::Cyclone, Stack::FastDds] {
        let name = "we_follow_their_strength_and_user_data";
        run(stack, name, set_qos::we_follow_their_strength_and_user_data);
    }
}

#[test]
fn they_follow_our_partition_and_strength() {
    run(
        Stack::FastDds,
        "they_follow_our_partition_and_strength",
        set_qos::they_follow_our_partition_and_strength,
    );
}

#[test]
fn we_follow_them_to_another_partition() {
    run(
        Stack::FastDds,
        "we_follow_them_to_another_partition",
        set_qos::we_follow_them_to_another_partition,
    );
}

#[test]
fn our_type_hash_is_read() {
    run(
        Stack::Python,
        "our_type_hash_is_read",
        type_announcement::our_type_hash_is_read,
    );
}

#[test]
fn our_types_are_shown() {
    run(
        Stack::Python,
        "our_types_are_shown",
        type_announcement::our_types_are_shown,
    );
}

#[test]
fn their_types_are_understood() {
    run(
        Stack::Python,
        "their_types_are_understood",
        type_announcement::their_types_are_understood,
    );
}

#[test]
fn their_instances_end_for_us() {
    run(
        Stack::Python,
        "their_instances_end_for_us",
        instances::their_instances_end_for_us,
    );
}

#[test]
fn our_instances_end_for_them() {
    run(
        Stack::Python,
        "our_instances_end_for_them",
        instances::our_instances_end_for_them,
    );
}

#[test]
fn their_content_filter_selects_our_samples() {
    run(
        Stack::FastDds,
        "their_content_filter_selects_our_samples",
        content_filter::their_content_filter_selects_our_samples,
    );
}
