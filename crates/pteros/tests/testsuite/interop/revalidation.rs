//! Revalidation: files of our enclave change while secured peers are matched.
//! Revoked permissions end communication, granted ones continue it, without a
//! restart.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::interop::harness::*;
use crate::interop::secured::{part, say};
use pteros_test_support::keystore::{Keys, Protections};
use pteros_test_support::peer::{Peer, value};

const TOPICS: [&str; 2] = ["chatter", "other"];
/// Between two messages of our process.
const PERIOD: Duration = Duration::from_millis(50);
/// When one peer has received that many more, the other one receives none.
const EXTRA_MESSAGES: usize = 20;
/// Our permissions, and those without the first topic.
const BOTH_TOPICS: &str = "<topic>rt/*</topic>";
const SECOND_ONLY: &str = "<topic>rt/[!c]*</topic>";

pub fn changed_permissions_apply_while_a_peer_is_matched(harness: &Harness) {
    // Of the three peers we begin one handshake, and reply to the other.
    let keys = Keys::of(&["/one", "/two", "/three"], Protections::SROS_2);
    let [first, ours, second] = keys.in_order(["/one", "/two", "/three"]);
    let mut us = part(harness, "count", &keys, &keys.enclave(ours));
    let mut peers = [(first, TOPICS[0]), (second, TOPICS[1])].map(|(enclave, topic)| {
        let folder = keys.enclave(enclave);
        let folder = folder.display();
        harness.peer(&format!("sub --topic rt/{topic} --security {folder}"))
    });
    for peer in &mut peers {
        expect_message_after(peer, 0);
    }

    // Communication that is no longer permitted ends; the rest continues.
    keys.edit_permissions(ours, BOTH_TOPICS, SECOND_ONLY);
    let ended = last_sent_number(&mut us, TOPICS[0]);
    expect_message_after(&mut peers[1], ended + EXTRA_MESSAGES);
    expect_no_message_from(&mut peers[0], ended);

    // Permitted again, it resumes. A participant with a revoked certificate is
    // removed.
    keys.edit_permissions(ours, SECOND_ONLY, BOTH_TOPICS);
    keys.revoke(second);
    expect_message_after(&mut peers[0], ended + EXTRA_MESSAGES);
    let ended = last_sent_number(&mut us, TOPICS[1]);
    expect_message_after(&mut peers[0], ended + EXTRA_MESSAGES);
    expect_no_message_from(&mut peers[1], ended);
}

/// Our process publishes on two topics until it is killed. It prints the matched
/// readers and the number of the first message that they receive.
pub fn count_on_two_topics(node: &Node) {
    let publishers = TOPICS.map(|topic| {
        let made = node.create_publisher::<Text>(topic.qos(QosProfile::default()));
        (topic, made.expect("a publisher"))
    });
    let mut before = [0; 2];
    for number in 1.. {
        for ((topic, publisher), before) in publishers.iter().zip(&mut before) {
            let matched = publisher.matched_count();
            if std::mem::replace(before, matched) != matched {
                say(&format!("{topic} matched={matched} number={number}"));
            }
            publisher.publish(&hello(number)).expect("sent");
        }
        drive_for(node, PERIOD);
    }
}

/// The number of the first message without a reader on this topic: of the next one,
/// if our process has not printed that.
fn last_sent_number(us: &mut Peer, topic: &str) -> usize {
    // All lines printed so far.
    us.has("nothing of the kind");
    let mut all = us.seen().iter().rev();
    let last = all.find(|line| line.starts_with(topic)).cloned();
    let last = last.filter(|line| value(line, "matched") == Some("0"));
    let line = last.unwrap_or_else(|| us.expect(&format!("{topic} matched=0 "), TIMEOUT));
    let number = value(&line, "number").expect("a number");
    number.parse().expect("a number")
}

/// Waits until the peer receives a message after that number.
fn expect_message_after(peer: &mut Peer, number: usize) {
    while number_of(&peer.expect("received ", TIMEOUT)) <= number {}
}

/// No message with that number or a later one has arrived.
fn expect_no_message_from(peer: &mut Peer, number: usize) {
    // All lines printed so far.
    peer.has("nothing of the kind");
    let all = peer
        .seen()
        .iter()
        .filter(|line| line.starts_with("received "));
    let last = all
        .map(|line| number_of(line))
        .max()
        .expect("some were heard");
    assert!(
        last < number,
        "{last} was heard, the match ended before {number}"
    );
}

fn number_of(line: &str) -> usize {
    let text = value(line, "text").expect("a text");
    let number = text.strip_prefix("Hello World: ").expect("ours");
    number.parse().expect("a number")
}
