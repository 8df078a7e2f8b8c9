//! Files of our enclave that change while secured peers listen: what is taken back
//! ends for them, and what is given goes on, without a restart of anybody.

use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::keystore::{Keys, Protections};
use crate::peer::{Peer, value};
use crate::secured::{part, say};
use crate::stage::*;

const TOPICS: [&str; 2] = ["chatter", "other"];
/// Between two messages of our process.
const PACE: Duration = Duration::from_millis(50);
/// So many more that one peer hears show that the other one hears none.
const MORE: usize = 20;
/// As our permissions have it, and without the first topic.
const BOTH: &str = "<topic>rt/*</topic>";
const SECOND_ONLY: &str = "<topic>rt/[!c]*</topic>";

pub fn changed_files_act_while_they_listen(stage: &Stage) {
    // Of the three we begin one handshake, and answer the other.
    let keys = Keys::of(&["/one", "/two", "/three"], Protections::SROS_2);
    let [first, ours, second] = keys.in_order(["/one", "/two", "/three"]);
    let mut us = part(stage, "count", &keys, &keys.enclave(ours));
    let mut peers = [(first, TOPICS[0]), (second, TOPICS[1])].map(|(enclave, topic)| {
        let folder = keys.enclave(enclave);
        let folder = folder.display();
        stage.peer(&format!("sub --topic rt/{topic} --security {folder}"))
    });
    for peer in &mut peers {
        hear_beyond(peer, 0);
    }

    // What they do not allow any longer ends; the rest goes on.
    keys.permit(ours, (BOTH, SECOND_ONLY));
    let ended = end_of(&mut us, TOPICS[0]);
    hear_beyond(&mut peers[1], ended + MORE);
    hears_nothing_from(&mut peers[0], ended);

    // Given back, it is there again. Who is on the list of revoked certificates is gone.
    keys.permit(ours, (SECOND_ONLY, BOTH));
    keys.revoke(second);
    hear_beyond(&mut peers[0], ended + MORE);
    let ended = end_of(&mut us, TOPICS[1]);
    hear_beyond(&mut peers[0], ended + MORE);
    hears_nothing_from(&mut peers[1], ended);
}

/// Our process publishes on both topics until it is killed, and says from which
/// message on how many hear it.
pub fn count_on_two_topics(node: &Node) {
    let publishers = TOPICS.map(|topic| {
        let made = node.create_publisher::<Text>(topic, &QosProfile::default());
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
        live_for(node, PACE);
    }
}

/// The number of the first message that nobody on this topic hears: of the next
/// one, if our process does not say that this is so now.
fn end_of(us: &mut Peer, topic: &str) -> usize {
    // All that it has said by now.
    us.has("nothing of the kind");
    let mut all = us.seen().iter().rev();
    let last = all.find(|line| line.starts_with(topic)).cloned();
    let last = last.filter(|line| value(line, "matched") == Some("0"));
    let line = last.unwrap_or_else(|| us.expect(&format!("{topic} matched=0 "), PATIENCE));
    let number = value(&line, "number").expect("a number");
    number.parse().expect("a number")
}

/// Waits until the peer hears a message after the one of this number.
fn hear_beyond(peer: &mut Peer, number: usize) {
    while heard(&peer.expect("received ", PATIENCE)) <= number {}
}

/// None of this number or a later one has come.
fn hears_nothing_from(peer: &mut Peer, number: usize) {
    // All that it has said by now.
    peer.has("nothing of the kind");
    let all = peer
        .seen()
        .iter()
        .filter(|line| line.starts_with("received "));
    let last = all.map(|line| heard(line)).max().expect("some were heard");
    assert!(
        last < number,
        "{last} was heard, the match ended before {number}"
    );
}

fn heard(line: &str) -> usize {
    let text = value(line, "text").expect("a text");
    let number = text.strip_prefix("Hello World: ").expect("ours");
    number.parse().expect("a number")
}
