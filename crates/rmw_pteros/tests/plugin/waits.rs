//! Waits look at a subscription only where messages may have come. None may be missed.

use std::ptr::null_mut;
use std::time::Duration;

use crate::harness::*;

const AT_ONCE: Duration = Duration::ZERO;

#[test]
fn a_message_that_another_wait_set_was_told_of_is_found() {
    let mut party = Party::new(unused_domain());
    let ty = Text::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    assert!(!party.wait(subscription, AT_ONCE));
    publish(publisher, &Text::new(1, "first"));
    party.renew_wait_set();
    assert!(party.wait(subscription, AT_ONCE));
    let mut received = Text::new(0, "");
    assert!(take(subscription, &mut received));
    assert_eq!(received.text(), "first");
    assert!(!party.wait(subscription, AT_ONCE));
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

#[test]
fn no_message_is_missed_that_comes_while_a_wait_begins_or_ends() {
    /// Enough for a message to meet each step of a wait now and then.
    const MESSAGES: u32 = 5_000;
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    let address = publisher as usize;
    let (taken, next) = std::sync::mpsc::channel();
    let publishing = std::thread::spawn(move || {
        for id in 1..=MESSAGES {
            publish(address as *mut _, &Text::new(id, "text"));
            next.recv().unwrap();
        }
    });
    let mut received = Text::new(0, "");
    for id in 1..=MESSAGES {
        party.wait_for_message(subscription);
        assert!(take(subscription, &mut received));
        assert_eq!(received.id, id);
        taken.send(()).unwrap();
        // Another message may come before this look, in it, or after it.
        party.wait(subscription, AT_ONCE);
    }
    publishing.join().unwrap();
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}
