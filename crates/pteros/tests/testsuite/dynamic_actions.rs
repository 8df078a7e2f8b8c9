//! Dynamic actions, with dynamic and typed counterparts.
#![allow(clippy::disallowed_methods, reason = "servers spin beside clients")]

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pteros::action::ActionClientOptions;
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::msg::dynamic::DynamicAction;
use pteros::msg::dynamic::{DynamicMessage, Value};
use pteros::prelude::*;
use pteros::{
    action::{ActionError, ActionServerOptions, GoalResponse, GoalStatus, ServerGoalHandle},
    service::CallError,
};
use pteros_test_support::spin_thread::SpinThread;

const TIMEOUT: Duration = Duration::from_secs(20);

fn fibonacci() -> DynamicAction {
    let library = pteros::interfaces::library();
    DynamicAction::new(library, "example_interfaces/action/Fibonacci").unwrap()
}

fn of(ty: &pteros::msg::dynamic::DynamicType, yaml: &str) -> DynamicMessage {
    DynamicMessage::from_yaml(ty, yaml).unwrap()
}

fn sequence(message: &DynamicMessage) -> Vec<i32> {
    match message.field("sequence") {
        Some(Value::I32s(numbers)) => numbers.clone(),
        other => panic!("{other:?}"),
    }
}

fn nodes(domain: u32) -> (Node, Node, [SpinThread; 2]) {
    let open = || Context::with_options(ContextOptions::local(domain)).unwrap();
    let (serving, asking) = (
        open().create_node("serving").unwrap(),
        open().create_node("asking").unwrap(),
    );
    let spun = [
        SpinThread::of_node(&serving, ()),
        SpinThread::of_node(&asking, ()),
    ];
    (serving, asking, spun)
}

#[test]
fn typed_and_dynamic_clients_get_feedback_and_results_of_a_dynamic_server() {
    let (serving, asking, _spun) = nodes(41);
    let ty = fibonacci();
    let types = ty.clone();
    let work = move |goal: ServerGoalHandle<DynamicAction>| {
        assert_eq!(goal.goal().field("order"), Some(&Value::I32(3)));
        goal.publish_feedback(of(types.feedback(), "{sequence: [0, 1]}"));
        goal.succeed(of(types.result(), "{sequence: [0, 1, 1]}"))
            .unwrap();
        let again = goal.succeed(of(types.result(), "{}"));
        assert!(
            matches!(again, Err(ActionError::IllegalTransition { .. })),
            "{again:?}"
        );
    };
    let options = ActionServerOptions::of_type(&ty, "fibonacci").preempt(true);
    let server = serving
        .create_action_server::<DynamicAction>(options, work)
        .unwrap();
    assert_eq!(server.action_name(), "/fibonacci");
    let received = Arc::new(Mutex::new(Vec::new()));

    let client = asking
        .create_action_client::<Fibonacci>("fibonacci")
        .unwrap();
    let sink = received.clone();
    let on_feedback = move |feedback: &FibonacciFeedback| {
        sink.lock().unwrap().push(feedback.sequence.clone());
    };
    let goal = FibonacciGoal { order: 3 };
    let goal = client
        .send_goal_with_feedback(goal, on_feedback, TIMEOUT)
        .unwrap();
    let end = goal.result(TIMEOUT).unwrap();
    assert_eq!(
        (end.status, end.result.sequence),
        (GoalStatus::Succeeded, vec![0, 1, 1])
    );

    let client = asking
        .create_action_client::<DynamicAction>(ActionClientOptions::of_type(&ty, "fibonacci"))
        .unwrap();
    let sink = received.clone();
    let on_feedback = move |feedback: &DynamicMessage| {
        sink.lock().unwrap().push(sequence(feedback));
    };
    let goal = of(ty.goal(), "{order: 3}");
    let goal = client
        .send_goal_with_feedback(goal, on_feedback, TIMEOUT)
        .unwrap();
    let end = goal.result(TIMEOUT).unwrap();
    assert_eq!(
        (end.status, sequence(&end.result)),
        (GoalStatus::Succeeded, vec![0, 1, 1])
    );
    let graph = asking.context().graph();
    assert!(graph.wait_until(TIMEOUT, || received.lock().unwrap().len() == 2));
    assert!(
        received
            .lock()
            .unwrap()
            .iter()
            .all(|numbers| *numbers == [0, 1])
    );
    assert!(graph.wait_until(TIMEOUT, || goal.status() == GoalStatus::Succeeded));
    assert_eq!(server.open_goals(), 0);
}

#[test]
fn goals_are_rejected_cancelled_and_aborted_when_they_are_dropped() {
    let (serving, asking, _spun) = nodes(42);
    let ty = fibonacci();
    let (send, goals) = mpsc::channel();
    let options = ActionServerOptions::of_type(&ty, "count").on_goal(|goal: &DynamicMessage| {
        match goal.field("order") {
            Some(Value::I32(0)) => GoalResponse::Reject,
            _ => GoalResponse::AcceptAndExecute,
        }
    });
    let _server = serving
        .create_action_server::<DynamicAction>(options, move |goal| send.send(goal).unwrap())
        .unwrap();
    let client = asking
        .create_action_client::<DynamicAction>(ActionClientOptions::of_type(&ty, "count"))
        .unwrap();
    let rejected = client.send_goal(of(ty.goal(), "{order: 0}"), TIMEOUT);
    assert!(
        matches!(rejected, Err(ActionError::Rejected { .. })),
        "{rejected:?}"
    );

    let goal = client
        .send_goal(of(ty.goal(), "{order: 1}"), TIMEOUT)
        .unwrap();
    let work = goals.recv_timeout(TIMEOUT).unwrap();
    goal.cancel(TIMEOUT).unwrap();
    assert!(work.is_canceling() && work.id() == goal.id());
    work.canceled(of(ty.result(), "{sequence: [7]}")).unwrap();
    let end = goal.result(TIMEOUT).unwrap();
    assert_eq!(
        (end.status, sequence(&end.result)),
        (GoalStatus::Canceled, vec![7])
    );

    let goal = client
        .send_goal(of(ty.goal(), "{order: 2}"), TIMEOUT)
        .unwrap();
    drop(goals.recv_timeout(TIMEOUT).unwrap());
    assert_eq!(goal.result(TIMEOUT).unwrap().status, GoalStatus::Aborted);
    assert_eq!(client.cancel_all(TIMEOUT).unwrap(), [] as [[u8; 16]; 0]);

    let other = client.send_goal(of(ty.result(), "{}"), TIMEOUT);
    let invalid = matches!(other, Err(ActionError::Call(CallError::Publish { .. })));
    assert!(invalid, "{other:?}");
}

#[test]
fn a_dynamic_client_sends_goals_to_a_typed_server() {
    let (serving, asking, _spun) = nodes(43);
    let ty = fibonacci();
    let _server = serving
        .create_action_server::<Fibonacci>("fibonacci", |goal| {
            let sequence = vec![goal.goal().order];
            goal.succeed(FibonacciResult { sequence }).unwrap();
        })
        .unwrap();
    let client = asking
        .create_action_client::<DynamicAction>(ActionClientOptions::of_type(&ty, "fibonacci"))
        .unwrap();
    let goal = client
        .send_goal(of(ty.goal(), "{order: 5}"), TIMEOUT)
        .unwrap();
    let end = goal.result(TIMEOUT).unwrap();
    assert_eq!(
        (end.status, sequence(&end.result)),
        (GoalStatus::Succeeded, vec![5])
    );
}

#[test]
fn abandoned_dynamic_goals_are_cancelled_if_enabled() {
    let (serving, asking, _spun) = nodes(44);
    let ty = fibonacci();
    let (send, goals) = mpsc::channel();
    let options = ActionServerOptions::of_type(&ty, "count").cancel_abandoned(true);
    let _server = serving
        .create_action_server::<DynamicAction>(options, move |goal| send.send(goal).unwrap())
        .unwrap();
    let send_goal = |node: &Node| {
        let client = node
            .create_action_client::<DynamicAction>(ActionClientOptions::of_type(&ty, "count"))
            .unwrap();
        let goal = client.send_goal(of(ty.goal(), "{order: 1}"), TIMEOUT);
        (goal.unwrap(), goals.recv_timeout(TIMEOUT).unwrap())
    };
    let passing = Context::with_options(ContextOptions::local(44)).unwrap();
    let (abandoned, work) = send_goal(&passing.create_node("passing").unwrap());
    let (_asked, other) = send_goal(&asking);
    drop((abandoned, passing));
    let graph = asking.context().graph();
    assert!(graph.wait_until(TIMEOUT, || work.is_canceling()));
    assert_eq!(other.status(), GoalStatus::Executing);
}

#[test]
fn result_then_calls_back_at_the_end_of_a_dynamic_goal() {
    let (serving, asking, _spun) = nodes(45);
    let ty = fibonacci();
    let (send, goals) = mpsc::channel();
    let options = ActionServerOptions::of_type(&ty, "count").preempt(true);
    let server = serving
        .create_action_server::<DynamicAction>(options, move |goal| send.send(goal).unwrap())
        .unwrap();
    let client = asking
        .create_action_client::<DynamicAction>(ActionClientOptions::of_type(&ty, "count"))
        .unwrap();
    let ask = || {
        let goal = client.send_goal(of(ty.goal(), "{order: 1}"), TIMEOUT);
        let (sender, receiver) = mpsc::channel();
        let ended = move |end| sender.send(end).unwrap();
        goal.unwrap().result_then(ended).unwrap();
        (receiver, goals.recv_timeout(TIMEOUT).unwrap())
    };
    let (receiver, work) = ask();
    assert!(receiver.try_recv().is_err());
    work.succeed(of(ty.result(), "{sequence: [7]}")).unwrap();
    let end = receiver.recv_timeout(TIMEOUT).unwrap().unwrap();
    assert_eq!(
        (end.status, sequence(&end.result)),
        (GoalStatus::Succeeded, vec![7])
    );
    // Of two goals the newer one stays active.
    let (receiver, preempted) = ask();
    let (newer, work) = ask();
    assert!(!preempted.is_active() && work.is_active());
    let end = receiver.recv_timeout(TIMEOUT).unwrap().unwrap();
    assert_eq!(
        (end.status, sequence(&end.result)),
        (GoalStatus::Aborted, vec![])
    );
    drop(work);
    let end = newer.recv_timeout(TIMEOUT).unwrap().unwrap();
    assert_eq!(end.status, GoalStatus::Aborted);
    // The loss of the server is reported, too.
    let (receiver, work) = ask();
    drop((server, work, serving));
    let lost = receiver.recv_timeout(TIMEOUT).unwrap();
    assert!(
        matches!(lost, Err(ActionError::Call(_)))
            || lost.is_ok_and(|end| end.status == GoalStatus::Aborted)
    );
}
