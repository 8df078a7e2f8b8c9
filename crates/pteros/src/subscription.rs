//! Subscriptions: from the queue of samples to a callback or to `take`.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_msg::cdr::{DecodeError, from_payload};
use pteros_msg::dynamic::DynamicType;
use pteros_msg::key::{KeyReader, from_key_payload};
use pteros_msg::message::Message;
use pteros_rmw::content_filter::{FilterSpec as ContentFilter, MessageType};
use pteros_rmw::event::EndpointEvent;
use pteros_rmw::gate::Gate;
use pteros_rmw::graph::NodeKey;
use pteros_rmw::reader::{ReaderCounts, ReaderEndpoint};
use pteros_rmw::ready::{ReadyQueue, Task};
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::sample::{Body, Item, SharedValue};

use crate::callback_group::{self, CallbackGroup};
use crate::error::CreateError;
use crate::event::{EventCallback, EventTask};
use crate::executor::Home;
use crate::instance::{Change, InstanceEnd};
use crate::node::{Attach, NodeCore};
use crate::parameter::QosOverrides;
use crate::qos::QosProfile;
use crate::sample::{Sample, SampleInfo};
use crate::set_qos::{GroupPolicies, InForce, SetQosError};
use crate::subscription_group::{GroupCore, Member};
use crate::task::{Lanes, UserFuture, Watch};
use crate::wait_set;

/// What is called for each message and each end of an instance. A view's may
/// find that the message is not of its type.
pub(crate) type Callback<T> = Box<dyn FnMut(Change<T>) -> Result<(), Unreadable> + Send>;

/// What is called for each message and gives a future to run.
pub(crate) type AsyncCallback<T> = Box<dyn FnMut(Sample<T>) -> UserFuture + Send>;

/// A message that is not of its type, and why.
pub(crate) type Unreadable = Box<(SampleInfo, DecodeError)>;

/// Turns what arrived into a message.
pub(crate) type Decoder<T> = Box<dyn Fn(Body) -> Result<Decoded<T>, DecodeError> + Send + Sync>;

/// Turns a serialized key into a message with nothing else filled in.
pub(crate) type KeyDecoder<T> = Box<dyn Fn(&Bytes) -> Result<T, DecodeError> + Send + Sync>;

/// A message as it came: shared with its publisher, or made from bytes.
pub(crate) enum Decoded<T> {
    Shared(Arc<T>),
    Owned(T),
}

/// What
/// [`Node::create_subscription_with`](crate::Node::create_subscription_with)
/// can be told.
pub struct SubscriptionOptions<T> {
    /// The QoS profile.
    pub qos: QosProfile,
    /// Whether publishers of the same context are ignored. False by default.
    pub ignore_local_publications: bool,
    /// Which messages are wanted; all without one. See
    /// [`SubscriptionOptions::content_filter`].
    pub content_filter: Option<ContentFilter>,
    /// For a raw subscription, what its bytes are made of.
    pub(crate) message_type: MessageType,
    pub(crate) callback: Option<Callback<T>>,
    pub(crate) on_async: Option<AsyncCallback<T>>,
    pub(crate) pending_max: Option<usize>,
    pub(crate) on_event: Option<EventCallback>,
    pub(crate) key_reader: Option<Arc<dyn KeyReader>>,
    pub(crate) group: Option<Arc<GroupCore>>,
    pub(crate) callback_group: Option<CallbackGroup>,
    pub(crate) qos_overrides: Option<QosOverrides>,
}

impl<T> SubscriptionOptions<T> {
    /// Options with a profile, no callback: messages are taken with
    /// [`Subscription::take`].
    pub fn new(qos: impl Into<QosProfile>) -> Self {
        Self {
            qos: qos.into(),
            ignore_local_publications: false,
            content_filter: None,
            message_type: MessageType::Unknown,
            callback: None,
            on_async: None,
            pending_max: None,
            on_event: None,
            key_reader: None,
            group: None,
            callback_group: None,
            qos_overrides: None,
        }
    }

    /// Which policies parameters may change,
    /// `qos_overrides./topic.subscription.depth`; none unless given.
    pub fn qos_overrides(mut self, overrides: QosOverrides) -> Self {
        self.qos_overrides = Some(overrides);
        self
    }

    /// Calls `callback` from the node's executor for each message, never two at
    /// a time.
    pub fn callback(self, mut callback: impl FnMut(Sample<T>) + Send + 'static) -> Self {
        self.on_change(move |change| {
            if let Change::Sample(sample) = change {
                callback(sample);
            }
        })
    }

    /// In place of [`SubscriptionOptions::callback`]: calls `callback` for each
    /// message and, where the type has a key, for the end of each instance, in
    /// order. Of several ends of one instance that wait the last is told.
    pub fn on_change(mut self, mut callback: impl FnMut(Change<T>) + Send + 'static) -> Self {
        self.callback = Some(Box::new(move |change| {
            callback(change);
            Ok(())
        }));
        self
    }

    /// Runs the callbacks in a group of the node's.
    pub fn callback_group(mut self, group: &CallbackGroup) -> Self {
        self.callback_group = Some(group.clone());
        self
    }

    /// Tells instances apart by `reader`: for subscriptions whose type alone does
    /// not say how, [`create_raw_subscription`](crate::Node::create_raw_subscription).
    /// Without it such a subscription hears samples, but no ends of instances.
    pub fn key_reader(mut self, reader: Arc<dyn KeyReader>) -> Self {
        self.key_reader = Some(reader);
        self
    }

    /// What the bytes of a
    /// [`create_raw_subscription`](crate::Node::create_raw_subscription) are
    /// made of: a content filter needs to know. Other subscriptions know it.
    pub fn message_type(mut self, ty: &DynamicType) -> Self {
        self.message_type = MessageType::Dynamic(ty.clone());
        self
    }

    /// Calls `callback` from the node's executor for matches, incompatible QoS
    /// or type, missed deadlines, changed liveliness and lost samples. Without
    /// it events wait for [`Subscription::take_event`].
    pub fn on_event(mut self, callback: impl FnMut(&EndpointEvent) + Send + 'static) -> Self {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Receives only messages for which `expression` holds, as rclcpp's
    /// `ContentFilterOptions` do: the filter language of DDS 1.4 Annex B over the
    /// message's fields, with the values of `%0`, `%1` … in `parameters`.
    ///
    /// Publishers that understand it, those of Fast DDS and of this stack, do
    /// not even send the others; with all others it costs a look at each
    /// message that arrives. Messages of the same process are serialized to be
    /// judged. What does not pass is neither lost nor does it meet a deadline.
    /// A mistake in it is told, with its place, when the subscription is made.
    ///
    /// ```
    /// use pteros::interfaces::sensor_msgs::msg::BatteryState;
    /// use pteros::SubscriptionOptions;
    ///
    /// let low = SubscriptionOptions::<BatteryState>::new(10)
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

    /// Leaves out what publishers of the same context send.
    pub fn ignore_local_publications(mut self) -> Self {
        self.ignore_local_publications = true;
        self
    }
}

/// Receives messages of one type on one topic. Thread-safe; clones share it,
/// and it ends when the last one is dropped.
///
/// Messages wait in a queue of the profile's depth for the callback or for
/// [`Subscription::take`]. When it is full, KEEP_LAST drops the oldest and
/// counts it ([`ReaderCounts::overwritten`]); KEEP_ALL holds reliable
/// publishers back and loses what others send ([`ReaderCounts::lost`]).
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("mapper")?;
/// // With a callback, run by whoever spins the node:
/// let _scans = node.create_subscription("scan", QosProfile::sensor_data(), |scan: Sample<LaserScan>| {
///     println!("{} ranges by {:?}", scan.ranges.len(), scan.info().path);
/// })?;
/// // Or taken, without any executor:
/// let poses = node.create_polled_subscription::<LaserScan>("scan", 1)?;
/// if let Some(scan) = poses.take_timeout(Duration::from_secs(1)) {
///     println!("{} ranges", scan.ranges.len());
/// }
/// node.spin();
/// # Ok(())
/// # }
/// ```
pub struct Subscription<T> {
    pub(crate) core: Arc<SubscriptionCore<T>>,
}

impl<T> Clone for Subscription<T> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

impl<T: 'static> Subscription<T> {
    pub(crate) fn new(core: Arc<SubscriptionCore<T>>) -> Self {
        Self { core }
    }

    /// Takes the oldest message waiting. Never blocks and looks at no socket:
    /// somebody must spin, or wait, for messages to come. One that cannot be
    /// decoded is counted and passed over, the end of an instance just passed
    /// over. With a callback there is usually nothing to take.
    pub fn take(&self) -> Option<Sample<T>> {
        self.core.take()
    }

    /// As [`Subscription::take`], the ends of instances included.
    pub fn take_change(&self) -> Option<Change<T>> {
        self.core.take_change()
    }

    /// Takes the oldest message, waiting for one at most `timeout`. Blocks;
    /// drives the network itself, so no executor is needed. Of several threads
    /// that wait, one at a time is served.
    pub fn take_timeout(&self, timeout: Duration) -> Option<Sample<T>> {
        self.core.take_timeout(timeout)
    }

    /// What its group has taken for it.
    pub(crate) fn decode(&self, item: Item) -> Option<Change<T>> {
        self.core.decode(item)
    }

    /// The topic's fully qualified name, after remapping.
    pub fn topic(&self) -> &str {
        &self.core.topic
    }

    /// Its gid in the graph: as in [`EndpointInfo`](crate::EndpointInfo).
    pub fn gid(&self) -> Guid {
        self.core.endpoint.data.guid
    }

    /// Publishers matched now, those of this process included.
    pub fn matched_count(&self) -> usize {
        self.core.endpoint.matched_count()
    }

    /// Waits until at least `count` publishers are matched; returns whether they
    /// are. Blocks, at most `timeout` or until the context shuts down; drives
    /// the network itself and runs no callbacks.
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.core
            .node
            .wait_until(timeout, || self.matched_count() >= count)
    }

    /// The oldest event not yet looked at, when no callback takes them. Never
    /// blocks. 256 are kept; then the oldest goes, totals in later ones tell
    /// what was missed.
    pub fn take_event(&self) -> Option<EndpointEvent> {
        self.core.endpoint.events.take()
    }

    /// Filters otherwise from now on, or not at all if `expression` is blank;
    /// see [`SubscriptionOptions::content_filter`]. Publishers of other
    /// processes hear of it and send what the filter in force lets pass; what
    /// they kept back before does not come afterwards. Never waits for them.
    ///
    /// # Errors
    /// [`CreateError::Endpoint`] with what is wrong and where; the filter before
    /// stays in force.
    pub fn set_content_filter(
        &self,
        expression: impl Into<String>,
        parameters: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(), CreateError> {
        let filter = content_filter(expression, parameters);
        let set = self
            .core
            .node
            .core()
            .set_content_filter(&self.core.endpoint, &filter);
        set.map_err(|source| CreateError::Endpoint {
            topic: self.core.topic.clone(),
            source,
        })
    }

    /// The filter in force.
    pub fn content_filter(&self) -> Option<ContentFilter> {
        self.core.endpoint.content_filter()
    }

    /// Whether a filter is in force; rclcpp's `is_cft_enabled`.
    pub fn is_cft_enabled(&self) -> bool {
        self.core.endpoint.content_filter().is_some()
    }

    /// Totals since it was created.
    pub fn counts(&self) -> ReaderCounts {
        self.core.endpoint.counts()
    }

    /// Messages that could not be decoded: their publisher has another idea of
    /// the type.
    pub fn undecodable_count(&self) -> u64 {
        self.core.undecodable.load(Ordering::Relaxed)
    }
}

impl<T> fmt::Debug for Subscription<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("topic", &self.core.topic)
            .field("gid", &self.core.endpoint.data.guid)
            .finish()
    }
}

fn content_filter(
    expression: impl Into<String>,
    parameters: impl IntoIterator<Item = impl Into<String>>,
) -> ContentFilter {
    ContentFilter {
        expression: expression.into(),
        parameters: parameters.into_iter().map(Into::into).collect(),
    }
}

pub(crate) struct SubscriptionCore<T> {
    pub(crate) node: Arc<NodeCore>,
    pub(crate) endpoint: Arc<ReaderEndpoint>,
    pub(crate) topic: String,
    pub(crate) qos: InForce,
    pub(crate) decode: Decoder<T>,
    pub(crate) decode_key: KeyDecoder<T>,
    pub(crate) callback: Option<Mutex<Callback<T>>>,
    /// Of an async callback's futures.
    pub(crate) lanes: Option<Arc<Lanes>>,
    pub(crate) on_event: Option<Arc<EventTask>>,
    pub(crate) callback_group: Arc<callback_group::GroupCore>,
    /// Where a thread in `take_timeout` sleeps, which has the bed.
    pub(crate) own_queue: Arc<ReadyQueue>,
    pub(crate) bed: Mutex<()>,
    /// Without a callback.
    pub(crate) watch: Mutex<Watch>,
    pub(crate) undecodable: AtomicU64,
    pub(crate) group: Option<Arc<GroupCore>>,
}

impl<T: 'static> SubscriptionCore<T> {
    fn take(&self) -> Option<Sample<T>> {
        loop {
            if let Change::Sample(sample) = self.take_change()? {
                return Some(sample);
            }
        }
    }

    fn take_change(&self) -> Option<Change<T>> {
        loop {
            let item = self.node.core().take(&self.endpoint)?;
            let change = self.decode(item);
            if change.is_some() {
                return change;
            }
        }
    }

    /// `None`: it is not of the type, which is counted.
    fn decode(&self, item: Item) -> Option<Change<T>> {
        let is_end = item.is_end();
        let Item {
            body,
            meta,
            instance,
            ..
        } = item;
        let info = SampleInfo::new(meta, instance.as_deref());
        if let Some(keyed) = instance.filter(|_| is_end) {
            return match (self.decode_key)(&keyed.key) {
                Ok(key) => Some(Change::End(InstanceEnd::new(key, info, keyed.info))),
                Err(error) => {
                    self.note_undecodable(&info, &error);
                    None
                }
            };
        }
        match (self.decode)(body) {
            Ok(Decoded::Shared(value)) => Some(Change::Sample(Sample::shared(value, info))),
            Ok(Decoded::Owned(value)) => Some(Change::Sample(Sample::owned(value, info))),
            Err(error) => {
                self.note_undecodable(&info, &error);
                None
            }
        }
    }

    fn take_timeout(&self, timeout: Duration) -> Option<Sample<T>> {
        if let Some(sample) = self.take() {
            return Some(sample);
        }
        let core = self.node.core();
        let until = core.env.now().after(timeout.into());
        // A bed is one thread's.
        let Some(_bed) = self.bed.try_lock_for(timeout) else {
            return self.take();
        };
        let queue = &self.own_queue;
        let mut taken = None;
        // For as long as this thread waits, also if others wait for it elsewhere.
        let slot = &self.endpoint.slot;
        if self.callback.is_none() {
            slot.attach(Some(queue.clone()), || false);
        }
        core.drive_until(queue, until, || {
            slot.taken();
            while queue.pop().is_some() {}
            taken = self.take();
            taken.is_some()
        });
        if self.callback.is_none() {
            self.settle();
        }
        taken
    }

    /// Without a callback: has word of messages where somebody waits for them.
    pub(crate) fn settle(&self) {
        // Held, so that the last word is the newest.
        let watch = self.watch.lock();
        let home = watch.home.as_ref();
        let home = home.filter(|home| watch.count > 0 || home.is_wait_set);
        let queue = home.map_or(&self.own_queue, |home| &home.queue).clone();
        let slot = &self.endpoint.slot;
        slot.attach(Some(queue), || self.endpoint.has_samples());
    }

    /// Wakes those that wait for a message, if there is one.
    pub(crate) fn wake_watchers(&self) {
        if self.endpoint.has_samples() {
            let wakers = self.watch.lock().take_wakers();
            for waker in wakers {
                waker.wake();
            }
        }
    }

    fn note_unreadable(&self, outcome: Result<(), Unreadable>) {
        if let Err(unreadable) = outcome {
            self.note_undecodable(&unreadable.0, &unreadable.1);
        }
    }

    /// Told once per subscription: a stranger's type will not mend itself.
    fn note_undecodable(&self, info: &SampleInfo, error: &DecodeError) {
        if self.undecodable.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(
                topic = %self.topic, publisher = %info.publisher,
                "a message is not of the type {}: {error}; compare the type hashes with `pteros topic info -v {}`",
                self.endpoint.data.type_name, self.topic
            );
        }
    }
}

impl<T: 'static> Task for SubscriptionCore<T> {
    fn run(&self) {
        self.endpoint.slot.taken();
        if let Some(group) = &self.group {
            group.run_callbacks();
            return;
        }
        let Some(callback) = &self.callback else {
            return self.wake_watchers();
        };
        // Whoever makes room looks for more.
        if self.lanes.as_ref().is_some_and(|lanes| !lanes.has_room()) {
            return;
        }
        // Locked when the callback itself spins, or runs on the executor that
        // had the node before: whoever holds it looks for more afterwards.
        let Some(mut callback) = callback.try_lock() else {
            return;
        };
        let core = self.node.core();
        let calling = core
            .tracer()
            .map(|t| t.call(self.endpoint.data.guid.entity));
        if let Some(change) = self.take_change() {
            if let Some(calling) = &calling {
                calling.starts();
            }
            self.note_unreadable(callback(change));
        }
        drop(calling);
        drop(callback);
        if self.endpoint.has_samples() {
            self.endpoint.slot.ready();
        }
    }

    fn gate(&self) -> Option<&Gate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        let node = self.node.path();
        format!("subscription \"{}\" of node \"{node}\"", self.topic)
    }
}

impl<T: Send + 'static> Member for SubscriptionCore<T> {
    fn has_callback(&self) -> bool {
        self.callback.is_some()
    }

    fn change(&self, policies: &GroupPolicies) -> Result<(), SetQosError> {
        self.change_qos(|qos| policies.apply(qos))
    }

    fn call(&self, item: Item) {
        // Its group runs one callback at a time.
        let callback = self.callback.as_ref().and_then(Mutex::try_lock);
        let tracer = self.node.core().tracer();
        let reader = self.endpoint.data.guid.entity;
        let calling = tracer.map(|t| (t.call(reader), t));
        if let Some((_, tracer)) = &calling {
            tracer.note_taken(reader, &item.meta, item.weight());
        }
        if let (Some(mut callback), Some(change)) = (callback, self.decode(item)) {
            if let Some((calling, _)) = &calling {
                calling.starts();
            }
            self.note_unreadable(callback(change));
        }
    }
}

impl<T: Send + 'static> wait_set::Entity for Subscription<T> {
    fn member(&self) -> Arc<dyn wait_set::Member> {
        self.core.clone()
    }
}

impl<T: Send + 'static> wait_set::Member for SubscriptionCore<T> {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn rearm(&self) -> bool {
        self.endpoint.slot.taken();
        self.endpoint.has_samples()
    }

    fn reader(&self) -> Option<&ReaderEndpoint> {
        Some(&self.endpoint)
    }

    fn input_topic(&self) -> Option<&str> {
        Some(&self.topic)
    }
}

impl<T: 'static> Attach for SubscriptionCore<T> {
    fn attach(&self, home: Option<&Arc<Home>>) {
        if self.callback.is_some() {
            let queue = home.map(|home| home.queue.clone());
            self.endpoint
                .slot
                .attach(queue, || self.endpoint.has_samples());
        } else {
            self.watch.lock().home = home.cloned();
            self.settle();
        }
        if let Some(task) = &self.on_event {
            task.attach(home);
        }
    }

    fn callback_group(&self) -> &Arc<callback_group::GroupCore> {
        &self.callback_group
    }
}

impl<T> Drop for SubscriptionCore<T> {
    fn drop(&mut self) {
        let core = self.node.core();
        core.detach_endpoint(self.node.key, self.endpoint.data.guid);
        core.remove_reader(&self.endpoint);
    }
}

/// A callback that starts the futures of an async one.
pub(crate) fn starting<T: Send + 'static>(
    mut callback: AsyncCallback<T>,
    lanes: &Arc<Lanes>,
    endpoint: &Arc<ReaderEndpoint>,
) -> Callback<T> {
    let endpoint = endpoint.clone();
    lanes.on_room(move || {
        if endpoint.has_samples() {
            endpoint.slot.ready();
        }
    });
    let lanes = lanes.clone();
    Box::new(move |change| {
        if let Change::Sample(sample) = change {
            lanes.start(callback(sample));
        }
        Ok(())
    })
}

/// The decoder of a Rust message type's key.
pub(crate) fn typed_key_decoder<T: Message>() -> KeyDecoder<T> {
    Box::new(|key| from_key_payload(key))
}

/// The decoder of a Rust message type.
pub(crate) fn typed_decoder<T: Message>() -> Decoder<T> {
    Box::new(|body| match body {
        Body::Shared(value) => match downcast::<T>(value) {
            Ok(value) => Ok(Decoded::Shared(value)),
            // Routes are made by type, so this is our bug; not the user's.
            Err(_) => unreachable!("a shared sample of another type reached a typed subscription"),
        },
        Body::Serialized(bytes) => from_payload(&bytes).map(Decoded::Owned),
    })
}

/// A shared value as what it is.
pub(crate) fn downcast<T: Send + Sync + 'static>(
    value: Arc<dyn SharedValue>,
) -> Result<Arc<T>, Arc<dyn Any + Send + Sync>> {
    let value: Arc<dyn Any + Send + Sync> = value;
    value.downcast()
}
