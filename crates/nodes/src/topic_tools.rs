//! `topic_tools`: relay, throttle, drop, mux and delay of serialized messages of any type,
//! as ROS 2's nodes of those names.
//!
//! A tool waits for a publisher of its input, and takes over its type and QoS. The type's
//! definition is built in, on `AMENT_PREFIX_PATH`, or asked of the publisher, because the
//! output announces it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros::args::resolve_name;
use pteros::component::ComponentError;
use pteros::graph::EndpointInfo;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::msg::library::InterfaceLibrary;
use pteros::names::NameKind;
use pteros::parameter::{Parameter, ParameterDescriptor, ParameterKind, ParameterValue};
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, ReliabilityPolicy};
use pteros::subscription::{SerializedMessage, SerializedType};
use pteros::{
    PublisherOptions, SubscriptionOptions, TimerOptions, error, error_throttle, warn_throttle,
};

use crate::mux;
use crate::running_node::RunningNode;

/// How often the graph is looked at, as upstream.
const DISCOVERY_PERIOD: Duration = Duration::from_millis(100);
/// How long a tool waits for a publisher's answer about its type.
const TYPE_TIMEOUT: Duration = Duration::from_millis(500);
/// How often the same problem is reported at most.
const REPORT_PERIOD: Duration = Duration::from_secs(10);
/// Messages that `delay` keeps at most. When full, new ones are dropped, with a warning.
const DELAYED_MAX: usize = 10_000;

/// `relay INPUT [OUTPUT]`.
pub(crate) fn start_relay(
    context: &Context,
    options: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    let given = positional(&["input_topic", "output_topic"], words)?;
    let node = context.create_node(options.name("relay").parameter_overrides(given))?;
    start(node, "_relay", Filter::Relay)
}

/// `throttle messages INPUT RATE [OUTPUT]`, or `throttle bytes INPUT RATE WINDOW [OUTPUT]`.
pub(crate) fn start_throttle(
    context: &Context,
    options: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    let names: &[&str] = match words.first().map(String::as_str) {
        Some("messages") => &[
            "throttle_type",
            "input_topic",
            "msgs_per_sec",
            "output_topic",
        ],
        _ => &[
            "throttle_type",
            "input_topic",
            "bytes_per_sec",
            "window",
            "output_topic",
        ],
    };
    let given = positional(names, words)?;
    let node = context.create_node(options.name("throttle").parameter_overrides(given))?;
    let last = node.now().as_nanos();
    let kind = required::<String>(&node, "throttle_type")?;
    let filter = match kind.as_str() {
        "messages" => {
            let rate = required::<f64>(&node, "msgs_per_sec")?;
            let period = nanos(1.0 / rate).ok_or("msgs_per_sec is a number above 0")?;
            Filter::Messages { period, last }
        }
        "bytes" => Filter::Bytes {
            per_second: required::<i64>(&node, "bytes_per_sec")?,
            window: nanos(required::<f64>(&node, "window")?).ok_or("window is a time in s")?,
            sent: VecDeque::new(),
        },
        other => {
            return Err(format!("Unknown throttle type \"{other}\": messages or bytes").into());
        }
    };
    start(node, "_throttle", filter)
}

/// `drop INPUT X Y [OUTPUT]`: drops X of Y messages.
pub(crate) fn start_drop(
    context: &Context,
    options: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    let given = positional(&["input_topic", "X", "Y", "output_topic"], words)?;
    let node = context.create_node(options.name("drop").parameter_overrides(given))?;
    let filter = Filter::Drop {
        dropped: required(&node, "X")?,
        of: required(&node, "Y")?,
        count: 0,
    };
    start(node, "_drop", filter)
}

/// `delay INPUT DELAY [OUTPUT]`.
pub(crate) fn start_delay(
    context: &Context,
    options: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    let given = positional(&["input_topic", "delay", "output_topic"], words)?;
    let node = context.create_node(options.name("delay").parameter_overrides(given))?;
    let delay = node.declare_parameter("delay", 0.0)?.value();
    let delay = Duration::try_from_secs_f64(delay);
    let delay = delay.map_err(|error| format!("parameter \"delay\": {error}"))?;
    start(node, "_delay", Filter::Delay(delay))
}

/// `mux OUTPUT INPUT…`, with services that choose the input.
pub(crate) fn start_mux(
    context: &Context,
    options: NodeOptions,
    words: &[String],
) -> Result<RunningNode, ComponentError> {
    let mut given = Vec::new();
    if let [output, inputs @ ..] = words {
        given.push(Parameter::new("output_topic", output.as_str()));
        given.push(Parameter::new("input_topics", inputs.to_vec()));
    }
    let node = context.create_node(options.name("mux").parameter_overrides(given))?;
    let inputs = required::<Vec<String>>(&node, "input_topics")?;
    let mut initial = node.declare_parameter("initial_topic", "")?.value();
    if initial.is_empty() {
        let usage = "mux takes arguments: <outtopic> <intopic1> [intopic2...]";
        initial.clone_from(inputs.first().ok_or(usage)?);
    }
    let output = node
        .declare_parameter("output_topic", "~/selected")?
        .value();
    let tool = Tool::new(node, initial, output, Filter::Relay)?;
    let services = mux::serve(&tool, inputs)?;
    let timer = tool.follow_graph()?;
    Ok(RunningNode::new(tool.node.clone(), (timer, services)))
}

fn start(node: Node, suffix: &str, filter: Filter) -> Result<RunningNode, ComponentError> {
    let input = required::<String>(&node, "input_topic")?;
    let output = node.declare_parameter("output_topic", format!("{input}{suffix}"))?;
    let tool = Tool::new(node, input, output.value(), filter)?;
    let timer = tool.follow_graph()?;
    Ok(RunningNode::new(tool.node.clone(), timer))
}

/// Parameters from the words of a command line, in this order. Numbers are YAML, as `-p`.
fn positional(names: &[&str], words: &[String]) -> Result<Vec<Parameter>, String> {
    if words.len() > names.len() {
        return Err(format!("too many arguments; it takes: {}", names.join(" ")));
    }
    let parameter = |(name, word): (&&str, &String)| {
        let number = |wanted| format!("{name} = {word}: it is {wanted}");
        let value = match *name {
            "msgs_per_sec" | "window" | "delay" => {
                ParameterValue::Double(word.parse().map_err(|_| number("a number"))?)
            }
            "bytes_per_sec" | "X" | "Y" => {
                ParameterValue::Integer(word.parse().map_err(|_| number("an integer"))?)
            }
            _ => ParameterValue::String(word.clone()),
        };
        Ok(Parameter::new(*name, value))
    };
    names.iter().zip(words).map(parameter).collect()
}

fn required<T: ParameterKind>(node: &Node, name: &str) -> Result<T, ComponentError> {
    let descriptor = ParameterDescriptor::default();
    Ok(node
        .declare_required_parameter::<T>(name, descriptor)?
        .value())
}

/// Seconds in ns; `None` unless they are a time above 0.
fn nanos(seconds: f64) -> Option<i64> {
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    i64::try_from(time.as_nanos())
        .ok()
        .filter(|nanos| *nanos > 0)
}

/// The outcome for a message.
#[derive(Debug, PartialEq)]
enum Decision {
    Publish,
    Discard,
    PublishAfter(Duration),
}

#[derive(Debug)]
enum Filter {
    Relay,
    /// Times in ns.
    Messages {
        period: i64,
        last: i64,
    },
    /// Time and bytes of each message that was sent within the window.
    Bytes {
        per_second: i64,
        window: i64,
        sent: VecDeque<(i64, usize)>,
    },
    Drop {
        dropped: i64,
        of: i64,
        count: i64,
    },
    Delay(Duration),
}

impl Filter {
    fn judge(&mut self, now: i64, bytes: usize) -> Decision {
        let passes = match self {
            Self::Relay => true,
            Self::Messages { period, last } => {
                // Time went back: the period begins now.
                *last = now.min(*last);
                let is_due = now.saturating_sub(*last) >= *period;
                if is_due {
                    *last = now;
                }
                is_due
            }
            Self::Bytes {
                per_second,
                window,
                sent,
            } => {
                let begin = now.saturating_sub(*window);
                while sent.front().is_some_and(|(at, _)| *at < begin) {
                    sent.pop_front();
                }
                let total: usize = sent.iter().map(|(_, bytes)| *bytes).sum();
                // Upstream compares the bytes of the window with those of a second.
                let passes = i64::try_from(total).is_ok_and(|total| total < *per_second);
                if passes {
                    sent.push_back((now, bytes));
                }
                passes
            }
            Self::Drop { dropped, of, count } => {
                let passes = *count >= *dropped;
                *count += 1;
                if *count >= *of {
                    *count = 0;
                }
                passes
            }
            Self::Delay(delay) => return Decision::PublishAfter(*delay),
        };
        if passes {
            Decision::Publish
        } else {
            Decision::Discard
        }
    }
}

/// A node that passes messages from one topic on to another.
pub(crate) struct Tool {
    pub(crate) node: Node,
    output: String,
    is_lazy: bool,
    library: InterfaceLibrary,
    state: Mutex<ToolState>,
}

struct ToolState {
    /// The input; `None` for none, only of `mux`.
    input: Option<String>,
    filter: Filter,
    publisher: Option<Publisher<DynamicMessage>>,
    /// Type, hash and QoS that the publisher has.
    source: Option<(DynamicType, QosProfile)>,
    subscription: Option<Subscription<SerializedMessage>>,
    /// Messages to publish later, the next first, each with the timer that does it.
    delayed: VecDeque<(Timer, Sample<SerializedMessage>)>,
}

impl Tool {
    fn new(
        node: Node,
        input: String,
        output: String,
        filter: Filter,
    ) -> Result<Arc<Self>, ComponentError> {
        let mut library = pteros::interfaces::library().clone();
        library.load_ament_prefix_path()?;
        let is_lazy = node.declare_parameter("lazy", false)?.value();
        Ok(Arc::new(Self {
            node,
            output,
            is_lazy,
            library,
            state: Mutex::new(ToolState {
                input: Some(input),
                filter,
                publisher: None,
                source: None,
                subscription: None,
                delayed: VecDeque::new(),
            }),
        }))
    }

    fn follow_graph(self: &Arc<Self>) -> Result<Timer, ComponentError> {
        let tool = self.clone();
        Ok(self
            .node
            .create_timer(DISCOVERY_PERIOD, move || tool.update())?)
    }

    /// The full name of a topic.
    pub(crate) fn resolve(&self, topic: &str) -> Result<String, ComponentError> {
        let arguments = self.node.context().arguments();
        let (name, namespace) = (self.node.name(), self.node.namespace());
        Ok(resolve_name(
            &[arguments],
            NameKind::Topic,
            topic,
            name,
            namespace,
        )?)
    }

    pub(crate) fn input(&self) -> Option<String> {
        self.state.lock().input.clone()
    }

    /// Chooses another input.
    pub(crate) fn select(&self, input: Option<String>) {
        let mut state = self.state.lock();
        state.input = input;
        state.subscription = None;
    }

    /// Creates and deletes the endpoints, as the graph requires.
    fn update(self: &Arc<Self>) {
        if let Err(problem) = self.try_update() {
            error_throttle!(self.node.logger(), REPORT_PERIOD, "{problem}");
        }
    }

    fn try_update(self: &Arc<Self>) -> Result<(), ComponentError> {
        let Some(input) = self.input() else {
            return Ok(());
        };
        let topic = self.resolve(&input)?;
        let sources = self.node.context().graph().publishers(&topic);
        let mut state = self.state.lock();
        let Some(first) = sources.first() else {
            state.publisher = None;
            state.source = None;
            return Ok(());
        };
        let qos = common_qos(&sources);
        let is_same = state
            .source
            .as_ref()
            .is_some_and(|(ty, known)| *known == qos && ty.name() == first.topic_type);
        if !is_same {
            let ty = self.type_of(first, &topic)?;
            let output = PublisherOptions::<DynamicMessage>::of_type(
                &ty,
                self.output.as_str().qos(qos.clone()),
            );
            state.publisher = Some(self.node.create_publisher(output)?);
            state.source = Some((ty, qos.clone()));
            state.subscription = None;
        }
        let is_read = state
            .publisher
            .as_ref()
            .is_some_and(|publisher| publisher.matched_count() > 0);
        if self.is_lazy && !is_read {
            state.subscription = None;
        } else if state.subscription.is_none() {
            let ty = SerializedType::new(first.topic_type.as_str(), first.type_hash);
            let options = SubscriptionOptions::of_type(&ty.any_version(), input.qos(qos));
            let tool = Arc::downgrade(self);
            let subscription = self.node.create_subscription(options, move |message| {
                if let Some(tool) = tool.upgrade() {
                    tool.handle(message);
                }
            })?;
            state.subscription = Some(subscription);
        }
        Ok(())
    }

    /// The type of a publisher: the definition here if its hash is the announced one.
    fn type_of(&self, source: &EndpointInfo, topic: &str) -> Result<DynamicType, ComponentError> {
        let name = &source.topic_type;
        if let Ok(described) = self.library.describe(name) {
            let ty = DynamicType::new(&described)?;
            if source.type_hash.is_none_or(|hash| hash == ty.hash()) {
                return Ok(ty);
            }
        }
        let graph = self.node.context().graph();
        let announced = graph.announced_type(topic, TYPE_TIMEOUT);
        announced.map_err(|error| format!("type {name} of {topic}: {error}").into())
    }

    fn handle(self: &Arc<Self>, message: Sample<SerializedMessage>) {
        let now = self.node.now().as_nanos();
        let mut state = self.state.lock();
        match state.filter.judge(now, message.len()) {
            Decision::Publish => self.publish(&state, &message),
            Decision::Discard => {}
            Decision::PublishAfter(_) if state.delayed.len() >= DELAYED_MAX => warn_throttle!(
                self.node.logger(),
                REPORT_PERIOD,
                "{DELAYED_MAX} messages are delayed already; new ones are dropped"
            ),
            Decision::PublishAfter(delay) => {
                let tool = Arc::downgrade(self);
                let options = TimerOptions::new(delay).one_shot().on_ros_time();
                // Timers of one period fire in order, so the front is this one's message.
                let timer = self.node.create_timer(options, move || {
                    if let Some(tool) = tool.upgrade() {
                        let mut state = tool.state.lock();
                        if let Some((_, message)) = state.delayed.pop_front() {
                            tool.publish(&state, &message);
                        }
                    }
                });
                match timer {
                    Ok(timer) => state.delayed.push_back((timer, message)),
                    Err(problem) => error!(self.node.logger(), "{problem}"),
                }
            }
        }
    }

    fn publish(&self, state: &ToolState, message: &SerializedMessage) {
        if let Some(publisher) = &state.publisher
            && let Err(problem) = publisher.publish_serialized(message.0.clone())
        {
            error!(self.node.logger(), "{problem}");
        }
    }
}

/// The QoS that fits all publishers: reliable and transient local only if all are.
fn common_qos(sources: &[EndpointInfo]) -> QosProfile {
    let all = |has: fn(&QosProfile) -> bool| sources.iter().all(|source| has(&source.qos));
    let mut qos = QosProfile::default().keep_last(10);
    if !all(|qos| qos.reliability == ReliabilityPolicy::Reliable) {
        qos = qos.best_effort();
    }
    if all(|qos| qos.durability != DurabilityPolicy::Volatile) {
        qos = qos.transient_local();
    }
    let longest = |time: fn(&QosProfile) -> Option<Duration>| {
        let times = sources.iter().map(|source| time(&source.qos));
        times
            .collect::<Option<Vec<_>>>()
            .and_then(|times| times.into_iter().max())
    };
    qos.deadline = longest(|qos| qos.deadline);
    qos.lifespan = longest(|qos| qos.lifespan);
    qos
}
