//! Messages of lifecycle services in CDR (XCDR1, little-endian), derived by hand
//! from their definitions.

use pteros_interfaces::lifecycle_msgs::msg::{
    State, Transition, TransitionDescription, TransitionEvent,
};
use pteros_interfaces::lifecycle_msgs::srv::{
    ChangeStateRequest, ChangeStateResponse, GetAvailableStatesRequest, GetAvailableStatesResponse,
    GetAvailableTransitionsRequest, GetAvailableTransitionsResponse, GetStateRequest,
    GetStateResponse,
};
use pteros_msg::{Message, Representation, from_payload, to_payload};

#[track_caller]
fn reads_and_writes<M: Message>(message: &M, bytes: &[u8]) {
    assert_eq!(to_payload(message, Representation::Xcdr1), bytes);
    assert_eq!(from_payload::<M>(bytes).as_ref(), Ok(message));
}

fn state(id: u8, label: &str) -> State {
    State {
        id,
        label: label.into(),
    }
}

fn transition(id: u8, label: &str) -> Transition {
    Transition {
        id,
        label: label.into(),
    }
}

#[test]
fn change_state_is_an_id_a_label_and_a_flag() {
    reads_and_writes(
        &ChangeStateRequest {
            transition: transition(1, "configure"),
        },
        b"\0\x01\0\x02\x01\0\0\0\x0a\0\0\0configure\0\0\0",
    );
    reads_and_writes(
        &ChangeStateResponse { success: true },
        b"\0\x01\0\x03\x01\0\0\0",
    );
}

#[test]
fn get_state_is_an_id_and_a_label() {
    reads_and_writes(&GetStateRequest {}, b"\0\x01\0\x03\0\0\0\0");
    reads_and_writes(
        &GetStateResponse {
            current_state: state(3, "active"),
        },
        b"\0\x01\0\x01\x03\0\0\0\x07\0\0\0active\0\0",
    );
}

#[test]
fn available_states_are_aligned_one_after_the_other() {
    reads_and_writes(&GetAvailableStatesRequest {}, b"\0\x01\0\x03\0\0\0\0");
    reads_and_writes(
        &GetAvailableStatesResponse {
            available_states: vec![state(2, "inactive"), state(3, "active")],
        },
        b"\0\x01\0\x01\x02\0\0\0\x02\0\0\0\x09\0\0\0inactive\0\x03\0\0\x07\0\0\0active\0\0",
    );
}

#[test]
fn available_transitions_name_start_and_goal() {
    reads_and_writes(&GetAvailableTransitionsRequest {}, b"\0\x01\0\x03\0\0\0\0");
    reads_and_writes(
        &GetAvailableTransitionsResponse {
            available_transitions: vec![TransitionDescription {
                transition: transition(3, "activate"),
                start_state: state(2, "inactive"),
                goal_state: state(13, "activating"),
            }],
        },
        b"\0\x01\0\x01\x01\0\0\0\x03\0\0\0\x09\0\0\0activate\0\x02\0\0\x09\0\0\0inactive\0\x0d\0\0\x0b\0\0\0activating\0\0",
    );
}

#[test]
fn an_event_begins_with_its_stamp() {
    reads_and_writes(
        &TransitionEvent {
            timestamp: 0x0102_0304_0506_0708,
            transition: transition(0, ""),
            start_state: state(1, "a"),
            goal_state: state(10, "b"),
        },
        b"\0\x01\0\x02\x08\x07\x06\x05\x04\x03\x02\x01\0\0\0\0\x01\0\0\0\0\x01\0\0\x02\0\0\0a\0\x0a\0\x02\0\0\0b\0\0\0",
    );
}
