//! Action server: computes a Fibonacci sequence, one number every 200 ms.

use std::error::Error;
use std::time::Duration;

use pteros::action::{ActionServerOptions, GoalResponse, ServerGoalHandle};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciResult,
};
use pteros::prelude::*;

const STEP: Duration = Duration::from_millis(200);

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("fibonacci_server")?;
    let options =
        ActionServerOptions::<Fibonacci>::new("fibonacci").on_goal(|goal| match goal.order {
            1..=40 => GoalResponse::AcceptAndExecute,
            _ => GoalResponse::Reject,
        });
    let worker = node.clone();
    let _server = node.create_action_server(options, move |goal| {
        println!("goal: order {}", goal.goal().order);
        // A future of the node: the executor runs other callbacks while it waits.
        match worker.spawn(execute(worker.clone(), goal)) {
            Ok(task) => task.detach(),
            Err(error) => eprintln!("{error}"),
        }
    })?;
    println!("ready");
    node.spin();
    Ok(())
}

async fn execute(node: Node, goal: ServerGoalHandle<Fibonacci>) {
    let order = usize::try_from(goal.goal().order).unwrap_or(0);
    let mut sequence = vec![0, 1];
    while sequence.len() <= order {
        node.sleep(STEP).await;
        if goal.is_canceling() {
            report(goal.canceled(FibonacciResult { sequence }));
            return;
        }
        sequence.push(sequence.iter().rev().take(2).sum());
        goal.publish_feedback(FibonacciFeedback {
            sequence: sequence.clone(),
        });
    }
    report(goal.succeed(FibonacciResult { sequence }));
}

fn report(end: Result<(), pteros::action::ActionError>) {
    match end {
        Ok(()) => println!("goal: finished"),
        Err(error) => eprintln!("{error}"),
    }
}
