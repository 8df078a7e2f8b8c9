//! The publishers of a recording, and what they and the recorder tell each other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::{NamedQosExt, Node, Publisher};
use pteros_bag::accounting::TopicAccount;

use super::setup::{
    LATCHED, LATE_MAX, RESTARTED, STALL_MAX, STEADY, qos, random_millis, topic_name,
};
use crate::simulation::threads::SimThread;
use crate::world::nodes::world::{Caller, NodeWorld, Process, REPAIR_MAX};

/// The process whose publishers restart.
const RESTARTS: usize = 4;
/// Its lease: shorter than a run, so that the recorder misses killed publishers.
const LEASE: Duration = Duration::from_secs(2);
/// Between two messages before the first has arrived. The longest stall of the recorder is
/// then too short to fill its queue.
const SLOW_PERIOD: Duration = Duration::from_millis(40);
/// Bytes of the message's number and its source.
const HEAD_BYTES: usize = 16;
/// Bytes of data, at most.
const DATA_BYTES_MAX: usize = 120;

/// One publisher's messages.
#[derive(Clone, Debug)]
pub struct Published {
    pub topic: usize,
    /// As in [`TopicAccount::publishers`].
    pub gid: String,
    /// Messages so far.
    pub count: u64,
}

/// The messages between the threads.
#[derive(Default)]
pub struct Progress {
    /// By source, the number in each message.
    published: Mutex<Vec<Published>>,
    accounts: Mutex<BTreeMap<String, TopicAccount>>,
    /// Steady publishers whose first message has arrived.
    pub heard: AtomicUsize,
    /// Processes that have published all.
    pub done: AtomicUsize,
}

impl Progress {
    /// Every publisher so far, by source.
    pub fn published(&self) -> Vec<Published> {
        self.published.lock().clone()
    }

    /// The recorder's accounts at present.
    pub fn set_accounts(&self, accounts: BTreeMap<String, TopicAccount>) {
        *self.accounts.lock() = accounts;
    }

    fn last_of(&self, topic: usize, gid: &str) -> Option<u64> {
        let accounts = self.accounts.lock();
        let account = accounts.get(&topic_name(topic))?;
        u64::try_from(account.publishers.get(gid)?.last).ok()
    }
}

/// The data of a message: its number, its source, and bytes that follow from both.
fn data_of(source: u64, number: u64, bytes: usize) -> Vec<u8> {
    let mut data = number.to_le_bytes().to_vec();
    data.extend(source.to_le_bytes());
    let fill = |at: u64| (number.wrapping_mul(31) + source.wrapping_mul(17) + at) as u8;
    data.extend((HEAD_BYTES as u64..bytes as u64).map(fill));
    data
}

/// Source and number of a message's data; `None` if it was never published.
pub fn read_data(data: &[u8]) -> Option<(u64, u64)> {
    let number = u64::from_le_bytes(*data.first_chunk()?);
    let source = u64::from_le_bytes(*data.get(8..)?.first_chunk()?);
    (data == data_of(source, number, data.len())).then_some((source, number))
}

/// One publisher.
struct Source {
    topic: usize,
    number: usize,
    gid: String,
    publisher: Publisher<UInt8MultiArray>,
    progress: Arc<Progress>,
    caller: Caller,
}

impl Source {
    fn new(node: &Node, topic: usize, progress: &Arc<Progress>, caller: &Caller) -> Self {
        let name = topic_name(topic);
        let publisher = node.create_publisher::<UInt8MultiArray>(name.as_str().qos(qos(topic)));
        let publisher = publisher.expect("a publisher");
        let gid = u128::from_be_bytes(publisher.gid().to_bytes());
        let gid = format!("{gid:032x}");
        let mut published = progress.published.lock();
        published.push(Published {
            topic,
            gid: gid.clone(),
            count: 0,
        });
        Self {
            topic,
            number: published.len() - 1,
            gid,
            publisher,
            progress: progress.clone(),
            caller: caller.clone(),
        }
    }

    fn publish(&self, random: &mut Rng) {
        let number = {
            let mut published = self.progress.published.lock();
            let count = &mut published[self.number].count;
            *count += 1;
            *count - 1
        };
        let bytes = random.usize(HEAD_BYTES..=DATA_BYTES_MAX);
        let message = UInt8MultiArray {
            data: data_of(self.number as u64, number, bytes),
            ..UInt8MultiArray::default()
        };
        if let Err(error) = self.publisher.publish(&message) {
            let name = topic_name(self.topic);
            self.caller.report.violation(format!("I25 {name}: {error}"));
        }
    }

    fn is_heard(&self) -> bool {
        self.progress.last_of(self.topic, &self.gid).is_some()
    }

    fn is_last_heard(&self) -> bool {
        let count = self.progress.published.lock()[self.number].count;
        self.progress.last_of(self.topic, &self.gid) == Some(count)
    }

    /// Publishes until the last message has arrived: the last ones of an outage of a
    /// best-effort topic are nobody's loss until another one shows it.
    fn end(self, random: &mut Rng) -> bool {
        let until = self.caller.sim.now() + REPAIR_MAX;
        let mut is_heard = false;
        while !is_heard && self.caller.sim.now() < until {
            self.publish(random);
            self.caller.sim.advance(2 * STALL_MAX);
            is_heard = self.is_last_heard();
        }
        let name = topic_name(self.topic);
        self.caller.report.expect(is_heard, || {
            format!("I25 {name}: no message arrives after healing")
        });
        is_heard
    }
}

/// Waits until the links are repaired, and then until the last messages have arrived.
fn end(sources: Vec<Source>, caller: &Caller, progress: &Progress, random: &mut Rng) {
    caller.sim.advance(REPAIR_MAX);
    let mut is_heard = true;
    for source in sources {
        is_heard &= source.end(random);
    }
    if is_heard {
        caller.call("publish", REPAIR_MAX, || {});
        caller.mark_done();
    }
    progress.done.fetch_add(1, Ordering::Relaxed);
}

/// Publishes on a topic of its own, slowly until a message has arrived and then until the
/// links are healed.
pub fn steady(world: &NodeWorld, topic: usize, progress: Arc<Progress>) -> SimThread {
    world.client(
        topic + 1,
        "camera",
        move |process, caller, node, mut random| {
            let source = Source::new(&node, topic, &progress, &caller);
            let until = caller.sim.now() + LATE_MAX + REPAIR_MAX;
            while !source.is_heard() && caller.sim.now() < until {
                source.publish(&mut random);
                caller.sim.advance(SLOW_PERIOD);
            }
            caller.report.expect(source.is_heard(), || {
                format!("I25 {}: no message arrives", topic_name(topic))
            });
            progress.heard.fetch_add(1, Ordering::Relaxed);
            while caller.faults_active() {
                source.publish(&mut random);
                caller.sim.advance(random_millis(&mut random, 1..20));
            }
            end(vec![source], &caller, &progress, &mut random);
            drop(process);
        },
    )
}

/// Publishes on two topics. Its process is killed or ends, or only its publishers end, and
/// it starts again, until the links are healed.
pub fn restarting(world: &NodeWorld, progress: Arc<Progress>) -> SimThread {
    let (caller, seed) = (world.caller(RESTARTS), world.seed());
    world.sim.spawn(Box::new(move || {
        let mut random = Rng::with_seed(seed);
        let mut running: Option<(Process, Node)> = None;
        loop {
            let pause = random_millis(&mut random, 0..2_000);
            caller.sim.advance(pause);
            let (process, node) = running.take().unwrap_or_else(|| {
                let process = caller.process(LEASE);
                let node = process.context.create_node("guest").expect("a node");
                (process, node)
            });
            let sources =
                [RESTARTED, LATCHED].map(|topic| Source::new(&node, topic, &progress, &caller));
            let ends = caller.sim.now() + random_millis(&mut random, 200..3_000);
            while caller.faults_active() && caller.sim.now() < ends {
                for source in &sources {
                    source.publish(&mut random);
                }
                caller.sim.advance(random_millis(&mut random, 1..20));
            }
            if !caller.faults_active() {
                end(sources.into(), &caller, &progress, &mut random);
                drop((node, process));
                return;
            }
            match random.u32(0..3) {
                0 => {
                    caller.sim.crash(RESTARTS);
                    drop((sources, node, process));
                }
                1 => drop((sources, node, process)),
                _ => {
                    drop(sources);
                    running = Some((process, node));
                }
            }
        }
    }))
}

/// The sources of a recording: one that restarts and steady ones.
pub const PROCESSES: usize = STEADY + 1;
