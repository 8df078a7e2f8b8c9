//! Peers over PyPI's eclipse-zenoh, which speak as rmw_zenoh_cpp does
//! (`verify/interop/zenoh/peer.py`). Skipped with a note where the peer is not built.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pteros::action::{ActionServerOptions, GoalStatus, ServerGoalHandle};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Net, SOON, add_two_ints, counter, next, text, until};
use pteros_test_support::peer::{Peer, program, value};
use pteros_test_support::spin_thread::SpinThread;

/// Starts a peer, or prints why it is missing.
fn start(net: &Net, options: &str) -> Option<Peer> {
    match program("zenoh-peer") {
        Ok(program) => {
            let options = format!("{options} --endpoint {}", net.endpoint());
            let mut peer = Peer::start(&program, &options);
            peer.expect("ready", SOON);
            Some(peer)
        }
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

#[test]
fn a_peer_receives_samples_with_number_and_gid() {
    let net = Net::new();
    for (mode, token) in [("peer", "on"), ("client", "on"), ("peer", "off")] {
        let options = format!("sub --mode {mode} --token {token}");
        let Some(mut peer) = start(&net, &options) else {
            return;
        };
        let context = net.open();
        let node = context.create_node("talker").unwrap();
        let publisher: Publisher<Text> = node.create_publisher("chatter").unwrap();
        if token == "on" {
            assert!(publisher.wait_for_matched(1, SOON));
            let [found] = &context.graph().subscriptions("/chatter")[..] else {
                panic!("one subscription");
            };
            assert_eq!(found.node_name.as_deref(), Some("zenoh_peer"));
        }
        // Without a token nothing tells when it is there.
        let mut sent = 0;
        while !peer.has("received ") {
            sent += 1;
            assert!(sent < 1_000, "it hears nothing: {mode}, token {token}");
            publisher.publish(&text(sent)).unwrap();
            let graph = context.graph();
            graph.wait_until(Duration::from_millis(20), || peer.has("received "));
        }
        for _ in 0..3 {
            sent += 1;
            publisher.publish(&text(sent)).unwrap();
        }
        let line = peer.seen().iter().find(|line| line.starts_with("received"));
        let line = line.unwrap().clone();
        assert_eq!(value(&line, "seq"), value(&line, "text"), "{line}");
        peer.release();
        assert!(peer.finish(SOON).unwrap().success());
    }
}

#[test]
fn a_peer_sends_samples_with_either_attachment() {
    let net = Net::new();
    for attachment in ["bare", "named"] {
        let options = format!("pub --start stdin --attachment {attachment}");
        let Some(mut peer) = start(&net, &options) else {
            return;
        };
        let context = net.open();
        let node = context.create_node("listener").unwrap();
        let subscription: Subscription<Text> = node.create_polled_subscription("chatter").unwrap();
        assert!(subscription.wait_for_matched(1, SOON));
        peer.release();
        for n in 1..=3 {
            assert_eq!(next(&subscription), format!("Hello World: {n}"));
        }
        peer.release();
        assert!(peer.finish(SOON).unwrap().success());
        until(&context, || subscription.matched_count() == 0);
    }
}

#[test]
fn transient_local_history_passes_both_ways() {
    let net = Net::new();
    let Some(mut publishing) = start(&net, "pub --durability transient_local --node source") else {
        return;
    };
    publishing.expect("sent seq=3", SOON);
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let latched = |topic: &str| topic.to_owned().keep_last(10).transient_local();
    let subscription: Subscription<Text> =
        node.create_polled_subscription(latched("chatter")).unwrap();
    for n in 1..=3 {
        assert_eq!(next(&subscription), format!("Hello World: {n}"));
    }
    let publisher: Publisher<Text> = node.create_publisher(latched("kept")).unwrap();
    for n in 1..=3 {
        publisher.publish(&text(n)).unwrap();
    }
    let options = "sub --durability transient_local --topic kept --node sink";
    let mut receiving = start(&net, options).unwrap();
    for n in 1..=3 {
        let line = receiving.expect("received", SOON);
        assert_eq!(value(&line, "text"), Some(n.to_string().as_str()));
        assert_eq!(value(&line, "seq"), Some(n.to_string().as_str()));
    }
}

/// One session connects to a router of eclipse-zenoh, the other to that or to one of ours
/// that is connected to it.
#[test]
fn sessions_meet_through_a_router_of_others() {
    let theirs = Net::without_router();
    let Some(mut router) = start(&theirs, "router") else {
        return;
    };
    let mut ours = Net::without_router();
    ours.start_router_beside(&theirs);
    for far in [&theirs, &ours] {
        let (here, there) = (theirs.open_as("client"), far.open_as("client"));
        let (near, far) = (
            here.create_node("near").unwrap(),
            there.create_node("far").unwrap(),
        );
        let latched = || "chatter".to_owned().keep_last(3).transient_local();
        let publisher: Publisher<Text> = near.create_publisher(latched()).unwrap();
        for n in 1..=3 {
            publisher.publish(&text(n)).unwrap();
        }
        let subscription: Subscription<Text> = far.create_polled_subscription(latched()).unwrap();
        for n in 1..=3 {
            assert_eq!(next(&subscription), n.to_string());
        }
        assert!(publisher.wait_for_matched(1, SOON));
        publisher.publish(&text("live")).unwrap();
        assert_eq!(next(&subscription), "live");

        let _spin = SpinThread::of_node(&far, add_two_ints(&far, "add"));
        let client = near.create_client::<AddTwoInts>("add").unwrap();
        assert!(client.wait_for_service(SOON));
        let request = AddTwoIntsRequest { a: 40, b: 2 };
        assert_eq!(client.call(&request, SOON).unwrap().sum, 42);
    }
    router.release();
    assert!(router.finish(SOON).unwrap().success());
}

#[test]
fn services_work_both_ways() {
    let net = Net::new();
    let Some(mut serving) = start(&net, "server --topic theirs --count 2 --node serving") else {
        return;
    };
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let service = add_two_ints(&node, "ours");
    let client = node.create_client::<AddTwoInts>("theirs").unwrap();
    assert!(client.wait_for_service(SOON));
    for a in 1..=2 {
        let answer = client.call(&AddTwoIntsRequest { a, b: 40 }, SOON).unwrap();
        assert_eq!(answer.sum, a + 40);
        let line = serving.expect("served", SOON);
        assert_eq!(value(&line, "seq"), Some(a.to_string().as_str()));
    }
    let _spin = SpinThread::of_node(&node, service);
    let mut asking = start(&net, "client --topic ours --node asking --start stdin").unwrap();
    until(&context, || context.graph().nodes().len() == 3);
    asking.release();
    for n in 1..=3 {
        let line = asking.expect("reply", SOON);
        assert_eq!(line, format!("reply seq={n} own=True sum={}", 11 * n));
    }
}

#[test]
fn a_peer_executes_our_goals() {
    let net = Net::new();
    let Some(mut peer) = start(&net, "action_server --topic theirs --count 2") else {
        return;
    };
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let client = node.create_action_client::<Fibonacci>("theirs").unwrap();
    let _spin = SpinThread::of_node(&node, ());
    assert!(client.wait_for_action_server(SOON));
    for (order, is_canceled) in [(4, false), (5, true)] {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = heard.clone();
        let on_feedback = move |feedback: &FibonacciFeedback| {
            sink.lock().unwrap().push(feedback.sequence.clone());
        };
        let goal = client
            .send_goal_with_feedback(FibonacciGoal { order }, on_feedback, SOON)
            .unwrap();
        assert_eq!(peer.expect("goal", SOON), format!("goal order={order}"));
        let all = [0, 1, 1, 2, 3];
        let sequence = &all[..usize::try_from(order).unwrap()];
        until(&context, || {
            heard.lock().unwrap().last().map(Vec::as_slice) == Some(sequence)
        });
        assert_eq!(heard.lock().unwrap().len(), sequence.len() - 2);
        let status = if is_canceled {
            goal.cancel(SOON).unwrap();
            GoalStatus::Canceled
        } else {
            GoalStatus::Succeeded
        };
        let outcome = goal.result(SOON).unwrap();
        assert_eq!(outcome.status, status);
        assert_eq!(outcome.result.sequence, sequence);
        until(&context, || goal.status() == status);
        let line = peer.expect("result", SOON);
        assert_eq!(line, format!("result status={}", status.id()));
    }
}

#[test]
fn we_execute_the_goals_of_a_peer() {
    let net = Net::new();
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let (send, goals) = mpsc::channel::<ServerGoalHandle<Fibonacci>>();
    let options = ActionServerOptions::<Fibonacci>::new("ours");
    let server = node
        .create_action_server(options, move |goal| send.send(goal).unwrap())
        .unwrap();
    let _spin = SpinThread::of_node(&node, server);
    let options = "action_client --topic ours --count 2 --node asking --start stdin";
    let Some(mut peer) = start(&net, options) else {
        return;
    };
    until(&context, || {
        context
            .graph()
            .subscriptions("/ours/_action/feedback")
            .len()
            == 1
    });
    peer.release();
    for (order, is_canceled) in [(3, false), (4, true)] {
        let goal = goals.recv_timeout(SOON).unwrap();
        assert_eq!(goal.goal().order, order);
        assert_eq!(peer.expect("goal", SOON), "goal accepted=1");
        let sequence = vec![0, 1, order];
        goal.publish_feedback(FibonacciFeedback {
            sequence: sequence.clone(),
        });
        let line = peer.expect("feedback", SOON);
        assert_eq!(line, format!("feedback sequence=0,1,{order}"));
        let result = FibonacciResult { sequence };
        let status = if is_canceled {
            let line = peer.expect("cancel", SOON);
            assert_eq!(line, "cancel code=0 goals=1 own=True");
            assert!(goal.is_canceling());
            goal.canceled(result).unwrap();
            GoalStatus::Canceled
        } else {
            goal.succeed(result).unwrap();
            GoalStatus::Succeeded
        };
        let line = peer.expect("result", SOON);
        let wanted = format!("result status={} sequence=0,1,{order}", status.id());
        assert_eq!(line, wanted);
        peer.expect("status", SOON);
    }
}

#[test]
fn malformed_requests_are_counted_and_end_at_once() {
    let net = Net::new();
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let service = add_two_ints(&node, "ours");
    let _spin = SpinThread::of_node(&node, service);
    let Some(mut peer) = start(&net, "hostile_client --topic ours --node evil") else {
        return;
    };
    until(&context, || {
        context.graph().publishers("/chatter").len() == 1 && context.graph().nodes().len() == 2
    });
    peer.release();
    for _ in 0..8 {
        assert_eq!(peer.expect("ended", SOON), "ended sums=[]");
    }
    assert_eq!(counter(&context, "malformed"), 8);
    for _ in 0..2 {
        assert_eq!(peer.expect("ended", SOON), "ended sums=[]");
    }
    assert_eq!(counter(&context, "unannounced"), 2);
    assert_eq!(peer.expect("ended", SOON), "ended sums=[3]");
}

#[test]
fn malformed_replies_are_counted_and_the_right_one_counts() {
    let net = Net::new();
    let context = net.open();
    let node = context.create_node("here").unwrap();
    let client = node.create_client::<AddTwoInts>("theirs").unwrap();
    let Some(mut peer) = start(&net, "hostile_server --topic theirs") else {
        return;
    };
    assert!(client.wait_for_service(SOON));
    let response = client.call(&AddTwoIntsRequest { a: 1, b: 2 }, SOON);
    assert_eq!(response.unwrap().sum, 3);
    peer.expect("sent", SOON);
    assert_eq!(counter(&context, "malformed"), 5);
    assert_eq!(client.unmatched_response_count(), 0);
}

#[test]
fn a_peer_sees_our_tokens() {
    let net = Net::new();
    let Ok(program) = program("zenoh-peer") else {
        return println!("skipped: zenoh-peer is not built");
    };
    let context = net.open();
    let node = context.create_node("talker").unwrap();
    let _publisher: Publisher<Text> = node.create_publisher("chatter").unwrap();
    let options = format!("look --mode client --endpoint {}", net.endpoint());
    let mut peer = Peer::start(&program, &options);
    peer.expect("done", SOON);
    let tokens: Vec<&str> = peer.seen().iter().map(String::as_str).collect();
    let zid = context.guid().prefix.0;
    let zid: String = zid.iter().rev().map(|byte| format!("{byte:02x}")).collect();
    let begin = format!("token @ros2_lv/0/50707465{zid}/0/");
    let node = format!("{begin}0/NN/%/%/talker");
    assert!(tokens.contains(&node.as_str()), "{node}: {tokens:#?}");
    let end = "/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18/::,10:,:,:,,";
    let is_publisher = |token: &&&str| token.starts_with(&begin) && token.ends_with(end);
    assert_eq!(tokens.iter().filter(is_publisher).count(), 1, "{tokens:#?}");
}

#[test]
fn a_hostile_peer_is_counted_and_harms_nobody() {
    let net = Net::new();
    let context = net.open();
    let node = context.create_node("listener").unwrap();
    let subscription: Subscription<Text> = node
        .create_polled_subscription("chatter".keep_last(50))
        .unwrap();
    let Some(mut peer) = start(&net, "hostile") else {
        return;
    };
    assert!(subscription.wait_for_matched(1, SOON));
    until(&context, || counter(&context, "refused_tokens") >= 9);
    peer.release();
    peer.expect("sent", SOON);
    assert_eq!(next(&subscription), "end");
    assert_eq!(counter(&context, "malformed"), 9);
    until(&context, || counter(&context, "unannounced") == 1);
    let names: Vec<String> = context
        .graph()
        .nodes()
        .iter()
        .map(|n| n.name.clone())
        .collect();
    assert_eq!(names, ["listener", "zenoh_peer"]);
    peer.kill();
    until(&context, || subscription.matched_count() == 0);
}
