//! Diagnostics: publishes the state of a node on `/diagnostics` (ROS 2's package
//! `diagnostic_updater`).
//!
//! ```no_run
//! use pteros::diagnostics::{DiagnosticLevel, FrequencyLimits, FrequencyStatus, Updater};
//! use pteros::prelude::*;
//! use pteros::interfaces::sensor_msgs::msg::Image;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let node = Context::new()?.create_node("camera")?;
//! let updater = Updater::new(&node)?;
//! updater.set_hardware_id("camera 7");
//! updater.add("Temperature", |report| {
//!     report.summary(DiagnosticLevel::Ok, "cool");
//!     report.add("celsius", 31.5);
//! });
//! let frames = FrequencyStatus::new(&node.clock(), FrequencyLimits::new(29.0, 31.0));
//! updater.add_task("Frames", frames.clone());
//! let _images = node.create_subscription::<Image>("image", move |_| frames.tick())?;
//! node.spin();
//! # Ok(())
//! # }
//! ```
//!
//! Names, texts and keys are those of `diagnostic_updater`, so that its tools understand
//! them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rcl::diagnostics as core;
pub use pteros_rcl::diagnostics::{DiagnosticLevel, FrequencyLimits, StampLimits, StatusReport};

use crate::clock::{Clock, Time};
use crate::error::CreateError;
use crate::interfaces::diagnostic_msgs::msg::{DiagnosticArray, DiagnosticStatus};
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::parameter::{IntoParameter, ParameterError, ParameterKind};
use crate::publisher::Publisher;
use crate::timer::{Timer, TimerOptions};

/// A part of a node that reports its state.
pub trait DiagnosticTask: Send + 'static {
    /// Fills in the report. Without a summary it is an error.
    fn report(&mut self, report: &mut StatusReport);
}

impl<F: FnMut(&mut StatusReport) + Send + 'static> DiagnosticTask for F {
    fn report(&mut self, report: &mut StatusReport) {
        self(report);
    }
}

/// Publishes the reports of a node's tasks on `/diagnostics`, once a second of ROS time.
/// Thread-safe; clones share it, and it ends when the last one is dropped.
///
/// The parameter `diagnostic_updater.period` sets another period in seconds, at the start.
/// With the parameter `diagnostic_updater.use_fqn` names begin with the node's full name.
#[must_use = "an updater ends when its last handle is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct Updater {
    core: Arc<UpdaterCore>,
    timer: Timer,
}

struct UpdaterCore {
    node_name: String,
    clock: Clock,
    publisher: Publisher<DiagnosticArray>,
    hardware_id: Mutex<String>,
    tasks: Mutex<Vec<Arc<NamedTask>>>,
}

struct NamedTask {
    name: String,
    task: Mutex<Box<dyn DiagnosticTask>>,
}

/// Declares a parameter. If another updater of the node, or the program, has declared it,
/// its value counts.
fn declared_value<T: IntoParameter<Kind = T> + ParameterKind>(
    node: &Node,
    name: &str,
    default: T,
) -> Result<T, CreateError> {
    match node.declare_parameter(name, default.clone()) {
        Ok(handle) => Ok(handle.value()),
        Err(ParameterError::AlreadyDeclared { .. }) => {
            let value = node.parameter(name)?;
            Ok(T::from_parameter(&value).unwrap_or_else(|| {
                tracing::warn!("{name} = {value}: it must be of type {}", T::TYPE);
                default
            }))
        }
        Err(error) => Err(error.into()),
    }
}

impl Updater {
    /// Creates an updater; the node's executor runs its tasks.
    ///
    /// # Errors
    /// See [`CreateError`]; [`CreateError::ZeroPeriod`] if the parameter of the period is
    /// not above zero.
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        let period = declared_value(node, "diagnostic_updater.period", 1.0)?;
        let use_fqn = declared_value(node, "diagnostic_updater.use_fqn", false)?;
        let period = Duration::try_from_secs_f64(period).unwrap_or_default();
        let node_name = if use_fqn {
            node.fully_qualified_name()
        } else {
            node.name().to_owned()
        };
        let core = Arc::new(UpdaterCore {
            node_name,
            clock: node.clock(),
            publisher: node.create_publisher("/diagnostics".keep_last(1))?,
            hardware_id: Mutex::default(),
            tasks: Mutex::default(),
        });
        let weak = Arc::downgrade(&core);
        let tick = move || {
            if let Some(core) = weak.upgrade() {
                core.update();
            }
        };
        let timer = node.create_timer(TimerOptions::new(period).on_ros_time(), tick)?;
        Ok(Self { core, timer })
    }

    /// Sets the id of the hardware in all reports; empty at first.
    pub fn set_hardware_id(&self, id: impl Into<String>) {
        *self.core.hardware_id.lock() = id.into();
    }

    /// Adds a task, and publishes at once that it starts.
    pub fn add(
        &self,
        name: impl Into<String>,
        task: impl FnMut(&mut StatusReport) + Send + 'static,
    ) {
        self.add_task(name, task);
    }

    /// As [`Updater::add`], for a value.
    pub fn add_task(&self, name: impl Into<String>, task: impl DiagnosticTask) {
        let name = name.into();
        let mut report = self.core.new_report(&name);
        report.summary(DiagnosticLevel::Ok, "Node starting up");
        self.core.publish(vec![report.into_status()]);
        let task: Mutex<Box<dyn DiagnosticTask>> = Mutex::new(Box::new(task));
        let task = Arc::new(NamedTask { name, task });
        self.core.tasks.lock().push(task);
    }

    /// Removes the first task of that name; false if there is none.
    pub fn remove(&self, name: &str) -> bool {
        let mut tasks = self.core.tasks.lock();
        let index = tasks.iter().position(|task| task.name == name);
        let removed = index.map(|index| tasks.remove(index));
        drop(tasks);
        removed.is_some()
    }

    /// Runs all tasks now and publishes their reports. Leaves out a task that is running, on
    /// this or another thread.
    pub fn force_update(&self) {
        self.core.update();
    }

    /// Publishes one level and message for all tasks, without running them.
    pub fn broadcast(&self, level: DiagnosticLevel, message: &str) {
        let tasks = self.core.tasks.lock().clone();
        let report = |task: &Arc<NamedTask>| {
            let mut report = self.core.new_report(&task.name);
            report.summary(level, message);
            report.into_status()
        };
        let statuses = tasks.iter().map(report).collect();
        self.core.publish(statuses);
    }

    /// Time between two updates.
    pub fn period(&self) -> Duration {
        self.timer.period()
    }

    /// Changes the time between two updates; see [`Timer::set_period`].
    pub fn set_period(&self, period: Duration) {
        self.timer.set_period(period);
    }
}

impl UpdaterCore {
    fn new_report(&self, task: &str) -> StatusReport {
        let name = format!("{}: {task}", self.node_name);
        StatusReport::new(name, &self.hardware_id.lock())
    }

    fn update(&self) {
        // Tasks may add and remove tasks, and spin.
        let tasks = self.tasks.lock().clone();
        let run = |task: &Arc<NamedTask>| {
            let mut running = task.task.try_lock()?;
            let mut report = self.new_report(&task.name);
            running.report(&mut report);
            Some(report.into_status())
        };
        let statuses = tasks.iter().filter_map(run).collect();
        self.publish(statuses);
    }

    fn publish(&self, status: Vec<DiagnosticStatus>) {
        let mut message = DiagnosticArray {
            status,
            ..DiagnosticArray::default()
        };
        message.header.stamp = self.clock.now().into();
        if let Err(error) = self.publisher.publish_owned(message) {
            tracing::warn!("/diagnostics: {error}");
        }
    }
}

impl fmt::Debug for Updater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updater")
            .field("node", &self.core.node_name)
            .field("tasks", &self.core.tasks.lock().len())
            .finish_non_exhaustive()
    }
}

/// Checks how often an event happens. A task; clones share the counts.
#[derive(Clone, Debug)]
pub struct FrequencyStatus {
    clock: Clock,
    status: Arc<Mutex<core::FrequencyStatus>>,
}

impl FrequencyStatus {
    /// Counts events from now on, by the time of a clock.
    pub fn new(clock: &Clock, limits: FrequencyLimits) -> Self {
        let status = core::FrequencyStatus::new(limits, clock.now());
        Self {
            clock: clock.clone(),
            status: Arc::new(Mutex::new(status)),
        }
    }

    /// An event happened.
    pub fn tick(&self) {
        self.status.lock().tick();
    }

    /// Forgets all events.
    pub fn clear(&self) {
        self.status.lock().clear(self.clock.now());
    }
}

impl DiagnosticTask for FrequencyStatus {
    fn report(&mut self, report: &mut StatusReport) {
        self.status.lock().report(self.clock.now(), report);
    }
}

/// Checks the age of time stamps on arrival. A task; clones share the ages.
#[derive(Clone, Debug)]
pub struct StampStatus {
    clock: Clock,
    status: Arc<Mutex<core::StampStatus>>,
}

impl StampStatus {
    /// Ages are by the time of a clock.
    pub fn new(clock: &Clock, limits: StampLimits) -> Self {
        Self {
            clock: clock.clone(),
            status: Arc::new(Mutex::new(core::StampStatus::new(limits))),
        }
    }

    /// A message with that stamp arrived now.
    pub fn tick(&self, stamp: Time) {
        self.status.lock().tick(stamp, self.clock.now());
    }
}

impl DiagnosticTask for StampStatus {
    fn report(&mut self, report: &mut StatusReport) {
        self.status.lock().report(report);
    }
}

/// Checks frequency and stamps of a topic: both in one report. A task; clones share it.
#[derive(Clone, Debug)]
pub struct TopicStatus {
    frequency: FrequencyStatus,
    stamps: StampStatus,
}

impl TopicStatus {
    /// Ages and frequencies are by the time of a clock.
    pub fn new(clock: &Clock, frequency: FrequencyLimits, stamps: StampLimits) -> Self {
        Self {
            frequency: FrequencyStatus::new(clock, frequency),
            stamps: StampStatus::new(clock, stamps),
        }
    }

    /// A message with that stamp was sent or has arrived.
    pub fn tick(&self, stamp: Time) {
        self.frequency.tick();
        self.stamps.tick(stamp);
    }
}

impl DiagnosticTask for TopicStatus {
    fn report(&mut self, report: &mut StatusReport) {
        let tasks: [&mut dyn DiagnosticTask; 2] = [&mut self.frequency, &mut self.stamps];
        report.compose(tasks.map(|task| |report: &mut StatusReport| task.report(report)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, ContextOptions};
    use crate::node::NodeOptions;
    use crate::parameter::Parameter;

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[test]
    fn reports_of_all_tasks_are_published_with_the_names_of_node_and_task() {
        let context = Context::with_options(ContextOptions::local(196)).unwrap();
        let fast = Parameter::new("diagnostic_updater.period", 0.01);
        let options = NodeOptions::new("camera").parameter_overrides([fast]);
        let node = context.create_node(options).unwrap();
        let heard = Arc::new(Mutex::new(Vec::<DiagnosticArray>::new()));
        let list = heard.clone();
        let _subscription = node
            .create_subscription::<DiagnosticArray>("/diagnostics".keep_last(100), move |array| {
                list.lock().push((*array).clone());
            })
            .unwrap();
        let updater = Updater::new(&node).unwrap();
        assert_eq!(updater.period(), Duration::from_millis(10));
        updater.set_hardware_id("number 7");
        updater.add("silent", |_| ());
        let topic = TopicStatus::new(
            &node.clock(),
            FrequencyLimits::new(0.0, f64::INFINITY),
            StampLimits::default(),
        );
        updater.add_task("topic", topic.clone());
        topic.tick(node.now());
        let is_full = || heard.lock().iter().any(|array| array.status.len() == 2);
        assert!(node.spin_until(is_full, TIMEOUT));
        let arrays = std::mem::take(&mut *heard.lock());
        assert_eq!(arrays[0].status[0].message, "Node starting up");
        let both = arrays.iter().find(|array| array.status.len() == 2).unwrap();
        assert_ne!(both.header.stamp.sec, 0);
        let [silent, topic] = &both.status[..] else {
            unreachable!("two");
        };
        assert_eq!((&*silent.name, silent.level), ("camera: silent", 2));
        assert_eq!(silent.message, "No message was set");
        assert_eq!((&*topic.name, topic.level), ("camera: topic", 0));
        assert_eq!(topic.hardware_id, "number 7");
        assert_eq!(topic.values[0].key, "Events in window");
        assert_eq!(topic.values.len(), 11);
        assert!(updater.remove("silent") && !updater.remove("silent"));
        updater.broadcast(DiagnosticLevel::Warn, "going down");
        let is_warned = || {
            let heard = heard.lock();
            heard
                .iter()
                .any(|array| array.status[0].message == "going down")
        };
        assert!(node.spin_until(is_warned, TIMEOUT));
    }

    #[test]
    fn a_node_has_several_updaters_and_tasks_may_change_their_updater() {
        let context = Context::with_options(ContextOptions::local(196)).unwrap();
        let node = context.create_node("camera").unwrap();
        node.declare_parameter("diagnostic_updater.period", 0.25)
            .unwrap();
        let (first, second) = (Updater::new(&node).unwrap(), Updater::new(&node).unwrap());
        assert_eq!(first.period(), second.period());
        assert_eq!(second.period(), Duration::from_millis(250));
        let runs = Arc::new(Mutex::new(0));
        let (count, itself) = (runs.clone(), second.clone());
        second.add("changing", move |_| {
            *count.lock() += 1;
            itself.force_update();
            itself.broadcast(DiagnosticLevel::Ok, "at work");
            itself.add("later", |_| ());
            assert!(itself.remove("changing"));
        });
        second.force_update();
        second.force_update();
        assert_eq!(*runs.lock(), 1);
        assert!(second.remove("later") && !second.remove("later"));
    }

    #[test]
    fn a_period_of_zero_is_refused() {
        let context = Context::with_options(ContextOptions::local(196)).unwrap();
        for period in [0.0, -1.0, f64::NAN] {
            let zero = Parameter::new("diagnostic_updater.period", period);
            let options = NodeOptions::new("camera").parameter_overrides([zero]);
            let node = context.create_node(options).unwrap();
            assert!(matches!(Updater::new(&node), Err(CreateError::ZeroPeriod)));
        }
    }
}
