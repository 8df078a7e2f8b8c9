//! Action: one goal that succeeds and one that is cancelled. The server works on a
//! timer, so its executor is not blocked.
#![allow(clippy::disallowed_methods, reason = "the server is a thread")]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pteros::action::ServerGoalHandle;
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::prelude::*;

/// A goal and its sequence so far.
type ActiveGoal = (ServerGoalHandle<Fibonacci>, Vec<i32>);

const TIMEOUT: Duration = Duration::from_secs(10);

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("counter")?;
    let goals: Arc<Mutex<Vec<ActiveGoal>>> = Arc::default();

    let new_works = goals.clone();
    let _server =
        node.create_action_server("fibonacci", move |goal: ServerGoalHandle<Fibonacci>| {
            println!("server: goal {}", goal.goal().order);
            if let Ok(mut goals) = new_works.lock() {
                goals.push((goal, vec![0, 1]));
            }
        })?;
    // Each tick adds a number to every goal. Ended goals are removed.
    let _timer = node.create_timer(Duration::from_millis(20), move || {
        if let Ok(mut goals) = goals.lock() {
            goals.retain_mut(|(goal, sequence)| advance_goal(goal, sequence));
        }
    })?;

    let client_node = context.create_node("asker")?;
    let client = client_node.create_action_client::<Fibonacci>("fibonacci")?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node)?;
    executor.add_node(&client_node)?;
    let stop = executor.handle();
    let spinning = thread::spawn(move || executor.spin());

    let on_feedback = |feedback: &FibonacciFeedback| println!("client: {:?}", feedback.sequence);
    let goal = client.send_goal_with_feedback(FibonacciGoal { order: 5 }, on_feedback, TIMEOUT)?;
    let end = goal.result(TIMEOUT)?;
    println!("client: {} with {:?}", end.status, end.result.sequence);

    let endless = client.send_goal(FibonacciGoal { order: 40 }, TIMEOUT)?;
    endless.cancel(TIMEOUT)?;
    println!("client: {}", endless.result(TIMEOUT)?.status);
    stop.cancel();
    let _ = spinning.join();
    Ok(())
}

/// Advances a goal by one step. Returns whether it continues.
fn advance_goal(goal: &ServerGoalHandle<Fibonacci>, sequence: &mut Vec<i32>) -> bool {
    let result = |sequence: &Vec<i32>| FibonacciResult {
        sequence: sequence.clone(),
    };
    if goal.is_canceling() {
        return goal.canceled(result(sequence)).is_err();
    }
    let order = usize::try_from(goal.goal().order).unwrap_or(0);
    if sequence.len() > order {
        return goal.succeed(result(sequence)).is_err();
    }
    let next = sequence.iter().rev().take(2).sum();
    sequence.push(next);
    goal.publish_feedback(FibonacciFeedback {
        sequence: sequence.clone(),
    });
    true
}
