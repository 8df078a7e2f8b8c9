//! Services and parameters between contexts.

use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::lifecycle_msgs::msg::TransitionEvent;
use pteros::interfaces::std_srvs::srv::{SetBool, SetBoolRequest, SetBoolResponse};
use pteros::lifecycle::{LifecycleNode, LifecycleState, LifecycleSupervisor, SupervisedNode};
use pteros::parameter::{Parameter, ParameterClient, ParameterValue};
use pteros::prelude::*;
use pteros::service::{CallError, Service};

use zenoh::Wait;

use crate::harness::{Net, SOON, add_two_ints, until};
use pteros_test_support::spin_thread::{SPIN_PERIOD, SpinThread};

#[test]
fn every_call_gets_the_response_to_its_request() {
    let net = Net::new();
    let [here, there, third] = [net.open(), net.open(), net.open_as("client")];
    let serving = here.create_node("serving").unwrap();
    let service = add_two_ints(&serving, "add_two_ints");
    let spin = SpinThread::of_node(&serving, service);
    let clients = [&there, &third].map(|context| {
        let node = context.create_node("asking").unwrap();
        let client = node.create_client::<AddTwoInts>("add_two_ints").unwrap();
        assert!(client.wait_for_service(SOON));
        (node, client)
    });
    for a in 0..20 {
        for (at, (_, client)) in (0..).zip(&clients) {
            let answer = client.call(&AddTwoIntsRequest { a, b: 100 * at }, SOON);
            assert_eq!(answer.unwrap().sum, a + 100 * at);
        }
    }
    assert_eq!(clients[0].1.unmatched_response_count(), 0);
    // The server leaves: an open call ends, and a new one finds nobody.
    drop(spin);
    drop(serving);
    let client = &clients[0].1;
    until(&there, || !client.service_is_ready());
    let request = AddTwoIntsRequest { a: 1, b: 2 };
    let refused = client.call_async(&request).err();
    assert!(
        matches!(refused, Some(CallError::NoServer { .. })),
        "{refused:?}"
    );
}

#[test]
fn a_call_ends_when_its_server_leaves() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let serving = here.create_node("serving").unwrap();
    // Nobody spins it.
    let service = serving
        .create_service::<AddTwoInts>("add_two_ints", |_| AddTwoIntsResponse::default())
        .unwrap();
    let asking = there.create_node("asking").unwrap();
    let client = asking.create_client::<AddTwoInts>("add_two_ints").unwrap();
    assert!(client.wait_for_service(SOON));
    let call = client
        .call_async(&AddTwoIntsRequest { a: 1, b: 2 })
        .unwrap();
    drop(service);
    let answer = call.wait(SOON);
    assert!(
        matches!(answer, Err(CallError::ServerLost { .. })),
        "{answer:?}"
    );
}

#[test]
fn the_first_response_of_two_servers_counts() {
    let net = Net::new();
    let contexts = [net.open(), net.open(), net.open()];
    let servers: Vec<_> = contexts[..2]
        .iter()
        .map(|context| {
            let node = context.create_node("serving").unwrap();
            let service = add_two_ints(&node, "add");
            SpinThread::of_node(&node, service)
        })
        .collect();
    let asking = contexts[2].create_node("asking").unwrap();
    let client = asking.create_client::<AddTwoInts>("add").unwrap();
    until(&contexts[2], || {
        contexts[2].graph().nodes().len() == 3 && client.service_is_ready()
    });
    for a in 0..10 {
        let answer = client.call(&AddTwoIntsRequest { a, b: 1 }, SOON).unwrap();
        assert_eq!(answer.sum, a + 1);
    }
    drop(servers);
}

/// The second one replies by its own key, whichever comes first in the tables.
#[test]
fn two_services_of_one_name_and_context_reply_to_their_own_clients() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let serving = here.create_node("serving").unwrap();
    let add = add_two_ints(&serving, "both");
    let set = serving
        .create_service::<SetBool>("both", |request| SetBoolResponse {
            success: request.data,
            message: "set".into(),
        })
        .unwrap();
    let _spin = SpinThread::of_node(&serving, (add, set));
    let asking = there.create_node("asking").unwrap();
    let adding = asking.create_client::<AddTwoInts>("both").unwrap();
    let setting = asking.create_client::<SetBool>("both").unwrap();
    assert!(adding.wait_for_service(SOON) && setting.wait_for_service(SOON));
    let request = AddTwoIntsRequest { a: 1, b: 2 };
    assert_eq!(adding.call(&request, SOON).unwrap().sum, 3);
    let request = SetBoolRequest { data: true };
    assert!(setting.call(&request, SOON).unwrap().success);
}

/// A query of a client that is not of Pteros ends when the last handle of it is gone.
#[test]
fn the_queries_of_a_server_that_closes_end() {
    let net = Net::new();
    let here = net.open_as("client");
    let serving = here.create_node("serving").unwrap();
    let service = Service::<AddTwoInts>::polled(&serving, "add").unwrap();
    let session = net.plain_session();
    let mut server = None;
    until(&here, || {
        let tokens = session.liveliness().get("@ros2_lv/**").wait().unwrap();
        let keys = tokens.into_iter().filter_map(|reply| {
            let sample = reply.into_result().ok()?;
            Some(sample.key_expr().as_str().to_owned())
        });
        server = keys
            .into_iter()
            .find(|key| key.contains("/SS/") && key.contains("/%add/"));
        server.is_some()
    });
    // The token of a client: that of the server with another session and kind.
    let server = server.unwrap();
    let mut chunks: Vec<&str> = server.split('/').collect();
    let own = session.zid().to_string();
    chunks[2] = &own;
    chunks[5] = "SC";
    chunks[8] = "asking";
    let token = chunks.join("/");
    let key = format!("0/add/{}/{}", chunks[10], chunks[11]);
    let _token = session.liveliness().declare_token(&token).wait().unwrap();
    let gid = xxhash_rust::xxh3::xxh3_128(token.as_bytes()).to_le_bytes();
    until(&here, || here.graph().nodes().len() == 2);
    let attachment = [&1i64.to_le_bytes()[..], &2i64.to_le_bytes(), &[16], &gid].concat();
    let payload = [&[0, 1, 0, 0][..], &[0; 16]].concat();
    let replies = session.get(&key).payload(payload).attachment(attachment);
    let replies = replies.timeout(10 * SOON).wait().unwrap();
    let graph = here.graph();
    let has_come = graph.wait_until(SOON, || service.take_request().is_some());
    assert!(
        has_come,
        "{:?} {:?}",
        here.transport_counters(),
        service.counts()
    );
    assert!(replies.try_recv().unwrap().is_none(), "open until now");
    // The context stays.
    drop(service);
    let ended = replies.recv_timeout(SOON);
    assert!(ended.is_err(), "no reply and no end: {ended:?}");
}

#[test]
fn parameters_are_read_and_set_through_the_transport() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let node = here.create_node("arm").unwrap();
    let speed = node.declare_parameter("speed", 1.5).unwrap();
    let _spin = SpinThread::of_node(&node, ());
    let asking = there.create_node("asking").unwrap();
    let client = ParameterClient::new(&asking, "/arm");
    // Waits for the node's services, too.
    let value = client.get(&["speed"], SOON).unwrap();
    assert_eq!(value, [ParameterValue::Double(1.5)]);
    let results = client
        .set(vec![Parameter::new("speed", 2.5)], SOON)
        .unwrap();
    assert_eq!(results, [Ok(())]);
    assert!((speed.value() - 2.5).abs() < f64::EPSILON);
}

/// A supervisor brings a managed node of another context up and down, and hears of it.
#[test]
fn managed_nodes_are_supervised() {
    let net = Net::new();
    let (far, here) = (net.open(), net.open());
    let arm = LifecycleNode::new(&far, NodeOptions::new("arm"), ()).unwrap();
    let _spin = SpinThread::new(move |is_over| while !arm.spin_until(is_over, SPIN_PERIOD) {});
    let node = here.create_node("ears").unwrap();
    let events: Subscription<TransitionEvent> = node
        .create_polled_subscription("/arm/transition_event".keep_last(10))
        .unwrap();
    assert!(events.wait_for_matched(1, SOON));
    let mut supervisor = LifecycleSupervisor::new(&here, [SupervisedNode::new("arm")]).unwrap();
    let report = supervisor.bring_up();
    assert!(report.all_are(LifecycleState::Active), "{report}");
    let report = supervisor.shut_down();
    assert!(report.all_are(LifecycleState::Finalized), "{report}");
    for goal in ["inactive", "active", "finalized"] {
        // Each transition passes a state of its own.
        let mut labels = std::iter::from_fn(|| events.take_timeout(SOON));
        let found = labels.find(|event| event.goal_state.label == goal);
        assert!(found.is_some(), "{goal}");
    }
}
