//! Worker of Pteros: ping and pong, one publisher and its subscriptions, one
//! process with both, idle nodes, nodes that discover each other, a process of a
//! topology, a bridge to ROS 1, and the processes of the benchmark of bags.
//!
//! The program is `pteros-lab-worker`. Options and output lines are those of the other stacks' programs (verify/interop/README.md).
//! The API reports the transport of messages.

mod bag;
mod body;
mod bridge;
#[allow(dead_code, reason = "shared with programs that use more of it")]
#[path = "../../../../verify/interop/host/host.rs"]
mod host;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::lab::{BAG, BRIDGE, TOPOLOGY};
use crate::topology;
use body::Body;
use host::{EndpointTopics, Options, Stack, Traffic, node_topics, now_ns};
use pteros::interfaces::std_msgs::msg::{Empty, String as Text, UInt8MultiArray as Bytes};
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, HistoryPolicy, ReliabilityPolicy};

/// `--wait poll`: busy-poll time of the executor.
const BUSY_POLL: Duration = Duration::from_millis(1);

/// Runs a verb with its options until it is done or killed.
pub fn main(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.into_iter().collect();
    let done = match arguments.as_slice() {
        [verb, interfaces @ .., task] if verb == TOPOLOGY => Some(of_topology(interfaces, task)),
        [verb, rest @ ..] if verb == BRIDGE => Some(bridge::run(rest)),
        // The verb stands where clap expects the program.
        [verb, ..] if verb == BAG => Some(bag::run(&arguments)),
        _ => None,
    };
    match done {
        Some(Ok(())) => return ExitCode::SUCCESS,
        Some(Err(error)) => {
            eprintln!("error: {error:#}");
            return ExitCode::FAILURE;
        }
        None => {}
    }
    let texts = arguments.windows(2).any(|two| two == ["--type", "string"]);
    if texts {
        host::main_with::<Pteros<Text>>(arguments)
    } else {
        host::main_with::<Pteros<Bytes>>(arguments)
    }
}

/// Runs a process of a topology, with the types of these folders.
fn of_topology(interfaces: &[String], task: &str) -> anyhow::Result<()> {
    let mut library = pteros::interfaces::library().clone();
    library.load_ament_prefix_path()?;
    for folder in interfaces {
        library.load_folder(folder.as_ref())?;
    }
    topology::add_to(&mut library);
    topology::worker(task, library)
}

/// The endpoints of one process and its executor.
struct Pteros<M: Body> {
    traffic: Arc<Traffic>,
    /// Within a process: triggers a callback that publishes, as nodes do.
    trigger: Option<CallbackTrigger>,
    executor: SingleThreadedExecutor,
    publisher: Option<Publisher<M>>,
    /// Waits until the subscription is matched with that many publishers. Owns it.
    wait_for_publishers: Option<Matched>,
    /// Uses loaned messages.
    loan: bool,
    message: Arc<Mutex<M>>,
    /// Nodes and endpoints of scale tests.
    _scale_nodes: Vec<(Node, Publisher<M>, Subscription<M>)>,
}

/// A subscription of any type: waits for a number of publishers.
type Matched = Box<dyn Fn(usize, Duration) -> bool>;

/// Publishes in a callback, and moves its own message instead of copying it.
struct CallbackTrigger {
    request: Publisher<Empty>,
    _on_request: Subscription<Empty>,
}

impl CallbackTrigger {
    fn new<M: Body>(
        node: &Node,
        topic: &str,
        publisher: &Publisher<M>,
        this: &Pteros<M>,
    ) -> Result<Self, String> {
        let (publisher, traffic, message) = (
            publisher.clone(),
            this.traffic.clone(),
            this.message.clone(),
        );
        let answer = move |_: Sample<Empty>| {
            let current = message.lock().unwrap_or_else(PoisonError::into_inner);
            let mut message = current.clone();
            drop(current);
            message.fill(&traffic);
            if let Err(error) = publisher.publish_owned(message) {
                eprintln!("{error}");
            }
        };
        let topic = format!("{topic}/request");
        let request = node.create_publisher(topic.as_str().keep_last(10));
        let on_request = node.create_subscription(topic.as_str().keep_last(10), answer);
        Ok(Self {
            request: request.map_err(error_text)?,
            _on_request: on_request.map_err(error_text)?,
        })
    }
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl<M: Body> Pteros<M> {
    fn context(options: &Options) -> Result<Context, String> {
        let of_process = ContextOptions::from_process().map_err(error_text)?;
        Context::with_options(ContextOptions {
            busy_poll: options.poll.then_some(BUSY_POLL),
            ..of_process
        })
        .map_err(error_text)
    }

    fn with(context: &Context, options: &Options, traffic: &Arc<Traffic>) -> Self {
        Self {
            traffic: traffic.clone(),
            trigger: None,
            executor: SingleThreadedExecutor::new(context),
            publisher: None,
            wait_for_publishers: None,
            loan: options.loan,
            message: Arc::new(Mutex::new(M::of_size(options.size))),
            _scale_nodes: Vec::new(),
        }
    }
}

/// A node without parameter services, as those of the other stacks, unless
/// `--services` asks for them.
fn node(context: &Context, name: &str, options: &Options) -> Result<Node, String> {
    let options = NodeOptions::new(name)
        .use_intra_process_comms(!options.serialize)
        .start_parameter_services(options.services)
        .start_type_description_service(options.services)
        .start_parameter_event_publisher(options.services);
    context.create_node(options).map_err(error_text)
}

fn qos(options: &Options) -> QosProfile {
    QosProfile {
        history: if options.keep_all {
            HistoryPolicy::KeepAll
        } else {
            QosProfile::from(options.depth).history
        },
        reliability: if options.best_effort {
            ReliabilityPolicy::BestEffort
        } else {
            ReliabilityPolicy::Reliable
        },
        durability: if options.transient_local {
            DurabilityPolicy::TransientLocal
        } else {
            DurabilityPolicy::Volatile
        },
        deadline: (options.deadline_ms > 0).then(|| Duration::from_millis(options.deadline_ms)),
        max_blocking_time: Some(Duration::from_secs(10)),
        ..QosProfile::default()
    }
}

/// Publishes the current message: a copy, or a loaned message. As in the other
/// stacks' programs, a loaned message keeps its previous content between number and
/// timestamp.
fn publish_message<M: Body>(
    publisher: &Publisher<M>,
    message: &Mutex<M>,
    loan: bool,
    traffic: &Traffic,
) -> Result<(), String> {
    let mut message = message.lock().unwrap_or_else(PoisonError::into_inner);
    if loan {
        return message.publish_loaned(publisher, traffic);
    }
    message.fill(traffic);
    publisher.publish(&message).map_err(error_text)
}

impl<M: Body> Stack for Pteros<M> {
    fn open(
        options: &Options,
        ends: &EndpointTopics,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, String> {
        let context = Self::context(options)?;
        let node = node(&context, "host_peer", options)?;
        let mut this = Self::with(&context, options, traffic);
        if let Some(topic) = &ends.out {
            let publisher = node.create_publisher::<M>(topic.qos(qos(options)));
            let publisher = publisher.map_err(error_text)?;
            if options.verb == "intra" {
                this.trigger = Some(CallbackTrigger::new(&node, topic, &publisher, &this)?);
            }
            this.publisher = Some(publisher);
        }
        if let Some(topic) = &ends.input {
            let (traffic, message) = (traffic.clone(), this.message.clone());
            let (publisher, loan) = (this.publisher.clone(), options.loan);
            let on_data = move |data: &[u8], path: &'static str| {
                let answer = traffic.receive(data, path);
                if let (true, Some(publisher)) = (answer, &publisher)
                    && let Err(error) = publish_message(publisher, &message, loan, &traffic)
                {
                    eprintln!("{error}");
                }
            };
            this.wait_for_publishers = Some(if loan {
                M::subscribe_loaned(&node, topic, qos(options), on_data)?
            } else {
                let callback =
                    move |m: Sample<M>| on_data(m.bytes(), m.info().delivery_path.name());
                let copies = node.create_subscription::<M>(topic.qos(qos(options)), callback);
                let copies = copies.map_err(error_text)?;
                Box::new(move |count, timeout| copies.wait_for_matched(count, timeout))
            });
        }
        this.executor.add_node(&node).map_err(error_text)?;
        Ok(this)
    }

    fn publish(&mut self) -> Result<(), String> {
        let Some(publisher) = &self.publisher else {
            return Err("no publisher".into());
        };
        match &self.trigger {
            Some(trigger) => trigger
                .request
                .publish_owned(Empty::default())
                .map_err(error_text),
            None => publish_message(publisher, &self.message, self.loan, &self.traffic),
        }
    }

    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool {
        let left = || Duration::from_nanos(until.saturating_sub(now_ns()));
        let (publisher, wait_for_publishers) = (&self.publisher, &self.wait_for_publishers);
        publisher
            .as_ref()
            .is_none_or(|p| p.wait_for_matched(readers, left()))
            && wait_for_publishers
                .as_ref()
                .is_none_or(|wait| wait(writers, left()))
    }

    fn run(&mut self, until: u64) {
        let left = Duration::from_nanos(until.saturating_sub(now_ns()));
        self.executor.spin_until(|| self.traffic.is_over(), left);
    }

    fn open_many(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let context = Self::context(options)?;
        let mut this = Self::with(&context, options, traffic);
        for index in 0..options.nodes {
            let ends = node_topics(options, index);
            let name = format!("node{}", options.first + index);
            let node = node(&context, &name, options)?;
            let publisher = node.create_publisher::<M>(ends.out.unwrap_or_default().keep_last(10));
            let subscription =
                node.create_subscription::<M>(ends.input.unwrap_or_default().keep_last(10), drop);
            this.executor.add_node(&node).map_err(error_text)?;
            this._scale_nodes.push((
                node,
                publisher.map_err(error_text)?,
                subscription.map_err(error_text)?,
            ));
        }
        Ok(this)
    }
}
