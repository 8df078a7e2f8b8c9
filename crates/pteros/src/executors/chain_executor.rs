//! Chain executor: single-threaded, priority-driven, chain-aware scheduling.
//!
//! A heap orders ready callbacks by chain priority and position. Each chain
//! instance is tracked from its release to the end of its last callback, which
//! gives the latencies of [`ChainReports`]. See `chain` for the rules (PiCAS, RTAS
//! 2021).

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pteros_runtime::Core;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::rtps::time::Instant;

use super::chain::{CHAINS_MAX, Chain, too_many};
use super::chain_report::ChainReports;
use super::executor_core::ExecutorCore;
use super::panic_policy::{PanicPayload, PanicPolicy};
use super::single_threaded::resume_panic;
use super::{ExecutorError, ExecutorHandle};
use crate::callback_groups::CallbackGroup;
use crate::context::Context;
use crate::node::Node;
use crate::waitable::{Arrivals, WaitableEntity};

/// Minimum interval between polls of the network while callbacks are ready. An
/// urgent message waits at most this much longer after short callbacks.
const POLL_PERIOD_NANOS: u64 = 20_000;

/// Single-threaded executor that runs the callback of the most urgent [`Chain`]
/// first. It re-evaluates what is ready after each callback, so an urgent chain
/// waits for at most one callback of other chains. Callbacks in no chain run last,
/// in the order in which they became ready.
///
/// It measures the latency of each chain ([`ChainExecutor::reports`]). To use
/// several processors, create one executor per chain and spin each on its own
/// thread, with [`ThreadSettings`](crate::thread::ThreadSettings) that match the chain's
/// priority. The executor is `Send`, not `Sync`.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::sensor_msgs::msg::{Image, LaserScan};
/// use pteros::interfaces::std_msgs::msg::Bool;
/// use pteros::prelude::*;
/// use pteros::executors::{Chain, ChainExecutor};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("guard")?;
/// let stop = node.create_publisher::<Bool>("stop".keep_last(1))?;
/// let scans = node.create_subscription("scan".keep_last(1), move |scan: Sample<LaserScan>| {
///     let data = scan.ranges.iter().any(|range| *range < 0.3);
///     let _ = stop.publish_owned(Bool { data });
/// })?;
/// let brake = node.create_subscription("stop".keep_last(1), |_: Sample<Bool>| ())?;
/// let images = node.create_subscription("image".keep_last(1), |_: Sample<Image>| ())?;
///
/// let executor = ChainExecutor::new(&context);
/// executor.add_node(&node)?;
/// let brake = Chain::new("brake", 10).then(&scans).then(&brake);
/// executor.add_chain(&brake.deadline(Duration::from_millis(5)))?;
/// executor.add_chain(&Chain::new("look", 1).then(&images))?;
/// executor.spin();
/// for report in executor.reports().all() {
///     println!("{report:?}");
/// }
/// # Ok(())
/// # }
/// ```
pub struct ChainExecutor {
    core: Arc<ExecutorCore>,
    schedule: RefCell<ChainSchedule>,
    ready: RefCell<ReadyHeap>,
    reports: ChainReports,
}

impl ChainExecutor {
    /// Creates an executor without nodes and chains.
    pub fn new(context: &Context) -> Self {
        Self::with_panic_policy(context, PanicPolicy::default())
    }

    /// Like [`Self::new`], with a policy for panics in callbacks.
    pub fn with_panic_policy(context: &Context, policy: PanicPolicy) -> Self {
        Self {
            core: ExecutorCore::new(context, policy),
            schedule: RefCell::default(),
            ready: RefCell::default(),
            reports: ChainReports::default(),
        }
    }

    /// Returns a handle for other threads and for callbacks.
    pub fn handle(&self) -> ExecutorHandle {
        ExecutorHandle {
            core: self.core.clone(),
        }
    }

    /// Adds a node; see [`ExecutorHandle::add_node`].
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.core.add_node(node)
    }

    /// Removes a node; see [`ExecutorHandle::remove_node`].
    pub fn remove_node(&self, node: &Node) -> bool {
        self.core.remove_node(node)
    }

    /// Adds a callback group; see [`ExecutorHandle::add_callback_group`].
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.core.add_group(group)
    }

    /// Adds a chain; at most 64. Its callbacks run here if their nodes or callback
    /// groups are added to this executor, before or after this call.
    ///
    /// # Errors
    /// See [`ExecutorError::InvalidChain`].
    pub fn add_chain(&self, chain: &Chain) -> Result<(), ExecutorError> {
        self.schedule.borrow_mut().add(chain)?;
        self.reports.add(chain);
        Ok(())
    }

    /// Returns the latency reports of the chains, readable from any thread.
    pub fn reports(&self) -> ChainReports {
        self.reports.clone()
    }

    // --- spinning ---

    /// Runs callbacks until the context shuts down or the executor is
    /// [cancelled](ExecutorHandle::cancel). Blocks.
    ///
    /// # Panics
    /// Resumes the panic of a callback under [`PanicPolicy::Process`]. The other
    /// spin methods do the same.
    pub fn spin(&self) {
        let _spin_guard = self.core.begin_spin();
        let ExecutorCore {
            context,
            executor_queue,
            ..
        } = &*self.core;
        let core = context.core();
        while !self.core.should_end() {
            if resume_panic(self.run_most_urgent(core.platform.now())) {
                continue;
            }
            // The task that interrupted the wait may already have left the queue.
            if self.core.should_end() {
                break;
            }
            core.driver()
                .drive_until_work(&executor_queue.ready, executor_queue.timers.next());
        }
        self.requeue();
    }

    /// Runs callbacks until `done` returns true, `timeout` has passed, the context
    /// shuts down or the executor is cancelled. Checks `done` after each callback
    /// and returns its last value. Blocks.
    pub fn spin_until(&self, mut done: impl FnMut() -> bool, timeout: Duration) -> bool {
        let _spin_guard = self.core.begin_spin();
        let ExecutorCore {
            context,
            executor_queue,
            ..
        } = &*self.core;
        let core = context.core();
        let until = core.platform.now().after(timeout.into());
        let mut is_done = done();
        while !is_done && !self.core.should_end() {
            let now = core.platform.now();
            if !resume_panic(self.run_most_urgent(now)) {
                if now >= until {
                    break;
                }
                core.driver().drive(
                    &executor_queue.ready,
                    until.min(executor_queue.timers.next()),
                );
            }
            is_done = done();
        }
        self.requeue();
        is_done
    }

    /// Runs the callbacks that are ready, including those that become ready from
    /// data already in the sockets and from each other. Runs at most 1000 and does
    /// not wait. Returns the number of callbacks run.
    pub fn spin_some(&self) -> usize {
        let core = self.core.context.core();
        let now = core.platform.now();
        core.driver().drive(&self.core.executor_queue.ready, now);
        let mut ran = 0;
        while ran < SPIN_SOME_MAX && resume_panic(self.run_most_urgent(now)) {
            ran += 1;
        }
        self.requeue();
        ran
    }

    /// Runs the most urgent ready callback. Returns false if none is ready.
    fn run_most_urgent(&self, now: Instant) -> Result<bool, PanicPayload> {
        let core = self.core.context.core();
        self.collect_ready(core, now);
        loop {
            let Some(item) = self.ready.borrow_mut().heap.pop() else {
                return Ok(false);
            };
            if let Some(task) = item.task.upgrade() {
                self.run(core, &task, item.at)?;
                return Ok(true);
            }
        }
    }

    /// Moves due timers and ready tasks into the heap.
    fn collect_ready(&self, core: &Arc<Core>, now: Instant) {
        let executor_queue = &self.core.executor_queue;
        let mut ready = self.ready.borrow_mut();
        let stale = now.as_nanos().saturating_sub(ready.polled_at.as_nanos());
        if !ready.heap.is_empty() && stale >= POLL_PERIOD_NANOS {
            core.driver().drive(&executor_queue.ready, now);
            ready.polled_at = now;
        }
        let schedule = self.schedule.borrow();
        while let Some(timer) = executor_queue.timers.pop_due(now) {
            let due = timer.due();
            let timer: Arc<dyn Task> = timer;
            ready.push(&schedule, &timer, due);
        }
        while let Some(task) = executor_queue.ready.pop() {
            ready.push(&schedule, &task, now);
        }
    }

    fn run(&self, core: &Arc<Core>, task: &Arc<dyn Task>, at: Instant) -> Result<(), PanicPayload> {
        let running = self.schedule.borrow_mut().begin_callback(core, task, at);
        let panic = self.core.run(task, || task.run());
        if let Some(running) = running {
            let ended = core.platform.now();
            let completed = self.schedule.borrow_mut().end_callback(running, ended);
            if completed.mask != 0 {
                self.reports.record(completed.mask, completed.nanos);
            }
        }
        panic.map_or(Ok(()), Err)
    }

    /// Returns callbacks that did not run to the ready queue, for the next spin.
    fn requeue(&self) {
        let queue = &self.core.executor_queue.ready;
        for item in self.ready.borrow_mut().heap.drain() {
            queue.push(item.task);
        }
        // This thread may have been chosen to drive the network next; pass that on.
        self.core.context.core().driver().hand_over(queue);
    }
}

/// Maximum callbacks per [`ChainExecutor::spin_some`], so that it ends although
/// work keeps arriving.
const SPIN_SOME_MAX: usize = 1_000;

impl Drop for ChainExecutor {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl fmt::Debug for ChainExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainExecutor")
            .field("executor", &self.handle())
            .field("reports", &self.reports)
            .finish()
    }
}

// --- ready callbacks, ordered by priority ---

#[derive(Default)]
struct ReadyHeap {
    heap: BinaryHeap<ReadyCallback>,
    next_number: u64,
    polled_at: Instant,
}

impl ReadyHeap {
    fn push(&mut self, schedule: &ChainSchedule, task: &Arc<dyn Task>, at: Instant) {
        self.next_number += 1;
        self.heap.push(ReadyCallback {
            rank: schedule.rank(task),
            number: Reverse(self.next_number),
            task: Arc::downgrade(task),
            at,
        });
    }
}

struct ReadyCallback {
    rank: Option<CallbackRank>,
    number: Reverse<u64>,
    task: Weak<dyn Task>,
    /// When the timer was due or the task was found ready.
    at: Instant,
}

/// Scheduling rank; the greater rank runs first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CallbackRank {
    priority: u32,
    /// Among equal priorities, the chain added first.
    chain: Reverse<usize>,
    /// Later callbacks of a chain run before earlier ones.
    position: usize,
}

impl PartialEq for ReadyCallback {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ReadyCallback {}

impl PartialOrd for ReadyCallback {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ReadyCallback {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.rank, self.number).cmp(&(other.rank, other.number))
    }
}

// --- chains and their active instances ---

#[derive(Default)]
struct ChainSchedule {
    chains: usize,
    callbacks: Vec<ScheduledCallback>,
    /// Keyed by the address of the entity, which equals that of its task.
    index_by_address: HashMap<usize, usize>,
}

struct ScheduledCallback {
    entity: Weak<dyn WaitableEntity>,
    rank: CallbackRank,
    /// Chains that begin with this callback, one bit each. `tail`: chains that end
    /// with it.
    head: u64,
    tail: u64,
    successors: Vec<Successor>,
    /// Releases of the instances whose messages wait, oldest first. Bounded by the
    /// callback's queue.
    releases: VecDeque<ChainRelease>,
}

/// A callback that follows another one in some chains.
struct Successor {
    index: usize,
    mask: u64,
    /// Number of arrivals at this callback when its predecessor began.
    arrivals: u64,
}

/// An instance of the chains in `mask`, with its release time.
#[derive(Clone, Copy)]
struct ChainRelease {
    mask: u64,
    at: Instant,
}

/// The chain callback that is running.
struct RunningCallback {
    index: usize,
    release: ChainRelease,
}

/// Chains that a callback completed, one bit each, and their latency.
#[derive(Default)]
struct CompletedChains {
    mask: u64,
    nanos: u64,
}

impl ChainSchedule {
    fn add(&mut self, chain: &Chain) -> Result<(), ExecutorError> {
        chain.validate()?;
        if self.chains == CHAINS_MAX {
            return Err(too_many(chain.name.clone()));
        }
        let (number, bit) = (self.chains, 1 << self.chains);
        self.chains += 1;
        let mut before: Option<usize> = None;
        for (position, chain_callback) in chain.callbacks.iter().enumerate() {
            let rank = CallbackRank {
                priority: chain.priority,
                chain: Reverse(number),
                position,
            };
            let index = *self
                .index_by_address
                .entry(chain_callback.address)
                .or_insert_with(|| {
                    self.callbacks.push(ScheduledCallback {
                        entity: chain_callback.entity.clone(),
                        rank,
                        head: 0,
                        tail: 0,
                        successors: Vec::new(),
                        releases: VecDeque::new(),
                    });
                    self.callbacks.len() - 1
                });
            if let Some(callback) = self.callbacks.get_mut(index) {
                callback.rank = callback.rank.max(rank);
                callback.head |= if before.is_none() { bit } else { 0 };
                let is_last = position + 1 == chain.callbacks.len();
                callback.tail |= if is_last { bit } else { 0 };
            }
            let earlier = before.and_then(|at| self.callbacks.get_mut(at));
            if let Some(earlier) = earlier {
                match earlier
                    .successors
                    .iter_mut()
                    .find(|next| next.index == index)
                {
                    Some(next) => next.mask |= bit,
                    None => earlier.successors.push(Successor {
                        index,
                        mask: bit,
                        arrivals: 0,
                    }),
                }
            }
            before = Some(index);
        }
        Ok(())
    }

    fn index_of(&self, task: &Arc<dyn Task>) -> Option<usize> {
        let address = Arc::as_ptr(task).cast::<()>().addr();
        self.index_by_address.get(&address).copied()
    }

    fn rank(&self, task: &Arc<dyn Task>) -> Option<CallbackRank> {
        let callback = self.callbacks.get(self.index_of(task)?)?;
        Some(callback.rank)
    }

    /// Assigns a chain instance to the callback that is about to run.
    fn begin_callback(
        &mut self,
        core: &Arc<Core>,
        task: &Arc<dyn Task>,
        at: Instant,
    ) -> Option<RunningCallback> {
        let index = self.index_of(task)?;
        let callback = self.callbacks.get_mut(index)?;
        let entity = callback.entity.upgrade()?;
        // Drop the releases of messages that KEEP_LAST replaced before they were
        // taken.
        let waiting = entity.arrivals().waiting;
        while callback.releases.len() > waiting {
            callback.releases.pop_front();
        }
        let released = || ChainRelease {
            mask: callback.head,
            at: released_at(core, &*entity, at),
        };
        let pending = callback.releases.pop_front();
        let release = pending.or_else(|| (callback.head != 0).then(released))?;
        let mut successors = std::mem::take(&mut callback.successors);
        for next in &mut successors {
            next.arrivals = self.arrivals(next.index);
        }
        let callback = self.callbacks.get_mut(index)?;
        callback.successors = successors;
        Some(RunningCallback { index, release })
    }

    fn arrivals(&self, index: usize) -> u64 {
        let entity = self.callbacks.get(index).and_then(|c| c.entity.upgrade());
        entity.map_or(0, |entity| entity.arrivals().received)
    }

    /// Ends a callback and returns the chains that it completes.
    fn end_callback(&mut self, running: RunningCallback, now: Instant) -> CompletedChains {
        let RunningCallback { index, release } = running;
        let Some(callback) = self.callbacks.get_mut(index) else {
            return CompletedChains::default();
        };
        let done = callback.tail & release.mask;
        let successors = std::mem::take(&mut callback.successors);
        for next in &successors {
            self.propagate_release(next, release);
        }
        if let Some(callback) = self.callbacks.get_mut(index) {
            callback.successors = successors;
        }
        let nanos = now.as_nanos().saturating_sub(release.at.as_nanos());
        CompletedChains { mask: done, nanos }
    }

    /// Messages that reached the successor while this callback ran belong to the
    /// same instance.
    fn propagate_release(&mut self, next: &Successor, release: ChainRelease) {
        let mask = release.mask & next.mask;
        let Some(callback) = self.callbacks.get_mut(next.index) else {
            return;
        };
        let Some(entity) = callback.entity.upgrade() else {
            return;
        };
        let Arrivals { received, waiting } = entity.arrivals();
        let new = usize::try_from(received.saturating_sub(next.arrivals)).unwrap_or(usize::MAX);
        for _ in 0..new.min(waiting) {
            callback.releases.push_back(ChainRelease {
                mask,
                at: release.at,
            });
        }
        while callback.releases.len() > waiting {
            callback.releases.pop_front();
        }
    }
}

/// Release time: reception of the next message, or the due time of the timer.
fn released_at(core: &Arc<Core>, entity: &dyn WaitableEntity, seen: Instant) -> Instant {
    let Some(reception) = entity.reader().and_then(ReaderEndpoint::oldest_reception) else {
        return seen;
    };
    let waited = core
        .platform
        .wall_clock()
        .as_nanos()
        .saturating_sub(reception.as_nanos());
    let waited = u64::try_from(waited).unwrap_or(0);
    let now = core.platform.now().as_nanos();
    Instant::from_nanos(now.saturating_sub(waited))
}
