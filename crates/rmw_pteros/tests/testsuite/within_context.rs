//! Messages within a context: structs are copied and moved, and CDR is written only
//! for readers that need it.

use std::ptr::null_mut;

use rmw_pteros_cpp::abi::{MessageInfo, QosProfile, SerializedMessage, Subscription, ret};
use rmw_pteros_cpp::counts::serialized_count;

use crate::harness::*;

/// The texts that a subscription has.
fn texts(party: &Party, subscription: *mut Subscription, count: usize) -> Vec<String> {
    let mut received = Text::new(0, "");
    let mut texts = Vec::new();
    while texts.len() < count {
        party.wait_for_message(subscription);
        while take(subscription, &mut received) {
            texts.push(received.text().to_owned());
        }
    }
    texts
}

fn latched(depth: usize) -> QosProfile {
    QosProfile {
        depth,
        durability: 1,
        ..qos()
    }
}

#[test]
fn the_last_subscription_moves_a_text_that_the_others_copy() {
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let subscriptions = [(); 3].map(|()| party.subscription(ty, null_mut()));
    party.await_match(publisher, subscriptions.len());
    let sent = Text::new(7, "a text that is long enough for memory of its own");
    publish(publisher, &sent);
    for (at, subscription) in subscriptions.into_iter().enumerate() {
        party.wait_for_message(subscription);
        // As long as the one that comes, so a copy needs no other memory.
        let mut received = Text::new(0, &"-".repeat(sent.text().len()));
        let before = received.data();
        assert!(take(subscription, &mut received));
        assert_eq!((received.id, received.text()), (7, sent.text()));
        let is_last = at == subscriptions.len() - 1;
        assert_eq!(received.data() != before, is_last, "{at}");
        assert_ne!(received.data(), sent.data());
    }
    // SAFETY: a publisher.
    assert_eq!(unsafe { serialized_count(publisher) }, Some(0));
    party.destroy_publisher(publisher);
    for subscription in subscriptions {
        party.destroy_subscription(subscription);
    }
}

#[test]
fn a_subscription_with_another_typesupport_and_a_serialized_take_get_cdr() {
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let same = party.subscription(ty, null_mut());
    let other = party.subscription(Text::type_support(), null_mut());
    let raw = party.subscription(ty, null_mut());
    party.await_match(publisher, 3);
    publish(publisher, &Text::new(1, "hi"));
    for subscription in [same, other] {
        assert_eq!(texts(&party, subscription, 1), ["hi"]);
    }
    party.wait_for_message(raw);
    let mut taken = false;
    let mut message = SerializedMessage {
        allocator: allocator(),
        ..zeroed()
    };
    // SAFETY: a subscription, and an empty message.
    let bytes = unsafe {
        let code = rmw_take_serialized_message(raw, &mut message, &mut taken, null_mut());
        assert_eq!((code, taken), (ret::OK, true));
        std::slice::from_raw_parts(message.buffer, message.buffer_length).to_vec()
    };
    free_memory(message.buffer);
    assert_eq!(bytes, [0, 1, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, b'h', b'i', 0]);
    party.destroy_publisher(publisher);
    for subscription in [same, other, raw] {
        party.destroy_subscription(subscription);
    }
}

#[test]
fn a_latched_struct_is_serialized_when_another_process_joins() {
    let domain = unused_domain();
    let (here, there) = (Party::new(domain), Party::new(domain));
    let ty = Text::type_support();
    let publisher = here.publisher_with(ty, &latched(2));
    let first = here.subscription_with(ty, &latched(2), null_mut());
    here.await_match(publisher, 1);
    for (id, text) in ["one", "two", "three"].into_iter().enumerate() {
        publish(publisher, &Text::new(u32::try_from(id).unwrap(), text));
    }
    let serialized = || {
        // SAFETY: a publisher.
        unsafe { serialized_count(publisher) }.unwrap()
    };
    assert_eq!(texts(&here, first, 2), ["two", "three"], "keep last 2");
    let second = here.subscription_with(ty, &latched(2), null_mut());
    assert_eq!(texts(&here, second, 2), ["two", "three"]);
    assert_eq!(serialized(), 0);
    let remote = there.subscription_with(ty, &latched(2), null_mut());
    there.await_condition(|| {
        here.poll();
        let mut received = Text::new(0, "");
        take(remote, &mut received) && received.text() == "three"
    });
    assert_eq!(serialized(), 2);
    // From now on CDR is made once, for all.
    publish(publisher, &Text::new(4, "four"));
    assert_eq!(serialized(), 3);
    for (party, subscription) in [(&here, first), (&here, second), (&there, remote)] {
        assert_eq!(texts(party, subscription, 1), ["four"]);
    }
    here.destroy_publisher(publisher);
    here.destroy_subscription(first);
    here.destroy_subscription(second);
    there.destroy_subscription(remote);
}

#[test]
fn a_full_queue_keeps_the_last_messages_with_their_numbers() {
    let party = Party::new(unused_domain());
    let ty = Frame::<56>::type_support();
    let publisher = party.publisher(ty);
    let depth = QosProfile { depth: 2, ..qos() };
    let subscription = party.subscription_with(ty, &depth, null_mut());
    party.await_match(publisher, 1);
    for id in 1..=5 {
        publish(publisher, &*Frame::<56>::boxed(id, 0));
    }
    let mut received = Frame::<56>::boxed(0, 0);
    let mut seen = Vec::new();
    let mut info: MessageInfo = zeroed();
    party.wait_for_message(subscription);
    loop {
        let mut taken = false;
        let message = (&raw mut *received).cast();
        // SAFETY: a message of the subscription's type.
        let code =
            unsafe { rmw_take_with_info(subscription, message, &mut taken, &mut info, null_mut()) };
        assert_eq!(code, ret::OK);
        if !taken {
            break;
        }
        assert!(info.source_timestamp > 0 && !info.from_intra_process);
        seen.push((received.id, info.publication_sequence_number));
    }
    assert_eq!(seen, [(4, 4), (5, 5)]);
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

#[test]
fn a_loan_within_a_context_is_the_publishers_copy() {
    let party = Party::new(unused_domain());
    let ty = Frame::<64>::type_support();
    let publisher = party.publisher(ty);
    let subscriptions = [(); 2].map(|()| party.subscription(ty, null_mut()));
    party.await_match(publisher, 2);
    publish(publisher, &*Frame::<64>::boxed(3, 4));
    let loans = subscriptions.map(|subscription| {
        party.wait_for_message(subscription);
        let (mut loan, mut taken) = (null_mut(), false);
        let mut info: MessageInfo = zeroed();
        // SAFETY: a subscription of a plain type; the loan is a message of it.
        unsafe {
            let code = rmw_take_loaned_message_with_info(
                subscription,
                &mut loan,
                &mut taken,
                &mut info,
                null_mut(),
            );
            assert_eq!((code, taken), (ret::OK, true));
            let frame = &*loan.cast::<Frame<64>>();
            assert_eq!((frame.id, frame.data), (3, [4; 64]));
        }
        loan
    });
    assert_eq!(loans[0], loans[1], "no copy");
    for (subscription, loan) in subscriptions.into_iter().zip(loans) {
        // SAFETY: a loan of the subscription.
        let code = unsafe { rmw_return_loaned_message_from_subscription(subscription, loan) };
        assert_eq!(code, ret::OK);
        party.destroy_subscription(subscription);
    }
    party.destroy_publisher(publisher);
}
