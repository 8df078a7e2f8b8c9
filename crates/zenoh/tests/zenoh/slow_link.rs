//! A link that is full: whatever does not need it goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{sleep, spawn};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Net, SOON, next, open_with, text, until};
use crate::proxy::Proxy;

/// A publisher that publishes until it is stopped, and blocks when the link is full.
struct Flood {
    sent: Arc<AtomicUsize>,
    stops: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

impl Flood {
    fn start(publisher: Publisher<Text>) -> Self {
        let (sent, stops) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (counter, stop) = (sent.clone(), stops.clone());
        let thread = spawn(move || {
            let message = text("x".repeat(100_000));
            while !stop.load(Ordering::Relaxed) {
                publisher.publish(&message).unwrap();
                counter.fetch_add(1, Ordering::Relaxed);
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
        for _ in 0..100 {
            let before = self.sent.load(Ordering::Relaxed);
            sleep(Duration::from_millis(500));
            if self.sent.load(Ordering::Relaxed) == before {
                return;
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
        let short: Publisher<Text> = node.create_publisher("short").unwrap();
        drop(short);
        let publisher: Publisher<Text> = node.create_publisher("near").unwrap();
        let near: Subscription<Text> = node.create_polled_subscription("near").unwrap();
        publisher.publish(&text("near")).unwrap();
        assert_eq!(next(&near), "near");
    });
    assert!(is_free, "a declaration blocks the program");
    // What was declared meanwhile is announced as soon as the link takes it.
    let node = here.create_node("stays").unwrap();
    let _stays: Publisher<Text> = node.create_publisher("stays").unwrap();
    proxy.freeze(false);
    flood.stop();
    let names = |name: &str| there.graph().publishers(name).len();
    until(&there, || names("/stays") == 1 && names("/short") == 0);
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
