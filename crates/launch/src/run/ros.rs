//! What a launch does as a node itself: loads components into containers, waits on
//! the ROS clock, and brings managed nodes up. Made only when a launch file needs it.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pteros::interfaces::composition_interfaces::srv::{
    LoadNode, LoadNode_Request, LoadNode_Response,
};
use pteros::interfaces::rcl_interfaces::msg::Parameter;
use pteros::parameter::ParameterValue;
use pteros::{
    Call, Client, Context, ContextOptions, LifecycleSupervisor, Node, NodeOptions, PolledExecutor,
    SingleThreadedExecutor, SupervisedNode, SupervisorEvent, Timer, TimerOptions,
};
use pteros_net::Waker;

use crate::plan::{Component, Level, Load};

/// How often a container that is not there yet is looked for: what its arrival
/// means is seen by its services' endpoints alone.
pub const LOOK: Duration = Duration::from_millis(50);
/// How often it is said that it is still waited for.
const REMIND: Duration = Duration::from_secs(10);
/// How long a container has for an answer, longer than it gives a constructor.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a managed node may take to come: a timer may start it.
const ARRIVAL: Duration = Duration::from_secs(60);

/// What came of something.
#[derive(Debug)]
pub enum News {
    /// A line for the user.
    Say(Level, String),
    /// All components of a load have been answered; so many are not loaded.
    Loaded(usize, usize),
    /// A timer is due.
    Due(usize),
    /// A managed node is given up.
    GivenUp,
}

/// See the file.
pub struct Ros {
    context: Context,
    node: Node,
    simulated: Option<Node>,
    executor: PolledExecutor,
    loading: Vec<Loading>,
    timers: Vec<Timer>,
    due: Arc<Mutex<Vec<usize>>>,
    lifecycle: Option<Lifecycle>,
}

/// A load under way.
struct Loading {
    number: usize,
    container: String,
    client: Client<LoadNode>,
    rest: VecDeque<Component>,
    call: Option<(Call<LoadNode_Response>, Component, Instant)>,
    failed: usize,
    remind_at: Instant,
}

/// The supervisor of managed nodes: it blocks, so it has a thread and a context of
/// its own.
struct Lifecycle {
    context: Context,
    thread: Option<JoinHandle<()>>,
    news: Receiver<News>,
    waker: Arc<Waker>,
}

impl Ros {
    /// Joins the graph, in the domain of the processes.
    ///
    /// # Errors
    /// What keeps it from that, in words.
    pub fn new(domain: Option<u32>) -> Result<Self, String> {
        let context = context(domain)?;
        let name = format!("launch_ros_{}", std::process::id());
        let node = plain_node(&context, NodeOptions::new(name))?;
        let executor = SingleThreadedExecutor::new(&context);
        executor.add_node(&node).map_err(|e| e.to_string())?;
        let executor = PolledExecutor::new(executor).map_err(|e| e.to_string())?;
        Ok(Self {
            context,
            node,
            simulated: None,
            executor,
            loading: Vec::new(),
            timers: Vec::new(),
            due: Arc::default(),
            lifecycle: None,
        })
    }

    /// Begins to load components.
    ///
    /// # Errors
    /// A container's name that is none.
    pub fn load(&mut self, number: usize, load: &Load) -> Result<(), String> {
        let service = format!("{}/_container/load_node", load.container);
        let client = self.node.create_client::<LoadNode>(&service);
        self.forget(number);
        self.loading.push(Loading {
            number,
            container: load.container.clone(),
            client: client.map_err(|error| error.to_string())?,
            rest: load.components.clone().into(),
            call: None,
            failed: 0,
            remind_at: Instant::now() + REMIND,
        });
        Ok(())
    }

    /// Forgets a load.
    pub fn forget(&mut self, number: usize) {
        self.loading.retain(|one| one.number != number);
    }

    /// Waits on the ROS clock.
    ///
    /// # Errors
    /// What the node says.
    pub fn timer(
        &mut self,
        number: usize,
        period: Duration,
        simulated: bool,
    ) -> Result<(), String> {
        if simulated && self.simulated.is_none() {
            let name = format!("launch_ros_clock_{}", std::process::id());
            let simulated = pteros::parameter::Parameter {
                name: "use_sim_time".into(),
                value: ParameterValue::Bool(true),
            };
            let options = NodeOptions::new(name).parameter_overrides([simulated]);
            let node = plain_node(&self.context, options)?;
            let added = self.executor.executor().add_node(&node);
            added.map_err(|error| error.to_string())?;
            self.simulated = Some(node);
        }
        let node = match &self.simulated {
            Some(node) if simulated => node,
            _ => &self.node,
        };
        let due = self.due.clone();
        let options = TimerOptions::new(period).on_ros_time().one_shot();
        let timer = node.create_timer_with(options, move || due.lock().push(number));
        self.timers.push(timer.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Begins to bring managed nodes up, each after those that it depends on.
    ///
    /// # Errors
    /// Nodes that depend on each other in a circle, and what the system refuses.
    pub fn supervise(
        &mut self,
        domain: Option<u32>,
        nodes: Vec<(String, Vec<String>)>,
    ) -> Result<BorrowedFd<'_>, String> {
        let context = context(domain)?;
        let nodes = nodes.into_iter().map(|(name, needs)| {
            let node = SupervisedNode::new(name).arrival_timeout(ARRIVAL);
            needs.into_iter().fold(node, SupervisedNode::depends_on)
        });
        let supervisor = LifecycleSupervisor::new(&context, nodes);
        let supervisor = supervisor.map_err(|error| error.to_string())?;
        let (sender, news) = channel();
        let waker = Arc::new(Waker::new().map_err(|error| error.to_string())?);
        let rung = waker.clone();
        let mut supervisor = supervisor.on_event(move |event| {
            let level = match event.is_trouble() {
                true => Level::Warning,
                false => Level::Info,
            };
            let is_given_up = matches!(event, SupervisorEvent::GivenUp { .. });
            // The launch may be over.
            let _ = sender.send(News::Say(level, event.to_string()));
            if is_given_up {
                let _ = sender.send(News::GivenUp);
            }
            rung.wake();
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
        let lifecycle = self.lifecycle.insert(Lifecycle {
            context,
            thread: Some(thread),
            news,
            waker,
        });
        Ok(lifecycle.waker.as_fd())
    }

    /// Managed nodes are left alone from now on.
    pub fn stop_supervising(&mut self) {
        if let Some(lifecycle) = &mut self.lifecycle {
            lifecycle.context.shutdown();
        }
    }

    /// Whether something is waited for that no descriptor tells of.
    pub fn needs_looks(&self) -> bool {
        !self.loading.is_empty()
    }

    /// Serves the network and says what has come of what.
    pub fn turn(&mut self) -> Vec<News> {
        self.executor.spin_some();
        let mut news: Vec<News> = std::mem::take(&mut *self.due.lock())
            .into_iter()
            .map(News::Due)
            .collect();
        if let Some(lifecycle) = &self.lifecycle {
            lifecycle.waker.drain();
            news.extend(lifecycle.news.try_iter());
        }
        let now = Instant::now();
        for loading in &mut self.loading {
            loading.turn(now, &mut news);
        }
        self.loading.retain(|one| !one.is_done());
        news
    }
}

impl AsFd for Ros {
    /// Readable when [`Ros::turn`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.executor.as_fd()
    }
}

impl Drop for Ros {
    fn drop(&mut self) {
        self.stop_supervising();
        let thread = self.lifecycle.as_mut().and_then(|one| one.thread.take());
        if let Some(thread) = thread {
            // It has nothing to tell that has not been told.
            let _ = thread.join();
        }
    }
}

impl Loading {
    fn is_done(&self) -> bool {
        self.rest.is_empty() && self.call.is_none()
    }

    /// One component at a time, in order, as launch_ros does.
    fn turn(&mut self, now: Instant, news: &mut Vec<News>) {
        self.take_answer(now, news);
        while self.call.is_none() && !self.rest.is_empty() {
            if !self.client.is_ready() {
                if self.remind_at <= now {
                    self.remind_at = now + REMIND;
                    let text = format!("container '{}' is still waited for", self.container);
                    news.push(News::Say(Level::Warning, text));
                }
                return;
            }
            self.ask(now, news);
        }
        if self.is_done() {
            news.push(News::Loaded(self.number, self.failed));
        }
    }

    fn take_answer(&mut self, now: Instant, news: &mut Vec<News>) {
        let container = &self.container;
        let Some((call, component, until)) = &mut self.call else {
            return;
        };
        let answer = match call.take() {
            Some(Ok(answer)) if answer.success => Ok(answer.full_node_name.clone()),
            Some(Ok(answer)) => Err(answer.error_message.clone()),
            Some(Err(error)) => Err(error.to_string()),
            None if *until <= now => Err(format!(
                "it has not answered within {} s",
                PATIENCE.as_secs()
            )),
            None => return,
        };
        news.push(match answer {
            Ok(name) => {
                let text = format!("Loaded node '{name}' in container '{container}'");
                News::Say(Level::Info, text)
            }
            Err(why) => {
                self.failed += 1;
                let (class, place) = (&component.class, &component.place);
                let text =
                    format!("{place}: '{class}' is not loaded into container '{container}': {why}");
                News::Say(Level::Error, text)
            }
        });
        self.call = None;
    }

    fn ask(&mut self, now: Instant, news: &mut Vec<News>) {
        let Some(component) = self.rest.pop_front() else {
            return;
        };
        match self.client.call_async(&request(&component)) {
            Ok(call) => self.call = Some((call, component, now + PATIENCE)),
            Err(error) => {
                self.failed += 1;
                let text = format!("{}: {error}", component.place);
                news.push(News::Say(Level::Error, text));
            }
        }
    }
}

fn request(component: &Component) -> LoadNode_Request {
    let parameters = |values: &[(String, ParameterValue)]| {
        let values = values.iter().map(|(name, value)| Parameter {
            name: name.clone(),
            value: value.clone().into_message(),
        });
        values.collect()
    };
    LoadNode_Request {
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

/// Others need not know its parameters.
fn plain_node(context: &Context, options: NodeOptions) -> Result<Node, String> {
    let options = options
        .start_parameter_services(false)
        .start_parameter_event_publisher(false);
    context
        .node_with(options)
        .map_err(|error| error.to_string())
}
