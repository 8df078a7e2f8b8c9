//! Contexts of one host without a router.

use pteros::config::{DiscoveryRange, ZenohSettings};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{next, text, until};

fn open() -> Context {
    let settings = ZenohSettings {
        router_check_attempts: Some(-1),
        ..ZenohSettings::default()
    };
    let options = ContextOptions {
        domain_id: Some(93),
        discovery_range: Some(DiscoveryRange::Off),
        transports: vec![pteros_zenoh::transport(settings)],
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

#[test]
fn contexts_meet_without_a_router_and_go_on_when_the_first_ends() {
    let contexts = [open(), open(), open()];
    let nodes = contexts.each_ref().map(|context| {
        let node = context.create_node("node").unwrap();
        let publisher: Publisher<Text> = node.create_publisher("chatter").unwrap();
        let heard: Subscription<Text> = node.create_polled_subscription("chatter").unwrap();
        (node, publisher, heard)
    });
    for (context, (_, publisher, heard)) in contexts.iter().zip(&nodes) {
        until(context, || {
            publisher.matched_count() == 3 && heard.matched_count() == 3
        });
    }
    let [first, second, third] = contexts;
    let [left, stays, other] = nodes;
    drop((left, first));
    until(&second, || stays.1.matched_count() == 2);
    // Somebody else listens now, and the others find it.
    let late = open();
    let node = late.create_node("late").unwrap();
    let heard: Subscription<Text> = node.create_polled_subscription("chatter").unwrap();
    until(&late, || heard.matched_count() == 2);
    until(&second, || stays.1.matched_count() == 3);
    stays.1.publish(&text("on")).unwrap();
    assert_eq!(next(&heard), "on");
    assert_eq!(next(&other.2), "on");
    drop(third);
}
