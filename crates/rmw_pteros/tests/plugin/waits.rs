//! Waits look only at entities that may be ready. No message and no event may be missed.

use std::ptr::null_mut;
use std::time::Duration;

use rmw_pteros_cpp::abi::{MatchedStatus, ret};

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

#[test]
fn an_event_is_ready_from_when_it_happens_until_it_is_taken() {
    /// `RMW_EVENT_OFFERED_DEADLINE_MISSED` and `RMW_EVENT_PUBLICATION_MATCHED`.
    const KINDS: [u32; 2] = [7, 10];
    let mut party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let [mut missed, mut matched] = KINDS.map(|kind| party.event(publisher, kind));
    assert!(!party.has_event(&mut matched));
    let mut subscriptions = Vec::new();
    for total in 1..=3 {
        subscriptions.push(party.subscription(ty, null_mut()));
        party.await_match(publisher, total);
        // Another wait set was told of it.
        party.renew_wait_set();
        party.await_condition(|| party.has_event(&mut matched));
        assert!(party.has_event(&mut matched), "it was not taken");
        assert!(!party.has_event(&mut missed));
        let (mut status, mut taken): (MatchedStatus, bool) = (zeroed(), false);
        // SAFETY: an event, and the status of its kind.
        let code =
            unsafe { rmw_take_event(&raw const matched, (&raw mut status).cast(), &mut taken) };
        assert_eq!((code, taken), (ret::OK, true));
        assert_eq!((status.total_count, status.total_count_change), (total, 1));
        assert!(!party.has_event(&mut matched), "it was taken");
    }
    party.destroy_publisher(publisher);
    for subscription in subscriptions {
        party.destroy_subscription(subscription);
    }
}
