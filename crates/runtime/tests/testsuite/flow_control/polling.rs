//! How a thread polls its sockets: when it sleeps, busy-polls, or checks them beside
//! other work.

use std::sync::Arc;

use pteros_runtime::DriverState;
use pteros_runtime::ready_queue::ReadyQueue;
use pteros_runtime::rtps::time::{Duration, Instant};

use crate::flow_control::harness::{Callback, ContextPair, queue_of};
use crate::flow_control::{best_effort, message};

#[test]
fn a_message_that_arrives_while_busy_polling_restores_the_span() {
    let mut pair = ContextPair::busy_polling(Duration::from_micros(160));
    let writer = pair.plain_writer("t", best_effort(10));
    let reader = pair.reader("t", best_effort(10));
    pair.run_ms(200);
    let task = Arc::new(Callback);
    let queue = queue_of(&reader.slot, &task);
    pair.network().check_nanos = 1_000;
    pair.network().sleeps = Some(0);
    let sleeps = || pair.network().sleeps.unwrap();
    let drive = || {
        let until = pair.listener().platform.now() + Duration::from_millis(2);
        pair.listener().driver().drive(&queue, until);
    };
    let drive_until_taken = |mark| {
        // A due timeout ends a poll, too.
        let polls = (0..10).take_while(|_| {
            drive();
            queue.is_empty()
        });
        assert!(polls.count() < 10);
        assert!(queue.pop().is_some());
        reader.slot.begin_take();
        assert_eq!(pair.taken(&reader), [mark]);
    };
    // In vain: half of the span from now on.
    drive();
    assert_eq!(sleeps(), 1);
    // A message arrives after 50 us of the 80, and one after 100 us.
    pair.publish(&writer, message(10, 1));
    pair.network().now += 50_000;
    drive_until_taken(1);
    pair.publish(&writer, message(10, 2));
    drive_until_taken(2);
    assert_eq!(sleeps(), 1, "the span is whole again");
}

#[test]
fn a_poll_reports_whether_it_slept() {
    let mut pair = ContextPair::new(Vec::new());
    let writer = pair.plain_writer("t", best_effort(10));
    let reader = pair.reader("t", best_effort(10));
    pair.run_ms(200);
    pair.network().sleeps = Some(0);
    let queue = ReadyQueue::new(|| {});
    let mut state = DriverState::default();
    let until = pair.listener().platform.now() + Duration::from_millis(2);
    let mut poll = || {
        let (slept, _) = pair.listener().driver().poll(&mut state, &queue, until);
        (slept, pair.network().sleeps)
    };
    pair.publish(&writer, message(10, 1));
    pair.fill_sockets();
    assert_eq!(poll(), (false, Some(0)), "there was a message");
    assert_eq!(pair.taken(&reader), [1]);
    assert_eq!(poll(), (true, Some(1)));
    assert_eq!(poll(), (false, Some(1)), "the time is over");
}

#[test]
fn sockets_are_checked_once_a_millisecond_beside_other_work() {
    let mut pair = ContextPair::new(Vec::new());
    let writer = pair.plain_writer("t", best_effort(10));
    let reader = pair.reader("t", best_effort(10));
    pair.run_ms(200);
    let task = Arc::new(Callback);
    let queue = queue_of(&reader.slot, &task);
    pair.publish(&writer, message(10, 1));
    pair.run_ms(1);
    assert!(!queue.is_empty());
    let mut state = DriverState::default();
    let before = pair.network().checks;
    for _ in 0..400 {
        pair.network().now += 250_000;
        pair.listener()
            .driver()
            .poll(&mut state, &queue, Instant::FAR_FUTURE);
    }
    let checks = pair.network().checks - before;
    assert_eq!(checks, 100);
}
