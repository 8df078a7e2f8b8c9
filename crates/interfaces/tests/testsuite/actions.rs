//! Messages of actions in CDR (XCDR1, little-endian), derived by hand from their
//! definitions, and composed as action servers and clients do.

use pteros_interfaces::action_msgs::msg::{GoalInfo, GoalStatus, GoalStatusArray};
use pteros_interfaces::action_msgs::srv::{CancelGoalRequest, CancelGoalResponse};
use pteros_interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros_msg::{Action, Message, Representation, from_payload, to_payload};

const ID: [u8; 16] = *b"abcdefghijklmnop";

#[track_caller]
fn reads_and_writes<M: Message>(message: &M, bytes: &[u8]) {
    assert_eq!(to_payload(message, Representation::Xcdr1), bytes);
    assert_eq!(from_payload::<M>(bytes).as_ref(), Ok(message));
}

fn info() -> GoalInfo {
    let mut info = GoalInfo::default();
    info.goal_id.uuid = ID;
    (info.stamp.sec, info.stamp.nanosec) = (1, 2);
    info
}

#[test]
fn a_goal_request_is_an_id_and_a_goal() {
    let request = Fibonacci::goal_request(ID, FibonacciGoal { order: 5 });
    reads_and_writes(&request, b"\0\x01\0\0abcdefghijklmnop\x05\0\0\0");
    assert_eq!(
        Fibonacci::goal_of(&request),
        (ID, &FibonacciGoal { order: 5 })
    );
    let response = Fibonacci::goal_response(true, 1, 2);
    reads_and_writes(&response, b"\0\x01\0\0\x01\0\0\0\x01\0\0\0\x02\0\0\0");
    assert!(Fibonacci::is_accepted(&response));
}

#[test]
fn a_result_response_is_a_status_and_a_result() {
    let request = Fibonacci::result_request(ID);
    reads_and_writes(&request, b"\0\x01\0\0abcdefghijklmnop");
    assert_eq!(Fibonacci::result_goal(&request), ID);
    let result = FibonacciResult {
        sequence: vec![0, 1],
    };
    let response = Fibonacci::result_response(4, result.clone());
    reads_and_writes(
        &response,
        b"\0\x01\0\0\x04\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0",
    );
    assert_eq!(Fibonacci::result_of(&response), (4, &result));
}

#[test]
fn feedback_names_its_goal() {
    let feedback = FibonacciFeedback { sequence: vec![7] };
    let message = Fibonacci::feedback_message(ID, feedback.clone());
    reads_and_writes(&message, b"\0\x01\0\0abcdefghijklmnop\x01\0\0\0\x07\0\0\0");
    assert_eq!(Fibonacci::feedback_of(&message), (ID, &feedback));
}

#[test]
fn cancelling_and_statuses_name_goals_and_times() {
    let request = CancelGoalRequest { goal_info: info() };
    reads_and_writes(&request, b"\0\x01\0\0abcdefghijklmnop\x01\0\0\0\x02\0\0\0");
    let response = CancelGoalResponse {
        return_code: 3,
        goals_canceling: vec![info()],
    };
    reads_and_writes(
        &response,
        b"\0\x01\0\0\x03\0\0\0\x01\0\0\0abcdefghijklmnop\x01\0\0\0\x02\0\0\0",
    );
    let statuses = GoalStatusArray {
        status_list: vec![GoalStatus {
            goal_info: info(),
            status: 2,
        }],
    };
    reads_and_writes(
        &statuses,
        b"\0\x01\0\x03\x01\0\0\0abcdefghijklmnop\x01\0\0\0\x02\0\0\0\x02\0\0\0",
    );
}
