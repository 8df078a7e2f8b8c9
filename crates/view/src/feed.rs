//! Feed: one subscription of the graph and the viewers that get its messages.
//!
//! All viewers of a channel share a feed, which begins with the first one and ends with the
//! last. Where all publishers keep messages for late joiners, each viewer has a feed of its
//! own: a viewer that comes later then gets them from the publishers, by the protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros::error::CreateError;
use pteros::graph::EndpointInfo;
use pteros::qos::{DurabilityPolicy, QosProfile, ReliabilityPolicy};
use pteros::subscription::{DeliveryPath, SerializedMessage, SerializedType};
use pteros::{NamedQosExt, Node, Sample, Subscription, SubscriptionOptions};

use crate::channel::Channel;
use crate::client::Client;
use crate::outbox::QueueOptions;

/// Messages that wait for the executor.
const HISTORY_DEPTH: usize = 100;
/// The same with those that publishers keep.
const LATCHED_HISTORY_DEPTH: usize = 1000;
/// Messages that wait for a viewer: of latched, reliable and best-effort publishers.
const LATCHED_DEPTH: usize = 1000;
const RELIABLE_DEPTH: usize = 100;
const BEST_EFFORT_DEPTH: usize = 1;

/// The QoS that the publishers of a topic offer, as far as it matters for a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// All are reliable.
    pub is_reliable: bool,
    /// All keep messages for late joiners.
    pub is_latched: bool,
}

impl Offer {
    /// The offer of these publishers.
    pub fn of(publishers: &[EndpointInfo]) -> Self {
        let mut all = publishers.iter().map(|publisher| &publisher.qos);
        Self {
            is_reliable: all
                .clone()
                .all(|qos| qos.reliability == ReliabilityPolicy::Reliable),
            is_latched: !publishers.is_empty()
                && all.all(|qos| qos.durability != DurabilityPolicy::Volatile),
        }
    }

    /// How messages wait for a viewer. Of sensors the newest is enough.
    pub fn queue(self, channel: u32) -> QueueOptions {
        QueueOptions {
            channel,
            depth: match (self.is_latched, self.is_reliable) {
                (true, _) => LATCHED_DEPTH,
                (false, true) => RELIABLE_DEPTH,
                (false, false) => BEST_EFFORT_DEPTH,
            },
            is_latched: self.is_latched,
        }
    }

    /// The strongest QoS that matches all publishers.
    fn qos(self) -> QosProfile {
        let mut qos = QosProfile::default().keep_last(HISTORY_DEPTH);
        if !self.is_reliable {
            qos = qos.best_effort();
        }
        if self.is_latched {
            qos = qos.transient_local().keep_last(LATCHED_HISTORY_DEPTH);
        }
        qos
    }
}

/// A subscription and its viewers.
pub struct Feed {
    fan_out: Arc<FanOut>,
    /// With the offer that it follows.
    subscription: Mutex<Option<(Offer, Subscription<SerializedMessage>)>>,
    has_ended: AtomicBool,
}

/// Messages of a feed since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct FeedCounts {
    pub messages: u64,
    pub bytes: u64,
    pub lost: u64,
}

impl Feed {
    /// A feed without a subscription.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            fan_out: Arc::default(),
            subscription: Mutex::default(),
            has_ended: AtomicBool::new(false),
        })
    }

    /// Whether several viewers may have it.
    pub fn is_shared(&self) -> bool {
        let subscription = self.subscription.lock();
        subscription
            .as_ref()
            .is_none_or(|(offer, _)| !offer.is_latched)
    }

    /// Adds a viewer.
    pub fn add(&self, client: Arc<Client>, subscription: u32) {
        let viewer = Viewer {
            client,
            subscription,
        };
        self.fan_out.viewers.lock().push(viewer);
    }

    /// Removes a viewer.
    pub fn remove(&self, client: &Client, subscription: u32) {
        self.fan_out
            .viewers
            .lock()
            .retain(|v| v.client.id != client.id || v.subscription != subscription);
    }

    /// Subscribes with a QoS that matches the offer, again if it has changed. A feed of
    /// one viewer stays one.
    ///
    /// # Errors
    /// The subscription cannot be created. The former one stays.
    pub fn follow(&self, node: &Node, channel: &Channel, offer: Offer) -> Result<(), CreateError> {
        let mut subscription = self.subscription.lock();
        if subscription
            .as_ref()
            .is_some_and(|(known, _)| *known == offer)
        {
            return Ok(());
        }
        let support = SerializedType::new(&channel.type_name, channel.type_hash).any_version();
        let topic = channel.topic.as_str().qos(offer.qos());
        let options = SubscriptionOptions::of_type(&support, topic);
        let fan_out = self.fan_out.clone();
        let created = node.create_subscription::<SerializedMessage>(options, move |sample| {
            fan_out.receive(&sample);
        })?;
        *subscription = Some((offer, created));
        Ok(())
    }

    /// Ends the feed for all its viewers: its channel has gone.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        for viewer in self.fan_out.viewers.lock().drain(..) {
            viewer.client.outbox.close(viewer.subscription);
        }
        *self.subscription.lock() = None;
    }

    /// Whether its channel has gone.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Counts since the feed began.
    pub fn counts(&self) -> FeedCounts {
        let subscription = self.subscription.lock();
        let lost = subscription.as_ref().map_or(0, |(_, subscription)| {
            let counts = subscription.counts();
            counts.lost + counts.overwritten
        });
        FeedCounts {
            messages: self.fan_out.messages.load(Ordering::Relaxed),
            bytes: self.fan_out.bytes.load(Ordering::Relaxed),
            lost,
        }
    }

    /// The paths of the messages since the last call.
    pub fn take_paths(&self) -> Vec<&'static str> {
        let seen = self.fan_out.paths.swap(0, Ordering::Relaxed);
        let all = PATHS.into_iter().enumerate();
        all.filter(|(index, _)| seen & (1 << index) != 0)
            .map(|(_, path)| path.name())
            .collect()
    }
}

const PATHS: [DeliveryPath; 5] = [
    DeliveryPath::IntraProcess,
    DeliveryPath::SharedMemory,
    DeliveryPath::Network,
    DeliveryPath::Zenoh,
    DeliveryPath::OtherTransport,
];

struct Viewer {
    client: Arc<Client>,
    subscription: u32,
}

/// Passes messages on, in the executor's thread.
#[derive(Default)]
struct FanOut {
    viewers: Mutex<Vec<Viewer>>,
    messages: AtomicU64,
    bytes: AtomicU64,
    /// A bit for each of [`PATHS`].
    paths: AtomicU8,
}

impl FanOut {
    fn receive(&self, sample: &Sample<SerializedMessage>) {
        let info = sample.info();
        let path = PATHS.iter().position(|path| *path == info.delivery_path);
        self.paths
            .fetch_or(1 << path.unwrap_or_default(), Ordering::Relaxed);
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(sample.len() as u64, Ordering::Relaxed);
        // A viewer may be slow, and a chunk belongs to the publisher's pool.
        let payload = match info.delivery_path {
            DeliveryPath::SharedMemory => Bytes::copy_from_slice(sample),
            _ => sample.0.clone(),
        };
        let since = info.received_timestamp.duration_since(UNIX_EPOCH);
        let log_time = u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
        for viewer in self.viewers.lock().iter() {
            let outbox = &viewer.client.outbox;
            outbox.push(viewer.subscription, log_time, payload.clone());
        }
    }
}
