//! Contexts with RTPS and Zenoh at once.

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Net, SOON, next, text, until};

fn open_both(net: &Net, domain_id: u32) -> Context {
    let options = ContextOptions {
        wires: vec![pteros_zenoh::wire(net.settings("peer"))],
        ..ContextOptions::local(domain_id)
    };
    Context::with_options(options).unwrap()
}

fn open_zenoh(net: &Net, domain_id: u32) -> Context {
    let options = ContextOptions {
        wires: vec![pteros_zenoh::wire(net.settings("peer"))],
        discovery_range: Some(pteros::config::DiscoveryRange::Off),
        domain_id: Some(domain_id),
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

#[test]
fn each_kind_of_peer_gets_each_message_once() {
    const DOMAIN: u32 = 91;
    let net = Net::new();
    let talking = open_both(&net, DOMAIN);
    let both = open_both(&net, DOMAIN);
    let zenoh = open_zenoh(&net, DOMAIN);
    let rtps = Context::with_options(ContextOptions::local(DOMAIN)).unwrap();
    let talker = talking.create_node("talker").unwrap();
    let latched = || "chatter".keep_last(100).transient_local();
    let publisher: Publisher<Text> = talker.create_publisher(latched()).unwrap();
    publisher.publish(&text("early")).unwrap();
    let heard = [&both, &zenoh, &rtps].map(|context| {
        let node = context.create_node("listener").unwrap();
        let subscription: Subscription<Text> = node.create_polled_subscription(latched()).unwrap();
        (node, subscription)
    });
    assert!(publisher.wait_for_matched(3, SOON));
    // RTPS knows it, so that Zenoh's tokens of it do not count.
    until(&talking, || {
        talking.graph().subscriptions("/chatter").len() == 3
    });
    for n in 0..20 {
        publisher.publish(&text(n)).unwrap();
    }
    for (_, subscription) in &heard {
        assert_eq!(next(subscription), "early");
        for n in 0..20 {
            assert_eq!(next(subscription), n.to_string());
        }
    }
    // A second copy would have taken a way as long as the last message.
    publisher.publish(&text("end")).unwrap();
    for (_, subscription) in &heard {
        assert_eq!(next(subscription), "end");
    }
    for (_, subscription) in &heard {
        assert!(subscription.take().is_none());
    }
}
