//! API stress: many threads call the API at random, in an order that a seed
//! decides, and none of them hangs. A watch thread reports those that do.
#![allow(clippy::disallowed_methods, reason = "tests real threads")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;
use pteros::{PublisherOptions, SubscriptionOptions};

const THREADS: u64 = 5;
const STEPS: u64 = 1000;
const TIMEOUT: Duration = Duration::from_secs(60);

/// A small generator (xorshift), so that a run can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn some_qos(random: &mut Random) -> QosProfile {
    let mut qos = match random.below(4) {
        0 => QosProfile::default().keep_last(2),
        1 => QosProfile::sensor_data(),
        2 => QosProfile::default().transient_local(),
        _ => QosProfile::default().keep_all(),
    };
    qos.resource_limits.max_samples = Some(20);
    qos.max_blocking_time = Some(Duration::from_millis(2));
    if random.below(4) == 0 {
        qos.deadline = Some(Duration::from_millis(5));
    }
    if random.below(4) == 0 {
        qos.lifespan = Some(Duration::from_millis(5));
    }
    if random.below(4) == 0 {
        qos.liveliness = LivelinessPolicy::ManualByTopic;
        qos.liveliness_lease = Some(Duration::from_millis(10));
    }
    qos
}

#[derive(Default)]
struct Endpoints {
    publishers: Mutex<Vec<Publisher<Text>>>,
    subscriptions: Mutex<Vec<Subscription<Text>>>,
}

fn any<T: Clone>(list: &Mutex<Vec<T>>, random: &mut Random) -> Option<T> {
    let list = list.lock().unwrap();
    let at = random.below(list.len().max(1) as u64) as usize;
    list.get(at).cloned()
}

/// Adds an endpoint. If there are many, the oldest is dropped outside of the lock.
fn add<T>(list: &Mutex<Vec<T>>, one: T) {
    let mut held = list.lock().unwrap();
    held.push(one);
    let old = (held.len() > 12).then(|| held.remove(0));
    drop(held);
    drop(old);
}

fn random_operation(nodes: &[Node], pool: &Endpoints, random: &mut Random) {
    let node = &nodes[random.below(nodes.len() as u64) as usize];
    let topic = ["a", "b"][random.below(2) as usize];
    let text = Text {
        data: "x".repeat(random.below(3) as usize * 40_000),
    };
    let moment = Duration::from_micros(random.below(2_000));
    match random.below(12) {
        0 => {
            let options = PublisherOptions::new(topic.qos(some_qos(random))).on_event(|_| {});
            let made = node.create_publisher(options);
            add(&pool.publishers, made.unwrap());
        }
        1 => {
            let answer = any(&pool.publishers, random);
            let options = SubscriptionOptions::new(topic.qos(some_qos(random))).on_event(|_| {});
            let made = node.create_subscription(options, move |sample: Sample<Text>| {
                if let Some(answer) = answer.as_ref().filter(|_| sample.data.is_empty()) {
                    let _ = answer.publish_owned(Text { data: "a".into() });
                }
            });
            add(&pool.subscriptions, made.unwrap());
        }
        2 => {
            let made = node.create_polled_subscription(topic.qos(some_qos(random)));
            add(&pool.subscriptions, made.unwrap());
        }
        3 => drop(node.context().graph().match_reports("/a")),
        4 => {
            let name = format!("short_{}", random.below(3));
            let short = node.context().create_node(&name).unwrap();
            let _timer = short.create_timer(Duration::from_millis(1), || {});
            short.spin_once(moment);
        }
        5 | 6 => drop(node.spin_once(moment)),
        7 => {
            if let Some(subscription) = any(&pool.subscriptions, random) {
                subscription.take_timeout(moment);
            }
        }
        8 => {
            if let Some(publisher) = any(&pool.publishers, random) {
                publisher.assert_liveliness();
                publisher.wait_for_all_acked(moment);
            }
        }
        _ => {
            if let Some(publisher) = any(&pool.publishers, random) {
                // A full history or a time-out is a valid result.
                let _ = publisher.publish(&text);
            }
        }
    }
}

#[test]
fn concurrent_random_api_calls_terminate() {
    let open = || Context::with_options(ContextOptions::local(205)).unwrap();
    let (a, b) = (open(), open());
    let nodes = [
        a.create_node("a").unwrap(),
        a.create_node("a2").unwrap(),
        b.create_node("b").unwrap(),
    ];
    let pool = Endpoints::default();
    let at: [AtomicU64; THREADS as usize] = Default::default();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (nodes, pool, at, sender) = (&nodes, &pool, &at, sender.clone());
            scope.spawn(move || {
                let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (thread + 1));
                for n in 0..STEPS {
                    at[thread as usize].store(n, Ordering::Relaxed);
                    random_operation(nodes, pool, &mut random);
                }
                sender.send(()).unwrap();
            });
        }
        for _ in 0..THREADS {
            if receiver.recv_timeout(TIMEOUT).is_err() {
                eprintln!("standing still, at steps {at:?}");
                std::process::abort();
            }
        }
    });
    drop(pool);
    drop(nodes);
    let empty = || a.graph().topics().is_empty() && b.graph().topics().is_empty();
    assert!(
        a.graph().wait_until(TIMEOUT, empty),
        "{:?}",
        a.graph().topics()
    );
}
