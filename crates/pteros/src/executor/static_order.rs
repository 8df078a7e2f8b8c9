//! The static executor: a fixed order, a trigger, and logical execution time.
//!
//! In the manner of rclc (Staschulat, Lütkebohle, Lange: "The rclc Executor:
//! Domain-specific deterministic scheduling mechanisms for ROS applications on
//! microcontrollers", EMSOFT 2020): what runs and in which order is fixed at
//! set-up; a trigger over what is ready starts a round. Nothing is allocated
//! after set-up.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_msg::message::Message;
use pteros_rmw::rtps::fault;
use pteros_rmw::rtps::time::Instant;

use super::ExecutorError;
use crate::context::Context;
use crate::guard::GuardCondition;
use crate::publisher::Publisher;
use crate::sample::Sample;
use crate::service::{Client, Service};
use crate::subscription::Subscription;
use crate::timer::Timer;
use crate::wait_set::{WaitKey, WaitSet, WaitSetError};

use pteros_msg::message::Service as ServiceType;

/// When a [`StaticExecutor`] begins a round.
#[derive(Default)]
pub enum Trigger {
    /// Something is ready.
    #[default]
    Any,
    /// Everything is ready.
    All,
    /// This is ready.
    One(StepKey),
    /// Each time it looks: at every period of [`StaticExecutor::spin_period`].
    Always,
    /// The closure says so, of what is ready now. Asked when something becomes
    /// ready.
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

/// Names a step of a [`StaticExecutor`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct StepKey(WaitKey);

/// What is ready, for [`Trigger::Custom`].
pub struct Readiness<'e> {
    set: &'e WaitSet,
}

impl Readiness<'_> {
    /// Whether that step has something to do.
    pub fn is_ready(&self, step: StepKey) -> bool {
        self.set.is_ready(step.0)
    }

    /// How many steps have.
    pub fn count(&self) -> usize {
        self.set.ready().len()
    }
}

impl fmt::Debug for Readiness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.set.ready()).finish()
    }
}

/// When data is taken and given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum DataSemantics {
    /// A step takes its message when its turn comes, as in rclcpp.
    #[default]
    InTurn,
    /// Logical execution time: all messages are taken when the round begins, and
    /// what is published through [`Output`]s goes out when it ends, with
    /// [`StaticExecutor::spin_period`] at the end of the period, however long the
    /// steps took.
    LogicalExecutionTime,
}

/// Runs its steps in the order in which they were added, once per round, on the
/// thread that spins it. A round begins when the [`Trigger`] says so; a step runs
/// if it was ready then.
///
/// Steps work for this executor alone, whoever spins their nodes, until it is
/// dropped. Set up first, then spin: nothing is allocated afterwards, but by user
/// code and for messages themselves. A panic of a step goes out of the spin.
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::geometry_msgs::msg::Twist;
/// use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// use pteros::prelude::*;
/// use pteros::{DataSemantics, StaticExecutor, Trigger};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let context = Context::new()?;
/// let node = context.node("control")?;
/// let scans = node.create_polled_subscription::<LaserScan>("scan", 1)?;
/// let publisher = node.create_publisher::<Twist>("cmd_vel", 1)?;
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
    steps: Vec<Step>,
    outputs: Vec<Box<dyn Outlet>>,
    trigger: Trigger,
    semantics: DataSemantics,
    orders: Arc<Orders>,
    rounds: u64,
}

struct Step {
    key: WaitKey,
    always: bool,
    runs: bool,
    work: Box<dyn Work>,
}

/// What a step does.
trait Work: Send {
    /// Takes its data, if it has some.
    fn take(&mut self) {}

    fn run(&mut self, set: &mut WaitSet, key: WaitKey);
}

/// What other threads tell it.
#[derive(Default)]
struct Orders {
    cancelled: AtomicBool,
    overruns: AtomicU64,
}

/// Ends the spin of a [`StaticExecutor`] from other threads and from its steps.
#[derive(Clone)]
pub struct StaticExecutorHandle {
    orders: Arc<Orders>,
    home: Arc<super::Home>,
}

impl StaticExecutorHandle {
    /// Ends the spin that goes on, or else the next one, after the round that
    /// runs now. Returns at once.
    pub fn cancel(&self) {
        self.orders.cancelled.store(true, Ordering::Release);
        self.home.queue.recall();
    }

    /// Periods that passed before the steps of the one before were done: no round
    /// began then.
    pub fn overruns(&self) -> u64 {
        self.orders.overruns.load(Ordering::Relaxed)
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
    /// An executor without steps, which begins a round when anything is ready.
    pub fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            set: WaitSet::new(context),
            steps: Vec::new(),
            outputs: Vec::new(),
            trigger: Trigger::default(),
            semantics: DataSemantics::default(),
            orders: Arc::default(),
            rounds: 0,
        }
    }

    /// When a round begins.
    pub fn set_trigger(&mut self, trigger: Trigger) {
        self.trigger = trigger;
    }

    /// When data is taken and given.
    pub fn set_semantics(&mut self, semantics: DataSemantics) {
        self.semantics = semantics;
    }

    /// What other threads and steps may do with it.
    pub fn handle(&self) -> StaticExecutorHandle {
        StaticExecutorHandle {
            orders: self.orders.clone(),
            home: self.set.home.clone(),
        }
    }

    /// Rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    // --- steps ---

    /// A step for a message of a subscription, one per round.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add_subscription<T: Send + Sync + 'static>(
        &mut self,
        subscription: &Subscription<T>,
        mut callback: impl FnMut(Sample<T>) + Send + 'static,
    ) -> Result<StepKey, WaitSetError> {
        let work = Messages {
            subscription: subscription.clone(),
            taken: None,
            callback: move |sample| {
                if let Some(sample) = sample {
                    callback(sample);
                }
            },
        };
        let key = self.set.add(subscription)?;
        Ok(self.add(key, false, Box::new(work)))
    }

    /// A step of every round, with a message of a subscription if there is one.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add_subscription_always<T: Send + Sync + 'static>(
        &mut self,
        subscription: &Subscription<T>,
        callback: impl FnMut(Option<Sample<T>>) + Send + 'static,
    ) -> Result<StepKey, WaitSetError> {
        let work = Messages {
            subscription: subscription.clone(),
            taken: None,
            callback,
        };
        let key = self.set.add(subscription)?;
        Ok(self.add(key, true, Box::new(work)))
    }

    /// A tick of a timer as a step, by its own callback.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add_timer(&mut self, timer: &Timer) -> Result<StepKey, WaitSetError> {
        let key = self.set.add(timer)?;
        Ok(self.add(key, false, Box::new(Own)))
    }

    /// A guard condition as a step, by its own callback.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add_guard_condition(&mut self, guard: &GuardCondition) -> Result<StepKey, WaitSetError> {
        let key = self.set.add(guard)?;
        Ok(self.add(key, false, Box::new(Own)))
    }

    /// A request of a service as a step, by its own callback; taken when its turn
    /// comes.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add_service<S: ServiceType>(
        &mut self,
        service: &Service<S>,
    ) -> Result<StepKey, WaitSetError> {
        let key = self.set.add(service)?;
        Ok(self.add(key, false, Box::new(Own)))
    }

    /// An answer to [`Client::call_then`] as a step; taken when its turn comes.
    ///
    /// # Errors
    /// See [`WaitSetError`].
    pub fn add_client<S: ServiceType>(
        &mut self,
        client: &Client<S>,
    ) -> Result<StepKey, WaitSetError> {
        let key = self.set.add(client)?;
        Ok(self.add(key, false, Box::new(Own)))
    }

    fn add(&mut self, key: WaitKey, always: bool, work: Box<dyn Work>) -> StepKey {
        self.steps.push(Step {
            key,
            always,
            runs: false,
            work,
        });
        StepKey(key)
    }

    /// Where steps publish so that it goes out when the round ends; with
    /// [`DataSemantics::InTurn`] too. It holds `depth` messages, at least one;
    /// when it is full the oldest goes, as with KEEP_LAST.
    pub fn add_output<T: Message>(&mut self, publisher: &Publisher<T>, depth: usize) -> Output<T> {
        let depth = depth.max(1);
        let held = Held {
            messages: VecDeque::with_capacity(depth),
            depth,
            dropped: 0,
        };
        let output = Output {
            held: Arc::new(Mutex::new(held)),
        };
        self.outputs.push(Box::new(Outgoing {
            publisher: publisher.clone(),
            output: output.clone(),
            refused: false,
        }));
        output
    }

    // --- spinning ---

    /// Runs rounds until the context shuts down or it is
    /// [cancelled](StaticExecutorHandle::cancel). Blocks. With
    /// [`Trigger::Always`] a round begins whenever something is ready.
    pub fn spin(&mut self) {
        while self.goes_on() {
            self.set.look_again();
            if !self.is_triggered(false) {
                self.gather(Instant::FAR_FUTURE);
            }
            if self.goes_on() && self.is_triggered(false) {
                self.round();
                self.give();
            }
        }
        self.end();
    }

    /// Runs one round if the trigger says so within `timeout`; returns whether it
    /// did. Zero only looks.
    pub fn spin_once(&mut self, timeout: Duration) -> bool {
        let now = self.context.core().env.now();
        let until = now.after(timeout.into());
        self.set.look_again();
        self.gather(now);
        while !self.is_triggered(true) {
            let over = self.context.core().env.now() >= until;
            if over || !self.goes_on() {
                return false;
            }
            self.gather(until);
        }
        self.round();
        self.give();
        true
    }

    /// Looks at the trigger once per `period` and runs a round if it says so,
    /// until the context shuts down or it is cancelled. Blocks. A period that has
    /// passed before the steps were done is skipped and counted
    /// ([`StaticExecutorHandle::overruns`]); the phase is kept.
    ///
    /// # Errors
    /// [`ExecutorError::ZeroPeriod`].
    pub fn spin_period(&mut self, period: Duration) -> Result<(), ExecutorError> {
        let nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        if nanos == 0 {
            return Err(ExecutorError::ZeroPeriod);
        }
        let mut begins = self.context.core().env.now();
        while self.goes_on() {
            self.set.look_again();
            self.wait_until(begins);
            if !self.goes_on() {
                break;
            }
            // The end of the period before.
            self.give();
            if self.is_triggered(true) {
                self.round();
            }
            let now = self.context.core().env.now().as_nanos();
            let passed = now.saturating_sub(begins.as_nanos()) / nanos;
            self.orders.overruns.fetch_add(passed, Ordering::Relaxed);
            let periods = passed + 1 + u64::from(fault!("static-period-skipped"));
            let span = nanos.saturating_mul(periods);
            begins = Instant::from_nanos(begins.as_nanos().saturating_add(span));
        }
        self.give();
        self.end();
        Ok(())
    }

    /// Gathers what becomes ready until then.
    fn wait_until(&mut self, then: Instant) {
        loop {
            self.gather(then);
            if self.context.core().env.now() >= then || !self.goes_on() {
                break;
            }
        }
    }

    fn gather(&mut self, until: Instant) {
        let orders = self.orders.clone();
        let is_wanted = || orders.cancelled.load(Ordering::Acquire);
        self.set.gather(until, is_wanted);
    }

    fn goes_on(&self) -> bool {
        let cancelled = self.orders.cancelled.load(Ordering::Acquire);
        !cancelled && !self.context.is_shut_down()
    }

    fn end(&self) {
        self.orders.cancelled.store(false, Ordering::Release);
    }

    fn is_triggered(&mut self, is_asked: bool) -> bool {
        let set = &self.set;
        let any = !set.ready().is_empty();
        match &mut self.trigger {
            Trigger::Any => any,
            Trigger::All => any && set.ready().len() == self.steps.len(),
            Trigger::One(key) => set.is_ready(key.0),
            Trigger::Always => is_asked || any,
            Trigger::Custom(says) => says(&Readiness { set }),
        }
    }

    fn round(&mut self) {
        let Self { steps, set, .. } = self;
        for step in &mut *steps {
            step.runs = step.always || set.is_ready(step.key);
            if step.runs && self.semantics == DataSemantics::LogicalExecutionTime {
                step.work.take();
            }
        }
        for step in &mut *steps {
            if step.runs {
                if self.semantics == DataSemantics::InTurn {
                    step.work.take();
                }
                step.work.run(set, step.key);
            }
        }
        self.rounds += 1;
    }

    fn give(&mut self) {
        for output in &mut self.outputs {
            output.give();
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

/// The callback that the entity has itself.
struct Own;

impl Work for Own {
    fn run(&mut self, set: &mut WaitSet, key: WaitKey) {
        set.run(key);
    }
}

struct Messages<T: 'static, F> {
    subscription: Subscription<T>,
    taken: Option<Sample<T>>,
    callback: F,
}

impl<T: Send + Sync + 'static, F: FnMut(Option<Sample<T>>) + Send> Work for Messages<T, F> {
    fn take(&mut self) {
        self.taken = self.subscription.take();
    }

    fn run(&mut self, _: &mut WaitSet, _: WaitKey) {
        (self.callback)(self.taken.take());
    }
}

/// Publishes when the round ends; see [`StaticExecutor::add_output`]. Cheap to
/// clone, thread-safe.
pub struct Output<T> {
    held: Arc<Mutex<Held<T>>>,
}

struct Held<T> {
    messages: VecDeque<Arc<T>>,
    depth: usize,
    dropped: u64,
}

impl<T> Output<T> {
    /// Keeps a message until the round ends. Allocates only its `Arc`.
    pub fn publish(&self, message: T) {
        self.publish_arc(Arc::new(message));
    }

    /// Keeps a message until the round ends. Allocates nothing.
    pub fn publish_arc(&self, message: Arc<T>) {
        let mut held = self.held.lock();
        let oldest = match held.messages.len() >= held.depth {
            true => held.messages.pop_front(),
            false => None,
        };
        held.dropped += u64::from(oldest.is_some());
        held.messages.push_back(message);
        drop(held);
        drop(oldest);
    }

    /// Messages that went since more were published in one round than it holds.
    pub fn dropped(&self) -> u64 {
        self.held.lock().dropped
    }
}

impl<T> Clone for Output<T> {
    fn clone(&self) -> Self {
        Self {
            held: self.held.clone(),
        }
    }
}

impl<T> fmt::Debug for Output<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = self.held.lock();
        f.debug_struct("Output")
            .field("waiting", &held.messages.len())
            .field("dropped", &held.dropped)
            .finish()
    }
}

trait Outlet: Send {
    fn give(&mut self);
}

struct Outgoing<T: Message> {
    publisher: Publisher<T>,
    output: Output<T>,
    refused: bool,
}

impl<T: Message> Outlet for Outgoing<T> {
    fn give(&mut self) {
        loop {
            let message = self.output.held.lock().messages.pop_front();
            let Some(message) = message else { break };
            if let Err(error) = self.publisher.publish_arc(message)
                && !std::mem::replace(&mut self.refused, true)
            {
                let topic = self.publisher.topic();
                tracing::warn!(%topic, "an output was not published: {error}");
            }
        }
    }
}
