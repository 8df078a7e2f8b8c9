//! Many threads do everything at once, in an order that a seed decides; nobody
//! stands still for ever. A watch thread tells which ones do.
#![allow(
    clippy::disallowed_methods,
    reason = "what is tested is real threads in real time"
)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::LivelinessPolicy;
use pteros::{PublisherOptions, SubscriptionOptions};

const THREADS: u64 = 5;
const STEPS: u64 = 1000;
const PATIENCE: Duration = Duration::from_secs(60);

/// A small generator (xorshift), so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

fn some_qos(dice: &mut Dice) -> QosProfile {
    let mut qos = match dice.roll(4) {
        0 => QosProfile::default().keep_last(2),
        1 => QosProfile::sensor_data(),
        2 => QosProfile::default().transient_local(),
        _ => QosProfile::default().keep_all(),
    };
    qos.resource_limits.max_samples = Some(20);
    qos.max_blocking_time = Some(Duration::from_millis(2));
    if dice.roll(4) == 0 {
        qos.deadline = Some(Duration::from_millis(5));
    }
    if dice.roll(4) == 0 {
        qos.lifespan = Some(Duration::from_millis(5));
    }
    if dice.roll(4) == 0 {
        qos.liveliness = LivelinessPolicy::ManualByTopic;
        qos.liveliness_lease = Some(Duration::from_millis(10));
    }
    qos
}

#[derive(Default)]
struct Pool {
    publishers: Mutex<Vec<Publisher<Text>>>,
    subscriptions: Mutex<Vec<Subscription<Text>>>,
}

fn any<T: Clone>(list: &Mutex<Vec<T>>, dice: &mut Dice) -> Option<T> {
    let list = list.lock().unwrap();
    let at = dice.roll(list.len().max(1) as u64) as usize;
    list.get(at).cloned()
}

/// Adds one; the oldest is dropped outside of the lock when there are many.
fn add<T>(list: &Mutex<Vec<T>>, one: T) {
    let mut held = list.lock().unwrap();
    held.push(one);
    let old = (held.len() > 12).then(|| held.remove(0));
    drop(held);
    drop(old);
}

fn step(nodes: &[Node], pool: &Pool, dice: &mut Dice) {
    let node = &nodes[dice.roll(nodes.len() as u64) as usize];
    let topic = ["a", "b"][dice.roll(2) as usize];
    let text = Text {
        data: "x".repeat(dice.roll(3) as usize * 40_000),
    };
    let moment = Duration::from_micros(dice.roll(2_000));
    match dice.roll(12) {
        0 => {
            let options = PublisherOptions::new(some_qos(dice)).on_event(|_| {});
            let made = node.create_publisher_with(topic, options);
            add(&pool.publishers, made.unwrap());
        }
        1 => {
            let answer = any(&pool.publishers, dice);
            let options = SubscriptionOptions::new(some_qos(dice))
                .on_event(|_| {})
                .callback(move |sample: Sample<Text>| {
                    if let Some(answer) = answer.as_ref().filter(|_| sample.data.is_empty()) {
                        let _ = answer.publish_owned(Text { data: "a".into() });
                    }
                });
            let made = node.create_subscription_with(topic, options);
            add(&pool.subscriptions, made.unwrap());
        }
        2 => {
            let made = node.create_polled_subscription(topic, some_qos(dice));
            add(&pool.subscriptions, made.unwrap());
        }
        3 => drop(node.context().graph().why("/a")),
        4 => {
            let name = format!("short_{}", dice.roll(3));
            let short = node.context().node(&name).unwrap();
            let _timer = short.create_timer(Duration::from_millis(1), || {});
            short.spin_once(moment);
        }
        5 | 6 => drop(node.spin_once(moment)),
        7 => {
            if let Some(subscription) = any(&pool.subscriptions, dice) {
                subscription.take_timeout(moment);
            }
        }
        8 => {
            if let Some(publisher) = any(&pool.publishers, dice) {
                publisher.assert_liveliness();
                publisher.wait_for_all_acked(moment);
            }
        }
        _ => {
            if let Some(publisher) = any(&pool.publishers, dice) {
                // Full and timed out is an answer too.
                let _ = publisher.publish(&text);
            }
        }
    }
}

#[test]
fn whatever_many_threads_do_at_once_ends() {
    let open = || Context::with_options(ContextOptions::local(205)).unwrap();
    let (a, b) = (open(), open());
    let nodes = [
        a.node("a").unwrap(),
        a.node("a2").unwrap(),
        b.node("b").unwrap(),
    ];
    let pool = Pool::default();
    let at: [AtomicU64; THREADS as usize] = Default::default();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (nodes, pool, at, tell) = (&nodes, &pool, &at, tell.clone());
            scope.spawn(move || {
                let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (thread + 1));
                for n in 0..STEPS {
                    at[thread as usize].store(n, Ordering::Relaxed);
                    step(nodes, pool, &mut dice);
                }
                tell.send(()).unwrap();
            });
        }
        for _ in 0..THREADS {
            if told.recv_timeout(PATIENCE).is_err() {
                eprintln!("standing still, at steps {at:?}");
                std::process::abort();
            }
        }
    });
    drop(pool);
    drop(nodes);
    let empty = || a.graph().topics().is_empty() && b.graph().topics().is_empty();
    assert!(
        a.graph().wait_until(PATIENCE, empty),
        "{:?}",
        a.graph().topics()
    );
}
