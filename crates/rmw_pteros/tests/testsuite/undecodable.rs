//! Samples that are not of the type: a take drops them and succeeds, as those of other
//! middlewares do. A failure would end programs of rclcpp and rclpy.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr::null_mut;

use rmw_pteros_cpp::abi::{
    MessageInfo, MessageSequence, MessageTypeSupport, Publisher, Ret, SerializedMessage,
    ServiceHandle, ServiceInfo, Subscription, ret,
};
use rmw_pteros_cpp::counts::undecodable_count;

use crate::harness::*;

unsafe extern "C" {
    fn rmw_publish_serialized_message(
        publisher: *const Publisher,
        message: *const SerializedMessage,
        allocation: *mut c_void,
    ) -> Ret;
    fn rmw_take_sequence(
        subscription: *const Subscription,
        count: usize,
        messages: *mut MessageSequence,
        infos: *mut MessageSequence,
        taken: *mut usize,
        allocation: *mut c_void,
    ) -> Ret;
}

/// Payloads that are no `Text`, a number and a string.
const NO_TEXTS: [&[u8]; 6] = [
    &[0, 1, 0, 0],
    &[0, 1, 0, 0, 7, 0],
    &[0, 1, 0, 0, 7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff],
    &[0, 1, 0, 0, 7, 0, 0, 0, 9, 0, 0, 0, b'a', 0],
    &[0, 3, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, b'a', 0],
    &[0x12, 0x34, 0, 0, 7, 0, 0, 0, 2, 0, 0, 0, b'a', 0],
];

fn publish_bytes(publisher: *mut Publisher, bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    let message = SerializedMessage {
        buffer: bytes.as_mut_ptr(),
        buffer_length: bytes.len(),
        buffer_capacity: bytes.len(),
        allocator: allocator(),
    };
    // SAFETY: a publisher, and bytes that outlive the call.
    let code = unsafe { rmw_publish_serialized_message(publisher, &message, null_mut()) };
    assert_eq!(code, ret::OK);
}

fn takes_survive(talker: &Party, listener: &Party) {
    let ty = Text::type_support();
    let (publisher, subscription) = (talker.publisher(ty), listener.subscription(ty, null_mut()));
    talker.await_match(publisher, 1);
    let wrong = || {
        NO_TEXTS
            .iter()
            .for_each(|bytes| publish_bytes(publisher, bytes))
    };
    let mut received = Text::new(0, "");
    let mut total = 0;
    let mut expect = |received: &Text, id: u32| {
        total += NO_TEXTS.len() as u64;
        assert_eq!((received.id, received.text()), (id, "right"));
        // SAFETY: a subscription.
        assert_eq!(unsafe { undecodable_count(subscription) }, Some(total));
    };
    // rmw_take: what is ready turns out to be nothing, until the right one comes.
    wrong();
    listener.wait_for_message(subscription);
    assert!(!take(subscription, &mut received) || received.id == 0);
    publish(publisher, &Text::new(1, "right"));
    listener.await_condition(|| take(subscription, &mut received));
    expect(&received, 1);
    // rmw_take_with_info skips several at once.
    wrong();
    publish(publisher, &Text::new(2, "right"));
    listener.await_condition(|| {
        let (mut info, mut taken): (MessageInfo, bool) = (zeroed(), false);
        // SAFETY: a message of the type.
        let code = unsafe {
            let message = (&raw mut received).cast();
            rmw_take_with_info(subscription, message, &mut taken, &mut info, null_mut())
        };
        assert_eq!(code, ret::OK);
        taken
    });
    expect(&received, 2);
    // rmw_take_sequence.
    wrong();
    publish(publisher, &Text::new(3, "right"));
    let mut info: MessageInfo = zeroed();
    listener.await_condition(|| {
        let mut place: *mut c_void = (&raw mut received).cast();
        let sequence = |data: *mut c_void| MessageSequence {
            data: data.cast(),
            size: 0,
            capacity: 1,
            ..zeroed()
        };
        let mut messages = sequence((&raw mut place).cast());
        let mut infos = sequence((&raw mut info).cast());
        let mut taken = 0;
        // SAFETY: sequences of one place each.
        let code = unsafe {
            let (messages, infos) = (&raw mut messages, &raw mut infos);
            rmw_take_sequence(subscription, 1, messages, infos, &mut taken, null_mut())
        };
        assert_eq!(code, ret::OK);
        taken == 1
    });
    expect(&received, 3);
    talker.destroy_publisher(publisher);
    listener.destroy_subscription(subscription);
}

#[test]
fn takes_drop_what_is_not_of_the_type_within_a_context() {
    let party = Party::new(unused_domain());
    takes_survive(&party, &party);
}

#[test]
fn takes_drop_what_is_not_of_the_type_of_another_context() {
    let domain = unused_domain();
    takes_survive(&Party::new(domain), &Party::new(domain));
}

#[test]
fn a_boolean_of_seven_is_neither_loaned_nor_taken() {
    let party = Party::new(unused_domain());
    let ty = Frame::<3>::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    party.await_match(publisher, 1);
    let bytes = |valid| [0, 1, 0, 0, valid, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 0];
    publish_bytes(publisher, &bytes(7));
    publish_bytes(publisher, &bytes(1));
    party.wait_for_message(subscription);
    let (mut message, mut taken, mut info): (_, _, MessageInfo) = (null_mut(), false, zeroed());
    // SAFETY: a subscription with loans.
    unsafe {
        let (message, taken, info) = (&raw mut message, &raw mut taken, &raw mut info);
        let code =
            rmw_take_loaned_message_with_info(subscription, message, taken, info, null_mut());
        assert_eq!(code, ret::OK);
        assert!(*taken);
        let frame = (*message).cast::<Frame<3>>();
        assert_eq!(((*frame).valid, (*frame).id), (1, 5));
        let code = rmw_return_loaned_message_from_subscription(subscription, *message);
        assert_eq!(code, ret::OK);
        assert_eq!(undecodable_count(subscription), Some(1));
    }
    publish_bytes(publisher, &bytes(2));
    let mut received = Frame::<3>::boxed(0, 0);
    party.wait_for_message(subscription);
    assert!(!take(subscription, &mut *received));
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

/// A message of `Text`'s name with its number alone.
#[repr(C)]
struct Short {
    id: u32,
}

impl Short {
    fn type_support() -> &'static MessageTypeSupport {
        let members = vec![member(c"id", 12, offset_of!(Self, id), 0)];
        type_support(c"Text", size_of::<Self>(), members)
    }
}

fn ask<T>(client: *const ServiceHandle, request: &T) {
    let mut sequence = 0;
    // SAFETY: a request of the type.
    let code =
        unsafe { rmw_send_request(client, std::ptr::from_ref(request).cast(), &mut sequence) };
    assert_eq!(code, ret::OK);
}

#[test]
fn requests_and_responses_that_are_not_of_the_type_are_dropped() {
    let party = Party::new(unused_domain());
    let long = service_type_support(Text::type_support());
    let short = service_type_support(Short::type_support());
    let (wrong, right, service) = (party.client(short), party.client(long), party.service(long));
    let mut taken = false;
    let mut info: ServiceInfo = zeroed();
    for id in 0..3 {
        ask(wrong, &Short { id });
    }
    ask(right, &Text::new(7, "right"));
    let mut request = Text::new(0, "");
    party.await_condition(|| {
        // SAFETY: a request of the type.
        let code = unsafe {
            let request = (&raw mut request).cast();
            rmw_take_request(service, &mut info, request, &mut taken)
        };
        assert_eq!(code, ret::OK);
        taken
    });
    assert_eq!((request.id, request.text()), (7, "right"));
    party.destroy_client(wrong);
    party.destroy_client(right);
    party.destroy_service(service);
    // A server whose response lacks the text.
    let (client, service) = (party.client(long), party.service(short));
    ask(client, &Text::new(8, "right"));
    let mut request = Short { id: 0 };
    party.await_condition(|| {
        // SAFETY: a request of the type.
        let code = unsafe {
            let request = (&raw mut request).cast();
            rmw_take_request(service, &mut info, request, &mut taken)
        };
        assert_eq!(code, ret::OK);
        taken
    });
    assert_eq!(request.id, 8, "what follows is of a later version");
    let mut response = Text::new(0, "");
    // SAFETY: an open request, and messages of the types.
    unsafe {
        let id = &raw mut info.request_id;
        assert_eq!(
            rmw_send_response(service, id, (&raw mut request).cast()),
            ret::OK
        );
        for _ in 0..3 {
            party.poll();
            let place = (&raw mut response).cast();
            let code = rmw_take_response(client, &mut info, place, &mut taken);
            assert_eq!((code, taken), (ret::OK, false));
        }
    }
    party.destroy_client(client);
    party.destroy_service(service);
}

/// Of distributions with type hashes.
#[cfg(not(distribution = "humble"))]
mod type_hashes {
    use pteros_rcl::event_status::StatusKind;
    use rmw_pteros_cpp::abi::{CountStatus, TopicTypeHash as TypeHash};

    use super::*;

    /// `Text` with a type hash of one byte's repetition.
    fn versioned<const BYTE: u8>() -> &'static MessageTypeSupport {
        unsafe extern "C" fn hash<const BYTE: u8>(_: *const MessageTypeSupport) -> *const TypeHash {
            Box::leak(Box::new(TypeHash {
                version: 1,
                value: [BYTE; 32],
            }))
        }
        Box::leak(Box::new(MessageTypeSupport {
            get_type_hash_func: Some(hash::<BYTE>),
            ..*Text::type_support()
        }))
    }

    #[test]
    fn another_version_of_the_type_is_an_event_and_no_match() {
        let domain = unused_domain();
        let (talker, listener) = (Party::new(domain), Party::new(domain));
        for (listener, expected) in [(&talker, 1), (&listener, 1)] {
            let publisher = talker.publisher(versioned::<1>());
            let event = talker.event(publisher, StatusKind::IncompatibleType);
            let other = listener.subscription(versioned::<2>(), null_mut());
            let mut status: CountStatus = zeroed();
            talker.await_condition(|| {
                let mut taken = false;
                // SAFETY: an event of that status.
                unsafe { rmw_take_event(&event, (&raw mut status).cast(), &mut taken) };
                status.total_count == expected
            });
            let same = listener.subscription(versioned::<1>(), null_mut());
            talker.await_match(publisher, 1);
            publish(publisher, &Text::new(4, "right"));
            listener.wait_for_message(same);
            let mut received = Text::new(0, "");
            assert!(take(same, &mut received));
            assert!(!take(other, &mut received), "it is not matched");
            talker.destroy_publisher(publisher);
            listener.destroy_subscription(other);
            listener.destroy_subscription(same);
        }
    }
}
