//! Launch node: the ROS node of a launch. It loads components into containers,
//! waits on the ROS clock and supervises managed nodes. It is created only if a
//! launch file needs it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pteros::interfaces::composition_interfaces::srv::{
    LoadNode, LoadNodeRequest, LoadNodeResponse,
};
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::parameter::ParameterValue;
use pteros::{
    Client, Context, ContextOptions, Node, NodeOptions, Timer, TimerOptions,
    executors::{PolledExecutor, SingleThreadedExecutor},
    lifecycle::{LifecycleSupervisor, SupervisedNode, SupervisorEvent},
    service::ResponseFuture,
};
use pteros_net::Waker;

use crate::plan::{ComponentLoad, ComponentSpec, LogLevel};

/// Period between two looks for a container that is not there yet. Only the
/// endpoints of its services show its arrival, and no descriptor reports them.
pub const CONTAINER_POLL_PERIOD: Duration = Duration::from_millis(50);
/// Period between two reports that a container is still missing.
const REMIND_PERIOD: Duration = Duration::from_secs(10);
/// Time limit for a response of a container. It is longer than the container's own
/// constructor timeout.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit until a managed node appears. A timer may start it.
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(60);

/// A report of the launch node to the supervisor.
#[derive(Debug)]
pub enum LaunchNodeEvent {
    /// A log line.
    Log(LogLevel, String),
    /// All components of a load have a response: number of the load, number of
    /// failures.
    Loaded(usize, usize),
    /// The timer of this number has expired.
    TimerDue(usize),
    /// The supervision of a managed node was given up.
    SupervisionGivenUp,
}

/// The ROS node of a launch; see the module.
pub struct LaunchNode {
    context: Context,
    node: Node,
    sim_time_node: Option<Node>,
    executor: PolledExecutor,
    loading: Vec<LoadInProgress>,
    timers: Vec<Timer>,
    due: Arc<Mutex<Vec<usize>>>,
    lifecycle: Option<LifecycleThread>,
}

/// A load whose components do not all have a response yet.
struct LoadInProgress {
    number: usize,
    container: String,
    client: Client<LoadNode>,
    remaining: VecDeque<ComponentSpec>,
    call: Option<(ResponseFuture<LoadNodeResponse>, ComponentSpec, Instant)>,
    failed: usize,
    remind_at: Instant,
}

/// The supervisor of managed nodes. It blocks, so it has its own thread and
/// context.
struct LifecycleThread {
    context: Context,
    thread: Option<JoinHandle<()>>,
    events: Receiver<LaunchNodeEvent>,
    waker: Arc<Waker>,
}

impl LaunchNode {
    /// Joins the ROS graph in this domain.
    ///
    /// # Errors
    /// The reason as text.
    pub fn new(domain_id: Option<u32>) -> Result<Self, String> {
        let context = context(domain_id)?;
        let name = format!("launch_ros_{}", std::process::id());
        let node = create_node(&context, NodeOptions::new(name))?;
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).map_err(|e| e.to_string())?;
        let executor = PolledExecutor::new(executor).map_err(|e| e.to_string())?;
        Ok(Self {
            context,
            node,
            sim_time_node: None,
            executor,
            loading: Vec::new(),
            timers: Vec::new(),
            due: Arc::default(),
            lifecycle: None,
        })
    }

    /// Starts to load components.
    ///
    /// # Errors
    /// The container's name is invalid.
    pub fn load(&mut self, number: usize, load: &ComponentLoad) -> Result<(), String> {
        let service = format!("{}/_container/load_node", load.container);
        let client = self.node.create_client::<LoadNode>(&service);
        self.cancel_load(number);
        self.loading.push(LoadInProgress {
            number,
            container: load.container.clone(),
            client: client.map_err(|error| error.to_string())?,
            remaining: load.components.clone().into(),
            call: None,
            failed: 0,
            remind_at: Instant::now() + REMIND_PERIOD,
        });
        Ok(())
    }

    /// Drops the load of this number; a later response to it has no effect.
    pub fn cancel_load(&mut self, number: usize) {
        self.loading.retain(|one| one.number != number);
    }

    /// Starts a one-shot timer on the ROS clock.
    ///
    /// # Errors
    /// Those of the node.
    pub fn timer(
        &mut self,
        number: usize,
        period: Duration,
        simulated: bool,
    ) -> Result<(), String> {
        if simulated && self.sim_time_node.is_none() {
            let name = format!("launch_ros_clock_{}", std::process::id());
            let simulated = pteros::parameter::Parameter {
                name: "use_sim_time".into(),
                value: ParameterValue::Bool(true),
            };
            let options = NodeOptions::new(name).parameter_overrides([simulated]);
            let node = create_node(&self.context, options)?;
            let added = self.executor.executor().add_node(&node);
            added.map_err(|error| error.to_string())?;
            self.sim_time_node = Some(node);
        }
        let node = match &self.sim_time_node {
            Some(node) if simulated => node,
            _ => &self.node,
        };
        let due = self.due.clone();
        let options = TimerOptions::new(period).on_ros_time().one_shot();
        let timer = node.create_timer(options, move || due.lock().push(number));
        self.timers.push(timer.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Starts to bring managed nodes up, each after the nodes that it depends on.
    ///
    /// # Errors
    /// Circular dependencies, and those of the operating system.
    pub fn supervise(
        &mut self,
        domain: Option<u32>,
        nodes: Vec<(String, Vec<String>)>,
    ) -> Result<BorrowedFd<'_>, String> {
        let context = context(domain)?;
        let nodes = nodes.into_iter().map(|(name, needs)| {
            let node = SupervisedNode::new(name).arrival_timeout(ARRIVAL_TIMEOUT);
            needs.into_iter().fold(node, SupervisedNode::depends_on)
        });
        let supervisor = LifecycleSupervisor::new(&context, nodes);
        let supervisor = supervisor.map_err(|error| error.to_string())?;
        let (sender, events) = channel();
        let waker = Arc::new(Waker::new().map_err(|error| error.to_string())?);
        let event_waker = waker.clone();
        let mut supervisor = supervisor.on_event(move |event| {
            let level = if event.needs_attention() {
                LogLevel::Warning
            } else {
                LogLevel::Info
            };
            let is_given_up = matches!(event, SupervisorEvent::GivenUp { .. });
            // The launch may be over.
            let _ = sender.send(LaunchNodeEvent::Log(level, event.to_string()));
            if is_given_up {
                let _ = sender.send(LaunchNodeEvent::SupervisionGivenUp);
            }
            event_waker.wake();
        });
        let watched = context.clone();
        let thread = std::thread::Builder::new()
            .name("launch_lifecycle".into())
            .spawn(move || {
                supervisor.bring_up();
                while !watched.is_shut_down() {
                    supervisor.watch(Duration::from_secs(1));
                }
            })
            .map_err(|error| format!("start a thread: {error}"))?;
        let lifecycle = self.lifecycle.insert(LifecycleThread {
            context,
            thread: Some(thread),
            events,
            waker,
        });
        Ok(lifecycle.waker.as_fd())
    }

    /// Ends the supervision of managed nodes.
    pub fn stop_supervising(&mut self) {
        if let Some(lifecycle) = &mut self.lifecycle {
            lifecycle.context.shutdown();
        }
    }

    /// Whether something is waited for that no descriptor reports.
    pub fn needs_polling(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Serves the network and returns the events. Never blocks.
    pub fn poll(&mut self) -> Vec<LaunchNodeEvent> {
        self.executor.spin_some();
        let mut events: Vec<LaunchNodeEvent> = std::mem::take(&mut *self.due.lock())
            .into_iter()
            .map(LaunchNodeEvent::TimerDue)
            .collect();
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.waker.drain();
            events.extend(lifecycle.events.try_iter());
        }
        let now = Instant::now();
        for loading in &mut self.loading {
            loading.poll(now, &mut events);
        }
        self.loading.retain(|one| !one.is_done());
        events
    }
}

impl AsFd for LaunchNode {
    /// Readable when [`LaunchNode::poll`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.executor.as_fd()
    }
}

impl Drop for LaunchNode {
    fn drop(&mut self) {
        self.stop_supervising();
        let thread = self.lifecycle.as_mut().and_then(|one| one.thread.take());
        if let Some(thread) = thread {
            // All its events have been handled.
            let _ = thread.join();
        }
    }
}

impl LoadInProgress {
    fn is_done(&self) -> bool {
        self.remaining.is_empty() && self.call.is_none()
    }

    /// Loads one component at a time, in order, as launch_ros does.
    fn poll(&mut self, now: Instant, events: &mut Vec<LaunchNodeEvent>) {
        self.take_response(now, events);
        while self.call.is_none() && !self.remaining.is_empty() {
            if !self.client.service_is_ready() {
                if self.remind_at <= now {
                    self.remind_at = now + REMIND_PERIOD;
                    let text = format!("still waiting for container '{}'", self.container);
                    events.push(LaunchNodeEvent::Log(LogLevel::Warning, text));
                }
                return;
            }
            self.send_request(now, events);
        }
        if self.is_done() {
            events.push(LaunchNodeEvent::Loaded(self.number, self.failed));
        }
    }

    fn take_response(&mut self, now: Instant, events: &mut Vec<LaunchNodeEvent>) {
        let container = &self.container;
        let Some((call, component, until)) = &mut self.call else {
            return;
        };
        let answer = match call.take() {
            Some(Ok(answer)) if answer.success => Ok(answer.full_node_name.clone()),
            Some(Ok(answer)) => Err(answer.error_message.clone()),
            Some(Err(error)) => Err(error.to_string()),
            None if *until <= now => {
                Err(format!("no response within {} s", LOAD_TIMEOUT.as_secs()))
            }
            None => return,
        };
        events.push(match answer {
            Ok(name) => {
                let text = format!("Loaded node '{name}' in container '{container}'");
                LaunchNodeEvent::Log(LogLevel::Info, text)
            }
            Err(why) => {
                self.failed += 1;
                let (class, location) = (&component.class, &component.location);
                let text = format!(
                    "{location}: '{class}' is not loaded into container '{container}': {why}"
                );
                LaunchNodeEvent::Log(LogLevel::Error, text)
            }
        });
        self.call = None;
    }

    fn send_request(&mut self, now: Instant, events: &mut Vec<LaunchNodeEvent>) {
        let Some(component) = self.remaining.pop_front() else {
            return;
        };
        match self.client.call_async(&request(&component)) {
            Ok(call) => self.call = Some((call, component, now + LOAD_TIMEOUT)),
            Err(error) => {
                self.failed += 1;
                let text = format!("{}: {error}", component.location);
                events.push(LaunchNodeEvent::Log(LogLevel::Error, text));
            }
        }
    }
}

fn request(component: &ComponentSpec) -> LoadNodeRequest {
    let parameters = |values: &[(String, ParameterValue)]| {
        let values = values.iter().map(|(name, value)| Parameter {
            name: name.clone(),
            value: value.clone().into_message(),
        });
        values.collect()
    };
    LoadNodeRequest {
        package_name: component.package.clone(),
        plugin_name: component.class.clone(),
        node_name: component.name.clone(),
        node_namespace: component.namespace.clone(),
        log_level: 0,
        remap_rules: component.remaps.clone(),
        parameters: parameters(&component.parameters),
        extra_arguments: parameters(&component.extra_arguments),
    }
}

fn context(domain_id: Option<u32>) -> Result<Context, String> {
    let options = ContextOptions {
        domain_id,
        use_environment: true,
        ..ContextOptions::default()
    };
    Context::with_options(options).map_err(|error| format!("join the graph: {error}"))
}

/// Other nodes do not need the parameters of this node.
fn create_node(context: &Context, options: NodeOptions) -> Result<Node, String> {
    let options = options
        .start_parameter_services(false)
        .start_parameter_event_publisher(false);
    context
        .create_node(options)
        .map_err(|error| error.to_string())
}
