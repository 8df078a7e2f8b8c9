//! Static executor: fixed order, trigger conditions, logical execution time.
//!
//! After the model of rclc (Staschulat, Lütkebohle, Lange: "The rclc Executor:
//! Domain-specific deterministic scheduling mechanisms for ROS applications on
//! microcontrollers", EMSOFT 2020). The callbacks and their order are fixed at
//! set-up. A trigger over the ready entities starts a round. Nothing is allocated
//! after set-up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_msg::message::Message;
use pteros_rcl::wait_set as rcl;
use pteros_runtime::rtps::time::Instant;

use super::ExecutorError;
use crate::context::Context;
use crate::guard_condition::GuardCondition;
use crate::publisher::Publisher;
use crate::sample::Sample;
use crate::service::{Client, Service};
use crate::subscription::Subscription;
use crate::timer::Timer;
use crate::wait_set::{WaitKey, WaitSet};

use pteros_msg::message::Service as ServiceType;

/// Trigger condition: when a [`StaticExecutor`] begins a round.
#[derive(Default)]
pub enum Trigger {
    /// At least one step is ready.
    #[default]
    Any,
    /// All steps are ready.
    All,
    /// The given step is ready.
    One(StepKey),
    /// Always: a round at every period of [`StaticExecutor::spin_period`].
    Always,
    /// The closure returns true. It is called when a step becomes ready.
    Custom(Box<dyn FnMut(&Readiness<'_>) -> bool + Send>),
}

impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("Any"),
            Self::All => f.write_str("All"),
            Self::One(key) => f.debug_tuple("One").field(key).finish(),
            Self::Always => f.write_str("Always"),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}

/// Identifies a step of a [`StaticExecutor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StepKey(WaitKey);

/// The ready steps, passed to [`Trigger::Custom`].
pub struct Readiness<'e> {
    set: &'e WaitSet,
}

impl Readiness<'_> {
    /// Whether the step is ready.
    pub fn is_ready(&self, step: StepKey) -> bool {
        self.set.is_ready(step.0)
    }

    /// Number of ready steps.
    pub fn count(&self) -> usize {
        self.set.ready().len()
    }
}

impl fmt::Debug for Readiness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.set.ready()).finish()
    }
}

/// Data communication semantics: when messages are taken and published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum DataSemantics {
    /// A step takes its message right before it runs, as in rclcpp.
    #[default]
    RclcppExecutor,
    /// Logical execution time (LET): all messages are taken when the round begins.
    /// Messages published through a [`RoundOutput`] are sent when the round ends.
    /// With [`StaticExecutor::spin_period`] that is the end of the period,
    /// independent of the execution time of the steps.
    LogicalExecutionTime,
}

/// Runs its steps in the order in which they were added, once per round, on the
/// spinning thread. A round begins when the [`Trigger`] is met. A step runs if it
/// was ready at that moment.
///
/// The entities of the steps belong to this executor alone, regardless of which
/// executor spins their nodes, until it is dropped. Add all steps before spinning:
/// afterwards only user code and messages allocate. A panic in a step propagates
/// out of the spin.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::geometry_msgs::msg::Twist;
/// use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// use pteros::prelude::*;
/// use pteros::executors::{DataSemantics, StaticExecutor, Trigger};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.create_node("control")?;
/// let scans = node.create_polled_subscription::<LaserScan>("scan".keep_last(1))?;
/// let publisher = node.create_publisher::<Twist>("cmd_vel".keep_last(1))?;
///
/// let mut executor = StaticExecutor::new(&context);
/// executor.set_semantics(DataSemantics::LogicalExecutionTime);
/// executor.set_trigger(Trigger::Always);
/// let velocity = executor.add_output(&publisher, 1);
/// executor.add_subscription_always(&scans, move |scan| {
///     let free = scan.is_some_and(|scan| scan.ranges.iter().all(|range| *range > 0.5));
///     let mut twist = Twist::default();
///     twist.linear.x = if free { 0.2 } else { 0.0 };
///     velocity.publish(twist);
/// })?;
/// executor.spin_period(Duration::from_millis(10))?;
/// # Ok(())
/// # }
/// ```
pub struct StaticExecutor {
    context: Context,
    set: WaitSet,
    steps: Vec<StaticStep>,
    outputs: Vec<Box<dyn FlushOutput>>,
    trigger: Trigger,
    semantics: DataSemantics,
    control: Arc<SpinControl>,
    rounds: u64,
}

struct StaticStep {
    key: WaitKey,
    always: bool,
    is_selected: bool,
    action: Box<dyn StepAction>,
}

/// The work of a step.
trait StepAction: Send {
    /// Takes the step's message, if it uses one.
    fn take(&mut self) {}

    fn run(&mut self, set: &mut WaitSet, key: WaitKey);
}

/// State shared with other threads: cancellation and the overrun counter.
#[derive(Default)]
struct SpinControl {
    cancelled: AtomicBool,
    overruns: AtomicU64,
}

/// Handle to a [`StaticExecutor`] for other threads and for its steps.
#[derive(Clone)]
pub struct StaticExecutorHandle {
    control: Arc<SpinControl>,
    // A handle keeps no context open.
    set: Weak<rcl::WaitSet>,
}

impl StaticExecutorHandle {
    /// Ends the current spin, or else the next one, after the current round: also the
    /// wait of `spin_once`. Returns at once.
    pub fn cancel(&self) {
        self.control.cancelled.store(true, Ordering::Release);
        if let Some(set) = self.set.upgrade() {
            set.wake();
        }
    }

    /// Number of overruns: periods skipped because the previous round was still
    /// running.
    pub fn overruns(&self) -> u64 {
        self.control.overruns.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for StaticExecutorHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticExecutorHandle")
            .field("overruns", &self.overruns())
            .finish()
    }
}

impl StaticExecutor {
    /// Creates an executor without steps, with [`Trigger::Any`].
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            set: WaitSet::new(context),
            steps: Vec::new(),
            outputs: Vec::new(),
            trigger: Trigger::default(),
            semantics: DataSemantics::default(),
            control: Arc::default(),
            rounds: 0,
        }
    }

    /// Sets the trigger condition.
    pub fn set_trigger(&mut self, trigger: Trigger) {
        self.trigger = trigger;
    }

    /// Data communication semantics: when messages are taken and published.
    pub fn set_semantics(&mut self, semantics: DataSemantics) {
        self.semantics = semantics;
    }

    /// Returns a handle for other threads and for steps.
    pub fn handle(&self) -> StaticExecutorHandle {
        StaticExecutorHandle {
            control: self.control.clone(),
            set: Arc::downgrade(&self.set.set),
        }
    }

    /// Number of rounds run so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    // --- steps ---

    /// Adds a subscription: the step handles one message per round.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add_subscription<T: Send + Sync + 'static>(
        &mut self,
        subscription: &Subscription<T>,
        mut callback: impl FnMut(Sample<T>) + Send + 'static,
    ) -> Result<StepKey, ExecutorError> {
        let action = SubscriptionStep {
            subscription: subscription.clone(),
            taken: None,
            callback: move |sample| {
                if let Some(sample) = sample {
                    callback(sample);
                }
            },
        };
        let key = self.set.add(subscription)?;
        Ok(self.add(key, false, Box::new(action)))
    }

    /// Adds a subscription whose step runs in every round, with a message if there
    /// is one.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add_subscription_always<T: Send + Sync + 'static>(
        &mut self,
        subscription: &Subscription<T>,
        callback: impl FnMut(Option<Sample<T>>) + Send + 'static,
    ) -> Result<StepKey, ExecutorError> {
        let action = SubscriptionStep {
            subscription: subscription.clone(),
            taken: None,
            callback,
        };
        let key = self.set.add(subscription)?;
        Ok(self.add(key, true, Box::new(action)))
    }

    /// Adds a timer: the step runs the timer's callback.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add_timer(&mut self, timer: &Timer) -> Result<StepKey, ExecutorError> {
        let key = self.set.add(timer)?;
        Ok(self.add(key, false, Box::new(EntityCallback)))
    }

    /// Adds a guard condition: the step runs its callback.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add_guard_condition(
        &mut self,
        guard: &GuardCondition,
    ) -> Result<StepKey, ExecutorError> {
        let key = self.set.add(guard)?;
        Ok(self.add(key, false, Box::new(EntityCallback)))
    }

    /// Adds a service: the step takes one request and runs the service's callback.
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add_service<S: ServiceType>(
        &mut self,
        service: &Service<S>,
    ) -> Result<StepKey, ExecutorError> {
        let key = self.set.add(service)?;
        Ok(self.add(key, false, Box::new(EntityCallback)))
    }

    /// Adds a client: the step takes one response and runs the callback of
    /// [`Client::call_then`].
    ///
    /// # Errors
    /// [`ExecutorError::OtherContext`], [`ExecutorError::InWaitSet`].
    pub fn add_client<S: ServiceType>(
        &mut self,
        client: &Client<S>,
    ) -> Result<StepKey, ExecutorError> {
        let key = self.set.add(client)?;
        Ok(self.add(key, false, Box::new(EntityCallback)))
    }

    fn add(&mut self, key: WaitKey, always: bool, action: Box<dyn StepAction>) -> StepKey {
        self.steps.push(StaticStep {
            key,
            always,
            is_selected: false,
            action,
        });
        StepKey(key)
    }

    /// Adds an output for steps. Its messages are published when the round ends,
    /// with both [`DataSemantics`]. It holds `depth` messages, at least one. When
    /// it is full, the oldest is dropped, as with KEEP_LAST.
    pub fn add_output<T: Message>(
        &mut self,
        publisher: &Publisher<T>,
        depth: usize,
    ) -> RoundOutput<T> {
        let depth = depth.max(1);
        let pending = PendingMessages {
            messages: VecDeque::with_capacity(depth),
            depth,
            dropped: 0,
        };
        let output = RoundOutput {
            pending: Arc::new(Mutex::new(pending)),
        };
        self.outputs.push(Box::new(PublisherOutput {
            publisher: publisher.clone(),
            output: output.clone(),
            has_warned: false,
        }));
        output
    }

    // --- spinning ---

    /// Runs rounds until the context shuts down or the executor is
    /// [cancelled](StaticExecutorHandle::cancel). Blocks. With [`Trigger::Always`],
    /// a round begins whenever a step is ready.
    pub fn spin(&mut self) {
        while self.should_continue() {
            self.set.recheck_ready();
            if !self.is_triggered(false) {
                self.set.wait_for_ready(Instant::FAR_FUTURE);
            }
            if self.should_continue() && self.is_triggered(false) {
                self.run_round();
                self.flush_outputs();
            }
        }
        self.end();
    }

    /// Runs one round if the trigger is met within `timeout`; zero does not wait.
    /// Returns whether a round ran.
    pub fn spin_once(&mut self, timeout: Duration) -> bool {
        let now = self.context.core().platform.now();
        let until = now.after(timeout.into());
        self.set.recheck_ready();
        self.set.wait_for_ready(now);
        let is_triggered = self.wait_for_trigger(until);
        if is_triggered {
            self.run_round();
            self.flush_outputs();
        }
        self.end();
        is_triggered
    }

    fn wait_for_trigger(&mut self, until: Instant) -> bool {
        while !self.is_triggered(true) {
            let over = self.context.core().platform.now() >= until;
            if over || !self.should_continue() {
                return false;
            }
            self.set.wait_for_ready(until);
        }
        true
    }

    /// Checks the trigger once per `period` and runs a round if it is met, until
    /// the context shuts down or the executor is cancelled. Blocks. A period that
    /// begins while the previous round is still running is skipped and counted
    /// ([`StaticExecutorHandle::overruns`]). The phase is kept.
    ///
    /// # Errors
    /// [`ExecutorError::ZeroPeriod`].
    pub fn spin_period(&mut self, period: Duration) -> Result<(), ExecutorError> {
        let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        if nanos == 0 {
            return Err(ExecutorError::ZeroPeriod);
        }
        let mut begins = self.context.core().platform.now();
        while self.should_continue() {
            self.set.recheck_ready();
            self.wait_until(begins);
            if !self.should_continue() {
                break;
            }
            // End of the previous period: publish its outputs.
            self.flush_outputs();
            if self.is_triggered(true) {
                self.run_round();
            }
            let now = self.context.core().platform.now().as_nanos();
            let passed = now.saturating_sub(begins.as_nanos()) / nanos;
            self.control.overruns.fetch_add(passed, Ordering::Relaxed);
            let span = nanos.saturating_mul(passed + 1);
            begins = Instant::from_nanos(begins.as_nanos().saturating_add(span));
        }
        self.flush_outputs();
        self.end();
        Ok(())
    }

    /// Collects ready steps until the deadline.
    fn wait_until(&mut self, deadline: Instant) {
        loop {
            self.set.wait_for_ready(deadline);
            if self.context.core().platform.now() >= deadline || !self.should_continue() {
                break;
            }
        }
    }

    fn should_continue(&self) -> bool {
        let cancelled = self.control.cancelled.load(Ordering::Acquire);
        !cancelled && !self.context.is_shut_down()
    }

    fn end(&self) {
        self.control.cancelled.store(false, Ordering::Release);
    }

    fn is_triggered(&mut self, is_periodic: bool) -> bool {
        let set = &self.set;
        let any = !set.ready().is_empty();
        match &mut self.trigger {
            Trigger::Any => any,
            Trigger::All => any && set.ready().len() == self.steps.len(),
            Trigger::One(key) => set.is_ready(key.0),
            Trigger::Always => is_periodic || any,
            Trigger::Custom(condition) => condition(&Readiness { set }),
        }
    }

    fn run_round(&mut self) {
        let Self { steps, set, .. } = self;
        for step in &mut *steps {
            step.is_selected = step.always || set.is_ready(step.key);
            if step.is_selected && self.semantics == DataSemantics::LogicalExecutionTime {
                step.action.take();
            }
        }
        for step in &mut *steps {
            if step.is_selected {
                if self.semantics == DataSemantics::RclcppExecutor {
                    step.action.take();
                }
                step.action.run(set, step.key);
            }
        }
        self.rounds += 1;
    }

    fn flush_outputs(&mut self) {
        for output in &mut self.outputs {
            output.flush();
        }
    }
}

impl fmt::Debug for StaticExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticExecutor")
            .field("steps", &self.steps.len())
            .field("trigger", &self.trigger)
            .field("semantics", &self.semantics)
            .finish()
    }
}

/// Runs the entity's own callback.
struct EntityCallback;

impl StepAction for EntityCallback {
    fn run(&mut self, set: &mut WaitSet, key: WaitKey) {
        set.run(key);
    }
}

struct SubscriptionStep<T: 'static, F> {
    subscription: Subscription<T>,
    taken: Option<Sample<T>>,
    callback: F,
}

impl<T: Send + Sync + 'static, F: FnMut(Option<Sample<T>>) + Send> StepAction
    for SubscriptionStep<T, F>
{
    fn take(&mut self) {
        self.taken = self.subscription.take();
    }

    fn run(&mut self, _: &mut WaitSet, _: WaitKey) {
        (self.callback)(self.taken.take());
    }
}

/// Output that is published when the round ends; see
/// [`StaticExecutor::add_output`]. Cheap to clone, thread-safe.
pub struct RoundOutput<T> {
    pending: Arc<Mutex<PendingMessages<T>>>,
}

struct PendingMessages<T> {
    messages: VecDeque<Arc<T>>,
    depth: usize,
    dropped: u64,
}

impl<T> RoundOutput<T> {
    /// Queues a message until the round ends. Allocates only its `Arc`.
    pub fn publish(&self, message: T) {
        self.publish_arc(Arc::new(message));
    }

    /// Queues a message until the round ends. Allocates nothing.
    pub fn publish_arc(&self, message: Arc<T>) {
        let mut pending = self.pending.lock();
        let oldest = if pending.messages.len() >= pending.depth {
            pending.messages.pop_front()
        } else {
            None
        };
        pending.dropped += u64::from(oldest.is_some());
        pending.messages.push_back(message);
        drop(pending);
        drop(oldest);
    }

    /// Number of messages dropped because a round published more than the depth.
    pub fn dropped(&self) -> u64 {
        self.pending.lock().dropped
    }
}

impl<T> Clone for RoundOutput<T> {
    fn clone(&self) -> Self {
        Self {
            pending: self.pending.clone(),
        }
    }
}

impl<T> fmt::Debug for RoundOutput<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = self.pending.lock();
        f.debug_struct("RoundOutput")
            .field("waiting", &pending.messages.len())
            .field("dropped", &pending.dropped)
            .finish()
    }
}

trait FlushOutput: Send {
    fn flush(&mut self);
}

struct PublisherOutput<T: Message> {
    publisher: Publisher<T>,
    output: RoundOutput<T>,
    has_warned: bool,
}

impl<T: Message> FlushOutput for PublisherOutput<T> {
    fn flush(&mut self) {
        loop {
            let message = self.output.pending.lock().messages.pop_front();
            let Some(message) = message else { break };
            if let Err(error) = self.publisher.publish_arc(message)
                && !std::mem::replace(&mut self.has_warned, true)
            {
                let topic = self.publisher.topic();
                tracing::warn!(%topic, "round output not published: {error}");
            }
        }
    }
}
