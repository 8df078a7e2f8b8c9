//! Action client: sends one goal, prints its feedback and its result.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use pteros::interfaces::example_interfaces::action::{Fibonacci, FibonacciFeedback, FibonacciGoal};
use pteros::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("fibonacci_client")?;
    let client = node.create_action_client::<Fibonacci>("fibonacci")?;
    let print = |feedback: &FibonacciFeedback| println!("feedback: {:?}", feedback.sequence);
    let goal = FibonacciGoal { order: 5 };
    let goal = client.send_goal_with_feedback(goal, print, Duration::from_secs(10))?;
    println!("accepted");
    let (sender, receiver) = mpsc::channel();
    goal.result_then(move |end| {
        let _ = sender.send(end);
    })?;
    let mut end = None;
    let has_ended = || {
        end = receiver.try_recv().ok();
        end.is_some()
    };
    // Spins the node, so that feedback and result reach their callbacks.
    node.spin_until(has_ended, Duration::from_secs(60));
    let end = end.ok_or("no result within a minute")??;
    println!("{}: {:?}", end.status, end.result.sequence);
    Ok(())
}
