//! An action: one goal that ends, and one that is cancelled half way. The server
//! works on a timer, so its executor stays free.
#![allow(
    clippy::disallowed_methods,
    reason = "the server works on a thread beside its client's"
)]

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use pteros::interfaces::example_interfaces::action::{
    Fibonacci, Fibonacci_Feedback, Fibonacci_Goal, Fibonacci_Result,
};
use pteros::prelude::*;
use pteros::{ActionServerOptions, ServerGoal};

/// A goal and how far it has come.
type Work = (ServerGoal<Fibonacci>, Vec<i32>);

const PATIENCE: Duration = Duration::from_secs(10);

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.node("counter")?;
    let works: Arc<Mutex<Vec<Work>>> = Arc::default();

    let new_works = works.clone();
    let _server = node.create_action_server(
        "fibonacci",
        ActionServerOptions::default(),
        move |goal: ServerGoal<Fibonacci>| {
            println!("server: goal {}", goal.goal().order);
            if let Ok(mut works) = new_works.lock() {
                works.push((goal, vec![0, 1]));
            }
        },
    )?;
    // Each tick a number more for every goal; those that have ended go.
    let _timer = node.create_timer(Duration::from_millis(20), move || {
        if let Ok(mut works) = works.lock() {
            works.retain_mut(|(goal, sequence)| goes_on(goal, sequence));
        }
    })?;

    let asking = context.node("asker")?;
    let client = asking.create_action_client::<Fibonacci>("fibonacci")?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node)?;
    executor.add_node(&asking)?;
    let stop = executor.handle();
    let spinning = thread::spawn(move || executor.spin());

    let hear = |feedback: &Fibonacci_Feedback| println!("client: {:?}", feedback.sequence);
    let goal = client.send_goal_with_feedback(Fibonacci_Goal { order: 5 }, hear, PATIENCE)?;
    let end = goal.result(PATIENCE)?;
    println!("client: {} with {:?}", end.status, end.result.sequence);

    let endless = client.send_goal(Fibonacci_Goal { order: 40 }, PATIENCE)?;
    endless.cancel(PATIENCE)?;
    println!("client: {}", endless.result(PATIENCE)?.status);
    stop.cancel();
    let _ = spinning.join();
    Ok(())
}

/// Works on a goal for a moment; whether there is more to do.
fn goes_on(goal: &ServerGoal<Fibonacci>, sequence: &mut Vec<i32>) -> bool {
    let result = |sequence: &Vec<i32>| Fibonacci_Result {
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
    goal.publish_feedback(Fibonacci_Feedback {
        sequence: sequence.clone(),
    });
    true
}
