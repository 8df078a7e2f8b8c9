//! Callbacks for new messages, as rclcpp's events executor uses them: no thread of the
//! user waits, so the plug-in's callback thread receives.

use std::ffi::c_void;
use std::ptr::{from_ref, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use rmw_pteros_cpp::abi::{EventCallback, QosProfile, Ret, Subscription, ret};

use crate::harness::*;

unsafe extern "C" {
    fn rmw_subscription_set_on_new_message_callback(
        subscription: *mut Subscription,
        callback: EventCallback,
        user_data: *const c_void,
    ) -> Ret;
}

/// Messages of the test; more than the default depth.
const MESSAGES: u32 = 500;

/// Adds what it is told of to the counter that is its user data.
unsafe extern "C" fn add(told: *const c_void, count: usize) {
    // SAFETY: the counters outlive the callbacks.
    unsafe { &*told.cast::<AtomicUsize>() }.fetch_add(count, Ordering::SeqCst);
}

fn set_callback(subscription: *mut Subscription, told: Option<&AtomicUsize>) {
    let callback: EventCallback = match told {
        Some(_) => Some(add),
        None => None,
    };
    let data = told.map_or(null_mut(), |told| from_ref(told).cast_mut());
    // SAFETY: a subscription, and a callback that may run with that data.
    let code = unsafe {
        rmw_subscription_set_on_new_message_callback(subscription, callback, data.cast())
    };
    assert_eq!(code, ret::OK);
}

#[test]
fn a_callback_is_told_of_every_message_while_nobody_waits() {
    let domain = unused_domain();
    let (here, there) = (Party::new(domain), Party::new(domain));
    let ty = Text::type_support();
    let deep = QosProfile {
        depth: 2 * MESSAGES as usize,
        ..qos()
    };
    let publisher = here.publisher_with(ty, &deep);
    let near = here.subscription_with(ty, &deep, null_mut());
    let far = there.subscription_with(ty, &deep, null_mut());
    let told = [const { AtomicUsize::new(0) }; 2];
    set_callback(near, Some(&told[0]));
    set_callback(far, Some(&told[1]));
    let all_told = |count: u32| {
        let is_count = |told: &AtomicUsize| told.load(Ordering::SeqCst) == count as usize;
        told.iter().all(is_count)
    };
    here.await_match(publisher, 2);
    for id in 0..MESSAGES {
        publish(publisher, &Text::new(id, "told"));
    }
    here.await_condition(|| all_told(MESSAGES));
    let mut received = Text::new(0, "");
    for subscription in [near, far] {
        for id in 0..MESSAGES {
            assert!(take(subscription, &mut received), "message {id}");
            assert_eq!(received.id, id);
        }
        assert!(!take(subscription, &mut received));
    }

    // Without callbacks messages wait, and the next callbacks are told of them at once.
    set_callback(near, None);
    set_callback(far, None);
    publish(publisher, &Text::new(0, "unread"));
    there.wait_for_message(far);
    assert!(all_told(MESSAGES), "{told:?}");
    set_callback(near, Some(&told[0]));
    set_callback(far, Some(&told[1]));
    assert!(all_told(MESSAGES + 1), "{told:?}");

    here.destroy_publisher(publisher);
    here.destroy_subscription(near);
    there.destroy_subscription(far);
}
