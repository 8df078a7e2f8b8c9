//! Actions between contexts.

use std::sync::{Arc, Mutex, mpsc};

use pteros::action::{ActionServerOptions, GoalStatus, ServerGoalHandle};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};

use crate::harness::{Net, SOON, until};
use pteros_test_support::spin_thread::SpinThread;

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
    assert!(client.wait_for_action_server(SOON));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let on_feedback = move |feedback: &FibonacciFeedback| {
        sink.lock().unwrap().push(feedback.sequence.clone());
    };
    let order = FibonacciGoal { order: 3 };
    let goal = client
        .send_goal_with_feedback(order, on_feedback, SOON)
        .unwrap();
    let served = goals.recv_timeout(SOON).unwrap();
    let sequence = vec![0, 1, 1];
    until(&there, || {
        // The feedback topic may match after the goal was accepted.
        served.publish_feedback(FibonacciFeedback {
            sequence: sequence.clone(),
        });
        heard.lock().unwrap().first() == Some(&sequence)
    });
    let result = FibonacciResult {
        sequence: sequence.clone(),
    };
    served.succeed(result.clone()).unwrap();
    let outcome = goal.result(SOON).unwrap();
    assert_eq!(outcome.status, GoalStatus::Succeeded);
    assert_eq!(outcome.result, result);
    until(&there, || goal.status() == GoalStatus::Succeeded);
}
