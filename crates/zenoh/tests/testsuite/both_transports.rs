//! Contexts with both transports beside some with one: each message comes once, each request
//! is served once, and the graph has each node once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use pteros::config::DiscoveryRange;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use zenoh::Wait as _;

use crate::harness::{Net, SOON, next, text, until};
use pteros_test_support::spin_thread::SpinThread;

/// A domain for RTPS that no other test of this program has.
fn domain() -> u32 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    150 + u32::try_from(next).unwrap()
}

/// A context on these transports.
fn open(net: &Net, domain: u32, has_rtps: bool, has_zenoh: bool) -> Context {
    let range = if has_rtps {
        DiscoveryRange::Localhost
    } else {
        DiscoveryRange::Off
    };
    let transport = has_zenoh.then(|| pteros_zenoh::transport(net.settings("peer")));
    let options = ContextOptions {
        domain_id: Some(domain),
        discovery_range: Some(range),
        transports: transport.into_iter().collect(),
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

#[test]
fn each_peer_gets_each_message_once_whatever_its_transports() {
    let (net, domain) = (Net::new(), domain());
    let here = open(&net, domain, true, true);
    let talker = here.create_node("talker").unwrap();
    for durable in [false, true] {
        let topic = if durable { "latched" } else { "chatter" };
        let profile = || {
            let profile = topic.keep_last(100);
            if durable {
                profile.transient_local()
            } else {
                profile
            }
        };
        let publisher: Publisher<Text> = talker.create_publisher(profile()).unwrap();
        let kinds = [(true, true), (true, false), (false, true)];
        let peers = kinds.map(|(rtps, zenoh)| {
            let context = open(&net, domain, rtps, zenoh);
            let node = context.create_node("listener").unwrap();
            let subscription: Subscription<Text> =
                node.create_polled_subscription(profile()).unwrap();
            (context, node, subscription)
        });
        assert!(publisher.wait_for_matched(3, SOON));
        for (_, _, subscription) in &peers {
            assert!(subscription.wait_for_matched(1, SOON));
        }
        for n in 1..=50 {
            publisher.publish(&text(n)).unwrap();
        }
        for ((_, _, subscription), kind) in peers.iter().zip(kinds) {
            for n in 1..=50 {
                assert_eq!(next(subscription), n.to_string(), "{kind:?}");
            }
        }
        // Any second copy would be here before the answer to a further message.
        publisher.publish(&text("end")).unwrap();
        for ((_, _, subscription), kind) in peers.iter().zip(kinds) {
            assert_eq!(next(subscription), "end", "{kind:?}");
            assert_eq!(subscription.counts().lost, 0, "{kind:?}");
        }
        assert_eq!(publisher.matched_count(), 3);
        for ((_, _, subscription), kind) in peers.iter().zip(kinds) {
            assert_eq!(
                subscription.take().map(|sample| sample.data.clone()),
                None,
                "{kind:?}"
            );
        }
    }
}

#[test]
fn a_context_with_both_transports_hears_publishers_of_each() {
    let (net, domain) = (Net::new(), domain());
    let here = open(&net, domain, true, true);
    let listener = here.create_node("listener").unwrap();
    let profile = || "chatter".keep_last(100);
    let subscription: Subscription<Text> = listener.create_polled_subscription(profile()).unwrap();
    let peers = [(true, true), (true, false), (false, true)].map(|(rtps, zenoh)| {
        let context = open(&net, domain, rtps, zenoh);
        let node = context.create_node("talker").unwrap();
        let publisher: Publisher<Text> = node.create_publisher(profile()).unwrap();
        (context, node, publisher)
    });
    assert!(subscription.wait_for_matched(3, SOON));
    for (_, _, publisher) in &peers {
        assert!(publisher.wait_for_matched(1, SOON));
    }
    for (context, _, publisher) in &peers {
        let name = format!("{:?}", context.graph().nodes().len());
        publisher.publish(&text(&name)).unwrap();
        assert_eq!(next(&subscription), name);
    }
    assert!(subscription.take().is_none());
    // The graph has every node once.
    let graph = here.graph();
    until(&here, || graph.nodes().len() == 4);
    let infos = graph.publishers("/chatter");
    assert_eq!(infos.len(), 3);
    // One leaves on both transports at once.
    let [both, ..] = peers;
    drop(both);
    until(&here, || subscription.matched_count() == 2);
    until(&here, || graph.nodes().len() == 3);
}

#[test]
fn a_server_with_both_transports_serves_each_request_once() {
    let (net, domain) = (Net::new(), domain());
    let here = open(&net, domain, true, true);
    let serving = here.create_node("serving").unwrap();
    let served = Arc::new(AtomicUsize::new(0));
    let count = served.clone();
    let service = serving
        .create_service::<AddTwoInts>("add_two_ints", move |request| {
            count.fetch_add(1, Ordering::Relaxed);
            AddTwoIntsResponse {
                sum: request.a + request.b,
            }
        })
        .unwrap();
    let spin = SpinThread::of_node(&serving, service);
    let clients = [(true, true), (true, false), (false, true)].map(|(rtps, zenoh)| {
        let context = open(&net, domain, rtps, zenoh);
        let node = context.create_node("asking").unwrap();
        let client = node.create_client::<AddTwoInts>("add_two_ints").unwrap();
        assert!(client.wait_for_service(SOON), "{rtps} {zenoh}");
        (context, node, client)
    });
    for a in 0..10 {
        for (_, _, client) in &clients {
            let answer = client.call(&AddTwoIntsRequest { a, b: 7 }, SOON);
            assert_eq!(answer.unwrap().sum, a + 7);
        }
    }
    assert_eq!(served.load(Ordering::Relaxed), 30);
    for (_, _, client) in &clients {
        assert_eq!(client.unmatched_response_count(), 0);
    }
    drop(spin);
}

/// RTPS does not leave the process of one of them, so that Zenoh alone joins the pair.
#[test]
fn contexts_with_both_transports_meet_over_zenoh_where_rtps_does_not_reach() {
    let net = Net::new();
    // Two domains of RTPS, and one for both sessions, as on two networks.
    let here = open(&net, 0, false, true);
    let there = open(&net, 0, true, true);
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let profile = || "far".keep_last(10).transient_local();
    let publisher: Publisher<Text> = talker.create_publisher(profile()).unwrap();
    publisher.publish(&text(1)).unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription(profile()).unwrap();
    assert_eq!(next(&subscription), "1");
    assert!(publisher.wait_for_matched(1, SOON));
    publisher.publish(&text(2)).unwrap();
    assert_eq!(next(&subscription), "2");
    assert!(subscription.take().is_none());
}

/// Zenoh tells a publisher only that some subscriber has its key.
#[test]
fn a_subscriber_without_a_token_is_served_while_no_context_with_both_transports_reads() {
    let (net, domain) = (Net::new(), domain());
    let here = open(&net, domain, true, true);
    let talker = here.create_node("talker").unwrap();
    let publisher: Publisher<Text> = talker.create_publisher("chatter").unwrap();
    let plain = net.plain_session();
    let (heard, count) = channel();
    let key = format!("{domain}/chatter/std_msgs::msg::dds_::String_/*");
    let _subscriber = plain
        .declare_subscriber(key)
        .callback(move |_| {
            let _ = heard.send(());
        })
        .wait()
        .unwrap();
    let served = || {
        publisher.publish(&text("a")).unwrap();
        count.recv_timeout(Duration::from_millis(100)).is_ok()
    };
    until(&here, served);
    let there = open(&net, domain, true, true);
    let listener = there.create_node("listener").unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription("chatter").unwrap();
    assert!(publisher.wait_for_matched(1, SOON) && subscription.wait_for_matched(1, SOON));
    until(&here, || {
        while count.try_recv().is_ok() {}
        !served()
    });
    drop((subscription, listener, there));
    until(&here, served);
}
