//! `pteros lifecycle`: managed nodes in this process, the command in others.

#![allow(clippy::disallowed_methods, reason = "nodes run beside the command")]

use crate::spin_thread::{SPIN_PERIOD, SpinThread};
use crate::support::{Domain, assert_contains};
use pteros::lifecycle::{CallbackReturn, LifecycleCallbacks, LifecycleNode, LifecycleState};
use pteros::prelude::*;

/// A node whose activation fails.
struct FailingActivation;

impl LifecycleCallbacks for FailingActivation {
    fn on_activate(&mut self, _: &LifecycleNode, _: LifecycleState) -> CallbackReturn {
        CallbackReturn::Failure
    }
}

/// Two managed nodes and an ordinary one, until dropped.
fn robot(domain: &Domain) -> SpinThread {
    let context = Context::with_options(ContextOptions::local(domain.id()));
    let context = context.unwrap();
    let named = |name: &str| NodeOptions::new(name);
    let arm = LifecycleNode::new(&context, named("arm"), ()).unwrap();
    let leg = LifecycleNode::new(&context, named("_leg"), FailingActivation).unwrap();
    let plain = context.create_node("plain").unwrap();
    SpinThread::new(move |is_over| {
        let executor = SingleThreadedExecutor::new(&context);
        for node in [&arm, &leg, &plain] as [&Node; 3] {
            executor.add_node(node).unwrap();
        }
        while !executor.spin_until(is_over, SPIN_PERIOD) {}
    })
}

#[test]
fn managed_nodes_are_listed_queried_and_changed_as_in_ros2() {
    let domain = Domain::new();
    let _robot = robot(&domain);
    let nodes = domain.run_until("lifecycle nodes", |a| !a.out.is_empty());
    assert_eq!(nodes.ok(), "/arm\n");
    assert_eq!(domain.run("lifecycle nodes -a").ok(), "/_leg\n/arm\n");
    assert_eq!(domain.run("lifecycle nodes -a -c").ok(), "2\n");

    assert_eq!(domain.run("lifecycle get /arm").ok(), "unconfigured [1]\n");
    assert_eq!(
        domain.run("lifecycle list arm").ok(),
        "- configure [1]\n\tStart: unconfigured\n\tGoal: configuring\n\
         - shutdown [5]\n\tStart: unconfigured\n\tGoal: shuttingdown\n"
    );
    let all = domain.run("lifecycle list /arm -a --json").json();
    assert_eq!(all.as_array().unwrap().len(), 25);
    assert_eq!(all[24]["label"], "transition_error");
    assert_eq!(all[24]["goal"]["label"], "finalized");

    let done = "Transitioning successful\n";
    assert_eq!(domain.run("lifecycle set /arm configure").ok(), done);
    assert_eq!(domain.run("lifecycle set /arm 3").ok(), done);
    assert_eq!(
        domain.run("lifecycle get --include-hidden-nodes").ok(),
        "/_leg: unconfigured [1]\n/arm: active [3]\n"
    );
    let one = domain.run("lifecycle get /arm --json").json();
    assert_eq!(one["state"]["label"], "active");
}

#[test]
fn impossible_transitions_report_the_reason() {
    let domain = Domain::new();
    let _robot = robot(&domain);
    let nodes = domain.run_until("lifecycle nodes", |a| !a.out.is_empty());
    nodes.ok();
    let unknown = domain.run("lifecycle get /arn").failed(1);
    assert!(unknown.contains("Node not found"), "{unknown}");
    assert!(unknown.contains("did you mean /arm?"), "{unknown}");
    let plain = domain.run("lifecycle list plain").failed(1);
    assert!(plain.contains("not a managed node"), "{plain}");
    let hidden = domain.run("lifecycle get _leg").failed(1);
    assert!(hidden.contains("--include-hidden-nodes"), "{hidden}");
    let illegal = domain.run("lifecycle set /arm activate").failed(1);
    assert_contains(
        &illegal,
        "available ones are:\n- configure [1]\n- shutdown [5]",
    );
    let leg = "lifecycle set --include-hidden-nodes /_leg";
    domain.run(&format!("{leg} configure")).ok();
    let failed = domain.run(&format!("{leg} activate")).failed(1);
    assert_contains(&failed, "Transitioning failed: /_leg is inactive [2]");
}

#[test]
fn supervision_brings_nodes_up_in_order_and_down_in_reverse_order() {
    let domain = Domain::new();
    let _robot = robot(&domain);
    let nodes = domain.run_until("lifecycle nodes", |a| !a.out.is_empty());
    nodes.ok();
    let up = domain.run("lifecycle supervise --once --on-loss ignore /_leg /arm");
    let failed = up.failed(1);
    assert_contains(
        &failed,
        "not all nodes are active: /_leg inactive (given up), /arm active",
    );
    let up = domain.run("lifecycle supervise --once arm").ok();
    assert_eq!(up, "/arm was discovered\n");
    let down = domain
        .run("lifecycle supervise --down _leg arm --json")
        .ok();
    let lines: Vec<serde_json::Value> = down
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|event: &serde_json::Value| event["event"] == "reached")
        .collect();
    let texts: Vec<_> = lines.iter().map(|event| event["text"].clone()).collect();
    assert_eq!(
        texts,
        [
            "/arm is inactive",
            "/arm is unconfigured",
            "/_leg is unconfigured"
        ]
    );
    let cycle = domain.run("lifecycle supervise a:b b:a").failed(1);
    assert!(cycle.contains("dependency cycle"), "{cycle}");
}
