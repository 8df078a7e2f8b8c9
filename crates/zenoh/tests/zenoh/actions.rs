//! Actions between contexts.

use std::sync::mpsc;

use pteros::action::{ActionServerOptions, GoalStatus, ServerGoalHandle};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::prelude::*;

use crate::harness::{Net, SOON, until};
use crate::spin_thread::SpinThread;

#[test]
fn a_goal_has_feedback_and_a_result() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    let serving = here.create_node("serving").unwrap();
    let asking = there.create_node("asking").unwrap();
    let (send, goals) = mpsc::channel::<ServerGoalHandle<Fibonacci>>();
    let options = ActionServerOptions::<Fibonacci>::new("fibonacci");
    let server = serving
        .create_action_server(options, move |goal| send.send(goal).unwrap())
        .unwrap();
    let client = asking
        .create_action_client::<Fibonacci>("fibonacci")
        .unwrap();
    let _spun = [
        SpinThread::of_node(&serving, server),
        SpinThread::of_node(&asking, ()),
    ];
    assert!(client.wait_for_server(SOON));
    let mut goal = client.send_goal(&FibonacciGoal { order: 3 }, SOON).unwrap();
    let served = goals.recv_timeout(SOON).unwrap();
    let sequence = vec![0, 1, 1];
    let mut heard = None;
    until(&there, || {
        // The feedback topic may match after the goal was accepted.
        let feedback = FibonacciFeedback {
            sequence: sequence.clone(),
        };
        served.publish_feedback(&feedback).unwrap();
        heard = goal.take_feedback();
        heard.is_some()
    });
    assert_eq!(heard.unwrap().sequence, sequence);
    served
        .succeed(FibonacciResult {
            sequence: sequence.clone(),
        })
        .unwrap();
    let result = goal.result(SOON).unwrap();
    assert_eq!(result.status, GoalStatus::Succeeded);
    assert_eq!(result.result.sequence, sequence);
}
