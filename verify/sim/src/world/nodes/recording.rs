//! Workload "recordings": a recorder under link faults, with a small buffer and queue, a
//! disk that is slow and perhaps full, pauses and splits.
//!
//! I25, accounting, per topic: what was published from the first message that arrived to
//! the last equals what was received, arrived in a pause, or was lost on the wire or in
//! the queue. What was received equals what was written, or was lost in the buffer or in
//! the writer. The bag has each written message once and in order, and no other.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;
use pteros::executors::SingleThreadedExecutor;
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::{NamedQosExt, QosProfile};
use pteros_bag::accounting::TopicAccount;
use pteros_bag::{
    BagFile, BagOptions, BagReader, FileStore, FileSystem, Recorder, RecorderOptions,
    RecordingSummary, TopicFilter, WriterThread,
};

use super::world::{NodeWorld, Process, REPAIR_MAX, SERVER};
use crate::simulation::Simulation;
use crate::simulation::threads::{SimThread, origin};

/// Topics, each with a publisher in a process of its own.
const TOPICS: usize = 3;
/// So small that a slow disk fills it.
const CACHE_BYTES: usize = 6_000;
const CHUNK_BYTES: usize = 600;
/// Messages that wait for the recorder's executor.
const QUEUE_DEPTH: usize = 20;
/// Bytes of a payload, at most; eight are its number.
const PAYLOAD_BYTES_MAX: usize = 120;
/// The longest silence of a recorder's process.
const STALL_MAX: Duration = Duration::from_millis(400);
/// The disk takes this much before it is full, in seeds where it becomes full.
const DISK_BYTES: std::ops::Range<u64> = 5_000..60_000;

/// What the threads tell each other.
#[derive(Default)]
struct Progress {
    /// Published so far, by topic.
    published: [AtomicU64; TOPICS],
    /// The last sequence number that arrived, by topic.
    arrived: [AtomicI64; TOPICS],
    /// Topics that the recorder has subscribed to.
    subscribed: AtomicUsize,
    /// Publishers that have published all.
    done: AtomicUsize,
}

/// A disk with room for so many bytes.
#[derive(Debug)]
struct Disk {
    left: Arc<AtomicU64>,
}

#[derive(Debug)]
struct DiskFile {
    file: Arc<dyn BagFile>,
    left: Arc<AtomicU64>,
}

impl FileStore for Disk {
    fn create(&self, path: &std::path::Path) -> io::Result<Arc<dyn BagFile>> {
        Ok(Arc::new(DiskFile {
            file: FileSystem.create(path)?,
            left: self.left.clone(),
        }))
    }
}

impl BagFile for DiskFile {
    /// A full disk takes the first part, as a real one.
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let left = self.left.load(Ordering::Relaxed);
        let fits = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        self.left.store(left - fits as u64, Ordering::Relaxed);
        self.file.append(bytes.get(..fits).unwrap_or_default())?;
        if fits < bytes.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pteros-sim-bag-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        // Of a process of the same number that was killed.
        let _ = std::fs::remove_dir_all(&folder);
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(super) fn run(world: &NodeWorld) {
    let folder = Folder::new();
    let progress = Arc::new(Progress::default());
    let recorder = recorder(world, &folder, &progress);
    let publishers: Vec<_> = (0..TOPICS)
        .map(|topic| publisher(world, topic, progress.clone()))
        .collect();
    let until = world.sim.now() + REPAIR_MAX;
    while progress.subscribed.load(Ordering::Relaxed) < TOPICS && world.sim.now() < until {
        world.sim.advance(Duration::from_millis(50));
    }
    world.run_fault_phase();
    drop(publishers);
    drop(recorder);
}

fn topic_name(topic: usize) -> String {
    format!("/t{topic}")
}

/// Reliable with room for an outage, best effort, and reliable with little room.
fn qos(topic: usize) -> QosProfile {
    match topic {
        0 => QosProfile::default().keep_last(2_000),
        1 => QosProfile::default().keep_last(5).best_effort(),
        _ => QosProfile::default().keep_last(5),
    }
}

/// Publishes until the links are healed, and then until the last message has arrived.
fn publisher(world: &NodeWorld, topic: usize, progress: Arc<Progress>) -> SimThread {
    world.client(
        topic + 1,
        "camera",
        move |process, caller, node, mut random| {
            let name = topic_name(topic);
            let publisher = node.create_publisher::<UInt8MultiArray>(name.as_str().qos(qos(topic)));
            let publisher = publisher.expect("a publisher");
            let published = &progress.published[topic];
            let publish = |random: &mut Rng| {
                let number = published.fetch_add(1, Ordering::Relaxed);
                let size = random.usize(8..=PAYLOAD_BYTES_MAX);
                let mut data = number.to_le_bytes().to_vec();
                data.resize(size, 0);
                let message = UInt8MultiArray {
                    data,
                    ..UInt8MultiArray::default()
                };
                if let Err(error) = publisher.publish(&message) {
                    caller.report.violation(format!("I25 {name}: {error}"));
                }
            };
            let is_matched = publisher.wait_for_matched(1, REPAIR_MAX);
            caller
                .report
                .expect(is_matched, || format!("I6 {name} is not matched"));
            while caller.faults_active() {
                publish(&mut random);
                caller.sim.advance(Duration::from_millis(random.u64(1..20)));
            }
            caller.sim.advance(REPAIR_MAX);
            // The last messages of an outage of a best-effort topic are nobody's loss until
            // another one shows it.
            let until = caller.sim.now() + REPAIR_MAX;
            let has_arrived = || {
                let last = published.load(Ordering::Relaxed);
                let arrived = progress.arrived[topic].load(Ordering::Relaxed);
                u64::try_from(arrived).is_ok_and(|arrived| arrived == last)
            };
            let mut is_heard = false;
            while !is_heard && caller.sim.now() < until {
                publish(&mut random);
                caller.sim.advance(2 * STALL_MAX);
                is_heard = has_arrived();
            }
            caller.report.expect(is_heard, || {
                format!("I25 {name}: no message arrives after healing")
            });
            if is_heard {
                caller.call("publish", REPAIR_MAX, || {});
                caller.mark_done();
            }
            progress.done.fetch_add(1, Ordering::Relaxed);
            drop(process);
        },
    )
}

/// The recorder's process: one thread that receives, writes and checks.
fn recorder(world: &NodeWorld, folder: &Folder, progress: &Arc<Progress>) -> SimThread {
    let process = world.process(SERVER);
    let mut random = Rng::with_seed(world.seed());
    let left = match random.u32(0..3) {
        0 => random.u64(DISK_BYTES),
        _ => u64::MAX,
    };
    let (folder, progress) = (folder.0.clone(), progress.clone());
    let caller = world.caller(SERVER);
    world.sim.spawn(Box::new(move || {
        let options = RecorderOptions {
            filter: TopicFilter {
                topics: (0..TOPICS).map(topic_name).collect(),
                ..TopicFilter::default()
            },
            bag: BagOptions {
                chunk_bytes: CHUNK_BYTES,
                store: Arc::new(Disk {
                    left: Arc::new(AtomicU64::new(left)),
                }),
                ..BagOptions::default()
            },
            cache_bytes: CACHE_BYTES,
            qos_overrides: (0..TOPICS)
                .map(|topic| (topic_name(topic), qos(topic).keep_last(QUEUE_DEPTH)))
                .collect(),
            writer_thread: WriterThread::Caller,
            ..RecorderOptions::default()
        };
        let node = process.context.create_node("recorder").expect("a node");
        let recorder = Recorder::start(&node, &folder, options).expect("a new folder");
        let executor = SingleThreadedExecutor::new(&process.context);
        executor.add_node(&node).expect("a node of this context");
        let mut recording = Recording {
            sim: caller.sim.clone(),
            process,
            executor,
            recorder,
            origin: origin(),
            random,
            was_paused: AtomicBool::new(false),
            progress,
        };
        while recording.progress.done.load(Ordering::Relaxed) < TOPICS {
            recording.step(caller.faults_active());
        }
        let published = recording.progress.clone();
        let problem = recording.recorder.problem();
        match recording.recorder.finish() {
            Ok(summary) => {
                for what in differences(&summary, &published, &folder) {
                    caller.report.violation(format!("I25 {what}"));
                }
            }
            // A full disk has no room for the summary either.
            Err(error) if left < u64::MAX => {
                let is_full = error.to_string().contains("storage") || problem.is_some();
                caller
                    .report
                    .expect(is_full, || format!("I25 the bag's end: {error}"));
            }
            Err(error) => caller
                .report
                .violation(format!("I25 the bag's end: {error}")),
        }
        drop(recording.process);
    }))
}

struct Recording {
    sim: Arc<Simulation>,
    process: Process,
    executor: SingleThreadedExecutor,
    recorder: Recorder,
    origin: Instant,
    random: Rng,
    was_paused: AtomicBool,
    progress: Arc<Progress>,
}

impl Recording {
    /// Receives for a while, and writes, stalls, pauses or splits.
    fn step(&mut self, has_faults: bool) {
        let now = self.origin + self.sim.now();
        self.recorder.poll(now);
        let subscribed = self.recorder.topics().count();
        self.progress
            .subscribed
            .store(subscribed, Ordering::Relaxed);
        match self.random.u32(0..20) {
            // The executor gets no CPU.
            0 if has_faults => {
                let span = self.random.u64(10..STALL_MAX.as_millis() as u64);
                self.sim.advance(Duration::from_millis(span));
            }
            1 if has_faults => {
                let is_paused = !self.was_paused.fetch_xor(true, Ordering::Relaxed);
                self.recorder.set_paused(is_paused);
            }
            2 if self.random.u32(0..5) == 0 => self.recorder.split(),
            // The disk is slower than the publishers.
            3..11 => {
                self.recorder.write_next();
            }
            _ => {}
        }
        if !has_faults {
            self.was_paused.store(false, Ordering::Relaxed);
            self.recorder.set_paused(false);
        }
        let span = Duration::from_millis(self.random.u64(1..25));
        self.executor.spin_until(|| false, span);
        for (name, account) in self.recorder.accounts() {
            let last = account.publishers.values().map(|one| one.last).max();
            let topic = (0..TOPICS).find(|topic| topic_name(*topic) == name);
            if let (Some(topic), Some(last)) = (topic, last) {
                self.progress.arrived[topic].store(last, Ordering::Relaxed);
            }
        }
    }
}

/// What does not add up.
fn differences(
    summary: &RecordingSummary,
    progress: &Progress,
    folder: &std::path::Path,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_bag = numbers_in_bag(folder, &mut found);
    for topic in 0..TOPICS {
        let name = topic_name(topic);
        let Some(account) = summary.accounts.get(&name) else {
            found.push(format!("{name} has no account"));
            continue;
        };
        let published = progress.published[topic].load(Ordering::Relaxed);
        let first = account.publishers.values().map(|one| one.first).min();
        let before = u64::try_from(first.unwrap_or(1) - 1).unwrap_or(0);
        let arrived = account.received + account.paused + account.lost_wire + account.lost_queue;
        // Of those before the first that arrived, only what the queue replaced is known.
        if !(published.saturating_sub(before)..=published).contains(&arrived) {
            found.push(format!(
                "{name}: {published} published, {before} before the first, and {account}"
            ));
        }
        let kept = account.written + account.lost_buffer + account.lost_writer;
        if account.received != kept {
            found.push(format!("{name}: {account}"));
        }
        let numbers = in_bag.remove(&name).unwrap_or_default();
        found.extend(differences_of_bag(&name, account, &numbers, published));
    }
    found
}

/// What the bag has of a topic, against its account.
fn differences_of_bag(
    name: &str,
    account: &TopicAccount,
    numbers: &[u64],
    published: u64,
) -> Option<String> {
    let count = numbers.len() as u64;
    // The disk may have taken a chunk and refused its index.
    let is_counted = (account.written..=account.written + account.lost_writer).contains(&count);
    let is_in_order = numbers.windows(2).all(|two| two[0] < two[1]);
    let is_known = numbers.last().is_none_or(|last| *last < published);
    (!(is_counted && is_in_order && is_known)).then(|| {
        format!("{name}: the bag has {count} messages, in order: {is_in_order}, and {account}")
    })
}

/// The numbers of the messages in the bag, by topic, in their order.
fn numbers_in_bag(folder: &std::path::Path, found: &mut Vec<String>) -> BTreeMap<String, Vec<u64>> {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut bag = match BagReader::open(folder) {
        Ok(bag) => bag,
        Err(error) => {
            found.push(format!("the bag is not read: {error}"));
            return numbers;
        }
    };
    let names: Vec<String> = bag
        .topics()
        .iter()
        .map(|one| one.topic.name.clone())
        .collect();
    for message in bag.messages(Default::default()) {
        // Encapsulation, two empty counts of the layout, the count of the data.
        let number = message
            .payload
            .get(16..24)
            .and_then(|bytes| bytes.first_chunk());
        let name = names.get(message.topic);
        if let (Some(number), Some(name)) = (number, name) {
            numbers
                .entry(name.clone())
                .or_default()
                .push(u64::from_le_bytes(*number));
        }
    }
    numbers
}
