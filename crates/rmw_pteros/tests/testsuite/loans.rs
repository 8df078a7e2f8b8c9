//! Loaned messages of plain types: no copy between two processes of a host.

use std::ffi::c_void;
use std::ptr::null_mut;

use rmw_pteros_cpp::abi::{MessageInfo, Subscription, ret};

use crate::allocations::count;
use crate::harness::*;

/// As large as an image.
const LARGE: usize = 1 << 20;
type LargeFrame = Frame<LARGE>;

/// Takes a loan that must be there.
#[track_caller]
fn take_loan(subscription: *mut Subscription) -> (*mut c_void, MessageInfo) {
    let (mut message, mut taken, mut info) = (null_mut(), false, zeroed());
    // SAFETY: valid arguments.
    let code = unsafe {
        rmw_take_loaned_message_with_info(
            subscription,
            &mut message,
            &mut taken,
            &mut info,
            null_mut(),
        )
    };
    assert_eq!((code, taken), (ret::OK, true));
    (message, info)
}

#[test]
fn a_loan_reaches_another_context_without_a_copy() {
    let domain = unused_domain();
    let (talker, listener) = (Party::new(domain), Party::new(domain));
    let ty = LargeFrame::type_support();
    let (publisher, subscription) = (talker.publisher(ty), listener.subscription(ty, null_mut()));
    // SAFETY: handles of the plug-in.
    assert!(unsafe { (*publisher).can_loan_messages && (*subscription).can_loan_messages });
    listener.await_match(publisher, 1);
    // Until shared memory is connected, memory of the process is loaned.
    let mut id = 0;
    let mut exchange = || {
        id += 1;
        // SAFETY: a loan is a struct of the type.
        let (sent, ()) = count(|| unsafe {
            let mut message = null_mut();
            assert_eq!(
                rmw_borrow_loaned_message(publisher, ty, &mut message),
                ret::OK
            );
            let frame = message.cast::<LargeFrame>();
            (*frame).valid = 1;
            (*frame).id = id;
            (*frame).data[LARGE - 1] = 77;
            let code = rmw_publish_loaned_message(publisher, message, null_mut());
            assert_eq!(code, ret::OK);
        });
        listener.wait_for_message(subscription);
        let (received, (message, info)) = count(|| take_loan(subscription));
        // SAFETY: as above.
        unsafe {
            let frame = message.cast::<LargeFrame>();
            assert_eq!(((*frame).valid, (*frame).id), (1, id));
            assert_eq!((*frame).data[LARGE - 1], 77);
            assert_eq!(info.publication_sequence_number, u64::from(id));
            let code = rmw_return_loaned_message_from_subscription(subscription, message);
            assert_eq!(code, ret::OK);
            let again = rmw_return_loaned_message_from_subscription(subscription, message);
            assert_eq!(again, ret::ERROR, "it is no loan any more");
        }
        (sent.bytes, received.bytes)
    };
    listener.await_condition(|| {
        let (sent, received) = exchange();
        // The whole message is written and read where it lies.
        sent < 8_192 && received < 1_024
    });
    talker.destroy_publisher(publisher);
    listener.destroy_subscription(subscription);
}

#[test]
fn a_loan_within_a_context_arrives_and_a_returned_one_does_not() {
    let party = Party::new(unused_domain());
    let ty = Frame::<3>::type_support();
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    // SAFETY: loans are structs of the type.
    let written = unsafe {
        let mut unused = null_mut();
        assert_eq!(
            rmw_borrow_loaned_message(publisher, ty, &mut unused),
            ret::OK
        );
        let busy = rmw_borrow_loaned_message(publisher, ty, &mut unused);
        assert_eq!(busy, ret::INVALID_ARGUMENT, "the place is not null");
        assert_eq!(
            rmw_return_loaned_message_from_publisher(publisher, unused),
            ret::OK
        );
        let mut message = null_mut();
        assert_eq!(
            rmw_borrow_loaned_message(publisher, ty, &mut message),
            ret::OK
        );
        let frame = message.cast::<Frame<3>>();
        assert_eq!((*frame).id, 0, "initialized");
        ((*frame).id, (*frame).data) = (5, [1, 2, 3]);
        assert_eq!(
            rmw_publish_loaned_message(publisher, message, null_mut()),
            ret::OK
        );
        let again = rmw_publish_loaned_message(publisher, message, null_mut());
        assert_eq!(again, ret::ERROR, "published already");
        message
    };
    party.wait_for_message(subscription);
    let (message, _) = take_loan(subscription);
    assert_eq!(message, written, "read where it was written");
    // SAFETY: as above.
    unsafe {
        let frame = message.cast::<Frame<3>>();
        assert_eq!(((*frame).id, (*frame).data), (5, [1, 2, 3]));
        let code = rmw_return_loaned_message_from_subscription(subscription, message);
        assert_eq!(code, ret::OK);
    }
    assert!(!take(subscription, &mut *Frame::<3>::boxed(0, 0)));
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}

#[test]
fn types_unlike_their_cdr_are_not_loaned() {
    let party = Party::new(unused_domain());
    // A byte, and a struct of a byte and a number of 64 bits: C aligns the struct at 8,
    // CDR its first byte at 1.
    let members = vec![
        member(c"before", 8, 0, 0),
        member(c"small", 8, 8, 0),
        member(c"large", 2, 16, 0),
    ];
    let ty = type_support(c"Gapped", 24, members);
    let (publisher, subscription) = (party.publisher(ty), party.subscription(ty, null_mut()));
    // SAFETY: valid arguments.
    unsafe {
        assert!(!(*publisher).can_loan_messages && !(*subscription).can_loan_messages);
        let mut message = null_mut();
        let code = rmw_borrow_loaned_message(publisher, ty, &mut message);
        assert_eq!(code, ret::UNSUPPORTED);
        assert!(message.is_null());
    }
    party.destroy_publisher(publisher);
    party.destroy_subscription(subscription);
}
