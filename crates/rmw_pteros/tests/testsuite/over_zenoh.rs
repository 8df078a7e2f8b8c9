//! The Zenoh transport below the exported functions. `cargo xtask test --all` runs it with the
//! feature `zenoh`.

use std::ptr::null_mut;

use crate::harness::*;

/// One sample of many datagrams.
const LARGE: usize = 1 << 20;

const BOTH_WAYS: &str = "over_zenoh::messages_pass_both_ways_in_order";

#[test]
fn contexts_meet_over_zenoh_alone() {
    let only_zenoh = [("PTEROS_WIRE", "zenoh"), ("PTEROS_SHARED_MEMORY", "off")];
    run_alone(BOTH_WAYS, &only_zenoh);
}

#[test]
fn contexts_of_one_host_meet_beside_zenoh_by_shared_memory() {
    let with_shared_memory = [("PTEROS_WIRE", "zenoh")];
    run_alone(BOTH_WAYS, &with_shared_memory);
}

#[test]
fn contexts_on_both_transports_get_each_message_once() {
    let both = [("PTEROS_WIRE", "rtps,zenoh")];
    run_alone(BOTH_WAYS, &both);
}

#[test]
#[ignore = "run by the tests above, with variables of its own"]
fn messages_pass_both_ways_in_order() {
    let domain = given_domain();
    let (here, there) = (Party::new(domain), Party::new(domain));
    let ty = Text::type_support();
    for (from, to) in [(&here, &there), (&there, &here)] {
        let (publisher, subscription) = (from.publisher(ty), to.subscription(ty, null_mut()));
        from.await_match(publisher, 1);
        let mut received = Text::new(0, "");
        for id in 1..=100 {
            let text = if id == 50 {
                "x".repeat(LARGE)
            } else {
                format!("message {id}")
            };
            publish(publisher, &Text::new(id, &text));
            to.wait_for_message(subscription);
            assert!(take(subscription, &mut received));
            assert_eq!((received.id, received.text()), (id, &*text));
        }
        assert!(!take(subscription, &mut received), "nothing comes twice");
        from.destroy_publisher(publisher);
        to.destroy_subscription(subscription);
    }
}
