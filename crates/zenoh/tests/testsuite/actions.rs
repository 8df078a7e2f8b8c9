//! Actions between contexts.

use crate::harness::{FibonacciAction, Net};

#[test]
fn a_goal_has_feedback_and_a_result() {
    let net = Net::new();
    let [here, there] = [net.open(), net.open()];
    FibonacciAction::new(&here, &there).expect_success(&there);
}
