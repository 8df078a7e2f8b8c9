//! Options and creation of subscriptions, by a node or a subscription group.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_rcl::rmw_qos::resolve_best_available;
use pteros_runtime::content_filter::FilterSpec as ContentFilter;
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::instance::TopicKey;
use pteros_runtime::names::dds_topic;
use pteros_runtime::reader::ReaderEndpoint;

use super::next_message::MessageWaiters;
use super::topic_statistics::{TopicStatistics, TopicStatisticsOptions};
use super::{
    AnyCallback, AsyncCallback, InstanceEndCallback, SampleCallback, Subscription,
    SubscriptionCallback, SubscriptionCallbacks, SubscriptionCore, SubscriptionMessage,
    SubscriptionSupport, content_filter, erase,
};
use crate::callback_groups::{CallbackGroup, group_for};
use crate::error::CreateError;
use crate::event_handler::{EventCallback, EventTask};
use crate::instance::EndedInstance;
use crate::message_type_info::endpoint_spec;
use crate::named_qos::{NamedQos, options_from_names};
use crate::node::{Node, NodeCore};
use crate::qos::QosProfile;
use crate::qos_overrides::QosOverridingOptions;
use crate::sample::Sample;
use crate::set_qos::CurrentQos;
use crate::subscription_group::SubscriptionGroupCore;
use crate::task::AsyncSlots;

/// Options of [`Node::create_subscription`](crate::Node::create_subscription).
///
/// A name, with or without QoS words ([`NamedQosExt`](crate::NamedQosExt)),
/// converts into them.
pub struct SubscriptionOptions<T: SubscriptionMessage> {
    pub(crate) topic: String,
    pub(crate) support: T::Support,
    /// The QoS profile.
    pub qos: QosProfile,
    /// Whether publishers of the same context are ignored. False by default.
    pub ignore_local_publications: bool,
    /// Content filter; without one, all messages are received.
    ///
    /// See [`SubscriptionOptions::content_filter`].
    pub content_filter: Option<ContentFilter>,
    pub(crate) callback: Option<AnyCallback<T>>,
    pub(crate) on_instance_end: Option<InstanceEndCallback<T>>,
    pub(crate) pending_max: Option<usize>,
    pub(crate) on_event: Option<EventCallback>,
    pub(crate) group: Option<Arc<SubscriptionGroupCore>>,
    pub(crate) callback_group: Option<CallbackGroup>,
    pub(crate) qos_overrides: Option<QosOverridingOptions>,
    pub(crate) topic_statistics: Option<TopicStatisticsOptions>,
}

options_from_names!(SubscriptionOptions<T: SubscriptionMessage>);

impl<T: SubscriptionMessage> SubscriptionOptions<T> {
    /// Options for a topic, which the node expands and remaps.
    pub fn new(topic: impl Into<NamedQos>) -> Self
    where
        T::Support: Default,
    {
        Self::of_type(&T::Support::default(), topic)
    }

    /// Options for a topic whose type is known at run time only.
    ///
    /// That is a [`DynamicType`](pteros_msg::dynamic::DynamicType) for
    /// `Subscription<DynamicMessage>`, and a
    /// [`SerializedType`](crate::subscription::SerializedType) for
    /// `Subscription<SerializedMessage>`.
    pub fn of_type(support: &T::Support, topic: impl Into<NamedQos>) -> Self {
        let NamedQos { name, qos } = topic.into();
        Self {
            topic: name,
            support: support.clone(),
            qos: qos.unwrap_or_default(),
            ignore_local_publications: false,
            content_filter: None,
            callback: None,
            on_instance_end: None,
            pending_max: None,
            on_event: None,
            group: None,
            callback_group: None,
            qos_overrides: None,
            topic_statistics: None,
        }
    }

    /// Lets parameters change these policies,
    /// `qos_overrides./topic.subscription.depth`.
    ///
    /// None unless set.
    pub fn qos_overrides(mut self, overrides: QosOverridingOptions) -> Self {
        self.qos_overrides = Some(overrides);
        self
    }

    /// Also calls `callback` for each end of an instance, in order with the messages.
    ///
    /// Only types with a key have instances. If several ends of one instance are
    /// queued, only the last is delivered. Without a callback for messages, ends are
    /// taken with [`Subscription::take_change`].
    pub fn on_instance_end(
        mut self,
        callback: impl FnMut(EndedInstance<T>) + Send + 'static,
    ) -> Self {
        self.on_instance_end = Some(Box::new(callback));
        self
    }

    /// Runs the callbacks in this callback group of the node.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }

    /// Sets how many futures of an async callback in a reentrant group may be pending
    /// at once: 16 by default, at least 1. Further messages wait in the subscription's
    /// queue. In a mutually exclusive group it is always 1.
    pub fn pending_max(mut self, count: usize) -> Self {
        self.pending_max = Some(count);
        self
    }

    /// Calls `callback` from the node's executor for subscription events.
    ///
    /// Events are matches, incompatible QoS or type, missed deadlines, changed
    /// liveliness and lost samples.
    ///
    /// Without a callback, events wait for [`Subscription::take_event`].
    pub fn on_event(mut self, callback: impl FnMut(&EndpointEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Content filter: receives only messages for which `expression` holds.
    ///
    /// Like rclcpp's `ContentFilterOptions`.
    ///
    /// The language is that of DDS 1.4 Annex B over the message's fields.
    /// `parameters` are the values of `%0`, `%1` and so on.
    ///
    /// Publishers that support content filters, those of Fast DDS and Pteros, do
    /// not send the other messages at all. Messages of other publishers are
    /// evaluated when they arrive. Intra-process messages are serialized for the
    /// evaluation. A rejected message does not count as lost and does not meet a
    /// deadline. An error in the expression is reported with its position when the
    /// subscription is created.
    ///
    /// ```
    /// use pteros::interfaces::sensor_msgs::msg::BatteryState;
    /// use pteros::SubscriptionOptions;
    ///
    /// let low = SubscriptionOptions::<BatteryState>::new("battery")
    ///     .content_filter("percentage < %0 AND location LIKE 'left%'", ["0.2"]);
    /// ```
    pub fn content_filter(
        mut self,
        expression: impl Into<String>,
        parameters: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.content_filter = Some(content_filter(expression, parameters));
        self
    }

    /// Publishes age and period of the received messages, as rclcpp's topic
    /// statistics.
    ///
    /// Once per period there is one `statistics_msgs/msg/MetricsMessage` each for
    /// `message_age` (from source timestamp to taking, by wall clocks) and
    /// `message_period` (between two takings), in milliseconds. The node's executor
    /// publishes them, in the callback group of the subscription. Off by default.
    ///
    /// ```no_run
    /// use pteros::SubscriptionOptions;
    /// use pteros::interfaces::sensor_msgs::msg::LaserScan;
    /// use pteros::prelude::*;
    /// use pteros::subscription::TopicStatisticsOptions;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("mapper")?;
    /// let scans = SubscriptionOptions::<LaserScan>::new("scan".sensor_data())
    ///     .topic_statistics(TopicStatisticsOptions::default());
    /// let _scans = node.create_subscription(scans, |scan| println!("{}", scan.ranges.len()))?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    pub fn topic_statistics(mut self, options: TopicStatisticsOptions) -> Self {
        self.topic_statistics = Some(options);
        self
    }

    /// Ignores messages of publishers of the same context.
    pub fn ignore_local_publications(mut self) -> Self {
        self.ignore_local_publications = true;
        self
    }
}

/// The callback that starts the futures of an async callback.
fn async_callback<T: Send + 'static>(
    mut callback: AsyncCallback<T>,
    async_slots: &Arc<AsyncSlots>,
    endpoint: &Arc<ReaderEndpoint>,
) -> SampleCallback<T> {
    let endpoint = endpoint.clone();
    async_slots.on_free_slot(move || {
        if endpoint.has_samples() {
            endpoint.slot.mark_ready();
        }
    });
    let async_slots = async_slots.clone();
    Box::new(move |sample| {
        if let Some(future) = callback(sample) {
            async_slots.start(future);
        }
        Ok(())
    })
}

impl Node {
    /// Creates a subscription whose callback runs in the node's executor, never twice
    /// at a time.
    ///
    /// The options are a topic, which is expanded and remapped, with QoS words or as
    /// [`SubscriptionOptions`]. The callback takes a
    /// [`Sample`](crate::Sample). If it returns a boxed
    /// future, the executor runs that ([`SubscriptionCallback`]).
    ///
    /// ```no_run
    /// use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
    /// use pteros::interfaces::std_msgs::msg::Int64;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("doubler")?;
    /// let _printer = node.create_subscription::<Int64>("number".keep_last(10), |number| {
    ///     println!("{}", number.data);
    /// })?;
    /// let client = node.create_client::<AddTwoInts>("add_two_ints")?;
    /// let _doubler = node.create_subscription::<Int64>("number", move |number| {
    ///     let client = client.clone();
    ///     Box::pin(async move {
    ///         let request = AddTwoIntsRequest { a: number.data, b: number.data };
    ///         match client.call_async(&request) {
    ///             Ok(call) => println!("{:?}", call.await.map(|answer| answer.sum)),
    ///             Err(error) => println!("{error}"),
    ///         }
    ///     })
    /// })?;
    /// node.spin();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_subscription<T: SubscriptionMessage>(
        &self,
        options: impl Into<SubscriptionOptions<T>>,
        callback: impl SubscriptionCallback<T>,
    ) -> Result<Subscription<T>, CreateError> {
        let mut options = options.into();
        options.callback = Some(erase(callback));
        self.core().create_subscription(options)
    }

    /// Creates a subscription without callback, read with [`Subscription::take`] or
    /// [`Subscription::next`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_polled_subscription<T: SubscriptionMessage>(
        &self,
        options: impl Into<SubscriptionOptions<T>>,
    ) -> Result<Subscription<T>, CreateError> {
        self.core().create_subscription(options.into())
    }

    /// Waits for one message on a topic, as rclcpp's `wait_for_message`; `None` after
    /// `timeout` or when the context shuts down.
    ///
    /// Creates a subscription for this wait. A latched message arrives with
    /// `"map".transient_local()`. Blocks, drives the network itself and runs no
    /// callbacks.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
    /// use pteros::prelude::*;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let node = Context::new()?.create_node("planner")?;
    /// let map = "map".keep_last(1).transient_local();
    /// match node.wait_for_message::<OccupancyGrid>(map, Duration::from_secs(5))? {
    ///     Some(map) => println!("{} cells", map.data.len()),
    ///     None => println!("no map within 5 s"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn wait_for_message<T: SubscriptionMessage>(
        &self,
        options: impl Into<SubscriptionOptions<T>>,
        timeout: Duration,
    ) -> Result<Option<Sample<T>>, CreateError> {
        let subscription = self.create_polled_subscription(options)?;
        Ok(subscription.take_timeout(timeout))
    }
}

impl NodeCore {
    pub(crate) fn create_subscription<T: SubscriptionMessage>(
        self: &Arc<Self>,
        mut options: SubscriptionOptions<T>,
    ) -> Result<Subscription<T>, CreateError> {
        let SubscriptionSupport {
            type_info: mut ty,
            form,
            decoders,
        } = T::subscription_support(&options.support);
        let topic = self.resolve_topic(&options.topic, &options.qos)?;
        if let Some(overrides) = &options.qos_overrides {
            overrides.apply(&self.parameters, &topic, "subscription", &mut options.qos)?;
        }
        if matches!(options.callback, Some(AnyCallback::Async(_))) && options.group.is_some() {
            return Err(CreateError::AsyncInGroup { topic });
        }
        let runtime = self.core();
        let dds = dds_topic(&topic, options.qos.avoid_ros_namespace_conventions);
        let known = runtime.graph().endpoints_on(&dds);
        let publishers: Vec<_> = known.iter().filter(|e| e.data.is_writer()).collect();
        let has_key = publishers.iter().any(|e| e.data.guid.entity.is_keyed());
        if has_key && matches!(ty.keying, TopicKey::NoKey) {
            // Other DDS implementations match endpoints only if both have a key.
            ty.keying = TopicKey::Unreadable;
        }
        let qos = resolve_best_available(runtime.graph(), &dds, false, options.qos);
        ty.register_in(&self.context().inner.known_types);
        let mut spec = endpoint_spec(&topic, ty, &qos, |qos| qos.to_reader())?;
        spec.content_filter = options.content_filter;
        spec.serialize_only = self.as_bytes;
        spec.subscription_group = options.group.as_ref().map(|group| group.group.clone());
        let endpoint = runtime
            .create_reader(spec, form, options.ignore_local_publications)
            .map_err(|source| CreateError::Endpoint {
                topic: topic.clone(),
                source,
            })?;
        self.attach_endpoint(&endpoint.announced());
        let callback_group = group_for(self, options.callback_group.as_ref());
        let description = |kind: &str| {
            let node = self.fully_qualified_name();
            format!("{kind} \"{topic}\" of node \"{node}\"")
        };
        let on_event = options.on_event.map(|callback| {
            let description = description("subscription");
            EventTask::new(&endpoint.events, callback, &callback_group, description)
        });
        let mut async_slots = None;
        let on_sample = options.callback.map(|callback| match callback {
            AnyCallback::Plain(callback) => callback,
            AnyCallback::Async(callback) => {
                let (group, most) = (options.callback_group.as_ref(), options.pending_max);
                let description = description("async subscription");
                let slots = async_slots.insert(AsyncSlots::new(self, group, description, most));
                async_callback(callback, slots, &endpoint)
            }
        });
        let topic_statistics = options
            .topic_statistics
            .map(|options| TopicStatistics::start(self, &callback_group, options))
            .transpose()?;
        let on_instance_end = options.on_instance_end;
        let callbacks = on_sample.map(|on_sample| SubscriptionCallbacks {
            on_sample,
            on_instance_end,
        });
        let core = Arc::new(SubscriptionCore {
            node: self.clone(),
            endpoint: endpoint.clone(),
            topic,
            qos: CurrentQos::new(qos),
            decode: decoders.message,
            decode_key: decoders.key,
            callback: callbacks.map(Mutex::new),
            async_slots,
            on_event,
            callback_group,
            wait_queue: runtime.ready_queue(),
            wait_lock: Mutex::new(()),
            waiters: Mutex::new(MessageWaiters::default()),
            group: options.group,
            topic_statistics,
        });
        if let Some(group) = &core.group {
            let member: Weak<SubscriptionCore<T>> = Arc::downgrade(&core);
            group.add_member(endpoint.data.guid, member);
        }
        let weak: Weak<SubscriptionCore<T>> = Arc::downgrade(&core);
        endpoint.slot.set_task(weak.clone());
        if core.callback.is_none() {
            endpoint
                .slot
                .attach(Some(core.wait_queue.clone()), || false);
        }
        self.add_entity(weak);
        Ok(Subscription::new(core))
    }
}
