//! A link that is full: whatever does not need it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::spawn;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Net, SOON, next, open_with, text, until};
use crate::proxy::Proxy;

/// A publisher that publishes until it is stopped, and blocks when the link is full.
struct Flood {
    /// One for each message.
    sent: Receiver<()>,
    stops: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Flood {
    fn start(publisher: Publisher<Text>) -> Self {
        let stops = Arc::<AtomicBool>::default();
        let stop = stops.clone();
        let (counter, sent) = channel();
        let thread = spawn(move || {
            let message = text("x".repeat(100_000));
            while !stop.load(Ordering::Relaxed) {
                publisher.publish(&message).unwrap();
                let _ = counter.send(());
            }
        });
        Self {
            sent,
            stops,
            thread,
        }
    }

    /// Waits until it has made no progress for half a second.
    fn wait_until_blocked(&self) {
        for _ in 0..10_000 {
            match self.sent.recv_timeout(Duration::from_millis(500)) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => panic!("it has ended"),
            }
        }
        panic!("the link takes everything");
    }

    fn stop(self) {
        self.stops.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

/// Runs something on a thread, and returns whether it ends within that time.
fn ends_within(time: Duration, work: impl FnOnce() + Send + 'static) -> bool {
    let (done, ended) = channel();
    spawn(move || {
        work();
        let _ = done.send(());
    });
    ended.recv_timeout(time).is_ok()
}

#[test]
fn endpoints_come_and_go_while_the_link_is_full() {
    let net = Net::new();
    let proxy = Proxy::start(net.port());
    let here = open_with(net.settings_by(proxy.port(), "client"));
    let there = net.open_as("client");
    let talker = here.create_node("talker").unwrap();
    let all = || "flood".qos(QosProfile::default().keep_all());
    let publisher: Publisher<Text> = talker.create_publisher(all()).unwrap();
    let listener = there.create_node("listener").unwrap();
    let subscription: Subscription<Text> = listener.create_polled_subscription("flood").unwrap();
    assert!(publisher.wait_for_matched(1, SOON) && subscription.wait_for_matched(1, SOON));
    proxy.freeze(true);
    let flood = Flood::start(publisher);
    flood.wait_until_blocked();
    let context = here.clone();
    let is_free = ends_within(SOON / 2, move || {
        let node = context.create_node("late").unwrap();
        // Zenoh queues some hundred declarations before it blocks.
        for number in 0..1_000 {
            let name = format!("short_{number}");
            let short: Publisher<Text> = node.create_publisher(name.as_str()).unwrap();
            drop(short);
        }
        let publisher: Publisher<Text> = node.create_publisher("near").unwrap();
        let near: Subscription<Text> = node.create_polled_subscription("near").unwrap();
        publisher.publish(&text("near")).unwrap();
        assert_eq!(next(&near), "near");
    });
    assert!(is_free, "a declaration blocks the program");
    // Endpoints declared meanwhile are announced as soon as the link takes them.
    let node = here.create_node("stays").unwrap();
    let _stays: Publisher<Text> = node.create_publisher("stays").unwrap();
    proxy.freeze(false);
    flood.stop();
    let names = |name: &str| there.graph().publishers(name).len();
    until(&there, || names("/stays") == 1 && names("/short_999") == 0);
}

#[test]
fn a_context_closes_while_the_link_is_full() {
    let net = Net::new();
    let proxy = Proxy::start(net.port());
    let here = open_with(net.settings_by(proxy.port(), "client"));
    let there = net.open_as("client");
    let talker = here.create_node("talker").unwrap();
    let publisher: Publisher<Text> = talker.create_publisher("flood").unwrap();
    let listener = there.create_node("listener").unwrap();
    let _heard: Subscription<Text> = listener.create_polled_subscription("flood").unwrap();
    assert!(publisher.wait_for_matched(1, SOON));
    proxy.freeze(true);
    // More than the sockets take. What Zenoh cannot queue is dropped after 1 ms.
    let message = text("x".repeat(60_000));
    for _ in 0..500 {
        publisher.publish(&message).unwrap();
    }
    let node = here.create_node("late").unwrap();
    let late: Publisher<Text> = node.create_publisher("late").unwrap();
    let closes = ends_within(SOON, move || drop((late, node, publisher, talker, here)));
    assert!(closes, "a context that closes waits for the link");
}
