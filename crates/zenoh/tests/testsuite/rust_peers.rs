//! Peers over the crates hiroz and ros2-client, which speak as rmw_zenoh_cpp does
//! (`verify/interop/rust`). Skipped with a note where a peer is not built.

use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Net, SOON, add_two_ints, counter, next, text, until};
use pteros_test_support::peer::{Peer, program, value};
use pteros_test_support::spin_thread::SpinThread;

const HIROZ: &str = "hiroz-peer";
const ALL: [&str; 2] = [HIROZ, "ros2-client-peer"];

/// Starts a peer that connects to the router, or prints why it is missing.
fn start(net: &Net, name: &str, options: &str) -> Option<Peer> {
    let program = match program(name) {
        Ok(program) => program,
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    let setting = format!(
        "connect/endpoints=[\"{}\"];listen/endpoints=[\"tcp/127.0.0.1:0\"];scouting/multicast/enabled=false",
        net.endpoint()
    );
    let mut peer = Peer::start_with(&program, options, &[("ZENOH_CONFIG_OVERRIDE", setting)]);
    peer.expect("ready", SOON);
    Some(peer)
}

#[test]
fn topics_pass_both_ways() {
    for name in ALL {
        let net = Net::new();
        let Some(mut receiving) = start(&net, name, "sub --topic ours --node sink") else {
            continue;
        };
        let context = net.open();
        let node = context.create_node("here").unwrap();
        let publisher: Publisher<Text> = node.create_publisher("ours").unwrap();
        assert!(publisher.wait_for_matched(1, SOON), "{name}");
        let [found] = &context.graph().subscriptions("/ours")[..] else {
            panic!("{name}: one subscription");
        };
        assert_eq!(found.node_name.as_deref(), Some("sink"), "{name}");
        for n in 1..=3 {
            publisher.publish(&text(n)).unwrap();
            let line = receiving.expect("received", SOON);
            assert_eq!(line, format!("received seq={n} text={n}"), "{name}");
        }
        receiving.release();
        assert!(receiving.finish(SOON).unwrap().success(), "{name}");

        let subscription: Subscription<Text> = node.create_polled_subscription("theirs").unwrap();
        let options = "pub --topic theirs --node source --start stdin";
        let mut sending = start(&net, name, options).unwrap();
        assert!(subscription.wait_for_matched(1, SOON), "{name}");
        sending.release();
        for n in 1..=3 {
            assert_eq!(next(&subscription), format!("Hello World: {n}"), "{name}");
        }
        assert_eq!(counter(&context, "malformed"), 0, "{name}");
        assert_eq!(subscription.counts().lost, 0, "{name}");
        sending.release();
        assert!(sending.finish(SOON).unwrap().success(), "{name}");
        until(&context, || subscription.matched_count() == 0);
    }
}

#[test]
fn transient_local_history_passes_both_ways_with_hiroz() {
    let net = Net::new();
    let options = "pub --topic theirs --durability transient_local --node source";
    let Some(mut sending) = start(&net, HIROZ, options) else {
        return;
    };
    sending.expect("sent seq=3", SOON);
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let latched = |topic: &str| topic.to_owned().keep_last(10).transient_local();
    let subscription: Subscription<Text> =
        node.create_polled_subscription(latched("theirs")).unwrap();
    for n in 1..=3 {
        assert_eq!(next(&subscription), format!("Hello World: {n}"));
    }
    let publisher: Publisher<Text> = node.create_publisher(latched("ours")).unwrap();
    for n in 1..=3 {
        publisher.publish(&text(n)).unwrap();
    }
    let options = "sub --topic ours --durability transient_local --node sink";
    let mut receiving = start(&net, HIROZ, options).unwrap();
    for n in 1..=3 {
        let line = receiving.expect("received", SOON);
        assert_eq!(line, format!("received seq={n} text={n}"));
    }
}

#[test]
fn services_work_both_ways() {
    for name in ALL {
        let net = Net::new();
        let options = "server --topic theirs --count 2 --node serving";
        let Some(mut serving) = start(&net, name, options) else {
            continue;
        };
        let context = net.open();
        let node = context.create_node("here").unwrap();
        let service = add_two_ints(&node, "ours");
        let client = node.create_client::<AddTwoInts>("theirs").unwrap();
        assert!(client.wait_for_service(SOON), "{name}");
        for a in 1..=2 {
            let answer = client.call(&AddTwoIntsRequest { a, b: 40 }, SOON).unwrap();
            assert_eq!(answer.sum, a + 40, "{name}");
            let line = serving.expect("served", SOON);
            assert_eq!(value(&line, "a"), Some(a.to_string().as_str()), "{name}");
        }
        let _spin = SpinThread::of_node(&node, service);
        let options = "client --topic ours --node asking --start stdin";
        let mut asking = start(&net, name, options).unwrap();
        let graph = context.graph();
        until(&context, || {
            graph.nodes().iter().any(|node| node.name == "asking")
        });
        asking.release();
        for n in 1..=3 {
            let line = asking.expect("reply", SOON);
            assert_eq!(line, format!("reply seq={n} sum={}", 11 * n), "{name}");
        }
    }
}
