//! Programs that fork after `rmw_init`. A child can neither use nor end what is its
//! parent's, and it can open a context of its own. Each test forks in a process of its own,
//! whose other thread only waits for the test.

use std::ffi::{c_int, c_void};
use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{from_ref, null, null_mut};

use pteros_rcl::event_status::StatusKind;
use rmw_pteros_cpp::abi::{
    Event, EventCallback, MatchedStatus, Publisher, Ret, Subscription, Time, ret,
};

use crate::harness::*;

unsafe extern "C" {
    fn fork() -> c_int;
    fn exit(status: c_int) -> !;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn kill(process: c_int, signal: c_int) -> c_int;

    fn rmw_event_set_callback(
        event: *mut Event,
        callback: EventCallback,
        user_data: *const c_void,
    ) -> Ret;
    fn rmw_publisher_wait_for_all_acked(publisher: *const Publisher, timeout: Time) -> Ret;
}

/// A forked process. It is killed with the value.
struct Child {
    process: c_int,
    has_ended: bool,
}

impl Child {
    /// Forks. The child runs `work` and exits as programs do.
    fn fork(work: impl FnOnce()) -> Self {
        // Another thread may be writing a line of the log.
        let log = io::stderr().lock();
        // SAFETY: no other thread of this program holds a lock that the child needs.
        match unsafe { fork() } {
            0 => {
                drop(log);
                let outcome = catch_unwind(AssertUnwindSafe(work));
                // SAFETY: the child's threads are this one alone.
                unsafe { exit(c_int::from(outcome.is_err())) }
            }
            process => {
                assert!(process > 0);
                Self {
                    process,
                    has_ended: false,
                }
            }
        }
    }

    /// Whether it has ended, without an error.
    fn has_ended(&mut self) -> bool {
        const WNOHANG: c_int = 1;
        let mut status = 0;
        // SAFETY: a child of this process, which was not waited for.
        let found = unsafe { waitpid(self.process, &mut status, WNOHANG) };
        self.has_ended = found == self.process;
        if self.has_ended {
            assert_eq!(status, 0, "the child failed");
        }
        self.has_ended
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        const SIGKILL: c_int = 9;
        if !self.has_ended {
            // SAFETY: a child of this process.
            unsafe {
                kill(self.process, SIGKILL);
                waitpid(self.process, null_mut(), 0);
            }
        }
    }
}

unsafe extern "C" fn ignore(_: *const c_void, _: usize) {}

fn matched(event: &Event) -> MatchedStatus {
    let (mut status, mut taken): (MatchedStatus, bool) = (zeroed(), false);
    // SAFETY: an event, and the status of its kind.
    let code = unsafe { rmw_take_event(event, (&raw mut status).cast(), &mut taken) };
    assert_eq!((code, taken), (ret::OK, true));
    status
}

#[test]
fn a_forked_child_neither_uses_nor_ends_what_is_its_parents() {
    let text = run_alone("forks::a_child_uses_and_ends_everything", &[]);
    let why = "the context belongs to the process that forked this one; initialize another one \
               here (rclcpp::init, rclpy.init)";
    for function in [
        "rmw_publish",
        "rmw_take",
        "rmw_wait",
        "rmw_create_node",
        "rmw_take_event",
    ] {
        assert!(text.contains(&format!("{function}: {why}")), "{text}");
    }
}

#[test]
#[ignore = "run by the test above, alone in its process"]
fn a_child_uses_and_ends_everything() {
    let domain = given_domain();
    let (mut here, there) = (Party::new(domain), Party::new(domain));
    let (ty, service_ty) = (
        Text::type_support(),
        service_type_support(Text::type_support()),
    );
    let publisher = here.publisher(ty);
    let (near, far) = (
        here.subscription(ty, null_mut()),
        there.subscription(ty, null_mut()),
    );
    let (client, service) = (here.client(service_ty), here.service(service_ty));
    let observer = there.publisher(ty);
    let status = there.event(observer, StatusKind::Matched);
    let mut event = here.event(publisher, StatusKind::Matched);
    // The context has a thread for callbacks.
    // SAFETY: an event, and a callback that uses no data.
    let code = unsafe { rmw_event_set_callback(&mut event, Some(ignore), null()) };
    assert_eq!(code, ret::OK);
    here.await_match(publisher, 2);
    there.await_match(observer, 2);
    assert_eq!(matched(&status).current_count, 2);

    let mut child = Child::fork(|| {
        uses_fail(&here, publisher, near, &mut event);
        // As destructors of rclcpp do.
        // SAFETY: made by the parent.
        unsafe {
            let code = rmw_event_set_callback(&mut event, None, null());
            assert_eq!(code, ret::OK);
            let code = rmw_subscription_set_on_new_message_callback(near, None, null());
            assert_eq!(code, ret::OK);
        }
        here.destroy_publisher(publisher);
        here.destroy_subscription(near);
        here.destroy_client(client);
        here.destroy_service(service);
        assert_eq!(here.end(), [ret::OK; 4]);
    });
    there.await_condition(|| child.has_ended());

    publish(publisher, &Text::new(7, "of the parent"));
    let mut received = Text::new(0, "");
    for (party, subscription) in [(&here, near), (&there, far)] {
        party.wait_for_message(subscription);
        assert!(take(subscription, &mut received));
        assert_eq!(received.text(), "of the parent");
        assert!(
            !take(subscription, &mut received),
            "the child has published"
        );
    }
    let status = matched(&status);
    assert_eq!((status.current_count, status.total_count_change), (2, 0));
    here.destroy_client(client);
    here.destroy_service(service);
    here.destroy_publisher(publisher);
    here.destroy_subscription(near);
    there.destroy_publisher(observer);
    there.destroy_subscription(far);
}

/// Functions that would talk in the parent's name, or wait.
fn uses_fail(
    party: &Party,
    publisher: *mut Publisher,
    subscription: *mut Subscription,
    event: &mut Event,
) {
    let (mut message, mut taken) = (Text::new(1, "of the child"), false);
    let (mut status, mut count): (MatchedStatus, usize) = (zeroed(), 0);
    // SAFETY: entities that the parent made.
    unsafe {
        let name = c"child".as_ptr();
        assert!(rmw_create_node(party.context(), name, c"/".as_ptr()).is_null());
        let code = rmw_publish(publisher, from_ref(&message).cast(), null_mut());
        assert_eq!(code, ret::ERROR);
        let at = (&raw mut message).cast();
        let code = rmw_take(subscription, at, &mut taken, null_mut());
        assert_eq!((code, taken), (ret::ERROR, false));
        let code = rmw_publisher_count_matched_subscriptions(publisher, &mut count);
        assert_eq!((code, count), (ret::ERROR, 0));
        let code = rmw_take_event(event, (&raw mut status).cast(), &mut taken);
        assert_eq!((code, taken), (ret::ERROR, false));
        let code = rmw_event_set_callback(event, Some(ignore), null());
        assert_eq!(code, ret::ERROR);
        let none = null_mut;
        // For ever, if it waited.
        let set = party.wait_set();
        let code = rmw_wait(none(), none(), none(), none(), none(), set, null());
        assert_eq!(code, ret::ERROR);
        let for_ever = Time {
            sec: i64::MAX as u64,
            nsec: 0,
        };
        assert_eq!(
            rmw_publisher_wait_for_all_acked(publisher, for_ever),
            ret::ERROR
        );
    }
}

#[test]
fn a_forked_child_has_a_context_of_its_own() {
    run_alone("forks::a_child_hears_its_parent", &[]);
}

#[test]
#[ignore = "run by the test above, alone in its process"]
fn a_child_hears_its_parent() {
    let domain = given_domain();
    let here = Party::new(domain);
    let ty = Text::type_support();
    let publisher = here.publisher(ty);
    let (reader, writer) = pipe().unwrap();
    let mut child = Child::fork(|| hear(domain, reader));
    here.await_match(publisher, 1);
    publish(publisher, &Text::new(7, "for the child"));
    let timeout = Time { sec: 20, nsec: 0 };
    // SAFETY: a publisher.
    let code = unsafe { rmw_publisher_wait_for_all_acked(publisher, timeout) };
    assert_eq!(code, ret::OK);
    end_sleep(writer);
    here.await_condition(|| child.has_ended());
    here.await_match(publisher, 0);
    here.destroy_publisher(publisher);
}

/// Ends the child's sleep in [`hear`].
fn end_sleep(mut sleep: PipeWriter) {
    sleep.write_all(b".").unwrap();
}

/// Receives a message in a child, while its only thread of the user sleeps elsewhere.
fn hear(domain: usize, mut sleep: PipeReader) {
    let party = Party::new(domain);
    let subscription = party.subscription(Text::type_support(), null_mut());
    sleep.read_exact(&mut [0]).unwrap();
    let mut received = Text::new(0, "");
    assert!(take(subscription, &mut received));
    assert_eq!(received.text(), "for the child");
    party.destroy_subscription(subscription);
}
