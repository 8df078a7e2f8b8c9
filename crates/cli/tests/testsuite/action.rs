//! `pteros action`: a server in this process, the command in others.

#![allow(clippy::disallowed_methods, reason = "the server is a thread")]

use crate::spin_thread::SpinThread;
use crate::support::{Domain, Running, assert_contains};
use pteros::action::{ActionServerOptions, GoalResponse, ServerGoalHandle};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciResult,
};
use pteros::prelude::*;
use std::sync::mpsc::{Receiver, channel};

/// An action server that counts until it is dropped. It rejects negative goals and
/// never finishes goals from 98 on.
///
/// It accepts the cancellation of every goal.
fn counter(domain: &Domain) -> SpinThread {
    counter_that_accepts(domain, |_| ())
}

/// As [`counter`], which calls `accept` before it accepts a goal of that order.
fn counter_that_accepts(
    domain: &Domain,
    mut accept: impl FnMut(i32) + Send + 'static,
) -> SpinThread {
    let context = Context::with_options(ContextOptions::local(domain.id()));
    let node = context.unwrap().create_node("counter").unwrap();
    let options =
        ActionServerOptions::<Fibonacci>::new("fibonacci").on_goal(move |goal| match goal.order {
            ..0 => GoalResponse::Reject,
            order => {
                accept(order);
                GoalResponse::AcceptAndExecute
            }
        });
    let mut endless = Vec::new();
    let server = node.create_action_server(options, move |goal| match goal.goal().order {
        98.. => endless.push(goal),
        _ => count(&goal),
    });
    SpinThread::of_node(&node, server.unwrap())
}

fn count(goal: &ServerGoalHandle<Fibonacci>) {
    let mut sequence = vec![0, 1];
    for at in 1..usize::try_from(goal.goal().order).unwrap() {
        sequence.push(sequence[at] + sequence[at - 1]);
        goal.publish_feedback(FibonacciFeedback {
            sequence: sequence.clone(),
        });
    }
    goal.succeed(FibonacciResult { sequence }).unwrap();
}

const GOAL: &str = "action send_goal /fibonacci example_interfaces/action/Fibonacci";

#[test]
fn actions_are_listed_found_and_described() {
    let domain = Domain::new();
    let _counter = counter(&domain);
    let list = domain.run_until("action list -t", |a| !a.out.is_empty());
    assert_eq!(
        list.ok(),
        "/fibonacci [example_interfaces/action/Fibonacci]\n"
    );
    assert_eq!(domain.run("action list -c").ok(), "1\n");
    let ty = domain.run("action type /fibonacci").ok();
    assert_eq!(ty, "example_interfaces/action/Fibonacci\n");
    let found = domain.candidates("pteros action send_goal --timeout 5 /fibonacci ");
    assert_eq!(found, ["example_interfaces/action/Fibonacci"]);
    let found = domain.run("action find example_interfaces/Fibonacci").ok();
    assert_eq!(found, "/fibonacci\n");
    assert_eq!(
        domain.run("action info /fibonacci -t").ok(),
        "Action: /fibonacci\nAction clients: 0\nAction servers: 1\n    \
         /counter [example_interfaces/action/Fibonacci]\n"
    );
    let unknown = domain.run("action info /fibonaci").failed(1);
    assert!(unknown.contains("did you mean /fibonacci?"), "{unknown}");
    let goal = domain
        .run("action send_goal /fibonaci example_interfaces/action/Fibonacci {}")
        .failed(1);
    assert!(goal.contains("did you mean /fibonacci?"), "{goal}");
}

#[test]
fn a_signal_cancels_the_goal() {
    let domain = Domain::new();
    let _counter = counter(&domain);
    for signal in ["INT", "TERM"] {
        let mut running = domain.start_with(GOAL, "{order: 99}");
        while !running.line().starts_with("Goal accepted") {}
        running.signal(signal);
        let answer = running.wait();
        assert_contains(&answer.err, "Canceling goal...");
        assert_contains(&answer.err, "Goal canceled.");
        assert_ne!(answer.code, Some(0), "{signal}");
    }
}

/// Starts a goal that its server asks about in `asked` and does not accept yet.
fn start_undecided(domain: &Domain, options: &str, asked: &Receiver<i32>) -> Running {
    let running = domain.start_with(&format!("{GOAL}{options}"), "{order: 98}");
    assert_eq!(asked.recv().unwrap(), 98);
    running
}

#[test]
fn every_end_before_the_goal_is_accepted_cancels_it() {
    let domain = Domain::new();
    let mut other = domain.start_with(GOAL, "{order: 99}");
    let (ask, asked) = channel();
    let (decide, decided) = channel::<()>();
    let _counter = counter_that_accepts(&domain, move |order| {
        if order == 98 {
            ask.send(order).unwrap();
            decided.recv().unwrap();
        }
    });
    // Dropped before the server, which waits for it.
    let decide = decide;
    while !other.line().starts_with("Goal accepted") {}
    for (options, signal) in [("", "INT"), ("", "TERM"), (" --timeout 1 --feedback", "")] {
        let mut running = start_undecided(&domain, options, &asked);
        if !signal.is_empty() {
            running.signal(signal);
        }
        assert_eq!(running.error_line(), "Canceling goal...");
        decide.send(()).unwrap();
        let answer = running.wait();
        assert_eq!(answer.err.lines().next(), Some("Goal canceled."));
        assert_ne!(answer.code, Some(0), "{signal}");
    }
    // The line "Goal accepted" has no reader.
    let mut running = start_undecided(&domain, "", &asked);
    running.close_output();
    decide.send(()).unwrap();
    assert_eq!(running.wait().err, "Canceling goal...\nGoal canceled.\n");
    // Another goal of the server goes on.
    other.signal("INT");
    assert_eq!(other.wait().err, "Canceling goal...\nGoal canceled.\n");
}

#[test]
fn a_goal_for_a_server_of_another_type_ends_with_that_type() {
    let domain = Domain::new();
    let _counter = counter(&domain);
    // Another type, a misspelt one, and the goal in its place.
    for wrong in [
        "test_msgs/action/Fibonacci",
        "example_interfaces/action/Fibonaci",
        "{order:1}",
    ] {
        let error = domain
            .run(&format!("action send_goal /fibonacci {wrong} {{}}"))
            .failed(1);
        let wanted = format!(
            "action '/fibonacci' has type 'example_interfaces/action/Fibonacci', not '{wrong}'; \
             use: pteros action send_goal /fibonacci example_interfaces/action/Fibonacci"
        );
        assert!(error.contains(&wanted), "{error}");
    }
}

#[test]
fn a_goal_is_sent_and_its_result_printed_as_in_ros2() {
    let domain = Domain::new();
    let _counter = counter(&domain);
    let answer = domain.run_with(GOAL, "{order: 3}").ok();
    let (before, after) = answer.split_once("Goal accepted with ID: ").unwrap();
    assert_eq!(
        before,
        "Waiting for an action server to become available...\nSending goal:\n     order: 3\n\n"
    );
    let (id, after) = after.split_once('\n').unwrap();
    assert_eq!(id.len(), 32);
    assert_eq!(
        after,
        "\nResult:\n    sequence:\n- 0\n- 1\n- 1\n- 2\n\nGoal finished with status: SUCCEEDED\n"
    );
    let json = domain
        .run_with(&format!("{GOAL} --json -f"), "{order: 2}")
        .ok();
    let lines: Vec<serde_json::Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [feedback, end] = &lines[..] else {
        panic!("{json}");
    };
    assert_eq!(
        feedback["feedback"]["sequence"],
        serde_json::json!([0, 1, 1])
    );
    assert_eq!(end["status"], "succeeded");
}

#[test]
fn a_goal_without_a_result_reports_the_reason() {
    let domain = Domain::new();
    let _counter = counter(&domain);
    let rejected = domain.run_with(GOAL, "{order: -1}");
    assert!(
        rejected.out.ends_with("Goal was rejected.\n"),
        "{}",
        rejected.out
    );
    assert_eq!(rejected.code, Some(1));
    let late = domain.run_with(&format!("{GOAL} --timeout 1"), "{order: 99}");
    let late = late.failed(1);
    assert!(late.contains("Goal canceled."), "{late}");
    assert!(late.contains("no response within 1000 ms"), "{late}");
    let field = domain.run_with(GOAL, "{depth: 1}").failed(1);
    assert!(field.contains("depth"), "{field}");
    let nobody = "action send_goal /nobody example_interfaces/action/Fibonacci --timeout 0.1";
    let nobody = domain.run(nobody).failed(1);
    assert!(nobody.contains("no server of type"), "{nobody}");
    let message = domain
        .run("action send_goal /x std_msgs/msg/String")
        .failed(1);
    assert!(message.contains("which is not an action"), "{message}");
}
