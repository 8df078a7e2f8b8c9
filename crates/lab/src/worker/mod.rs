//! Pteros as a contestant: ping and pong, one publisher and its subscriptions, one
//! process with both, idle nodes and nodes that find each other; a process of a topology, and a
//! bridge to ROS 1.
//!
//! The program is `pteros-lab-worker`, or the command where that is not beside it.
//! Options and lines are those of the other stacks' programs (interop/README.md);
//! which path messages took is asked of the API.

mod body;
mod bridge;
#[allow(dead_code, reason = "shared with programs that use more of it")]
#[path = "../../../../interop/host/host.rs"]
mod host;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::lab::{BRIDGE, TOPOLOGY};
use crate::topology;
use body::Body;
use host::{Ends, Options, Stack, Traffic, crowd_ends, now_ns};
use pteros::interfaces::std_msgs::msg::{Empty, String as Text, UInt8MultiArray as Bytes};
use pteros::prelude::*;
use pteros::qos::{DurabilityPolicy, HistoryPolicy, ReliabilityPolicy};

/// `--wait poll`: for so long the executor polls before it sleeps.
const POLLED: Duration = Duration::from_millis(1);

/// Does what `words` say, a verb and its options, until it is done or killed.
pub fn main(words: impl IntoIterator<Item = String>) -> ExitCode {
    let words: Vec<String> = words.into_iter().collect();
    let done = match words.as_slice() {
        [verb, interfaces @ .., task] if verb == TOPOLOGY => Some(of_topology(interfaces, task)),
        [verb, rest @ ..] if verb == BRIDGE => Some(bridge::run(rest)),
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
    let texts = words.windows(2).any(|two| two == ["--type", "string"]);
    match texts {
        true => host::main_with::<Pteros<Text>>(words),
        false => host::main_with::<Pteros<Bytes>>(words),
    }
}

/// A process of a topology, with the types of these folders, too.
fn of_topology(interfaces: &[String], task: &str) -> anyhow::Result<()> {
    let mut library = pteros::interfaces::library().clone();
    library.load_ament_prefix_path()?;
    for folder in interfaces {
        library.load_folder(folder.as_ref())?;
    }
    topology::add_to(&mut library);
    topology::worker(task, library)
}

/// One process's part of the graph and the executor that runs it.
struct Pteros<M: Body> {
    traffic: Arc<Traffic>,
    /// Within a process: asks a callback to publish, as nodes do.
    asker: Option<Asker>,
    executor: SingleThreadedExecutor,
    publisher: Option<Publisher<M>>,
    /// Waits until the subscription has so many publishers; holds it.
    heard: Option<Matched>,
    /// Messages are written into memory that the stack lends, and read there.
    loan: bool,
    message: Arc<Mutex<M>>,
    /// Nodes and endpoints that only exist.
    _crowd: Vec<(Node, Publisher<M>, Subscription<M>)>,
}

/// A subscription, whatever it gives: waits for so many publishers.
type Matched = Box<dyn Fn(usize, Duration) -> bool>;

/// Whoever is asked by a message publishes in its callback, and hands its own
/// message over instead of showing it.
struct Asker {
    ask: Publisher<Empty>,
    _asked: Subscription<Empty>,
}

impl Asker {
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
            let shown = message.lock().unwrap_or_else(PoisonError::into_inner);
            let mut message = shown.clone();
            drop(shown);
            message.fill(&traffic);
            if let Err(error) = publisher.publish_owned(message) {
                eprintln!("{error}");
            }
        };
        let topic = format!("{topic}/ask");
        let ask = node.create_publisher(&topic, 10);
        let asked = node.create_subscription(&topic, 10, answer);
        Ok(Self {
            ask: ask.map_err(said)?,
            _asked: asked.map_err(said)?,
        })
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl<M: Body> Pteros<M> {
    fn context(options: &Options) -> Result<Context, String> {
        let of_process = ContextOptions::from_process().map_err(said)?;
        Context::with_options(ContextOptions {
            spin: options.poll.then_some(POLLED),
            ..of_process
        })
        .map_err(said)
    }

    fn with(context: &Context, options: &Options, traffic: &Arc<Traffic>) -> Self {
        Self {
            traffic: traffic.clone(),
            asker: None,
            executor: SingleThreadedExecutor::new(context),
            publisher: None,
            heard: None,
            loan: options.loan,
            message: Arc::new(Mutex::new(M::of_size(options.size))),
            _crowd: Vec::new(),
        }
    }
}

/// A node that has what the other stacks' nodes have: no parameter services.
fn bare_node(context: &Context, name: &str, serialize: bool) -> Result<Node, String> {
    let options = NodeOptions::new(name)
        .use_intra_process_comms(!serialize)
        .start_parameter_services(false)
        .start_parameter_event_publisher(false);
    context.node_with(options).map_err(said)
}

fn qos(options: &Options) -> QosProfile {
    QosProfile {
        history: match options.keep_all {
            true => HistoryPolicy::KeepAll,
            false => QosProfile::from(options.depth).history,
        },
        reliability: match options.best_effort {
            true => ReliabilityPolicy::BestEffort,
            false => ReliabilityPolicy::Reliable,
        },
        durability: match options.transient_local {
            true => DurabilityPolicy::TransientLocal,
            false => DurabilityPolicy::Volatile,
        },
        deadline: (options.deadline_ms > 0).then(|| Duration::from_millis(options.deadline_ms)),
        max_blocking_time: Some(Duration::from_secs(10)),
        ..QosProfile::default()
    }
}

/// Publishes what is shown: copies it, for the publisher keeps its message, or
/// writes it into a loan. As in the other stacks' programs a loan holds between
/// its ends what was there before.
fn show<M: Body>(
    publisher: &Publisher<M>,
    message: &Mutex<M>,
    loan: bool,
    traffic: &Traffic,
) -> Result<(), String> {
    let mut message = message.lock().unwrap_or_else(PoisonError::into_inner);
    if loan {
        return message.publish_lent(publisher, traffic);
    }
    message.fill(traffic);
    publisher.publish(&message).map_err(said)
}

impl<M: Body> Stack for Pteros<M> {
    fn open(options: &Options, ends: &Ends, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let context = Self::context(options)?;
        let node = bare_node(&context, "host_peer", options.serialize)?;
        let mut this = Self::with(&context, options, traffic);
        if let Some(topic) = &ends.out {
            let publisher = node.create_publisher::<M>(topic, qos(options));
            let publisher = publisher.map_err(said)?;
            if options.verb == "intra" {
                this.asker = Some(Asker::new(&node, topic, &publisher, &this)?);
            }
            this.publisher = Some(publisher);
        }
        if let Some(topic) = &ends.input {
            let (traffic, message) = (traffic.clone(), this.message.clone());
            let (publisher, loan) = (this.publisher.clone(), options.loan);
            let hear = move |data: &[u8], path: &'static str| {
                let answer = traffic.hear(data, path);
                if let (true, Some(publisher)) = (answer, &publisher)
                    && let Err(error) = show(publisher, &message, loan, &traffic)
                {
                    eprintln!("{error}");
                }
            };
            this.heard = Some(match loan {
                true => M::hear_in_place(&node, topic, qos(options), hear)?,
                false => {
                    let callback = move |m: Sample<M>| hear(m.bytes(), m.info().path.name());
                    let copies = node.create_subscription::<M>(topic, qos(options), callback);
                    let copies = copies.map_err(said)?;
                    Box::new(move |count, patience| copies.wait_for_matched(count, patience))
                }
            });
        }
        this.executor.add_node(&node).map_err(said)?;
        Ok(this)
    }

    fn publish(&mut self) -> Result<(), String> {
        let Some(publisher) = &self.publisher else {
            return Err("nothing to publish with".into());
        };
        match &self.asker {
            Some(asker) => asker.ask.publish_owned(Empty::default()).map_err(said),
            None => show(publisher, &self.message, self.loan, &self.traffic),
        }
    }

    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool {
        let left = || Duration::from_nanos(until.saturating_sub(now_ns()));
        let (publisher, heard) = (&self.publisher, &self.heard);
        publisher
            .as_ref()
            .is_none_or(|p| p.wait_for_matched(readers, left()))
            && heard.as_ref().is_none_or(|wait| wait(writers, left()))
    }

    fn run(&mut self, until: u64) {
        let left = Duration::from_nanos(until.saturating_sub(now_ns()));
        self.executor.spin_until(|| self.traffic.is_over(), left);
    }

    fn crowd(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let context = Self::context(options)?;
        let mut this = Self::with(&context, options, traffic);
        for index in 0..options.nodes {
            let ends = crowd_ends(options, index);
            let name = format!("node{}", options.first + index);
            let node = bare_node(&context, &name, options.serialize)?;
            let publisher = node.create_publisher::<M>(&ends.out.unwrap_or_default(), 10);
            let subscription =
                node.create_subscription::<M>(&ends.input.unwrap_or_default(), 10, drop);
            this.executor.add_node(&node).map_err(said)?;
            this._crowd
                .push((node, publisher.map_err(said)?, subscription.map_err(said)?));
        }
        Ok(this)
    }
}
