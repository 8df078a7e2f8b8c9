//! Timers: callbacks at a steady pace, on the monotonic clock or in ROS time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::ready::Task;
use pteros_rmw::rtps::fault;
use pteros_rmw::rtps::time::Instant;

use crate::callback_group::{CallbackGroup, GroupCore};
use crate::clock::NodeTime;
use crate::executor::Home;
use crate::node::{Attach, NodeCore};
use crate::wait_set;

/// What [`Node::create_timer_with`](crate::Node::create_timer_with) can be told.
#[derive(Clone, Debug)]
pub struct TimerOptions {
    pub(crate) period: Duration,
    pub(crate) repeats: bool,
    pub(crate) on_ros_time: bool,
    pub(crate) callback_group: Option<CallbackGroup>,
}

impl TimerOptions {
    /// A timer that ticks every `period`, first after one period.
    pub fn new(period: Duration) -> Self {
        Self {
            period,
            repeats: true,
            on_ros_time: false,
            callback_group: None,
        }
    }

    /// Ticks in the node's ROS time: while `use_sim_time` is true, as fast as `/clock`
    /// goes on, never faster than its messages come; its period begins anew when that
    /// changes, or time goes back. Otherwise, and by default, real time.
    pub fn on_ros_time(mut self) -> Self {
        self.on_ros_time = true;
        self
    }

    /// Ticks once only.
    pub fn one_shot(mut self) -> Self {
        self.repeats = false;
        self
    }

    /// Runs the callback in a group of the node's.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }
}

/// A timer of a node. Thread-safe; clones share it, and it stops when the last
/// one is dropped.
///
/// Its callback runs in the node's executor, never two at a time. Ticks that a
/// busy executor misses are skipped, not made up for; the phase is kept.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("clock")?;
/// let timer = node.create_timer(Duration::from_millis(100), || println!("tick"))?;
/// node.spin_until(|| timer.ticks() == 3, Duration::from_secs(1));
/// timer.cancel();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Timer {
    pub(crate) core: Arc<TimerCore>,
}

impl Timer {
    /// The pause between ticks; the delay of a one-shot timer.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.core.period_nanos)
    }

    /// Stops ticking until [`Timer::reset`]. Returns at once: a callback that is
    /// running ends as it will.
    pub fn cancel(&self) {
        self.core.cancelled.store(true, Ordering::Release);
    }

    /// Whether it is stopped, by [`Timer::cancel`] or because it ticks once only.
    pub fn is_cancelled(&self) -> bool {
        self.core.cancelled.load(Ordering::Acquire)
    }

    /// Starts the period anew from now, also after it was stopped.
    pub fn reset(&self) {
        self.core.cancelled.store(false, Ordering::Release);
        self.core.restart();
    }

    /// How often it has ticked.
    pub fn ticks(&self) -> u64 {
        self.core.ticks.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("period", &self.period())
            .field("cancelled", &self.is_cancelled())
            .finish()
    }
}

pub(crate) struct TimerCore {
    pub(crate) node: Arc<NodeCore>,
    period_nanos: u64,
    repeats: bool,
    due: AtomicU64,
    cancelled: AtomicBool,
    ticks: AtomicU64,
    callback: Mutex<Box<dyn FnMut() + Send>>,
    callback_group: Arc<GroupCore>,
    home: Mutex<Option<Arc<Home>>>,
    /// Whose ROS time it ticks in, if it does.
    time: Option<Arc<NodeTime>>,
    pub(crate) me: Weak<TimerCore>,
}

impl TimerCore {
    /// A timer that stands in line of whoever spins its group.
    pub(crate) fn start(
        node: &Arc<NodeCore>,
        (period_nanos, repeats, on_ros_time): (u64, bool, bool),
        group: &Arc<GroupCore>,
        callback: Box<dyn FnMut() + Send>,
    ) -> Timer {
        let core = Arc::new_cyclic(|me| Self {
            node: node.clone(),
            period_nanos,
            repeats,
            due: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            ticks: AtomicU64::new(0),
            callback: Mutex::new(callback),
            callback_group: group.clone(),
            home: Mutex::default(),
            time: on_ros_time.then(|| node.time.clone()),
            me: me.clone(),
        });
        let due = core.now().as_nanos().saturating_add(period_nanos);
        core.due.store(due, Ordering::Release);
        if let Some(time) = &core.time {
            time.add_timer(&core);
        }
        let weak: Weak<Self> = Arc::downgrade(&core);
        node.add(weak);
        Timer { core }
    }

    fn simulated(&self) -> Option<&Arc<NodeTime>> {
        self.time.as_ref().filter(|time| time.is_simulated())
    }

    /// The time on its own clock.
    fn now(&self) -> Instant {
        match self.simulated() {
            Some(time) => {
                let nanos = time.now().as_nanos();
                Instant::from_nanos(u64::try_from(nanos).unwrap_or(0))
            }
            None => self.node.core().env.now(),
        }
    }

    /// Its period begins now; one that is stopped stays so.
    pub(crate) fn restart(&self) {
        let due = self.now().as_nanos().saturating_add(self.period_nanos);
        self.due.store(due, Ordering::Release);
        if !self.cancelled.load(Ordering::Acquire) {
            self.enlist();
        }
    }

    /// Whether it ticks in simulated time, next at `due`.
    pub(crate) fn awaits(&self, due: u64) -> bool {
        self.simulated().is_some() && self.is_due(Instant::from_nanos(due))
    }

    /// Simulated time has come to `due`.
    pub(crate) fn queue_tick(&self, due: u64) {
        if !self.awaits(due) {
            return;
        }
        if let Some(home) = self.home.lock().as_ref() {
            home.queue.push(self.me.clone());
        }
    }

    pub(crate) fn due(&self) -> Instant {
        Instant::from_nanos(self.due.load(Ordering::Acquire))
    }

    /// Whether an entry of that instant still stands for a tick.
    fn is_due(&self, entry: Instant) -> bool {
        self.due() == entry && !self.cancelled.load(Ordering::Acquire)
    }

    /// Whether these are the timers of the executor that has the node now.
    fn is_at(&self, timers: &TimerHeap) -> bool {
        let home = self.home.lock();
        home.as_ref()
            .is_some_and(|h| std::ptr::eq(&h.timers, timers))
    }

    /// Stands in line of the executor that spins the node, if one does.
    fn enlist(&self) {
        if let Some(time) = self.simulated() {
            time.sim.enlist(self.due().as_nanos(), self.me.clone());
            return;
        }
        if let Some(home) = self.home.lock().as_ref() {
            home.timers.add(self.due(), self.me.clone());
            home.queue.recall();
        }
    }

    /// Ticks once; returns when the next tick is due. A tick that falls into
    /// the callback itself (it spins, or another executor runs it) is skipped.
    pub(crate) fn tick(&self, now: Instant) -> Option<Instant> {
        let due = self.due().as_nanos();
        let behind = now.as_nanos().saturating_sub(due) / self.period_nanos;
        let periods = behind + 1 + u64::from(fault!("timer-skips-a-tick"));
        let next = due.saturating_add(periods.saturating_mul(self.period_nanos));
        self.due.store(next, Ordering::Release);
        if let Some(mut callback) = self.callback.try_lock() {
            self.ticks.fetch_add(1, Ordering::Relaxed);
            if !self.repeats {
                self.cancelled.store(true, Ordering::Release);
            }
            let tracer = self.node.core().tracer();
            let ticking = tracer.map(|t| t.tick(self.callback_group.node));
            callback();
            drop(ticking);
        }
        (!self.cancelled.load(Ordering::Acquire)).then(|| self.due())
    }
}

impl wait_set::Entity for Timer {
    fn member(&self) -> Arc<dyn wait_set::Member> {
        self.core.clone()
    }
}

impl wait_set::Member for TimerCore {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    /// One whose tick was not run is due still, and in no heap.
    fn rearm(&self) -> bool {
        let now = self.now();
        !self.cancelled.load(Ordering::Acquire) && self.due() <= now
    }
}

impl Attach for TimerCore {
    fn attach(&self, home: Option<&Arc<Home>>) {
        *self.home.lock() = home.cloned();
        self.enlist();
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.callback_group
    }
}

/// A tick that is due, for executors of several threads.
impl Task for TimerCore {
    fn run(&self) {
        let now = self.now();
        // Stopped or started anew while it waited for its turn.
        if self.cancelled.load(Ordering::Acquire) || self.due() > now {
            return;
        }
        let Some(next) = self.tick(now) else {
            return;
        };
        if self.simulated().is_some() {
            self.enlist();
        } else if let Some(home) = self.home.lock().as_ref() {
            home.timers.add(next, self.me.clone());
            // Whoever leads may sleep for longer.
            home.queue.recall();
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        format!("timer of node \"{}\"", self.node.path())
    }
}

/// The timers of one executor, earliest first.
#[derive(Default)]
pub(crate) struct TimerHeap {
    heap: Mutex<BinaryHeap<Reverse<Entry<Instant>>>>,
    /// Nanoseconds of the earliest entry; `u64::MAX` without one.
    next: AtomicU64,
}

/// A timer's place in a heap, by when it is due.
pub(crate) struct Entry<D> {
    pub(crate) due: D,
    pub(crate) timer: Weak<TimerCore>,
}

impl<D: Ord> PartialEq for Entry<D> {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl<D: Ord> Eq for Entry<D> {}

impl<D: Ord> PartialOrd for Entry<D> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<D: Ord> Ord for Entry<D> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.due.cmp(&other.due)
    }
}

impl TimerHeap {
    pub(crate) fn new() -> Self {
        Self {
            heap: Mutex::default(),
            next: AtomicU64::new(u64::MAX),
        }
    }

    pub(crate) fn add(&self, due: Instant, timer: Weak<TimerCore>) {
        let mut heap = self.heap.lock();
        if heap.len() == heap.capacity() {
            // Entries of timers that were reset, moved or dropped since.
            heap.retain(|Reverse(entry)| {
                let timer = entry.timer.upgrade();
                timer.is_some_and(|t| t.is_due(entry.due))
            });
        }
        heap.push(Reverse(Entry { due, timer }));
        self.note_next(&heap);
    }

    fn note_next(&self, heap: &BinaryHeap<Reverse<Entry<Instant>>>) {
        let next = heap.peek().map_or(u64::MAX, |e| e.0.due.as_nanos());
        self.next.store(next, Ordering::Release);
    }

    /// When the earliest timer is due.
    pub(crate) fn next(&self) -> Instant {
        Instant::from_nanos(self.next.load(Ordering::Acquire))
    }

    /// Takes the earliest timer out, if it is due.
    pub(crate) fn pop_due(&self, now: Instant) -> Option<Arc<TimerCore>> {
        if self.next() > now {
            return None;
        }
        let mut heap = self.heap.lock();
        let mut found = None;
        while heap.peek().is_some_and(|e| e.0.due <= now) {
            let Some(Reverse(entry)) = heap.pop() else {
                break;
            };
            let live = entry
                .timer
                .upgrade()
                .filter(|t| t.is_due(entry.due) && t.is_at(self) && t.simulated().is_none());
            if live.is_some() {
                found = live;
                break;
            }
        }
        self.note_next(&heap);
        found
    }
}
