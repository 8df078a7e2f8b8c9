//! Publisher: sends messages of one type to every matched subscription.
//!
//! [`Publisher`] hands a message to the runtime in one of three forms: borrowed,
//! owned or shared. Intra-process subscriptions get a shared pointer; all others
//! get the serialized payload, CDR or XCDR2. Options cover flow control
//! (asynchronous publish mode), the durability store and QoS overrides by
//! parameters.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use pteros_msg::cdr::Representation;
use pteros_msg::type_support::MessageTypeSupport;
use pteros_rcl::rmw_qos::resolve_best_available;
use pteros_runtime::error::{PublishError, QosChangeError};
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::names::dds_topic;
use pteros_runtime::outbound::SerializedPayload;
use pteros_runtime::publisher_group as runtime;
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::rtps::time::Timestamp;
use pteros_runtime::store::default_name;
use pteros_runtime::writer::{OutboundMessage, WriterEndpoint};

use crate::callback_groups::{CallbackGroup, group_for};
use crate::error::CreateError;
use crate::event_handler::{EventCallback, EventTask};
use crate::executor_queue::ExecutorQueue;
use crate::message_type_info::{MessageTypeInfo, endpoint_spec};
use crate::named_qos::{NamedQos, options_from_names};
use crate::node::{CallbackGroupCore, Node, NodeCore, NodeEntity};
use crate::outbound_message::{BorrowedMessage, SharedMessage};
use crate::payload::Payload;
use crate::payload_memory::PayloadMemory;
use crate::qos::{DurabilityPolicy, QosProfile};
use crate::qos_overrides::QosOverridingOptions;
use crate::sample::wall_stamp;
use crate::set_qos::CurrentQos;

pub use crate::loan::LoanedMessage;
pub use crate::publisher_group::{CoherentSet, PublisherGroup};
pub use pteros_runtime::flow_controller::{AsyncPublishMode, FlowController, FlowControllerError};
pub use pteros_runtime::writer::WriterCounts;

/// Options of [`Node::create_publisher`](crate::Node::create_publisher).
///
/// A name, with or without QoS words ([`NamedQosExt`](crate::NamedQosExt)),
/// converts into them.
pub struct PublisherOptions<T: MessageTypeSupport> {
    pub(crate) topic: String,
    pub(crate) support: T::Support,
    /// The QoS profile.
    pub qos: QosProfile,
    pub(crate) store: Option<String>,
    pub(crate) on_event: Option<EventCallback>,
    pub(crate) flow_control: Option<AsyncPublishMode>,
    /// The publisher group that it is created in.
    pub(crate) group: Option<Arc<runtime::PublisherGroup>>,
    pub(crate) callback_group: Option<CallbackGroup>,
    pub(crate) qos_overrides: Option<QosOverridingOptions>,
}

options_from_names!(PublisherOptions<T: MessageTypeSupport>);

impl<T: MessageTypeSupport> PublisherOptions<T> {
    /// Options for a topic, which the node expands and remaps.
    pub fn new(topic: impl Into<NamedQos>) -> Self
    where
        T::Support: Default,
    {
        Self::of_type(&T::Support::default(), topic)
    }

    /// Options for a topic whose type is known at run time only: a
    /// [`DynamicType`](crate::msg::dynamic::DynamicType) for
    /// `Publisher<DynamicMessage>`.
    pub fn of_type(support: &T::Support, topic: impl Into<NamedQos>) -> Self {
        let NamedQos { name, qos } = topic.into();
        Self {
            topic: name,
            support: support.clone(),
            qos: qos.unwrap_or_default(),
            store: None,
            on_event: None,
            flow_control: None,
            group: None,
            callback_group: None,
            qos_overrides: None,
        }
    }

    /// Lets parameters change these policies,
    /// `qos_overrides./topic.publisher.depth`.
    ///
    /// None unless set.
    pub fn qos_overrides(mut self, overrides: QosOverridingOptions) -> Self {
        self.qos_overrides = Some(overrides);
        self
    }

    /// Asynchronous publish mode: `publish` queues the message and returns.
    ///
    /// The thread that spins, or else the background I/O thread, sends it as one of
    /// the context's [flow controllers](crate::ContextOptions::flow_controllers)
    /// allows. Subscriptions of the same context get the message at once.
    ///
    /// Unsent messages count as history. KEEP_LAST replaces the oldest of them,
    /// except a message whose fragments are being sent
    /// ([`WriterCounts::replaced_before_send`] counts). KEEP_ALL blocks until there is
    /// room, whatever the reliability. Lifespan also expires unsent messages.
    /// Dropping a publisher drops its unsent messages, with a warning;
    /// [`Publisher::wait_for_all_acked`] waits for them. A publisher that disposes
    /// of its instances when dropped has two seconds to send messages and disposes.
    ///
    /// ```no_run
    /// use pteros::interfaces::sensor_msgs::msg::Image;
    /// use pteros::prelude::*;
    /// use pteros::{PublisherOptions, publisher::{FlowController, AsyncPublishMode}};
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
    /// let node = context.create_node("cameras")?;
    /// let mode = AsyncPublishMode::new("cameras").priority(1);
    /// let front = PublisherOptions::new("front".keep_last(2)).asynchronous(mode);
    /// let front = node.create_publisher::<Image>(front)?;
    /// let rear = PublisherOptions::new("rear".keep_last(2)).asynchronous(&cameras);
    /// let rear = node.create_publisher::<Image>(rear)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn asynchronous(mut self, pace: impl Into<AsyncPublishMode>) -> Self {
        self.flow_control = Some(pace.into());
        self
    }

    /// Runs the event callback in this callback group of the node.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }

    /// Names the durability store of a transient or persistent publisher.
    ///
    /// The next publisher with that store name continues it. Without a name,
    /// domain, node and topic name the store, which suits a node that keeps its
    /// name. One store serves one publisher at a time.
    pub fn store(mut self, name: impl Into<String>) -> Self {
        self.store = Some(name.into());
        self
    }

    /// Calls `callback` from the node's executor for publisher events.
    ///
    /// Events are matches, incompatible QoS or type, missed deadlines and lost
    /// liveliness.
    ///
    /// Without a callback, events wait for [`Publisher::take_event`].
    pub fn on_event(mut self, callback: impl FnMut(&EndpointEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }
}

/// Publishes messages of one type on one topic. Cheap to clone, thread-safe.
///
/// The publisher leaves the topic when its last clone is dropped. Publishing sends
/// on the caller's thread and needs no executor. Acknowledgements (ACKNACK) are
/// received by the thread that spins, or else by the background I/O thread.
///
/// Back-pressure: with KEEP_LAST, publishing never waits; a new sample replaces the
/// oldest, acknowledged or not. With KEEP_ALL, a reliable publisher blocks until
/// the slowest reliable subscription has room, for at most
/// [`QosProfile::max_blocking_time`], and drives the network meanwhile.
///
/// A message larger than the socket's send buffer, for example megabytes over a
/// slow cable, blocks the publishing thread until the socket has taken it. The
/// limit is `max_blocking_time` without progress, and ten times that in total. The
/// thread that spins, or the background I/O thread, sends the rest. Meanwhile a
/// message in transmission is finished, and history keeps the newest of those
/// behind it.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::Twist;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("teleop")?;
/// let publisher = node.create_publisher::<Twist>("cmd_vel".keep_last(10))?;
/// publisher.wait_for_matched(1, std::time::Duration::from_secs(5));
/// let mut command = Twist::default();
/// command.linear.x = 0.5;
/// publisher.publish(&command)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a publisher ends when it is dropped: keep it in a variable or a field"]
pub struct Publisher<T: MessageTypeSupport> {
    pub(crate) raw: Arc<PublisherCore>,
    support: T::Support,
    message: PhantomData<fn(T)>,
}

impl<T: MessageTypeSupport> Clone for Publisher<T> {
    fn clone(&self) -> Self {
        Self {
            raw: self.raw.clone(),
            support: self.support.clone(),
            message: PhantomData,
        }
    }
}

impl<T: MessageTypeSupport> Publisher<T> {
    pub(crate) fn new(raw: Arc<PublisherCore>, support: T::Support) -> Self {
        Self {
            raw,
            support,
            message: PhantomData,
        }
    }

    /// Publishes a copy of the message.
    ///
    /// The value is cloned once if an intra-process subscription is matched, or if
    /// late joiners may come (transient local) and no reader needs it serialized
    /// yet. It is serialized once, when a subscription of another process reads it.
    /// With transient local that may be later; with a store it is at once. Blocks
    /// as described for [`Publisher`].
    ///
    /// # Errors
    /// See [`PublishError`]; nothing was sent then.
    pub fn publish(&self, message: &T) -> Result<(), PublishError> {
        self.raw.begin_trace();
        self.check(message)?;
        let mut outgoing = BorrowedMessage::new(message, self.raw.payload());
        self.raw.send(&mut outgoing)
    }

    /// As [`Publisher::publish`], with a source timestamp of the caller.
    ///
    /// Use it for the time of a sensor's measurement or of a recording. With
    /// destination order by source timestamp, a time before the last published one
    /// counts as that one.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_at(&self, message: &T, source: SystemTime) -> Result<(), PublishError> {
        self.raw.begin_trace();
        self.check(message)?;
        let mut outgoing = BorrowedMessage::new(message, self.raw.payload());
        self.raw.send_at(&mut outgoing, wall_stamp(source))
    }

    /// Publishes a value by move: no copy within the process, one allocation for
    /// its [`Arc`].
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
        self.raw.begin_trace();
        self.check(&message)?;
        self.raw.send(&mut SharedMessage {
            message,
            payload: self.raw.payload(),
        })
    }

    /// Publishes a serialized message: CDR with its encapsulation header.
    ///
    /// Only its key is read. The caller must ensure that it is of the announced
    /// type.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_serialized(&self, payload: Bytes) -> Result<(), PublishError> {
        self.raw.send(&mut SerializedPayload::new(payload))
    }

    /// Checks the type alone; a generated message is always of it.
    #[inline]
    pub(crate) fn check_type(&self, message: &T) -> Result<(), PublishError> {
        if message.is_of(&self.support) {
            return Ok(());
        }
        self.check(message)
    }

    /// Checks type and bounds; a generated type has only bounds.
    #[inline]
    fn check(&self, message: &T) -> Result<(), PublishError> {
        message
            .validate(&self.support)
            .map_err(|reason| PublishError::Invalid {
                topic: self.raw.topic.clone(),
                reason,
            })
    }

    /// The topic's fully qualified name, after remapping.
    pub fn topic(&self) -> &str {
        &self.raw.topic
    }

    /// Its gid, as in [`EndpointInfo`](crate::graph::EndpointInfo) and
    /// [`SampleInfo`](crate::SampleInfo).
    pub fn gid(&self) -> Guid {
        self.raw.endpoint.guid()
    }

    /// Number of matched subscriptions, including those of this process.
    pub fn matched_count(&self) -> usize {
        self.raw.endpoint.matched_count()
    }

    /// Waits until at least `count` subscriptions are matched; true if they are.
    ///
    /// Blocks, at most `timeout` or until the context shuts down. Drives the
    /// network itself and runs no callbacks.
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.raw.wait_for_matched(count, timeout)
    }

    /// Waits until every sample is acknowledged; true if so.
    ///
    /// All reliable subscriptions of other processes must have acknowledged every
    /// sample.
    ///
    /// An asynchronous publisher must also have sent every message. Blocks, at most
    /// `timeout` or until the context shuts down. Drives the network itself and
    /// runs no callbacks.
    pub fn wait_for_all_acked(&self, timeout: Duration) -> bool {
        self.raw.wait_for_all_acked(timeout)
    }

    /// Sends the batch that the [latency budget](QosProfile::latency_budget) holds
    /// back.
    ///
    /// Does nothing without a latency budget. Never blocks.
    pub fn flush(&self) {
        self.raw.node.core().flush(&self.raw.endpoint);
    }

    /// Messages that the flow controller has not sent yet.
    ///
    /// Includes the one in transmission; 0 unless asynchronous. Never blocks.
    pub fn unsent_count(&self) -> usize {
        self.raw.endpoint.unsent_count()
    }

    /// Asserts the publisher's liveliness (DDS 1.4 §2.2.3.11).
    ///
    /// Needed with manual liveliness where pauses between messages exceed the
    /// liveliness lease; otherwise does nothing.
    pub fn assert_liveliness(&self) {
        self.raw
            .node
            .core()
            .discovery()
            .assert_liveliness(&self.raw.endpoint);
    }

    /// Takes the oldest event, when no callback takes them. Never blocks.
    ///
    /// The queue holds 256 events. When it is full, the oldest is dropped; the
    /// totals in later events include it.
    pub fn take_event(&self) -> Option<EndpointEvent> {
        self.raw.endpoint.events.take()
    }

    /// The current QoS profile.
    pub fn qos(&self) -> Arc<QosProfile> {
        self.raw.qos.load()
    }

    /// Changes the QoS profile of this publisher.
    ///
    /// The new profile may differ in the policies that DDS allows to change:
    /// partition, user, topic and group data, deadline, latency budget, ownership
    /// strength, transport priority, lifespan, and autodispose of unregistered
    /// instances.
    ///
    /// The change is announced to all peers, and endpoint matching runs again.
    /// Matches that became incompatible end, with an
    /// [`IncompatibleQos`](crate::event_handler::EndpointEvent::IncompatibleQos) event unless the
    /// partition is the reason. New matches begin and receive what a
    /// transient-local publisher keeps, like any late joiner, even if they were
    /// matched before. A new deadline counts from now. A new lifespan applies to
    /// messages published from now on. Never waits for peers: for a moment they act
    /// on the previous profile.
    ///
    /// ```no_run
    /// # use pteros::interfaces::std_msgs::msg::String as Text;
    /// # use pteros::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = Context::new()?.create_node("arm")?;
    /// let publisher = node.create_publisher::<Text>("state".keep_last(10))?;
    /// let spare = QosProfile::clone(&publisher.qos()).partition(["spare"]);
    /// publisher.set_qos(&spare)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`CreateError::QosChange`] names every policy that cannot change, or the contradiction
    /// within the profile. Nothing has changed then.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), CreateError> {
        let changed = self.raw.change_qos(|now| now.clone_from(qos));
        changed.map_err(|source| CreateError::QosChange {
            topic: self.raw.topic.clone(),
            source,
        })
    }

    /// Counters since it was created.
    pub fn counts(&self) -> WriterCounts {
        self.raw.endpoint.counts()
    }
}

impl<T: MessageTypeSupport> fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher")
            .field("topic", &self.raw.topic)
            .field("gid", &self.raw.endpoint.guid())
            .finish()
    }
}

/// A publisher without its message type.
pub(crate) struct PublisherCore {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) endpoint: Arc<WriterEndpoint>,
    pub(crate) topic: String,
    pub(crate) qos: CurrentQos,
    /// The CDR representation (encapsulation) of its samples.
    pub(crate) representation: Representation,
    pub(crate) on_event: Option<Arc<EventTask>>,
    pub(crate) callback_group: Arc<CallbackGroupCore>,
    pub(crate) memory: PayloadMemory,
}

impl PublisherCore {
    pub(crate) fn payload(&self) -> Payload<'_> {
        Payload::new(&self.memory, self.representation)
    }

    /// Marks the beginning of a publish call on this thread in the trace.
    #[inline]
    pub(crate) fn begin_trace(&self) {
        if let Some(tracer) = self.node.core().tracer() {
            tracer.begin_publish();
        }
    }

    pub(crate) fn send(&self, outgoing: &mut dyn OutboundMessage) -> Result<(), PublishError> {
        self.send_at(outgoing, self.node.core().platform.wall_clock())
    }

    fn send_at(
        &self,
        outgoing: &mut dyn OutboundMessage,
        source: Timestamp,
    ) -> Result<(), PublishError> {
        let core = self.node.core();
        core.publish(&self.endpoint, outgoing, source)
            .map(drop)
            .map_err(|error| self.with_ros_topic(error))
    }

    /// Replaces the DDS topic name in the error by the ROS topic name.
    pub(crate) fn with_ros_topic(&self, error: PublishError) -> PublishError {
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

    pub(crate) fn change_qos(
        &self,
        change: impl FnOnce(&mut QosProfile),
    ) -> Result<(), QosChangeError> {
        let core = self.node.core();
        self.qos
            .change(change, |qos| core.set_writer_qos(&self.endpoint, qos))
    }

    pub(crate) fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.node
            .wait_until(timeout, || self.endpoint.matched_count() >= count)
    }

    pub(crate) fn wait_for_all_acked(&self, timeout: Duration) -> bool {
        self.node.core().flush(&self.endpoint);
        self.node
            .core()
            .publishing()
            .request_acknowledgement(&self.endpoint);
        self.node
            .wait_until(timeout, || self.endpoint.is_acknowledged())
    }
}

impl NodeEntity for PublisherCore {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        if let Some(task) = &self.on_event {
            task.attach(executor_queue);
        }
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.callback_group
    }
}

impl Drop for PublisherCore {
    fn drop(&mut self) {
        let core = self.node.core();
        core.discovery()
            .detach_endpoint(self.node.key, self.endpoint.guid());
        core.remove_writer(&self.endpoint);
    }
}

impl Node {
    /// Creates a publisher.
    ///
    /// The options are a topic, which is expanded and remapped, with QoS words
    /// (`"chatter".keep_last(10).reliable()`) or as [`PublisherOptions`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_publisher<T: MessageTypeSupport>(
        &self,
        options: impl Into<PublisherOptions<T>>,
    ) -> Result<Publisher<T>, CreateError> {
        self.core().create_publisher(options.into())
    }
}

impl NodeCore {
    pub(crate) fn create_publisher<T: MessageTypeSupport>(
        self: &Arc<Self>,
        mut options: PublisherOptions<T>,
    ) -> Result<Publisher<T>, CreateError> {
        let topic = self.resolve_topic(&options.topic, &options.qos)?;
        let ty = MessageTypeInfo::of::<T>(&options.support);
        if let Some(overrides) = &options.qos_overrides {
            let store = &self.parameters;
            overrides.apply(store, &topic, "publisher", &mut options.qos)?;
        }
        let runtime = self.core();
        let dds = dds_topic(&topic, options.qos.avoid_ros_namespace_conventions);
        options.qos = resolve_best_available(runtime.graph(), &dds, true, options.qos);
        ty.register_in(&self.context().inner.known_types);
        let mut spec = endpoint_spec(&topic, ty, &options.qos, |qos| qos.to_endpoint())?;
        spec.group = options.group;
        spec.serialize_only = self.as_bytes;
        let own_name = || {
            let domain_id = runtime.options().domain_id;
            default_name(domain_id, &self.fully_qualified_name(), &topic)
        };
        spec.store = match options.qos.durability {
            DurabilityPolicy::Transient | DurabilityPolicy::Persistent => {
                Some(options.store.unwrap_or_else(own_name))
            }
            _ => None,
        };
        let created = match &options.flow_control {
            Some(pace) => runtime.create_flow_controlled_writer(spec, pace),
            None => runtime.create_writer(spec),
        };
        let endpoint = created.map_err(|source| CreateError::Endpoint {
            topic: topic.clone(),
            source,
        })?;
        self.attach_endpoint(&endpoint.data);
        let callback_group = group_for(self, options.callback_group.as_ref());
        let description = format!(
            "publisher \"{topic}\" of node \"{}\"",
            self.fully_qualified_name()
        );
        let raw = Arc::new(PublisherCore {
            node: self.clone(),
            endpoint: endpoint.clone(),
            topic,
            representation: options.qos.representation.unwrap_or_default(),
            qos: CurrentQos::new(options.qos),
            on_event: options.on_event.map(|callback| {
                EventTask::new(&endpoint.events, callback, &callback_group, description)
            }),
            callback_group,
            memory: PayloadMemory::default(),
        });
        let part: Weak<PublisherCore> = Arc::downgrade(&raw);
        self.add_entity(part);
        Ok(Publisher::new(raw, options.support))
    }
}
