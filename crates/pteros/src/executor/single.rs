//! One thread that runs callbacks one after the other.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as PollContext, Poll, Wake, Waker};
use std::time::Duration;

use pteros_rmw::Core;
use pteros_rmw::ready::{ReadyQueue, Task};
use pteros_rmw::rtps::time::Instant;

use super::crew::Crew;
use super::panic::{PanicPolicy, Payload};
use super::{ExecutorError, ExecutorHandle, Home};
use crate::callback_group::CallbackGroup;
use crate::context::Context;
use crate::node::Node;

/// Rounds of [`SingleThreadedExecutor::spin_some`]: enough to empty sockets that
/// give one message each.
const SOME_ROUNDS_MAX: usize = 64;

/// Runs the callbacks of its nodes one after the other, on the thread that
/// spins it.
///
/// Timers go first, then samples and events in the order they became ready;
/// between two rounds the sockets are served. It may be moved to another thread,
/// not shared; several executors, each with nodes of its own, may spin at once.
///
/// ```no_run
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let (left, right) = (context.node("left")?, context.node("right")?);
/// let executor = SingleThreadedExecutor::new(&context);
/// executor.add_node(&left)?;
/// executor.add_node(&right)?;
/// executor.spin();
/// # Ok(())
/// # }
/// ```
///
/// Spun twice at once it does not compile:
///
/// ```compile_fail
/// fn twice(executor: &pteros::SingleThreadedExecutor) {
///     std::thread::scope(|scope| {
///         scope.spawn(|| executor.spin());
///         executor.spin();
///     });
/// }
/// ```
pub struct SingleThreadedExecutor {
    crew: Arc<Crew>,
    /// The last [`Self::spin_once`] ran a timer: the rest goes first next time.
    /// Not shared, as its bed and its callbacks are not: one thread at a time.
    timer_was_last: Cell<bool>,
}

impl SingleThreadedExecutor {
    /// An executor without nodes.
    pub fn new(context: &Context) -> Self {
        Self::with_panic_policy(context, PanicPolicy::default())
    }

    /// As [`Self::new`], and what ends when a callback panics.
    pub fn with_panic_policy(context: &Context, policy: PanicPolicy) -> Self {
        Self {
            crew: Crew::new(context, policy),
            timer_was_last: Cell::new(false),
        }
    }

    /// What other threads and callbacks may do with it.
    pub fn handle(&self) -> ExecutorHandle {
        ExecutorHandle {
            crew: self.crew.clone(),
        }
    }

    pub(super) fn parts(&self) -> (&Arc<Core>, &Arc<Home>) {
        (self.crew.context.core(), &self.crew.home)
    }

    /// As [`ExecutorHandle::add_node`].
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::AlreadyAdded`].
    pub fn add_node(&self, node: &Node) -> Result<(), ExecutorError> {
        self.crew.add_node(node)
    }

    /// As [`ExecutorHandle::remove_node`].
    pub fn remove_node(&self, node: &Node) -> bool {
        self.crew.remove_node(node)
    }

    /// As [`ExecutorHandle::add_callback_group`].
    ///
    /// # Errors
    /// As [`Self::add_node`].
    pub fn add_callback_group(&self, group: &CallbackGroup) -> Result<(), ExecutorError> {
        self.crew.add_group(group)
    }

    /// Runs callbacks until the context shuts down, by [`Context::shutdown`] or
    /// Ctrl-C, or the executor is [cancelled](ExecutorHandle::cancel). Blocks.
    ///
    /// # Panics
    /// With the panic of a callback, as [`PanicPolicy::Process`] says; so does
    /// whatever else runs callbacks here.
    pub fn spin(&self) {
        let _spinning = self.crew.begin_spin();
        if let Err(error) = self.crew.thread_settings().apply() {
            tracing::warn!("parameters for the thread that spins: {error}");
        }
        or_panic(self.crew.spin_alone());
    }

    /// Runs at most one callback, waiting for it at most `timeout`; returns
    /// whether one ran. Zero only looks. After a timer whatever else is ready has
    /// its turn, so that timers that are always due leave room for the rest.
    pub fn spin_once(&self, timeout: Duration) -> bool {
        let (core, home) = (self.crew.context.core(), &self.crew.home);
        let mut until = None;
        if self.timer_was_last.take() {
            core.drive(&home.queue, core.env.now());
            if self.run_task() {
                return true;
            }
        }
        loop {
            if or_panic(self.crew.run_timer(self.crew.now_for_timers())) {
                self.timer_was_last.set(true);
                return true;
            }
            if self.run_task() {
                return true;
            }
            let now = core.env.now();
            let until = *until.get_or_insert_with(|| now.after(timeout.into()));
            if now >= until || core.is_shut_down() {
                core.hand_over(&home.queue);
                return false;
            }
            core.drive(&home.queue, until.min(home.timers.next()));
        }
    }

    /// Runs the first callback that is ready and no timer. False when none was.
    fn run_task(&self) -> bool {
        let Some(task) = self.crew.home.queue.pop() else {
            return false;
        };
        or_panic(self.crew.run(&task, || task.run()).map_or(Ok(()), Err));
        true
    }

    /// As [`Self::spin_once`] of another executor of the same node, which went
    /// before this one.
    pub(crate) fn spin_once_after(&self, timeout: Duration, timer_was_last: &AtomicBool) -> bool {
        self.timer_was_last
            .set(timer_was_last.load(Ordering::Relaxed));
        let ran = self.spin_once(timeout);
        timer_was_last.store(self.timer_was_last.get(), Ordering::Relaxed);
        ran
    }

    /// Runs the callbacks that are ready now, and those that become ready
    /// through what the sockets hold now; does not wait, and ends even when
    /// work keeps coming. Returns how many ran.
    pub fn spin_some(&self) -> usize {
        let now = self.crew.context.core().env.now();
        self.spin_rounds(|round| round < SOME_ROUNDS_MAX, |_| now)
    }

    /// As [`Self::spin_some`], until nothing is ready any more, though callbacks
    /// make others ready, but for no longer than `max_duration`. Returns how many
    /// ran.
    pub fn spin_all(&self, max_duration: Duration) -> usize {
        let core = self.crew.context.core();
        let until = core.env.now().after(max_duration.into());
        self.spin_rounds(|_| core.env.now() < until, |core| core.env.now())
    }

    fn spin_rounds(
        &self,
        mut goes_on: impl FnMut(usize) -> bool,
        now: impl Fn(&Core) -> Instant,
    ) -> usize {
        let (core, queue) = (self.crew.context.core(), &self.crew.home.queue);
        let _spinning = core.begin_spin(queue);
        let mut ran = 0;
        for number in 0.. {
            let now = now(core);
            core.drive(queue, now);
            let round = or_panic(self.crew.rounds(now));
            ran += round;
            if round == 0 || !goes_on(number + 1) {
                break;
            }
        }
        ran
    }

    /// Runs callbacks until `done` says so, `timeout` has passed, the context
    /// shuts down or the executor is cancelled. Returns `done`'s last word; it is
    /// asked between rounds of callbacks. Blocks.
    pub fn spin_until(&self, mut done: impl FnMut() -> bool, timeout: Duration) -> bool {
        let until = self.crew.context.core().env.now().after(timeout.into());
        let mut met = done();
        if !met {
            self.spin_while(until, || {
                met = done();
                !met
            });
        }
        met
    }

    /// Runs callbacks until `future` is done, and gives what it gives; `None` if
    /// `timeout` passes, the context shuts down or the executor is cancelled
    /// before. The future is polled on this thread, between rounds of callbacks,
    /// and need not be `Send`. Blocks. ROS 2's `spin_until_future_complete`.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoInts_Request};
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let context = Context::new()?;
    /// let node = context.node("adder")?;
    /// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    /// let executor = SingleThreadedExecutor::new(&context);
    /// executor.add_node(&node)?;
    /// let call = client.call_async(&AddTwoInts_Request { a: 2, b: 3 })?;
    /// let answer = executor.spin_until_complete(call, Duration::from_secs(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn spin_until_complete<F: Future>(
        &self,
        future: F,
        timeout: Duration,
    ) -> Option<F::Output> {
        let recall = Arc::new(Recall {
            queue: self.crew.home.queue.clone(),
            is_woken: AtomicBool::new(true),
        });
        let waker = Waker::from(recall.clone());
        let mut future = pin!(future);
        let mut output = None;
        let look = || {
            if recall.is_woken.swap(false, Ordering::AcqRel)
                && let Poll::Ready(value) =
                    future.as_mut().poll(&mut PollContext::from_waker(&waker))
            {
                output = Some(value);
            }
            output.is_some()
        };
        self.spin_until(look, timeout);
        output
    }

    fn spin_while(&self, until: Instant, mut go_on: impl FnMut() -> bool) {
        let (core, home) = (self.crew.context.core(), &self.crew.home);
        let _mark = self.crew.begin_spin();
        let _spinning = core.begin_spin(&home.queue);
        while !self.crew.should_end() {
            let now = core.env.now();
            or_panic(self.crew.rounds(now));
            if !go_on() || now >= until || self.crew.should_end() {
                break;
            }
            core.drive(&home.queue, until.min(home.timers.next()));
        }
        // We may have been chosen to drive next.
        core.hand_over(&home.queue);
    }
}

impl Drop for SingleThreadedExecutor {
    fn drop(&mut self) {
        self.crew.release();
    }
}

impl fmt::Debug for SingleThreadedExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SingleThreadedExecutor")
            .field(&self.handle())
            .finish()
    }
}

/// Wakes the thread of [`SingleThreadedExecutor::spin_until_complete`].
struct Recall {
    queue: Arc<ReadyQueue>,
    is_woken: AtomicBool,
}

impl Wake for Recall {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.queue.recall();
    }
}

/// Goes on with the panic of a callback.
pub(super) fn or_panic<T>(outcome: Result<T, Payload>) -> T {
    outcome.unwrap_or_else(|payload| resume_unwind(payload))
}

/// What one thread does that has a crew to itself.
impl Crew {
    pub(super) fn spin_alone(&self) -> Result<(), Payload> {
        let core = self.context.core();
        let _spinning = core.begin_spin(&self.home.queue);
        while !self.should_end() {
            self.rounds(self.now_for_timers())?;
            // What recalled us may have left the queue with the callbacks.
            if self.should_end() {
                break;
            }
            core.drive_until_work(&self.home.queue, self.home.timers.next());
        }
        // We may have been chosen to drive next.
        core.hand_over(&self.home.queue);
        Ok(())
    }

    /// A round, and at once another one if what the first published waits for
    /// callbacks that are ready now.
    fn rounds(&self, now: Instant) -> Result<usize, Payload> {
        let core = self.context.core();
        let mut ran = self.round(now)?;
        if core.end_round(&self.home.queue) {
            ran += self.round(now)?;
            core.end_round(&self.home.queue);
        }
        Ok(ran)
    }

    /// Runs due timers and the tasks that are ready now, each once.
    fn round(&self, now: Instant) -> Result<usize, Payload> {
        let mut ran = 0;
        while self.run_timer(now)? {
            ran += 1;
        }
        for _ in 0..self.home.queue.len() {
            let Some(task) = self.home.queue.pop() else {
                break;
            };
            self.run(&task, || task.run()).map_or(Ok(()), Err)?;
            ran += 1;
        }
        Ok(ran)
    }

    /// Runs the earliest timer if it is due. False when none was.
    fn run_timer(&self, now: Instant) -> Result<bool, Payload> {
        let timers = &self.home.timers;
        let Some(timer) = timers.pop_due(now) else {
            return Ok(false);
        };
        let task: Arc<dyn Task> = timer.clone();
        let panic = self.run(&task, || {
            if let Some(next) = timer.tick(now) {
                timers.add(next, timer.me.clone());
            }
        });
        panic.map_or(Ok(true), Err)
    }
}
