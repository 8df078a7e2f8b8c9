//! Services across implementations, in the request-id style of the rmw layer over
//! each stack.

use pteros::Client;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};

use crate::interop::harness::{Harness, TIMEOUT};

const NAME: &str = "add_two_ints";

fn request(a: i64, b: i64) -> AddTwoIntsRequest {
    AddTwoIntsRequest { a, b }
}

pub fn their_server_answers_our_client(harness: &Harness) {
    let mut peer = harness.service_peer("serve");
    peer.expect("ready", TIMEOUT);
    let node = harness.node();
    let client: Client<AddTwoInts> = node.create_client(NAME).unwrap();
    for n in 0..20 {
        let answer = client.call(&request(n, 100), TIMEOUT).unwrap();
        assert_eq!(answer.sum, n + 100);
        peer.expect(&format!("asked {n} 100"), TIMEOUT);
    }
    assert_eq!(client.unmatched_response_count(), 0);
}

/// A request sent before discovery has finished.
pub fn their_server_answers_a_client_that_started_earlier(harness: &Harness) {
    let node = harness.node();
    let client: Client<AddTwoInts> = node.create_client(NAME).unwrap();
    let _peer = harness.service_peer("serve");
    assert_eq!(client.call(&request(2, 3), TIMEOUT).unwrap().sum, 5);
}

pub fn our_server_answers_their_client(harness: &Harness) {
    let node = harness.node();
    let service = node
        .create_service::<AddTwoInts>(NAME, |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        })
        .unwrap();
    let mut peer = harness.service_peer("call");
    peer.expect("ready", TIMEOUT);
    assert!(node.spin_until(|| service.client_count() == 1, TIMEOUT));
    // It may have printed that already.
    assert!(node.spin_until(|| peer.has("matched 1"), TIMEOUT));
    for n in 1..=20 {
        peer.send_line(&format!("call {n} 1000"));
        let answer = format!("answer {n} {}", n + 1000);
        let heard = node.spin_until(|| peer.has(&answer), TIMEOUT);
        assert!(heard, "{:?}", peer.seen());
    }
    assert_eq!(service.counts().unanswerable, 0);
}

/// Their requests arrive before their reply reader exists.
pub fn our_response_waits_for_their_reply_reader(harness: &Harness) {
    let node = harness.node();
    let service = node
        .create_service::<AddTwoInts>(NAME, |request| AddTwoIntsResponse {
            sum: request.a + request.b,
        })
        .unwrap();
    let mut peer = harness.service_peer("call --late-reader 300");
    peer.expect("ready", TIMEOUT);
    assert!(node.spin_until(|| peer.has("matched 1"), TIMEOUT));
    peer.send_line("call 40 2");
    let heard = node.spin_until(|| peer.has("answer 1 42"), TIMEOUT);
    assert!(heard, "{:?}", peer.seen());
    assert_eq!(service.counts().unanswerable, 0);
}
