//! Topic route: announces each publisher of one side on the other side.
//!
//! Each publisher has a counterpart on the other side with its QoS, so that late joiners
//! get each publisher's history. One subscription receives from all publishers of a topic
//! with the same reliability and durability. A volatile subscription exists while a
//! counterpart is matched. A transient-local one always exists, so that the history is
//! available. Payloads are forwarded as bytes, without their type.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_rtps::id::Guid;
use pteros_rtps::late_samples::LateSamples;
use pteros_rtps::qos::{Durability, Reliability};
use pteros_runtime::EndpointSpec;
use pteros_runtime::error::EndpointError;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::reader::{DeliveryForm, ReaderEndpoint};
use pteros_runtime::ready_queue::Task;
use pteros_runtime::sample::{QueuedSample, SampleBody};
use pteros_runtime::user_data::user_data_value;
use pteros_runtime::writer::WriterEndpoint;

use super::counters::RouteCounters;
use super::network::{Changed, MatchWatch, Network};
use super::plan::{WantedTopic, subscription_qos};
use super::rate::RateLimiter;
use super::view::Side;
use crate::bridge_path::BridgePath;
use crate::key::topic_names;

/// Messages that a subscription forwards in one task.
const MESSAGES_PER_TURN: usize = 32;
/// Publishers of one topic whose first messages arrived before their counterparts
/// existed. Above the limit their history may be missing on the other side.
const EARLY_MAX: usize = 4_096;

/// The publishers that one subscription receives from.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TopicClass {
    /// Side of the publishers.
    pub side: Side,
    /// Topic name on that side.
    pub name: String,
    /// Its DDS type name.
    pub type_name: String,
    /// Reliability of all of them.
    pub reliability: Reliability,
    /// Durability of all of them: volatile or transient local.
    pub is_transient_local: bool,
}

impl TopicClass {
    /// Class of a publisher.
    pub fn of(side: Side, wanted: &WantedTopic) -> Self {
        Self {
            side,
            name: wanted.name.clone(),
            type_name: wanted.type_name.clone(),
            reliability: wanted.qos.reliability,
            is_transient_local: wanted.qos.durability != Durability::Volatile,
        }
    }
}

/// Counterpart of a publisher on the other side. Dropping it removes it.
pub struct Counterpart {
    there: Arc<Network>,
    path: BridgePath,
    writer: Arc<WriterEndpoint>,
    counters: Arc<RouteCounters>,
    progress: Mutex<Progress>,
    is_transient_local: bool,
    _watch: Arc<MatchWatch>,
}

struct Progress {
    limiter: Option<RateLimiter>,
    /// Sequence number of the last forwarded message.
    last: i64,
    late: LateSamples,
}

impl Counterpart {
    /// Announces the counterpart.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn new(
        there: &Arc<Network>,
        wanted: &WantedTopic,
        counters: &Arc<RouteCounters>,
        changed: &Arc<Changed>,
    ) -> Result<Self, EndpointError> {
        let (topic, type_name) = topic_names(&wanted.name_there, &wanted.type_name);
        let writer = there.core.create_writer(EndpointSpec {
            topic,
            type_name,
            qos: wanted.qos.clone(),
            serialize_only: true,
            ..EndpointSpec::default()
        })?;
        let watch = MatchWatch::new(there, &writer.events, changed);
        there.attach(&wanted.path, &writer.data);
        Ok(Self {
            there: there.clone(),
            path: wanted.path.clone(),
            writer,
            counters: counters.clone(),
            progress: Mutex::new(Progress {
                limiter: wanted.hertz.map(RateLimiter::new),
                last: i64::MIN,
                late: LateSamples::NONE,
            }),
            is_transient_local: wanted.qos.durability != Durability::Volatile,
            _watch: watch,
        })
    }

    /// Whether something on the other side receives from it: a subscription, or a Zenoh
    /// subscriber without a token.
    pub fn is_matched(&self) -> bool {
        self.writer.matched_count() > 0 || self.writer.has_transport_routes()
    }

    /// Publishes a message of its origin. Blocks as publishing does.
    fn forward(&self, sample: QueuedSample) {
        let SampleBody::Serialized(payload) = sample.body else {
            return;
        };
        let core = &self.there.core;
        let passes = {
            let mut progress = self.progress.lock();
            if self.is_transient_local {
                // A subscription that was created again gets the history again.
                let (now, number) = (core.platform.now(), sample.meta.sequence);
                if number <= progress.last && !progress.late.follows(now, number) {
                    return;
                }
                progress.last = number;
                progress.late.note_in_order(now);
            }
            let limiter = progress.limiter.as_mut();
            limiter.is_none_or(|limiter| limiter.passes(core.platform.now()))
        };
        if !passes {
            self.counters.note_limited();
            return;
        }
        let stamp = sample.meta.source;
        let stamp = stamp.unwrap_or_else(|| core.platform.wall_clock());
        let mut message = SerializedPayload::new(payload);
        match core.publish(&self.writer, &mut message, stamp) {
            Ok(_) => self.counters.note_forwarded(),
            Err(error) => {
                self.counters.note_failed(1);
                tracing::debug!(topic = %self.writer.data.topic, "not forwarded: {error}");
            }
        }
    }
}

impl Drop for Counterpart {
    fn drop(&mut self) {
        self.there.detach(&self.path, self.writer.guid());
        self.there.core.remove_writer(&self.writer);
    }
}

/// Publishers of one class and the subscription that receives from them.
pub struct TopicGroup {
    here: Arc<Network>,
    class: TopicClass,
    /// Path of the subscription's node.
    own: BridgePath,
    publishers: Mutex<Publishers>,
    reader: Mutex<Option<Arc<ReaderEndpoint>>>,
    changed: Arc<Changed>,
}

#[derive(Default)]
struct Publishers {
    routed: HashMap<Guid, Arc<Counterpart>>,
    /// Publishers of the topic that are not routed, or are routed by another group.
    others: HashSet<Guid>,
    /// Publishers whose messages arrived before their counterparts existed.
    early: HashSet<Guid>,
}

impl TopicGroup {
    /// Creates a group without publishers.
    pub fn new(
        here: &Arc<Network>,
        class: TopicClass,
        own: &BridgePath,
        changed: &Arc<Changed>,
    ) -> Arc<Self> {
        Arc::new(Self {
            here: here.clone(),
            class,
            own: own.clone(),
            publishers: Mutex::default(),
            reader: Mutex::default(),
            changed: changed.clone(),
        })
    }

    /// Adds a publisher with its counterpart.
    pub fn add(&self, origin: Guid, counterpart: &Arc<Counterpart>) {
        let mut publishers = self.publishers.lock();
        publishers.routed.insert(origin, counterpart.clone());
        publishers.others.remove(&origin);
        let is_early = publishers.early.remove(&origin);
        drop(publishers);
        if is_early && self.class.is_transient_local {
            // A new subscription gets the history again, and forwards it.
            self.unsubscribe();
        }
    }

    /// Removes a publisher. Returns whether it was the last one.
    pub fn remove(&self, origin: Guid) -> bool {
        let mut publishers = self.publishers.lock();
        publishers.routed.remove(&origin);
        publishers.routed.is_empty()
    }

    /// Notes all publishers of the topic, so that messages of unrouted ones do not renew
    /// the subscription.
    pub fn note_publishers(&self, present: &HashSet<Guid>) {
        let mut publishers = self.publishers.lock();
        let Publishers {
            routed,
            others,
            early,
        } = &mut *publishers;
        others.clear();
        others.extend(present.iter().filter(|guid| !routed.contains_key(*guid)));
        early.retain(|guid| present.contains(guid));
    }

    /// Subscribes while a counterpart needs it.
    ///
    /// # Errors
    /// See [`EndpointError`].
    pub fn update(self: &Arc<Self>) -> Result<(), EndpointError> {
        let is_needed = self.class.is_transient_local || {
            let publishers = self.publishers.lock();
            publishers.routed.values().any(|of| of.is_matched())
        };
        if is_needed {
            return self.subscribe();
        }
        self.unsubscribe();
        Ok(())
    }

    fn subscribe(self: &Arc<Self>) -> Result<(), EndpointError> {
        let mut current = self.reader.lock();
        if current.is_some() {
            return Ok(());
        }
        let (topic, type_name) = topic_names(&self.class.name, &self.class.type_name);
        let hash = self.type_hash();
        let mut qos = subscription_qos(self.class.reliability, self.class.is_transient_local);
        qos.user_data = hash.into_bytes();
        let spec = EndpointSpec {
            topic,
            type_name,
            qos,
            serialize_only: true,
            ..EndpointSpec::default()
        };
        let core = &self.here.core;
        let reader = core.create_reader(spec, DeliveryForm::Bytes, true)?;
        let task: Weak<Self> = Arc::downgrade(self);
        reader.slot.set_task(task);
        *current = Some(reader.clone());
        drop(current);
        let queue = Some(self.here.queue.clone());
        reader.slot.attach(queue, || reader.has_samples());
        self.here.attach(&self.own, &reader.announced());
        Ok(())
    }

    /// Hash in the key of the topic, which its counterparts announce.
    fn type_hash(&self) -> String {
        let publishers = self.publishers.lock();
        let first = publishers.routed.values().next();
        let hash = first.and_then(|of| user_data_value(&of.writer.data.qos.user_data, "typehash"));
        hash.map_or_else(String::new, |hash| format!("typehash={hash};"))
    }

    fn unsubscribe(&self) {
        let reader = self.reader.lock().take();
        if let Some(reader) = reader {
            self.here.detach(&self.own, reader.data.guid);
            self.here.core.remove_reader(&reader);
        }
    }

    fn forward(&self, sample: QueuedSample) {
        let origin = sample.meta.publisher;
        let counterpart = {
            let mut publishers = self.publishers.lock();
            let found = publishers.routed.get(&origin).cloned();
            let is_new = found.is_none() && !publishers.others.contains(&origin);
            if is_new && publishers.early.len() < EARLY_MAX && publishers.early.insert(origin) {
                self.changed.set();
            }
            found
        };
        if let Some(counterpart) = counterpart {
            counterpart.forward(sample);
        }
    }
}

impl Task for TopicGroup {
    fn run(&self) {
        let Some(reader) = self.reader.lock().clone() else {
            return;
        };
        reader.slot.begin_take();
        for _ in 0..MESSAGES_PER_TURN {
            let Some(sample) = self.here.core.taking().take(&reader) else {
                return;
            };
            if !sample.is_end() {
                self.forward(sample);
            }
        }
        if reader.has_samples() {
            reader.slot.mark_ready();
        }
    }

    fn describe(&self) -> String {
        format!("bridged topic \"{}\"", self.class.name)
    }
}

impl Drop for TopicGroup {
    fn drop(&mut self) {
        self.unsubscribe();
    }
}
