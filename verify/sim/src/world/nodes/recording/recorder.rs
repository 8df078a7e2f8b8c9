//! The recorder's process: one thread that receives, writes and checks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fastrand::Rng;
use pteros::executors::SingleThreadedExecutor;
use pteros_bag::accounting::TopicAccount;
use pteros_bag::{
    BagError, BagOptions, Recorder, RecorderOptions, RecordingSummary, TopicFilter, WriterThread,
};

use super::accounts::{FlushRule, differences_at_the_end, differences_now};
use super::bag::{CutPoint, differences_of_bag};
use super::disk::{DISK_ERROR, Disk, Trouble};
use super::publishers::{PROCESSES, Progress};
use super::setup::{
    CACHE_BYTES, CHUNK_BYTES, LATE_MAX, STALL_MAX, TOPICS, qos, random_millis, topic_name,
};
use crate::simulation::threads::{SimThread, origin};
use crate::world::nodes::world::{Caller, NodeWorld, Process, SERVER};

/// Messages that wait for the recorder's executor.
const QUEUE_DEPTH: usize = 20;

/// The choices of a seed about the recorder.
#[derive(Clone, Copy, Debug)]
struct Plan {
    trouble: Trouble,
    /// How late it joins.
    delay: Duration,
    is_snapshot: bool,
    /// Whether the disk is slow after healing, too.
    is_slow_to_the_end: bool,
    split_bytes: Option<u64>,
    split_duration: Option<Duration>,
}

impl Plan {
    fn random(random: &mut Rng) -> Self {
        let is_late = random.bool();
        let is_snapshot = random.u32(0..8) == 0;
        // A snapshot's file may begin with messages that are in no other file.
        let splits = if is_snapshot { 2 } else { random.u32(0..4) };
        Self {
            trouble: Trouble::random(random),
            delay: random_millis(
                random,
                0..1 + u64::from(is_late) * LATE_MAX.as_millis() as u64,
            ),
            is_snapshot,
            is_slow_to_the_end: random.u32(0..4) == 0,
            split_bytes: (splits == 0).then(|| random.u64(3_000..20_000)),
            split_duration: (splits == 1).then(|| random_millis(random, 500..3_000)),
        }
    }

    fn options(&self, disk: &Disk) -> RecorderOptions {
        RecorderOptions {
            filter: TopicFilter {
                topics: (0..TOPICS).map(topic_name).collect(),
                ..TopicFilter::default()
            },
            bag: BagOptions {
                chunk_bytes: CHUNK_BYTES,
                split_bytes: self.split_bytes,
                split_duration: self.split_duration,
                store: Arc::new(disk.clone()),
                ..BagOptions::default()
            },
            cache_bytes: CACHE_BYTES,
            is_snapshot: self.is_snapshot,
            qos_overrides: (0..TOPICS)
                .map(|topic| (topic_name(topic), qos(topic).keep_last(QUEUE_DEPTH)))
                .collect(),
            writer_thread: WriterThread::Caller,
            ..RecorderOptions::default()
        }
    }
}

/// Records until all has been published, and checks.
pub fn start(world: &NodeWorld, folder: &Path, progress: &Arc<Progress>) -> SimThread {
    let process = world.process(SERVER);
    let mut random = Rng::with_seed(world.seed());
    let plan = Plan::random(&mut random);
    let (folder, progress) = (folder.to_owned(), progress.clone());
    let caller = world.caller(SERVER);
    world.sim.spawn(Box::new(move || {
        caller.sim.trace_line(format_args!("recorder: {plan:?}"));
        caller.sim.advance(plan.delay);
        let disk = Disk::new(plan.trouble);
        let bag = folder.join("bag");
        let node = process.context.create_node("recorder").expect("a node");
        let recorder = Recorder::start(&node, &bag, plan.options(&disk)).expect("a new folder");
        let executor = SingleThreadedExecutor::new(&process.context);
        executor.add_node(&node).expect("a node of this context");
        let mut recording = Recording {
            caller,
            plan,
            executor,
            recorder,
            origin: origin(),
            random,
            is_paused: false,
            disk,
            flush: FlushRule::default(),
            before: BTreeMap::new(),
            cuts: Vec::new(),
            progress,
        };
        while recording.progress.done.load(Ordering::Relaxed) < PROCESSES {
            recording.step();
        }
        recording.end(&folder, &bag);
        drop::<Process>(process);
    }))
}

struct Recording {
    caller: Caller,
    plan: Plan,
    executor: SingleThreadedExecutor,
    recorder: Recorder,
    origin: Instant,
    random: Rng,
    is_paused: bool,
    disk: Disk,
    flush: FlushRule,
    /// The accounts a step ago.
    before: BTreeMap<String, TopicAccount>,
    cuts: Vec<CutPoint>,
    progress: Arc<Progress>,
}

impl Recording {
    /// Receives for a while, and writes, stalls, pauses, splits or takes a snapshot.
    fn step(&mut self) {
        let has_faults = self.caller.faults_active();
        self.recorder.poll(self.origin + self.caller.sim.now());
        match self.random.u32(0..20) {
            // The executor gets no CPU.
            0 if has_faults => {
                let span = random_millis(&mut self.random, 10..STALL_MAX.as_millis() as u64);
                self.caller.sim.advance(span);
            }
            1 if has_faults => {
                self.is_paused = !self.is_paused;
                self.recorder.set_paused(self.is_paused);
            }
            2 if self.random.u32(0..5) == 0 => {
                if self.plan.is_snapshot {
                    self.recorder.snapshot();
                } else {
                    self.recorder.split();
                }
            }
            // The disk is slower than the publishers.
            3..11 => {
                self.write_next();
            }
            _ => {}
        }
        if !has_faults {
            self.is_paused = false;
            self.recorder.set_paused(false);
        }
        if !has_faults && !self.plan.is_slow_to_the_end {
            while self.write_next() {}
            self.check_flush();
        }
        let span = random_millis(&mut self.random, 1..25);
        self.executor.spin_until(|| false, span);
        self.check();
    }

    /// Writes what is next, and notes where the files end then.
    fn write_next(&mut self) -> bool {
        let is_there = self.recorder.write_next();
        if is_there {
            let cut = CutPoint::new(&self.disk, &self.recorder.accounts());
            if self.cuts.last().is_none_or(|last| !last.is_same(&cut)) {
                self.cuts.push(cut);
            }
        }
        is_there
    }

    fn report(&self, found: impl IntoIterator<Item = String>) {
        for what in found {
            self.caller.report.violation(format!("I25 {what}"));
        }
    }

    fn check(&mut self) {
        let accounts = self.recorder.accounts();
        let published = self.progress.published();
        self.report(differences_now(
            &self.before,
            &accounts,
            &published,
            self.plan.is_snapshot,
        ));
        self.before = accounts.clone();
        self.progress.set_accounts(accounts);
    }

    /// All that waited is written.
    fn check_flush(&mut self) {
        if self.plan.is_snapshot || self.recorder.problem().is_some() {
            return;
        }
        let is_synced = !matches!(self.plan.trouble, Trouble::Sync(_));
        let now = self.caller.sim.now();
        let accounts = self.recorder.accounts();
        let found = self
            .flush
            .check(now, &accounts, &self.disk.files(), is_synced);
        self.report(found);
    }

    fn end(mut self, folder: &Path, bag: &Path) {
        let published = self.progress.published();
        let recorder = self.recorder;
        let accounts_before = recorder.accounts();
        let finished = recorder.finish();
        let has_struck = self.disk.has_struck();
        let mut found = Vec::new();
        found.extend(problem_of(&finished, has_struck));
        let accounts = match &finished {
            Ok(summary) => {
                found.extend(differences_at_the_end(&summary.accounts, &published));
                &summary.accounts
            }
            // A full disk has no room for the summary either.
            Err(_) => &accounts_before,
        };
        let is_whole = finished.as_ref().ok().filter(|_| !has_struck);
        found.extend(differences_of_bag(bag, accounts, is_whole, &published));
        let torn: PathBuf = folder.join("torn");
        for _ in 0..3 {
            found.extend(CutPoint::check_one(
                &self.cuts,
                bag,
                &torn,
                &mut self.random,
            ));
        }
        for what in found {
            self.caller.report.violation(format!("I25 {what}"));
        }
    }
}

/// A problem is reported exactly if the disk had one.
fn problem_of(finished: &Result<RecordingSummary, BagError>, has_struck: bool) -> Option<String> {
    let problem = match finished {
        Ok(summary) => summary.problem.clone(),
        Err(error) => Some(error.to_string()),
    };
    let is_of_disk = problem
        .as_ref()
        .is_some_and(|text| text.contains(DISK_ERROR));
    let is_right = if has_struck {
        is_of_disk
    } else {
        problem.is_none()
    };
    (!is_right).then(|| format!("the bag's end: {problem:?}, disk error: {has_struck}"))
}
