//! The graph: nodes, endpoints, types and hashes.

use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use pteros::interfaces::std_msgs::msg::{Int32, String as Text};
use pteros::msg::message::Message;
use pteros::prelude::*;

use crate::harness::{Net, SOON, until};

fn names(context: &Context) -> Vec<String> {
    let nodes = context.graph().nodes();
    let mut names: Vec<String> = nodes
        .iter()
        .map(pteros::graph::NodeInfo::fully_qualified_name)
        .collect();
    names.sort();
    names
}

#[test]
fn nodes_and_endpoints_are_seen_with_types_hashes_and_qos() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let talker = here
        .create_node(NodeOptions::new("talker").namespace("/robot"))
        .unwrap();
    let publisher: Publisher<Text> = talker
        .create_publisher("chatter".keep_last(7).best_effort())
        .unwrap();
    let service = talker
        .create_service::<AddTwoInts>("add", |_| AddTwoIntsResponse::default())
        .unwrap();
    let looker = there.create_node("looker").unwrap();
    until(&there, || names(&there) == ["/looker", "/robot/talker"]);
    let graph = there.graph();
    until(&there, || !graph.publishers("/robot/chatter").is_empty());
    let [info] = &graph.publishers("/robot/chatter")[..] else {
        panic!("one publisher");
    };
    assert_eq!(info.node_name.as_deref(), Some("talker"));
    assert_eq!(info.node_namespace.as_deref(), Some("/robot"));
    assert_eq!(info.topic_type, "std_msgs/msg/String");
    assert_eq!(info.type_hash, Some(Text::TYPE_HASH));
    assert_eq!(info.gid, publisher.gid());
    let expected = QosProfile::default().keep_last(7).best_effort();
    assert_eq!(info.qos.history, expected.history);
    assert_eq!(info.qos.reliability, expected.reliability);
    until(&there, || {
        let services = graph.services();
        services.iter().any(|service| service.name == "/robot/add")
    });
    drop(publisher);
    until(&there, || graph.publishers("/robot/chatter").is_empty());
    drop(service);
    drop(talker);
    until(&there, || names(&there) == ["/looker"]);
    drop(looker);
}

#[test]
fn another_type_on_a_topic_is_reported_though_zenoh_keeps_them_apart() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let talker = here.create_node("talker").unwrap();
    let listener = there.create_node("listener").unwrap();
    let _publisher: Publisher<Text> = talker.create_publisher("chatter").unwrap();
    let subscription: Subscription<Int32> = listener.create_polled_subscription("chatter").unwrap();
    let graph = there.graph();
    until(&there, || graph.publishers("/chatter").len() == 1);
    assert_eq!(subscription.matched_count(), 0);
    let reports = graph.match_reports("/chatter");
    assert_eq!(reports.len(), 1);
    assert!(!reports[0].outcomes.is_empty());
}

#[test]
fn domains_are_separate() {
    let net = Net::new();
    let open = |domain_id| {
        let options = ContextOptions {
            domain_id: Some(domain_id),
            discovery_range: Some(pteros::config::DiscoveryRange::Off),
            transports: vec![pteros_zenoh::transport(net.settings("peer"))],
            ..ContextOptions::default()
        };
        Context::with_options(options).unwrap()
    };
    let contexts = [open(1), open(2), open(1)];
    let nodes = contexts.each_ref().map(|context| {
        let node = context.create_node("same").unwrap();
        let publisher: Publisher<Text> = node.create_publisher("chatter").unwrap();
        let heard: Subscription<Text> = node.create_polled_subscription("chatter").unwrap();
        (node, publisher, heard)
    });
    assert!(nodes[0].1.wait_for_matched(2, SOON));
    assert!(nodes[2].1.wait_for_matched(2, SOON));
    assert_eq!(nodes[1].1.matched_count(), 1);
    assert_eq!(contexts[1].graph().nodes().len(), 1);
}
