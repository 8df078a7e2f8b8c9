//! Services between us and them, each in the dialect that ROS 2's layer over
//! that stack has.

use pteros::Client;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoInts_Request, AddTwoInts_Response,
};

use crate::stage::{PATIENCE, Stage};

const NAME: &str = "add_two_ints";

fn request(a: i64, b: i64) -> AddTwoInts_Request {
    AddTwoInts_Request { a, b }
}

pub fn they_answer_us(stage: &Stage) {
    let mut peer = stage.service_peer("serve");
    peer.expect("ready", PATIENCE);
    let node = stage.node();
    let client: Client<AddTwoInts> = node.create_client(NAME).unwrap();
    for n in 0..20 {
        let answer = client.call(&request(n, 100), PATIENCE).unwrap();
        assert_eq!(answer.sum, n + 100);
        peer.expect(&format!("asked {n} 100"), PATIENCE);
    }
    assert_eq!(client.stray_answers(), 0);
}

/// What is asked before anything is known of each other.
pub fn they_answer_a_client_that_was_there_before(stage: &Stage) {
    let node = stage.node();
    let client: Client<AddTwoInts> = node.create_client(NAME).unwrap();
    let _peer = stage.service_peer("serve");
    assert_eq!(client.call(&request(2, 3), PATIENCE).unwrap().sum, 5);
}

pub fn we_answer_them(stage: &Stage) {
    let node = stage.node();
    let service = node
        .create_service::<AddTwoInts>(NAME, |request| AddTwoInts_Response {
            sum: request.a + request.b,
        })
        .unwrap();
    let mut peer = stage.service_peer("call");
    peer.expect("ready", PATIENCE);
    assert!(node.spin_until(|| service.client_count() == 1, PATIENCE));
    // It may have said so before.
    assert!(node.spin_until(|| peer.has("matched 1"), PATIENCE));
    for n in 1..=20 {
        peer.tell(&format!("call {n} 1000"));
        let answer = format!("answer {n} {}", n + 1000);
        let heard = node.spin_until(|| peer.has(&answer), PATIENCE);
        assert!(heard, "{:?}", peer.seen());
    }
    assert_eq!(service.counts().unanswerable, 0);
}

/// Their requests come before their reader of replies exists.
pub fn our_answer_waits_for_their_reader(stage: &Stage) {
    let node = stage.node();
    let service = node
        .create_service::<AddTwoInts>(NAME, |request| AddTwoInts_Response {
            sum: request.a + request.b,
        })
        .unwrap();
    let mut peer = stage.service_peer("call --late-reader 300");
    peer.expect("ready", PATIENCE);
    assert!(node.spin_until(|| peer.has("matched 1"), PATIENCE));
    peer.tell("call 40 2");
    let heard = node.spin_until(|| peer.has("answer 1 42"), PATIENCE);
    assert!(heard, "{:?}", peer.seen());
    assert_eq!(service.counts().unanswerable, 0);
}
