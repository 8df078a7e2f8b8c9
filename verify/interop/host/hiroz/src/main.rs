//! Program of hiroz for the lab, with the options and lines of `host.rs`: nodes of
//! std_msgs/UInt8MultiArray over Zenoh, with hiroz's default settings. Its session
//! reads ZENOH_CONFIG_OVERRIDE. Zenoh's threads call back and reply.

#[path = "../../host.rs"]
mod host;

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hiroz::context::{ZContext, ZContextBuilder};
use hiroz::entity::EndpointKind;
use hiroz::msg::ZMessage;
use hiroz::node::ZNode;
use hiroz::pubsub::{ZPub, ZSub};
use hiroz::qos::{QosHistory, QosProfile};
use hiroz::{Builder, ZBuf};
use hiroz_msgs::std_msgs::UInt8MultiArray as Bytes;
use host::{EndpointTopics, Options, Stack, Traffic, node_topics, now_ns};
use zenoh_buffers::buffer::SplitBuffer;

type Serdes = <Bytes as ZMessage>::Serdes;

fn main() -> ExitCode {
    host::main_of::<Hiroz>()
}

/// Publishing state that the caller and Zenoh's threads share.
struct Sender {
    traffic: Arc<Traffic>,
    publisher: ZPub<Bytes, Serdes>,
    message: Mutex<Vec<u8>>,
}

impl Sender {
    fn send(&self) -> Result<(), String> {
        let mut message = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        self.traffic.fill(&mut message);
        let data = ZBuf::from(message.clone());
        drop(message);
        let layout = Default::default();
        self.publisher
            .publish(&Bytes { layout, data })
            .map_err(said)
    }
}

struct Hiroz {
    traffic: Arc<Traffic>,
    runtime: tokio::runtime::Runtime,
    sender: Option<Arc<Sender>>,
    subscription: Option<ZSub<Bytes, (), Serdes>>,
    /// Nodes and endpoints of scale tests.
    _kept: Vec<Box<dyn std::any::Any>>,
    context: ZContext,
}

fn said(error: impl Display) -> String {
    error.to_string()
}

fn qos(options: &Options) -> QosProfile {
    QosProfile {
        history: match options.keep_all {
            true => QosHistory::KeepAll,
            false => QosHistory::from_depth(options.depth),
        },
        ..QosProfile::default()
    }
}

impl Hiroz {
    fn new(traffic: &Arc<Traffic>) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_current_thread();
        Ok(Self {
            traffic: traffic.clone(),
            runtime: { runtime }.enable_time().build().map_err(said)?,
            sender: None,
            subscription: None,
            _kept: Vec::new(),
            context: ZContextBuilder::default().build().map_err(said)?,
        })
    }

    fn node(&self, name: &str) -> Result<ZNode, String> {
        self.context.create_node(name).build().map_err(said)
    }
}

fn publisher(node: &ZNode, options: &Options, topic: &str) -> Result<ZPub<Bytes, Serdes>, String> {
    let publisher = node.create_pub::<Bytes>(topic);
    publisher.with_qos(qos(options)).build().map_err(said)
}

impl Stack for Hiroz {
    fn open(
        options: &Options,
        ends: &EndpointTopics,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, String> {
        options.need_no_policies("the program of hiroz")?;
        if options.loan || options.poll {
            return Err("unsupported: hiroz neither lends messages nor polls".into());
        }
        let mut this = Self::new(traffic)?;
        let node = this.node("host_peer")?;
        if let Some(topic) = &ends.out {
            this.sender = Some(Arc::new(Sender {
                traffic: traffic.clone(),
                publisher: publisher(&node, options, topic)?,
                message: Mutex::new((0..options.size).map(|i| (i * 31) as u8).collect()),
            }));
        }
        if let Some(topic) = &ends.input {
            let (traffic, sender) = (traffic.clone(), this.sender.clone());
            let waiting = std::thread::current();
            let subscription = node.create_sub::<Bytes>(topic).with_qos(qos(options));
            let subscription = subscription.build_with_callback(move |message: Bytes| {
                if traffic.receive(&message.data.contiguous(), "TCP")
                    && let Some(sender) = &sender
                    && let Err(error) = sender.send()
                {
                    eprintln!("{error}");
                }
                if traffic.is_over() {
                    waiting.unpark();
                }
            });
            this.subscription = Some(subscription.map_err(said)?);
        }
        this._kept.push(Box::new(node));
        Ok(this)
    }

    fn publish(&mut self) -> Result<(), String> {
        let Some(sender) = &self.sender else {
            return Err("there is no publisher".into());
        };
        sender.send()
    }

    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool {
        let left = || Duration::from_nanos(until.saturating_sub(now_ns()));
        let (sender, subscription) = (&self.sender, &self.subscription);
        self.runtime.block_on(async {
            let readers_are_there = match sender {
                Some(sender) => {
                    sender
                        .publisher
                        .wait_for_subscription(readers, left())
                        .await
                }
                None => true,
            };
            let Some(subscription) = subscription else {
                return readers_are_there;
            };
            let (graph, topic) = (self.context.graph(), &subscription.entity().topic);
            loop {
                let changed = graph.change_notify.notified();
                let found = graph.get_entities_by_topic(EndpointKind::Publisher, topic);
                if found.len() >= writers {
                    return readers_are_there;
                }
                if tokio::time::timeout(left(), changed).await.is_err() {
                    return false;
                }
            }
        })
    }

    fn run(&mut self, until: u64) {
        self.traffic.park_until(until);
    }

    fn open_many(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let mut this = Self::new(traffic)?;
        for index in 0..options.nodes {
            let ends = node_topics(options, index);
            let node = this.node(&format!("node{}", options.first + index))?;
            let publisher = publisher(&node, options, &ends.out.unwrap_or_default())?;
            let subscription = node.create_sub::<Bytes>(&ends.input.unwrap_or_default());
            let subscription = subscription
                .with_qos(qos(options))
                .build_with_callback(drop);
            this._kept.push(Box::new(publisher));
            this._kept.push(Box::new(subscription.map_err(said)?));
            this._kept.push(Box::new(node));
        }
        Ok(this)
    }
}
