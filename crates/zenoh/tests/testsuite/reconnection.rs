//! A router that restarts.

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Net, SOON, next, text, until};

#[test]
fn endpoints_are_lost_with_the_router_and_found_again() {
    let mut net = Net::new();
    let [here, there] = [net.open_as("client"), net.open_as("client")];
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let latched = || "latched".keep_last(2).transient_local();
    let publisher: Publisher<Text> = talker.create_publisher(latched()).unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription(latched()).unwrap();
    assert!(publisher.wait_for_matched(1, SOON));
    publisher.publish(&text(1)).unwrap();
    assert_eq!(next(&subscription), "1");
    for round in 0..3 {
        net.stop_router();
        until(&there, || subscription.matched_count() == 0);
        until(&here, || publisher.matched_count() == 0);
        let missed = format!("missed {round}");
        publisher.publish(&text(&missed)).unwrap();
        net.start_router();
        assert!(subscription.wait_for_matched(1, SOON));
        assert!(publisher.wait_for_matched(1, SOON));
        assert_eq!(next(&subscription), missed, "history is asked for again");
        publisher.publish(&text(round)).unwrap();
        assert_eq!(next(&subscription), round.to_string());
    }
}
