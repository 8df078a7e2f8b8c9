//! Timers: periodic and one-shot callbacks, on the monotonic clock or in ROS time.
//!
//! Each executor has a timer heap. A timer in simulated time waits in the heap of
//! `/clock` instead. Missed ticks are skipped and the phase is kept.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::ready_queue::Task;
use pteros_runtime::rtps::time::Instant;

use crate::callback_groups::{CallbackGroup, group_for};
use crate::error::CreateError;
use crate::executor_queue::ExecutorQueue;
use crate::node::{CallbackGroupCore, Node, NodeCore, NodeEntity};
use crate::ros_clock::{ClockChange, ClockTimer};
use crate::task::{AsyncSlots, CallbackOutput};
use crate::time_source::NodeTime;
use crate::timer_heap::{ScheduledTimer, TimerHeap};
use crate::timer_schedule::TimerState;
use crate::waitable::{Waitable, WaitableEntity};

/// Options of [`Node::create_timer`](crate::Node::create_timer).
///
/// A [`Duration`] converts into them: a period.
#[derive(Clone, Debug)]
pub struct TimerOptions {
    pub(crate) period: Duration,
    pub(crate) repeats: bool,
    pub(crate) on_ros_time: bool,
    pub(crate) callback_group: Option<CallbackGroup>,
}

impl From<Duration> for TimerOptions {
    fn from(period: Duration) -> Self {
        Self::new(period)
    }
}

impl TimerOptions {
    /// Creates options for a timer with this period; the first tick is one period
    /// from now.
    pub fn new(period: Duration) -> Self {
        Self {
            period,
            repeats: true,
            on_ros_time: false,
            callback_group: None,
        }
    }

    /// Uses the node's ROS time. While `use_sim_time` is true, the timer follows
    /// `/clock` and ticks at most once per clock message. The period restarts when
    /// `use_sim_time` changes, or time jumps back behind the last tick. Otherwise,
    /// and by default, it uses the monotonic clock.
    pub fn on_ros_time(mut self) -> Self {
        self.on_ros_time = true;
        self
    }

    /// Makes the timer one-shot.
    pub fn one_shot(mut self) -> Self {
        self.repeats = false;
        self
    }

    /// Runs the callback in a callback group of the node.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }
}

/// A timer of a node. Thread-safe; clones share it, and it stops when the last one
/// is dropped.
///
/// The node's executor runs its callback, never two at a time. Ticks that a busy
/// executor or a stopped process (SIGSTOP, suspend) misses are skipped, and the
/// phase is kept: after any pause it ticks once, never in a burst.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("clock")?;
/// let timer = node.create_timer(Duration::from_millis(100), || println!("tick"))?;
/// node.spin_until(|| timer.ticks() == 3, Duration::from_secs(1));
/// timer.cancel();
/// # Ok(())
/// # }
/// ```
#[must_use = "a timer ends when its last handle is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct Timer {
    pub(crate) core: Arc<TimerCore>,
}

impl Timer {
    /// Period, or the delay of a one-shot timer.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.core.state.schedule().period.unsigned_abs())
    }

    /// Changes the period. The next tick is one new period from now; a stopped timer
    /// stays stopped. A period of zero counts as one nanosecond, one of more than 292
    /// years as that. Returns at once, and a running callback runs to its end.
    pub fn set_period(&self, period: Duration) {
        let nanos = i64::try_from(period.as_nanos()).unwrap_or(i64::MAX);
        self.core.state.set_period(nanos.max(1));
        self.core.restart();
    }

    /// Stops the timer until [`Timer::reset`]. Returns at once; a running callback
    /// runs to its end.
    pub fn cancel(&self) {
        self.core.state.cancel();
    }

    /// Whether the timer is stopped, by [`Timer::cancel`] or because it is one-shot
    /// and has ticked.
    pub fn is_cancelled(&self) -> bool {
        self.core.state.is_cancelled()
    }

    /// Restarts the period from now, also if the timer was stopped.
    pub fn reset(&self) {
        self.core.state.reset(|| self.core.now());
        self.core.schedule();
    }

    /// Number of ticks so far.
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

/// Period and clock of a timer.
pub(crate) struct TimerSettings {
    pub(crate) period_nanos: i64,
    pub(crate) repeats: bool,
    pub(crate) on_ros_time: bool,
}

pub(crate) struct TimerCore {
    pub(crate) node: Arc<NodeCore>,
    state: TimerState,
    repeats: bool,
    ticks: AtomicU64,
    callback: Mutex<Box<dyn FnMut() + Send>>,
    callback_group: Arc<CallbackGroupCore>,
    executor_queue: Mutex<Option<Arc<ExecutorQueue>>>,
    /// The node's ROS time, if the timer uses it.
    time: Option<Arc<NodeTime>>,
    weak_self: Weak<TimerCore>,
}

impl TimerCore {
    /// Creates a timer and schedules it with the executor of its group.
    pub(crate) fn start(
        node: &Arc<NodeCore>,
        settings: TimerSettings,
        group: &Arc<CallbackGroupCore>,
        callback: Box<dyn FnMut() + Send>,
    ) -> Timer {
        let TimerSettings {
            period_nanos,
            repeats,
            on_ros_time,
        } = settings;
        let core = Arc::new_cyclic(|weak_self| Self {
            node: node.clone(),
            state: TimerState::new(period_nanos, false),
            repeats,
            ticks: AtomicU64::new(0),
            callback: Mutex::new(callback),
            callback_group: group.clone(),
            executor_queue: Mutex::default(),
            time: on_ros_time.then(|| node.time.clone()),
            weak_self: weak_self.clone(),
        });
        if let Some(time) = &core.time {
            time.add_timer(core.weak_self.clone());
        }
        core.state.start(|| core.now());
        let weak: Weak<Self> = Arc::downgrade(&core);
        node.add_entity(weak);
        Timer { core }
    }

    fn simulated(&self) -> Option<&Arc<NodeTime>> {
        self.time.as_ref().filter(|time| time.is_simulated())
    }

    /// Current time of the timer's clock, in nanoseconds.
    fn now(&self) -> i64 {
        match self.simulated() {
            Some(time) => time.now().as_nanos().max(0),
            None => nanos(self.node.core().platform.now()),
        }
    }

    /// Schedules the next tick with the executor of the timer's group, if there is
    /// one.
    fn schedule(&self) {
        if let Some(time) = self.simulated() {
            time.sim
                .schedule(self.due().as_nanos(), self.weak_self.clone());
            return;
        }
        if let Some(executor_queue) = self.executor_queue.lock().as_ref() {
            executor_queue
                .timers
                .add(self.due(), self.weak_self.clone());
            executor_queue.ready.interrupt();
        }
    }
}

fn nanos(instant: Instant) -> i64 {
    i64::try_from(instant.as_nanos()).unwrap_or(i64::MAX)
}

impl ClockTimer for TimerCore {
    fn restart(&self) {
        self.state.restart(|| self.now());
        if !self.state.is_cancelled() {
            self.schedule();
        }
    }

    fn handle_switch(&self) {
        self.state.handle_switch(|| self.now());
    }

    fn handle_jump(&self, change: ClockChange) {
        let has_changed = self.state.handle_jump(change, || self.now());
        // Another source has another heap.
        let has_moved = change != ClockChange::RosTimeNoChange;
        if (has_changed || has_moved) && !self.state.is_cancelled() {
            self.schedule();
        }
    }
}

impl ScheduledTimer for TimerCore {
    fn is_scheduled_at(&self, due: u64) -> bool {
        self.simulated().is_some() && self.is_due(Instant::from_nanos(due))
    }

    fn queue_tick(&self, due: u64) {
        if !self.is_scheduled_at(due) {
            return;
        }
        if let Some(executor_queue) = self.executor_queue.lock().as_ref() {
            executor_queue.ready.push(self.weak_self.clone());
        }
    }

    fn due(&self) -> Instant {
        let next_call = self.state.schedule().next_call();
        Instant::from_nanos(u64::try_from(next_call).unwrap_or(0))
    }

    fn is_due(&self, entry: Instant) -> bool {
        self.due() == entry && !self.state.is_cancelled()
    }

    fn is_scheduled_with(&self, timers: &TimerHeap) -> bool {
        let executor_queue = self.executor_queue.lock();
        let is_of_executor = executor_queue
            .as_ref()
            .is_some_and(|queue| std::ptr::eq(&queue.timers, timers));
        is_of_executor && self.simulated().is_none()
    }

    fn tick(&self, now: Instant) -> Option<Instant> {
        self.state.call(|| match self.simulated() {
            Some(_) => self.now(),
            None => nanos(now),
        })?;
        if let Some(mut callback) = self.callback.try_lock() {
            self.ticks.fetch_add(1, Ordering::Relaxed);
            if !self.repeats {
                self.state.cancel();
            }
            let tracer = self.node.core().tracer();
            let ticking = tracer.map(|t| t.begin_timer(self.callback_group.node));
            callback();
            drop(ticking);
        }
        (!self.state.is_cancelled()).then(|| self.due())
    }
}

impl Waitable for Timer {
    fn waitable_entity(&self) -> Arc<dyn WaitableEntity> {
        self.core.clone()
    }
}

impl WaitableEntity for TimerCore {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    /// A timer whose tick did not run is still due and in no heap.
    fn rearm(&self) -> bool {
        let remaining = self.state.remaining(|| self.now());
        remaining.is_some_and(|remaining| remaining <= 0)
    }
}

impl NodeEntity for TimerCore {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        *self.executor_queue.lock() = executor_queue.cloned();
        self.schedule();
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.callback_group
    }
}

/// Runs a due tick, for multi-threaded executors.
impl Task for TimerCore {
    fn run(&self) {
        let now = Instant::from_nanos(self.now().unsigned_abs());
        let due = self.due();
        // Cancelled or reset while it waited to run, or simulated time has gone back.
        if self.state.is_cancelled() || due > now {
            if let Some(time) = self.simulated().filter(|_| !self.state.is_cancelled()) {
                let timer = self.weak_self.clone();
                time.sim.keep_scheduled(due.as_nanos(), timer);
            }
            return;
        }
        let Some(next) = self.tick(now) else {
            return;
        };
        if self.simulated().is_some() {
            self.schedule();
        } else if let Some(executor_queue) = self.executor_queue.lock().as_ref() {
            executor_queue.timers.add(next, self.weak_self.clone());
            // The leader may sleep beyond the new due time.
            executor_queue.ready.interrupt();
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        format!("timer of node \"{}\"", self.node.fully_qualified_name())
    }
}

/// A timer's callback: a closure that returns nothing, or a boxed future for the
/// node's executor to run (`Box::pin(async move { … })`).
pub trait TimerCallback: FnMut() -> <Self as TimerCallback>::Returned + Send + 'static {
    /// Nothing, or a future.
    type Returned: CallbackOutput;
}

impl<F, R> TimerCallback for F
where
    F: FnMut() -> R + Send + 'static,
    R: CallbackOutput,
{
    type Returned = R;
}

impl Node {
    /// Creates a timer that calls `callback` every period, first after one period.
    ///
    /// The options are the period, or [`TimerOptions`], for example
    /// `TimerOptions::new(delay).one_shot()`.
    ///
    /// If the callback returns a boxed future, the executor runs that. A tick is
    /// skipped while the previous future is pending; in a reentrant group, while
    /// sixteen are.
    ///
    /// # Errors
    /// [`CreateError::ZeroPeriod`].
    pub fn create_timer<C: TimerCallback>(
        &self,
        options: impl Into<TimerOptions>,
        callback: C,
    ) -> Result<Timer, CreateError> {
        let TimerOptions {
            period,
            repeats,
            on_ros_time,
            callback_group,
        } = options.into();
        if period.is_zero() {
            return Err(CreateError::ZeroPeriod);
        }
        let period_nanos = i64::try_from(period.as_nanos()).unwrap_or(i64::MAX);
        let group = group_for(self.core(), callback_group.as_ref());
        let settings = TimerSettings {
            period_nanos,
            repeats,
            on_ros_time,
        };
        let mut callback = callback;
        let callback: Box<dyn FnMut() + Send> = if C::Returned::IS_FUTURE {
            let node = self.core().fully_qualified_name();
            let description = format!("async timer of node \"{node}\"");
            let slots = AsyncSlots::new(self.core(), callback_group.as_ref(), description, None);
            Box::new(move || {
                if slots.has_free_slot()
                    && let Some(future) = callback().into_future()
                {
                    slots.start(future);
                }
            })
        } else {
            Box::new(move || drop(callback()))
        };
        Ok(TimerCore::start(self.core(), settings, &group, callback))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::rosgraph_msgs::msg::Clock as ClockMessage;
    use crate::ros_clock::{JumpThreshold, TimeJump};
    use crate::time::Time;
    use crate::time_source::TimeJumpObserver;
    use crate::{Context, ContextOptions};

    /// As after SIGSTOP or a suspended host.
    #[test]
    fn after_a_pause_of_30_s_a_timer_ticks_once_and_keeps_its_phase() {
        let context = Context::with_options(ContextOptions::local(198)).unwrap();
        let node = context.create_node("paced").unwrap();
        let period = Duration::from_millis(20);
        let timer = node.create_timer(period, || {}).unwrap();
        let due = timer.core.due().as_nanos();
        let now = Instant::from_nanos(due + 30_000_000_000 + 7_000_000);
        let next = timer.core.tick(now).unwrap();
        assert_eq!(timer.ticks(), 1);
        assert_eq!(next.as_nanos(), due + 30_020_000_000);
    }

    #[test]
    fn a_new_period_begins_now_and_a_stopped_timer_stays_stopped() {
        let context = Context::with_options(ContextOptions::local(198)).unwrap();
        let node = context.create_node("changed").unwrap();
        let timer = node.create_timer(Duration::from_secs(9), || {}).unwrap();
        let before = timer.core.now();
        timer.set_period(Duration::from_secs(2));
        let after = timer.core.now();
        let due = timer.core.due();
        let due_nanos = nanos(due);
        assert!((before + 2_000_000_000..=after + 2_000_000_000).contains(&due_nanos));
        let next = timer.core.tick(due).unwrap();
        assert_eq!(nanos(next), due_nanos + 2_000_000_000);
        timer.cancel();
        timer.set_period(Duration::ZERO);
        assert!(timer.is_cancelled());
        assert_eq!(timer.period(), Duration::from_nanos(1));
    }

    #[test]
    fn a_stopped_timer_does_not_tick() {
        let context = Context::with_options(ContextOptions::local(198)).unwrap();
        let node = context.create_node("stopped").unwrap();
        let timer = node.create_timer(Duration::from_secs(9), || {}).unwrap();
        timer.cancel();
        assert_eq!(timer.core.tick(timer.core.due()), None);
        assert_eq!(timer.ticks(), 0);
    }

    fn simulated(context: &Context, name: &str) -> (Node, impl Fn(i64) + use<>) {
        let node = context.create_node(name).unwrap();
        let clock = node.create_publisher::<ClockMessage>("/clock").unwrap();
        node.set_parameter("use_sim_time", true).unwrap();
        let set = move |nanos: i64| {
            let clock_message = ClockMessage {
                clock: Time::from_nanos(nanos).into(),
            };
            clock.publish(&clock_message).unwrap();
        };
        (node, set)
    }

    #[test]
    fn a_tick_that_waits_while_time_goes_back_comes_later() {
        let context = Context::with_options(ContextOptions::local(185)).unwrap();
        let (node, set) = simulated(&context, "back");
        set(100);
        let options = TimerOptions::new(Duration::from_nanos(10)).on_ros_time();
        let timer = node.create_timer(options, || {}).unwrap();
        let queue = ExecutorQueue::new(context.core());
        timer.core.attach(Some(&queue));
        for (before, after) in [(110, 105), (115, 109)] {
            set(before);
            set(after);
            assert!(!queue.ready.is_empty());
            while let Some(task) = queue.ready.pop() {
                task.run();
                task.run();
            }
            assert_eq!(timer.ticks(), 0);
        }
        set(110);
        // It was in the heap once.
        assert_eq!(queue.ready.len(), 1);
        queue.ready.pop().unwrap().run();
        assert_eq!((timer.ticks(), nanos(timer.core.due())), (1, 120));
    }

    struct SchedulesOther {
        timer: Arc<TimerCore>,
        queue: Arc<ExecutorQueue>,
        was_queued: Mutex<Vec<bool>>,
    }

    impl TimeJumpObserver for SchedulesOther {
        fn handle_jump(&self, _jump: TimeJump) {
            self.timer.schedule();
            self.was_queued.lock().push(!self.queue.ready.is_empty());
        }
    }

    /// As a worker that ends a tick while the clocks of the nodes are set.
    #[test]
    fn a_timer_is_queued_once_the_clock_of_its_node_is_set() {
        let context = Context::with_options(ContextOptions::local(184)).unwrap();
        let (first, set) = simulated(&context, "first");
        let (second, _) = simulated(&context, "second");
        set(100);
        let options = TimerOptions::new(Duration::from_nanos(10)).on_ros_time();
        let timer = second.create_timer(options, || {}).unwrap();
        let queue = ExecutorQueue::new(context.core());
        timer.core.attach(Some(&queue));
        let observer = Arc::new(SchedulesOther {
            timer: timer.core.clone(),
            queue: queue.clone(),
            was_queued: Mutex::default(),
        });
        let threshold = JumpThreshold {
            on_clock_change: false,
            min_forward: Some(Duration::from_nanos(1)),
            min_backward: None,
        };
        let weak: Weak<SchedulesOther> = Arc::downgrade(&observer);
        first.core().time.add_jump_observer(threshold, weak);
        set(110);
        assert_eq!(*observer.was_queued.lock(), [false]);
        assert!(!queue.ready.is_empty());
    }
}
