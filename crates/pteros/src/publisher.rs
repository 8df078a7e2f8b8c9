//! Publishers: from a value to every matched subscription.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use pteros_msg::cdr::{DecodeError, Representation};
use pteros_msg::key::{KeyHash, KeyReader, key_hash, key_payload};
use pteros_msg::message::Message;
use pteros_rmw::error::PublishError;
use pteros_rmw::event::EndpointEvent;
use pteros_rmw::flow::Pace;
use pteros_rmw::links::Chunk;
use pteros_rmw::publisher_group::PublisherGroup;
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::rtps::time::Timestamp;
use pteros_rmw::sample::SharedValue;
use pteros_rmw::writer::{Outgoing, WriterCounts, WriterEndpoint};

use crate::callback_group::{CallbackGroup, GroupCore};
use crate::event::{EventCallback, EventTask};
use crate::executor::Home;
use crate::node::{Attach, NodeCore};
use crate::parameter::QosOverrides;
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::qos::QosProfile;
use crate::sample::wall_stamp;
use crate::set_qos::InForce;

/// What [`Node::create_publisher_with`](crate::Node::create_publisher_with)
/// can be told.
#[derive(Default)]
pub struct PublisherOptions {
    /// The QoS profile.
    pub qos: QosProfile,
    pub(crate) store: Option<String>,
    pub(crate) on_event: Option<EventCallback>,
    pub(crate) pace: Option<Pace>,
    /// The group it is made in.
    pub(crate) group: Option<Arc<PublisherGroup>>,
    pub(crate) callback_group: Option<CallbackGroup>,
    pub(crate) qos_overrides: Option<QosOverrides>,
}

impl PublisherOptions {
    /// Options with a profile.
    pub fn new(qos: impl Into<QosProfile>) -> Self {
        Self {
            qos: qos.into(),
            store: None,
            on_event: None,
            pace: None,
            group: None,
            callback_group: None,
            qos_overrides: None,
        }
    }

    /// Which policies parameters may change, `qos_overrides./topic.publisher.depth`;
    /// none unless given.
    pub fn qos_overrides(mut self, overrides: QosOverrides) -> Self {
        self.qos_overrides = Some(overrides);
        self
    }

    /// Publishing hands the message over and returns; whoever spins, or else
    /// the process's helper thread, sends it at the pace of one of the
    /// context's [flow controllers](crate::ContextOptions::flow_controllers).
    /// Subscriptions of the same context get it at once all the same.
    ///
    /// What is not yet sent counts as history: KEEP_LAST replaces the oldest of
    /// it, except a message whose fragments are on their way
    /// ([`WriterCounts::replaced_unsent`] counts), KEEP_ALL waits for room, whoever
    /// reads; a lifespan ends before sending, too. A publisher that is dropped
    /// takes its unsent messages with it, with a warning;
    /// [`Publisher::wait_for_all_acked`] waits for them. One that disposes of
    /// its instances has two seconds to send both.
    ///
    /// ```no_run
    /// use pteros::interfaces::sensor_msgs::msg::Image;
    /// use pteros::prelude::*;
    /// use pteros::{FlowController, Pace, PublisherOptions};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // 20 MB/s for all cameras together.
    /// let cameras = FlowController::new("cameras")
    ///     .bytes_per_period(100_000)
    ///     .period(std::time::Duration::from_millis(5));
    /// let context = Context::with_options(ContextOptions {
    ///     flow_controllers: vec![cameras.clone()],
    ///     ..ContextOptions::from_process()?
    /// })?;
    /// let node = context.node("cameras")?;
    /// let front = PublisherOptions::new(2).asynchronous(Pace::new("cameras").priority(1));
    /// let front = node.create_publisher_with::<Image>("front", front)?;
    /// let rear = PublisherOptions::new(2).asynchronous(&cameras);
    /// let rear = node.create_publisher_with::<Image>("rear", rear)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn asynchronous(mut self, pace: impl Into<Pace>) -> Self {
        self.pace = Some(pace.into());
        self
    }

    /// Runs the callback for events in a group of the node's callbacks.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }

    /// Names the store of a transient or persistent publisher: whichever is
    /// created next with that name goes on with it. Without it domain, node and
    /// topic name the store, which suits a node that keeps its name. One store
    /// serves one publisher at a time.
    pub fn store(mut self, name: impl Into<String>) -> Self {
        self.store = Some(name.into());
        self
    }

    /// Calls `callback` from the node's executor for matches, incompatible QoS
    /// or type, missed deadlines and lost liveliness. Without it events wait for
    /// [`Publisher::take_event`].
    pub fn on_event(mut self, callback: impl FnMut(&EndpointEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }
}

/// Publishes messages of one type on one topic. Cheap to clone, thread-safe;
/// the topic is left when the last clone is gone.
///
/// Publishing sends on the caller's thread and needs no executor, except that
/// acknowledgements are heard by whoever spins, or else by the process's helper
/// thread. With KEEP_LAST it never waits: the oldest sample makes room, whether
/// acknowledged or not. With KEEP_ALL a reliable publisher waits until the
/// slowest reliable subscription has room, at most
/// [`QosProfile::max_blocking_time`], and drives the network meanwhile.
///
/// A message larger than what the network takes at once, megabytes over a slow
/// cable, holds the publishing thread up until the socket has taken it: for
/// `max_blocking_time` if nothing moves, for ten times that in all. The rest is
/// sent by whoever spins, or the helper thread; meanwhile a message on its way is
/// finished, and of those behind it history keeps the newest.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::Twist;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("teleop")?;
/// let publisher = node.create_publisher::<Twist>("cmd_vel", 10)?;
/// publisher.wait_for_matched(1, std::time::Duration::from_secs(5));
/// let mut command = Twist::default();
/// command.linear.x = 0.5;
/// publisher.publish(&command)?;
/// # Ok(())
/// # }
/// ```
pub struct Publisher<T> {
    pub(crate) raw: Arc<RawPublisher>,
    message: PhantomData<fn(T)>,
}

impl<T> Clone for Publisher<T> {
    fn clone(&self) -> Self {
        Self {
            raw: self.raw.clone(),
            message: PhantomData,
        }
    }
}

impl<T: Message> Publisher<T> {
    pub(crate) fn new(raw: Arc<RawPublisher>) -> Self {
        Self {
            raw,
            message: PhantomData,
        }
    }

    /// Publishes a copy. The value is cloned once if a subscription of this
    /// context is matched, or late joiners may come (transient local) and nobody
    /// reads it as bytes yet. It is serialized, once, when a subscription of another
    /// process reads it: with transient local that may be later, with a store it is
    /// at once. Blocks as the type says.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was sent then.
    pub fn publish(&self, message: &T) -> Result<(), PublishError> {
        self.raw.begin();
        self.check(message)?;
        let mut outgoing = Borrowed::new(message, self.raw.payload());
        self.raw.send(&mut outgoing)
    }

    /// As [`Publisher::publish`], with a source time of the caller's: of a
    /// sensor's measurement, or of a recording. With destination order by
    /// source a time before the last one published counts as that one.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_at(&self, message: &T, source: SystemTime) -> Result<(), PublishError> {
        self.raw.begin();
        self.check(message)?;
        let mut outgoing = Borrowed::new(message, self.raw.payload());
        self.raw.send_at(&mut outgoing, wall_stamp(source))
    }

    /// Publishes a value that is given away: no copy within the process, one
    /// allocation for its [`Arc`].
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was sent then, and the value is lost.
    pub fn publish_owned(&self, message: T) -> Result<(), PublishError> {
        self.publish_arc(Arc::new(message))
    }

    /// Publishes a shared value: no copy and no allocation within the process.
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was sent then.
    pub fn publish_arc(&self, message: Arc<T>) -> Result<(), PublishError> {
        self.raw.begin();
        self.check(&message)?;
        self.raw.send(&mut Shared {
            message,
            payload: self.raw.payload(),
        })
    }

    fn check(&self, message: &T) -> Result<(), PublishError> {
        message
            .check_bounds()
            .map_err(|error| PublishError::Invalid {
                topic: self.raw.topic.clone(),
                reason: error.to_string(),
            })
    }

    /// The topic's fully qualified name, after remapping.
    pub fn topic(&self) -> &str {
        &self.raw.topic
    }

    /// Its gid in the graph: as in [`EndpointInfo`](crate::EndpointInfo) and
    /// [`SampleInfo`](crate::SampleInfo).
    pub fn gid(&self) -> Guid {
        self.raw.endpoint.guid()
    }

    /// Subscriptions matched now, those of this process included.
    pub fn matched_count(&self) -> usize {
        self.raw.endpoint.matched_count()
    }

    /// Waits until at least `count` subscriptions are matched; returns whether
    /// they are. Blocks, at most `timeout` or until the context shuts down;
    /// drives the network itself and runs no callbacks.
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.raw.wait_for_matched(count, timeout)
    }

    /// Waits until every reliable subscription of another process has
    /// acknowledged everything, and an asynchronous publisher has sent
    /// everything; returns whether that is so. Blocks, at most
    /// `timeout` or until the context shuts down; drives the network itself and
    /// runs no callbacks.
    pub fn wait_for_all_acked(&self, timeout: Duration) -> bool {
        self.raw.wait_for_all_acked(timeout)
    }

    /// Sends what the [latency budget](QosProfile::latency_budget) holds back.
    /// Without one there is nothing. Never blocks.
    pub fn flush(&self) {
        self.raw.node.core().flush(&self.raw.endpoint);
    }

    /// Messages that an asynchronous publisher's flow controller has not sent,
    /// the one on its way included; otherwise 0. Never blocks.
    pub fn unsent_count(&self) -> usize {
        self.raw.endpoint.unsent_count()
    }

    /// Says that the publisher is alive. Needed with manual liveliness where
    /// pauses between messages are longer than the lease; else does nothing.
    pub fn assert_liveliness(&self) {
        self.raw.node.core().assert_liveliness(&self.raw.endpoint);
    }

    /// The oldest event not yet looked at, when no callback takes them. Never
    /// blocks. 256 are kept; then the oldest goes, totals in later ones tell
    /// what was missed.
    pub fn take_event(&self) -> Option<EndpointEvent> {
        self.raw.endpoint.events.take()
    }

    /// Totals since it was created.
    pub fn counts(&self) -> WriterCounts {
        self.raw.endpoint.counts()
    }
}

impl<T> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("topic", &self.raw.topic)
            .field("gid", &self.raw.endpoint.guid())
            .finish()
    }
}

/// A publisher without its message type.
pub(crate) struct RawPublisher {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) endpoint: Arc<WriterEndpoint>,
    pub(crate) topic: String,
    pub(crate) qos: InForce,
    /// How its samples are written.
    pub(crate) representation: Representation,
    pub(crate) on_event: Option<Arc<EventTask>>,
    pub(crate) callback_group: Arc<GroupCore>,
    pub(crate) memory: PayloadMemory,
}

impl RawPublisher {
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload::new(&self.memory, self.representation)
    }

    /// A publish call begins on this thread, of which a trace is told.
    #[inline]
    pub(crate) fn begin(&self) {
        if let Some(tracer) = self.node.core().tracer() {
            tracer.begin_publish();
        }
    }

    pub(crate) fn send(&self, outgoing: &mut dyn Outgoing) -> Result<(), PublishError> {
        self.send_at(outgoing, self.node.core().env.wall())
    }

    fn send_at(&self, outgoing: &mut dyn Outgoing, source: Timestamp) -> Result<(), PublishError> {
        let core = self.node.core();
        core.publish(&self.endpoint, outgoing, source)
            .map(drop)
            .map_err(|error| self.named(error))
    }

    /// Errors speak of the ROS topic, the runtime of DDS's.
    pub(crate) fn named(&self, error: PublishError) -> PublishError {
        let ros = self.topic.clone();
        match error {
            PublishError::TimedOut { waited_ms, .. } => PublishError::TimedOut {
                topic: ros,
                waited_ms,
            },
            PublishError::TooLarge { size, max, .. } => PublishError::TooLarge {
                topic: ros,
                size,
                max,
            },
            PublishError::TooManyInstances { max, .. } => {
                PublishError::TooManyInstances { topic: ros, max }
            }
            PublishError::UnknownInstance { .. } => PublishError::UnknownInstance { topic: ros },
            PublishError::NoKey { .. } => PublishError::NoKey { topic: ros },
            PublishError::Invalid { reason, .. } => PublishError::Invalid { topic: ros, reason },
            PublishError::NoSharedMemory {
                reason, waited_ms, ..
            } => PublishError::NoSharedMemory {
                topic: ros,
                reason,
                waited_ms,
            },
            other => other,
        }
    }

    pub(crate) fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.node
            .wait_until(timeout, || self.endpoint.matched_count() >= count)
    }

    pub(crate) fn wait_for_all_acked(&self, timeout: Duration) -> bool {
        self.node.core().flush(&self.endpoint);
        self.node.core().hurry(&self.endpoint);
        self.node
            .wait_until(timeout, || self.endpoint.is_acknowledged())
    }
}

impl Attach for RawPublisher {
    fn attach(&self, home: Option<&Arc<Home>>) {
        if let Some(task) = &self.on_event {
            task.attach(home);
        }
    }

    fn callback_group(&self) -> &Arc<GroupCore> {
        &self.callback_group
    }
}

impl Drop for RawPublisher {
    fn drop(&mut self) {
        let core = self.node.core();
        core.detach_endpoint(self.node.key, self.endpoint.guid());
        core.remove_writer(&self.endpoint);
    }
}

pub(crate) struct Borrowed<'m, T> {
    message: &'m T,
    shared: Option<Arc<T>>,
    payload: Payload<'m>,
}

impl<'m, T> Borrowed<'m, T> {
    pub(crate) fn new(message: &'m T, payload: Payload<'m>) -> Self {
        Self {
            message,
            shared: None,
            payload,
        }
    }
}

impl<T: Message> Outgoing for Borrowed<'_, T> {
    fn message_type(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        let value = self
            .shared
            .get_or_insert_with(|| Arc::new(self.message.clone()));
        Some(value.clone())
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.bytes(self.message)
    }

    fn offer_memory(&mut self, memory: Chunk) {
        self.payload.offer_memory(memory);
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len(self.message)
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(key_hash(self.message))
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        Ok(key_payload(self.message, self.payload.representation()).into())
    }
}

pub(crate) struct Shared<'m, T> {
    pub(crate) message: Arc<T>,
    pub(crate) payload: Payload<'m>,
}

impl<T: Message> Outgoing for Shared<'_, T> {
    fn message_type(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn shared(&mut self) -> Option<Arc<dyn SharedValue>> {
        Some(self.message.clone())
    }

    fn serialized(&mut self) -> Bytes {
        self.payload.bytes(&*self.message)
    }

    fn offer_memory(&mut self, memory: Chunk) {
        self.payload.offer_memory(memory);
    }

    fn serialized_len(&mut self) -> usize {
        self.payload.len(&*self.message)
    }

    fn key_hash(&mut self, _: &dyn KeyReader) -> Result<KeyHash, DecodeError> {
        Ok(key_hash(&*self.message))
    }

    fn key(&mut self, _: &dyn KeyReader) -> Result<Bytes, DecodeError> {
        Ok(key_payload(&*self.message, self.payload.representation()).into())
    }
}
