//! Stories of a network that loses, doubles and reorders; and those that no such
//! network can be asked to play, with the reason of each.

use crate::stage::{Stage, Way};

/// Seeds of networks.
const STORMS: std::ops::Range<u64> = 1..4;

const LOSS: &str = "its messages are best effort, or its last ones are of a publisher that is \
                    gone: what is lost stays lost";
const OVERWRITTEN: &str = "what KEEP_LAST overwrites before it is repaired never arrives, or \
                           arrives between two looks";
const OVERTAKEN: &str = "word of a match, or of its end, is overtaken by what is published: a \
                         volatile reader counts from the first heartbeat that it hears";
const TOGETHER: &str = "counts what one datagram brings to several";

/// Stories that are played over all other paths only.
const EXEMPT: &[(&str, &str)] = &[
    ("a_best_effort_writer_never_waits", LOSS),
    ("best_effort_samples_keep_their_distance", LOSS),
    ("each_instance_has_its_own_time_filter", LOSS),
    (
        "an_asynchronous_publisher_disposes_of_its_instances_when_it_is_gone",
        LOSS,
    ),
    ("a_publisher_dropped_within_a_set_leaves_after_it", LOSS),
    ("a_publisher_that_goes_holds_nothing_back", LOSS),
    (
        "a_group_of_plain_presentation_is_subscriptions_side_by_side",
        OVERWRITTEN,
    ),
    ("keep_last_keeps_the_last_of_each_instance", OVERWRITTEN),
    (
        "when_sets_need_room_the_oldest_goes_as_a_whole",
        OVERWRITTEN,
    ),
    ("a_keep_last_writer_never_waits", OVERTAKEN),
    ("who_moves_in_gets_what_is_kept", OVERTAKEN),
    (
        "who_moves_to_another_partition_is_parted_and_may_be_followed",
        OVERTAKEN,
    ),
    ("only_what_passes_is_received", TOGETHER),
    (
        "small_messages_share_datagrams_within_the_latency_budget",
        TOGETHER,
    ),
];

/// Plays a story in each storm, unless it is exempt.
pub fn play(name: &str, story: impl Fn(&Stage)) {
    if EXEMPT.iter().any(|(exempt, _)| *exempt == name) {
        return;
    }
    for seed in STORMS {
        story(&Stage::new(Way::Storm(seed)));
    }
}

/// Each exemption is of a story, told once and with a reason.
#[test]
fn exemptions_name_stories() {
    for (index, (name, reason)) in EXEMPT.iter().enumerate() {
        assert!(crate::STORIES.contains(name), "{name} is no story");
        assert!(!reason.is_empty());
        let before = &EXEMPT[..index];
        assert!(
            before.iter().all(|(other, _)| other != name),
            "{name} twice"
        );
    }
}
