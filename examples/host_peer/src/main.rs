//! What `cargo xtask bench host` measures of Pteros: ping and pong, one
//! publisher and its subscriptions, one process with both, idle nodes and nodes
//! that find each other. The options and lines are those of the other stacks'
//! programs (interop/README.md); which path messages took is asked of the API.
#![allow(
    clippy::disallowed_methods,
    reason = "a stopwatch: reading the clock is what it is for"
)]

#[path = "../../../interop/host/host.rs"]
mod host;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use host::{Ends, Options, Stack, Traffic, crowd_ends, now_ns};
use pteros::interfaces::std_msgs::msg::{Empty, UInt8MultiArray as Payload};
use pteros::prelude::*;
use pteros::qos::HistoryPolicy;
use pteros::{InPlace, Path, View};

/// `--wait poll`: for so long the executor polls before it sleeps.
const POLLED: Duration = Duration::from_millis(1);

fn main() -> ExitCode {
    host::main_of::<Pteros>()
}

/// One process's part of the graph and the executor that runs it.
struct Pteros {
    traffic: Arc<Traffic>,
    /// Within a process: asks a callback to publish, as nodes do.
    asker: Option<Asker>,
    executor: SingleThreadedExecutor,
    publisher: Option<Publisher<Payload>>,
    subscription: Option<Heard>,
    /// Messages are written into memory that the stack lends, and read there.
    loan: bool,
    message: Arc<Mutex<Payload>>,
    /// Nodes and endpoints that only exist.
    _crowd: Vec<(Node, Publisher<Payload>, Subscription<Payload>)>,
}

/// The subscription, for as long as it is wanted.
enum Heard {
    Copied(Subscription<Payload>),
    InPlace(Subscription<InPlace<Payload>>),
}

/// Whoever is asked by a message publishes in its callback, and hands its own
/// message over instead of showing it.
struct Asker {
    ask: Publisher<Empty>,
    _asked: Subscription<Empty>,
}

impl Asker {
    fn new(
        node: &Node,
        topic: &str,
        publisher: &Publisher<Payload>,
        this: &Pteros,
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
            traffic.fill(&mut message.data);
            if let Err(error) = publisher.publish_owned(message) {
                eprintln!("{error}");
            }
        };
        let topic = format!("{topic}/ask");
        let ask = node.create_publisher(&topic, 10);
        let asked = node.create_subscription(&topic, 10, answer);
        Ok(Self {
            ask: ask.map_err(|e| e.to_string())?,
            _asked: asked.map_err(|e| e.to_string())?,
        })
    }
}

impl Pteros {
    fn context(options: &Options) -> Result<Context, String> {
        let of_process = ContextOptions::from_process().map_err(|e| e.to_string())?;
        Context::with_options(ContextOptions {
            spin: options.poll.then_some(POLLED),
            ..of_process
        })
        .map_err(|e| e.to_string())
    }

    fn with(context: &Context, options: &Options, traffic: &Arc<Traffic>) -> Self {
        Self {
            traffic: traffic.clone(),
            asker: None,
            executor: SingleThreadedExecutor::new(context),
            publisher: None,
            subscription: None,
            loan: options.loan,
            message: Arc::new(Mutex::new(Payload {
                data: (0..options.size).map(|i| (i * 31) as u8).collect(),
                ..Payload::default()
            })),
            _crowd: Vec::new(),
        }
    }
}

/// A node that has what the other stacks' nodes have: no parameter services.
fn bare_node(context: &Context, name: &str) -> Result<Node, String> {
    let options = NodeOptions::new(name)
        .start_parameter_services(false)
        .start_parameter_event_publisher(false);
    context.node_with(options).map_err(|e| e.to_string())
}

fn qos(options: &Options) -> QosProfile {
    match options.keep_all {
        true => QosProfile {
            history: HistoryPolicy::KeepAll,
            max_blocking_time: Some(Duration::from_secs(10)),
            ..QosProfile::default()
        },
        false => QosProfile::from(10),
    }
}

/// Publishes what is shown: copies it, for the publisher keeps its message, or
/// writes it into a loan. As in the other stacks' programs a loan holds between
/// its ends what was there before.
fn show(
    publisher: &Publisher<Payload>,
    message: &Mutex<Payload>,
    loan: bool,
    traffic: &Traffic,
) -> Result<(), String> {
    let mut message = message.lock().unwrap_or_else(PoisonError::into_inner);
    let published = if loan {
        let count = message.data.len();
        let loan = publisher.loan_sequence(&mut message, |m| &mut m.data, count);
        loan.and_then(|mut loan| {
            traffic.fill(&mut loan);
            publisher.publish_loaned(loan)
        })
    } else {
        traffic.fill(&mut message.data);
        publisher.publish(&message)
    };
    published.map_err(|e| e.to_string())
}

impl Stack for Pteros {
    fn open(options: &Options, ends: &Ends, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let context = Self::context(options)?;
        let node = bare_node(&context, "host_peer")?;
        let mut this = Self::with(&context, options, traffic);
        if let Some(topic) = &ends.out {
            let publisher = node.create_publisher::<Payload>(topic, qos(options));
            let publisher = publisher.map_err(|e| e.to_string())?;
            if options.verb == "intra" {
                this.asker = Some(Asker::new(&node, topic, &publisher, &this)?);
            }
            this.publisher = Some(publisher);
        }
        if let Some(topic) = &ends.input {
            let (traffic, message) = (traffic.clone(), this.message.clone());
            let (publisher, loan) = (this.publisher.clone(), options.loan);
            let hear = move |data: &[u8], path: Path| {
                let answer = traffic.hear(data, path.name());
                if let (true, Some(publisher)) = (answer, &publisher)
                    && let Err(error) = show(publisher, &message, loan, &traffic)
                {
                    eprintln!("{error}");
                }
            };
            let qos = qos(options);
            let made = if loan {
                let callback = move |m: View<'_, Payload>| hear(&m.data, m.info().path);
                let views = node.create_view_subscription(topic, qos, callback);
                views.map(Heard::InPlace)
            } else {
                let callback = move |m: Sample<Payload>| hear(&m.data, m.info().path);
                let copies = node.create_subscription(topic, qos, callback);
                copies.map(Heard::Copied)
            };
            this.subscription = Some(made.map_err(|e| e.to_string())?);
        }
        this.executor.add_node(&node).map_err(|e| e.to_string())?;
        Ok(this)
    }

    fn publish(&mut self) -> Result<(), String> {
        let Some(publisher) = &self.publisher else {
            return Err("nothing to publish with".into());
        };
        match &self.asker {
            Some(asker) => asker
                .ask
                .publish_owned(Empty::default())
                .map_err(|e| e.to_string()),
            None => show(publisher, &self.message, self.loan, &self.traffic),
        }
    }

    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool {
        let left = || Duration::from_nanos(until.saturating_sub(now_ns()));
        let (publisher, subscription) = (&self.publisher, &self.subscription);
        publisher
            .as_ref()
            .is_none_or(|p| p.wait_for_matched(readers, left()))
            && subscription.as_ref().is_none_or(|heard| match heard {
                Heard::Copied(s) => s.wait_for_matched(writers, left()),
                Heard::InPlace(s) => s.wait_for_matched(writers, left()),
            })
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
            let node = bare_node(&context, &name)?;
            let publisher = node.create_publisher::<Payload>(&ends.out.unwrap_or_default(), 10);
            let subscription =
                node.create_subscription::<Payload>(&ends.input.unwrap_or_default(), 10, drop);
            this.executor.add_node(&node).map_err(|e| e.to_string())?;
            this._crowd.push((
                node,
                publisher.map_err(|e| e.to_string())?,
                subscription.map_err(|e| e.to_string())?,
            ));
        }
        Ok(this)
    }
}
