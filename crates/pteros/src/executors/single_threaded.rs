//! Single-threaded executor: one thread runs all callbacks in turn.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::time::Duration;

use pteros_runtime::Core;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pteros_runtime::rtps::time::Instant;

use super::executor_core::ExecutorCore;
use super::panic_policy::{PanicPayload, PanicPolicy};
use super::{ExecutorError, ExecutorHandle};
use crate::callback_groups::CallbackGroup;
use crate::context::Context;
use crate::executor_queue::ExecutorQueue;
use crate::node::Node;

/// Maximum rounds per [`SingleThreadedExecutor::spin_some`], enough to empty
/// sockets that yield one message each.
const SOME_ROUNDS_MAX: usize = 64;

/// Runs the callbacks of its nodes one after the other, on the spinning thread.
///
/// Timers run first, then samples and events in the order in which they became
/// ready. The sockets are served between two rounds. The executor is `Send`, not
/// `Sync`. Several executors, each with its own nodes, may spin at the same time.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let (left, right) = (context.create_node("left")?, context.create_node("right")?);
/// let executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&left)?;
/// executor.add_node(&right)?;
/// executor.spin();
/// # Ok(())
/// # }
/// ```
///
/// Spinning it from two threads does not compile:
///
/// ```compile_fail
/// fn twice(executor: &pteros::executors::SingleThreadedExecutor) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| executor.spin());
///         executor.spin();
///     });
/// }
/// ```
pub struct SingleThreadedExecutor {
    core: Arc<ExecutorCore>,
    /// The last [`Self::spin_once`] ran a timer, so other tasks run first next
    /// time. A `Cell`: one thread at a time uses the executor.
    timer_was_last: Cell<bool>,
}

impl SingleThreadedExecutor {
    /// Creates an executor without nodes.
    pub fn new(context: &Context) -> Self {
        Self::with_panic_policy(context, PanicPolicy::default())
    }

    /// Like [`Self::new`], with a policy for panics in callbacks.
    pub fn with_panic_policy(context: &Context, policy: PanicPolicy) -> Self {
        Self {
            core: ExecutorCore::new(context, policy),
            timer_was_last: Cell::new(false),
        }
    }

    /// Returns a handle for other threads and for callbacks.
    pub fn handle(&self) -> ExecutorHandle {
        ExecutorHandle {
            core: self.core.clone(),
        }
    }

    pub(super) fn core_and_queue(&self) -> (&Arc<Core>, &Arc<ExecutorQueue>) {
        (self.core.context.core(), &self.core.executor_queue)
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

    /// Runs callbacks until the context shuts down ([`Context::shutdown`] or
    /// Ctrl-C) or the executor is [cancelled](ExecutorHandle::cancel). Blocks.
    ///
    /// # Panics
    /// Resumes the panic of a callback under [`PanicPolicy::Process`]. The other
    /// spin methods do the same.
    pub fn spin(&self) {
        let _spin_guard = self.core.begin_spin();
        if let Err(error) = self.core.thread_settings().apply() {
            tracing::warn!("thread settings from parameters not applied: {error}");
        }
        resume_panic(self.core.spin_on_this_thread());
    }

    /// Runs at most one callback and waits for it at most `timeout`; zero does not
    /// wait. Returns whether one ran. After a timer, any other ready task runs
    /// first, so that timers that are always due do not starve the rest. The wait
    /// ends when the executor is [cancelled](ExecutorHandle::cancel).
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let _spin_guard = self.core.begin_spin();
        let (core, executor_queue) = (self.core.context.core(), &self.core.executor_queue);
        let mut until = None;
        if self.timer_was_last.take() {
            core.driver()
                .drive(&executor_queue.ready, core.platform.now());
            if self.run_task() {
                return true;
            }
        }
        loop {
            if resume_panic(self.core.run_timer(self.core.now_for_timers())) {
                self.timer_was_last.set(true);
                return true;
            }
            if self.run_task() {
                return true;
            }
            let now = core.platform.now();
            let until = *until.get_or_insert_with(|| now.after(timeout.into()));
            if now >= until || self.core.should_end() {
                core.driver().hand_over(&executor_queue.ready);
                return false;
            }
            core.driver().drive(
                &executor_queue.ready,
                until.min(executor_queue.timers.next()),
            );
        }
    }

    /// Runs the first ready task that is not a timer. Returns false if there is
    /// none.
    fn run_task(&self) -> bool {
        let Some(task) = self.core.executor_queue.ready.pop() else {
            return false;
        };
        resume_panic(self.core.run(&task, || task.run()).map_or(Ok(()), Err));
        true
    }

    /// Like [`Self::spin_once`], continuing the alternation of an earlier executor
    /// of the same node.
    pub(crate) fn spin_once_after(&self, timeout: Duration, timer_was_last: &AtomicBool) -> bool {
        self.timer_was_last
            .set(timer_was_last.load(Ordering::Relaxed));
        let ran = self.spin_once(timeout);
        timer_was_last.store(self.timer_was_last.get(), Ordering::Relaxed);
        ran
    }

    /// Runs the callbacks that are ready, including those that become ready from
    /// data already in the sockets. Does not wait, and ends although work keeps
    /// arriving. Returns the number of callbacks run.
    pub fn spin_some(&self) -> usize {
        let now = self.core.context.core().platform.now();
        self.spin_rounds(|round| round < SOME_ROUNDS_MAX, |_| now)
    }

    /// Like [`Self::spin_some`], but repeats until nothing is ready or
    /// `max_duration` has passed. Returns the number of callbacks run.
    pub fn spin_all(&self, max_duration: Duration) -> usize {
        let core = self.core.context.core();
        let until = core.platform.now().after(max_duration.into());
        self.spin_rounds(|_| core.platform.now() < until, |core| core.platform.now())
    }

    fn spin_rounds(
        &self,
        mut may_continue: impl FnMut(usize) -> bool,
        now: impl Fn(&Core) -> Instant,
    ) -> usize {
        let (core, queue) = (self.core.context.core(), &self.core.executor_queue.ready);
        let _spin_guard = core.driver().begin_spin(queue);
        let mut ran = 0;
        for number in 0.. {
            let now = now(core);
            core.driver().drive(queue, now);
            let round = resume_panic(self.core.run_rounds(now));
            ran += round;
            if round == 0 || !may_continue(number + 1) {
                break;
            }
        }
        ran
    }

    /// Runs callbacks until `done` returns true, `timeout` has passed, the context
    /// shuts down or the executor is cancelled. Checks `done` between rounds of
    /// callbacks and returns its last value. Blocks.
    pub fn spin_until(&self, mut done: impl FnMut() -> bool, timeout: Duration) -> bool {
        let until = self
            .core
            .context
            .core()
            .platform
            .now()
            .after(timeout.into());
        let mut is_done = done();
        if !is_done {
            self.spin_while(until, || {
                is_done = done();
                !is_done
            });
        }
        is_done
    }

    /// Runs callbacks until `future` completes and returns its output. Returns
    /// `None` if `timeout` passes, the context shuts down or the executor is
    /// cancelled first. The future is polled on this thread, between rounds of
    /// callbacks, and need not be `Send`. Blocks.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = Context::new()?;
    /// let node = context.create_node("adder")?;
    /// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    /// let executor = SingleThreadedExecutor::new(&context);
    /// executor.add_node(&node)?;
    /// let call = client.call_async(&AddTwoIntsRequest { a: 2, b: 3 })?;
    /// let answer = executor.spin_until_future_complete(call, Duration::from_secs(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn spin_until_future_complete<F: Future>(
        &self,
        future: F,
        timeout: Duration,
    ) -> Option<F::Output> {
        let spin_waker = Arc::new(SpinWaker {
            ready: self.core.executor_queue.ready.clone(),
            is_woken: AtomicBool::new(true),
        });
        let waker = Waker::from(spin_waker.clone());
        let mut future = pin!(future);
        let mut output = None;
        let poll_future = || {
            if spin_waker.is_woken.swap(false, Ordering::AcqRel)
                && let Poll::Ready(value) =
                    future.as_mut().poll(&mut PollContext::from_waker(&waker))
            {
                output = Some(value);
            }
            output.is_some()
        };
        self.spin_until(poll_future, timeout);
        output
    }

    fn spin_while(&self, until: Instant, mut may_continue: impl FnMut() -> bool) {
        let (core, executor_queue) = (self.core.context.core(), &self.core.executor_queue);
        let _core_spin_guard = self.core.begin_spin();
        let _spin_guard = core.driver().begin_spin(&executor_queue.ready);
        while !self.core.should_end() {
            let now = core.platform.now();
            resume_panic(self.core.run_rounds(now));
            if !may_continue() || now >= until || self.core.should_end() {
                break;
            }
            core.driver().drive(
                &executor_queue.ready,
                until.min(executor_queue.timers.next()),
            );
        }
        // This thread may have been chosen to drive the network next; pass that on.
        core.driver().hand_over(&executor_queue.ready);
    }
}

impl Drop for SingleThreadedExecutor {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl fmt::Debug for SingleThreadedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SingleThreadedExecutor")
            .field(&self.handle())
            .finish()
    }
}

/// Wakes the thread of [`SingleThreadedExecutor::spin_until_future_complete`].
struct SpinWaker {
    ready: Arc<ReadyQueue>,
    is_woken: AtomicBool,
}

impl Wake for SpinWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.ready.interrupt();
    }
}

/// Resumes the panic of a callback.
pub(super) fn resume_panic<T>(outcome: Result<T, PanicPayload>) -> T {
    outcome.unwrap_or_else(|payload| resume_unwind(payload))
}

/// Spinning by one thread that owns the executor core.
impl ExecutorCore {
    pub(super) fn spin_on_this_thread(&self) -> Result<(), PanicPayload> {
        let core = self.context.core();
        let _spin_guard = core.driver().begin_spin(&self.executor_queue.ready);
        while !self.should_end() {
            self.run_rounds(self.now_for_timers())?;
            // The task that interrupted the wait may have left the queue with the
            // callbacks.
            if self.should_end() {
                break;
            }
            core.driver().drive_until_work(
                &self.executor_queue.ready,
                self.executor_queue.timers.next(),
            );
        }
        // This thread may have been chosen to drive the network next; pass that on.
        core.driver().hand_over(&self.executor_queue.ready);
        Ok(())
    }

    /// Runs a round. Runs a second one at once if messages that the first one
    /// published wait for callbacks that are ready now.
    fn run_rounds(&self, now: Instant) -> Result<usize, PanicPayload> {
        let core = self.context.core();
        let mut ran = self.run_round(now)?;
        if core.driver().end_round(&self.executor_queue.ready) {
            ran += self.run_round(now)?;
            core.driver().end_round(&self.executor_queue.ready);
        }
        Ok(ran)
    }

    /// Runs the due timers and the ready tasks, each once.
    fn run_round(&self, now: Instant) -> Result<usize, PanicPayload> {
        let mut ran = 0;
        while self.run_timer(now)? {
            ran += 1;
        }
        for _ in 0..self.executor_queue.ready.len() {
            let Some(task) = self.executor_queue.ready.pop() else {
                break;
            };
            self.run(&task, || task.run()).map_or(Ok(()), Err)?;
            ran += 1;
        }
        Ok(ran)
    }

    /// Runs the earliest timer if it is due. Returns false if none is.
    fn run_timer(&self, now: Instant) -> Result<bool, PanicPayload> {
        let timers = &self.executor_queue.timers;
        let Some(timer) = timers.pop_due(now) else {
            return Ok(false);
        };
        let task: Arc<dyn Task> = timer.clone();
        let panic = self.run(&task, || {
            if let Some(next) = timer.tick(now) {
                timers.add(next, Arc::downgrade(&timer));
            }
        });
        panic.map_or(Ok(true), Err)
    }
}
