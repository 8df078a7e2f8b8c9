//! Subscription: takes samples from the reader history cache to a callback or to
//! `take`.
//!
//! [`Subscription`] decodes samples when they are taken, runs callbacks from the
//! executor and reports events. [`SubscriptionOptions`] sets content filter,
//! callback group and QoS overrides. It owns no queue of its own: samples wait in
//! the runtime's reader history cache.

mod create;
mod group_member;
mod message;
mod next_message;
mod topic_statistics;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros_msg::cdr::DecodeError;
use pteros_runtime::error::QosChangeError;
use pteros_runtime::event::EndpointEvent;
use pteros_runtime::graph::NodeKey;
use pteros_runtime::mutual_exclusion::MutualExclusionGate;
use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::sample::QueuedSample;

use crate::error::CreateError;
use crate::event_handler::EventTask;
use crate::executor_queue::ExecutorQueue;
use crate::instance::{EndedInstance, ReceivedChange};
use crate::node::{CallbackGroupCore, NodeCore, NodeEntity};
use crate::qos::QosProfile;
use crate::sample::{Sample, SampleInfo, UndecodableSample};
use crate::set_qos::CurrentQos;
use crate::subscription_group::SubscriptionGroupCore;
use crate::task::{AsyncSlots, CallbackOutput, UserFuture};
use crate::waitable::{Waitable, WaitableEntity};

pub use crate::subscription_group::{GroupAccess, GroupChange, SubscriptionGroup};
pub use crate::view::{InPlaceMessage, InPlaceResult, MessageView, in_place};
pub use create::SubscriptionOptions;
pub(crate) use message::{
    BodyDecoder, Decoded, KeyDecoder, SubscriptionDecoders, downcast, typed_decoder,
};
pub use message::{SerializedMessage, SerializedType, SubscriptionMessage, SubscriptionSupport};
use next_message::MessageWaiters;
pub use next_message::NextMessage;
pub use pteros_runtime::content_filter::FilterSpec as ContentFilter;
pub use pteros_runtime::reader::ReaderCounts;
pub use pteros_runtime::rtps::content_filter::ContentFilterProperty;
pub use pteros_runtime::sample::DeliveryPath;
use topic_statistics::TopicStatistics;
pub use topic_statistics::TopicStatisticsOptions;

/// Callback for each message. A view callback may fail to decode the message.
pub(crate) type SampleCallback<T> =
    Box<dyn FnMut(Sample<T>) -> Result<(), UndecodableSample> + Send>;

/// Callback for each message that returns a future to run.
pub(crate) type AsyncCallback<T> = Box<dyn FnMut(Sample<T>) -> Option<UserFuture> + Send>;

pub(crate) type InstanceEndCallback<T> = Box<dyn FnMut(EndedInstance<T>) + Send>;

/// The callback of a subscription, by kind.
pub(crate) enum AnyCallback<T> {
    Plain(SampleCallback<T>),
    Async(AsyncCallback<T>),
}

/// A subscription's callbacks for messages and for ends of instances.
pub(crate) struct SubscriptionCallbacks<T> {
    on_sample: SampleCallback<T>,
    on_instance_end: Option<InstanceEndCallback<T>>,
}

impl<T> SubscriptionCallbacks<T> {
    fn call(&mut self, change: ReceivedChange<T>) -> Result<(), UndecodableSample> {
        match (change, &mut self.on_instance_end) {
            (ReceivedChange::Sample(sample), _) => (self.on_sample)(sample),
            (ReceivedChange::End(end), Some(callback)) => {
                callback(end);
                Ok(())
            }
            (ReceivedChange::End(_), None) => Ok(()),
        }
    }
}

/// A subscription's callback: a closure that takes a [`Sample`] and returns nothing, or
/// a boxed future for the node's executor to run (`Box::pin(async move { … })`).
///
/// In a mutually exclusive group, the next message is taken when the previous future
/// has completed. Until then messages wait in the queue as the QoS allows. In a
/// reentrant group up to [`SubscriptionOptions::pending_max`] futures are pending at
/// once. The group is occupied while a future is polled, not while it waits, so other
/// callbacks of the group run between two polls.
pub trait SubscriptionCallback<T>:
    FnMut(Sample<T>) -> <Self as SubscriptionCallback<T>>::Returned + Send + 'static
{
    /// Nothing, or a future.
    type Returned: CallbackOutput;
}

impl<T, F, R> SubscriptionCallback<T> for F
where
    F: FnMut(Sample<T>) -> R + Send + 'static,
    R: CallbackOutput,
{
    type Returned = R;
}

fn erase<T, C: SubscriptionCallback<T>>(mut callback: C) -> AnyCallback<T> {
    if C::Returned::IS_FUTURE {
        AnyCallback::Async(Box::new(move |sample| callback(sample).into_future()))
    } else {
        AnyCallback::Plain(Box::new(move |sample| callback(sample).into_result()))
    }
}

/// Receives messages of one type on one topic. Thread-safe; clones share it.
///
/// It leaves the topic when the last clone is dropped. Messages wait in the reader
/// history cache, of the profile's depth, for the callback or for
/// [`Subscription::take`]. When it is full, KEEP_LAST drops the oldest and counts
/// it ([`ReaderCounts::overwritten`]). KEEP_ALL blocks reliable publishers
/// (back-pressure) and drops what others send ([`ReaderCounts::lost`]).
///
/// ```no_run
/// use std::time::Duration;
///
/// use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// use pteros::prelude::*;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("mapper")?;
/// // With a callback, run by the thread that spins the node:
/// let _scans = node.create_subscription::<LaserScan>("scan".sensor_data(), |scan| {
///     println!("{} ranges by {:?}", scan.ranges.len(), scan.info().delivery_path);
/// })?;
/// // Or taken, without any executor:
/// let poses = node.create_polled_subscription::<LaserScan>("scan".keep_last(1))?;
/// if let Some(scan) = poses.take_timeout(Duration::from_secs(1)) {
///     println!("{} ranges", scan.ranges.len());
/// }
/// node.spin();
/// # Ok(())
/// # }
/// ```
///
/// The compiler warns of a subscription that is not kept, here as an error:
/// ```compile_fail
/// #![deny(unused_must_use)]
/// # use pteros::interfaces::sensor_msgs::msg::LaserScan;
/// # use pteros::prelude::*;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let node = Context::new()?.create_node("mapper")?;
/// node.create_subscription::<LaserScan>("scan".sensor_data(), |_| {})?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a subscription ends when it is dropped: keep it in a variable or a field"]
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

    /// Takes the oldest waiting message. Never blocks and reads no socket.
    ///
    /// Messages arrive while some thread spins or waits, or through the background
    /// I/O thread. A message that cannot be decoded is counted and skipped; the end
    /// of an instance is skipped. With a callback there is usually nothing to take.
    pub fn take(&self) -> Option<Sample<T>> {
        self.core.take()
    }

    /// As [`Subscription::take`], including ends of instances.
    pub fn take_change(&self) -> Option<ReceivedChange<T>> {
        self.core.take_change()
    }

    /// Takes the oldest message, waiting for one at most `timeout`. Blocks.
    ///
    /// Drives the network itself, so no executor is needed. If several threads
    /// wait, one at a time is served.
    pub fn take_timeout(&self, timeout: Duration) -> Option<Sample<T>> {
        self.core.take_timeout(timeout)
    }

    /// Decodes a sample that its subscription group has taken for it.
    pub(crate) fn decode_member(&self, item: QueuedSample) -> Option<ReceivedChange<T>> {
        self.core.decode_member(item)
    }

    /// The topic's fully qualified name, after remapping.
    pub fn topic(&self) -> &str {
        &self.core.topic
    }

    /// Its gid, as in [`EndpointInfo`](crate::graph::EndpointInfo).
    pub fn gid(&self) -> Guid {
        self.core.endpoint.data.guid
    }

    /// Number of matched publishers, including those of this process.
    pub fn matched_count(&self) -> usize {
        self.core.endpoint.matched_count()
    }

    /// Waits until at least `count` publishers are matched; true if they are.
    ///
    /// Blocks, at most `timeout` or until the context shuts down. Drives the
    /// network itself and runs no callbacks.
    pub fn wait_for_matched(&self, count: usize, timeout: Duration) -> bool {
        self.core
            .node
            .wait_until(timeout, || self.matched_count() >= count)
    }

    /// Takes the oldest event, when no callback takes them. Never blocks.
    ///
    /// The queue holds 256 events. When it is full, the oldest is dropped; the
    /// totals in later events include it.
    pub fn take_event(&self) -> Option<EndpointEvent> {
        self.core.endpoint.events.take()
    }

    /// Replaces the content filter; a blank `expression` removes it.
    ///
    /// See [`SubscriptionOptions::content_filter`].
    ///
    /// The new filter is announced to publishers of other processes, which then
    /// send what passes it. Messages that they withheld before are not sent
    /// afterwards. Never waits for the publishers.
    ///
    /// # Errors
    /// [`CreateError::Endpoint`] with the problem and its position; the previous
    /// filter stays active.
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

    /// The active content filter.
    pub fn content_filter(&self) -> Option<ContentFilter> {
        self.core.endpoint.content_filter()
    }

    /// Whether a content filter is active; rclcpp's `is_cft_enabled`.
    pub fn is_cft_enabled(&self) -> bool {
        self.core.endpoint.content_filter().is_some()
    }

    /// The current QoS profile, with "best available" policies resolved.
    pub fn qos(&self) -> Arc<QosProfile> {
        self.core.qos.load()
    }

    /// Changes the QoS profile of this subscription.
    ///
    /// The new profile may differ in the policies that DDS allows to change:
    /// partition, user, topic and group data, deadline, latency budget, time-based
    /// filter, and reader data lifecycle (when untaken samples of ended instances
    /// are purged). "Best available" policies keep what they resolved to.
    ///
    /// Endpoint matching runs again, see [`Publisher::set_qos`](crate::Publisher::set_qos). Waiting samples
    /// stay, whoever published them. Deadlines count from now. Samples that
    /// the time-based filter holds back are delivered by the new separation.
    ///
    /// # Errors
    /// As [`Publisher::set_qos`](crate::Publisher::set_qos). A deadline shorter than the time-based filter is
    /// such a contradiction.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), CreateError> {
        let settled = qos.resolved_for_publishers([&*self.core.endpoint.data.qos]);
        let changed = self.core.change_qos(|now| *now = settled);
        changed.map_err(|source| CreateError::QosChange {
            topic: self.core.topic.clone(),
            source,
        })
    }

    /// Counters since it was created.
    pub fn counts(&self) -> ReaderCounts {
        self.core.endpoint.counts()
    }

    /// Messages that could not be decoded: their publisher has another definition
    /// of the type. They were dropped; the log names the publisher.
    pub fn undecodable_count(&self) -> u64 {
        self.counts().undecodable
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
    pub(crate) qos: CurrentQos,
    pub(crate) decode: BodyDecoder<T>,
    pub(crate) decode_key: KeyDecoder<T>,
    pub(crate) callback: Option<Mutex<SubscriptionCallbacks<T>>>,
    /// The running futures of an async callback.
    pub(crate) async_slots: Option<Arc<AsyncSlots>>,
    pub(crate) on_event: Option<Arc<EventTask>>,
    pub(crate) callback_group: Arc<CallbackGroupCore>,
    /// Queue on which a thread in `take_timeout` waits while it holds the lock
    /// below.
    pub(crate) wait_queue: Arc<ReadyQueue>,
    pub(crate) wait_lock: Mutex<()>,
    /// Threads and futures that wait for a message; only without a callback.
    pub(crate) waiters: Mutex<MessageWaiters>,
    pub(crate) group: Option<Arc<SubscriptionGroupCore>>,
    pub(crate) topic_statistics: Option<TopicStatistics>,
}

impl<T> SubscriptionCore<T> {
    pub(crate) fn change_qos(
        &self,
        change: impl FnOnce(&mut QosProfile),
    ) -> Result<(), QosChangeError> {
        let core = self.node.core();
        self.qos
            .change(change, |qos| core.set_reader_qos(&self.endpoint, qos))
    }
}

impl<T: 'static> SubscriptionCore<T> {
    fn take(&self) -> Option<Sample<T>> {
        loop {
            if let ReceivedChange::Sample(sample) = self.take_change()? {
                return Some(sample);
            }
        }
    }

    fn take_change(&self) -> Option<ReceivedChange<T>> {
        let decode = |item| self.decode(item);
        self.node
            .core()
            .taking()
            .take_decoded(&self.endpoint, decode)
    }

    /// Decodes a sample that its group has taken. `None` if that fails, which is counted.
    fn decode_member(&self, item: QueuedSample) -> Option<ReceivedChange<T>> {
        let publisher = item.meta.publisher;
        let decoded = self.decode(item);
        decoded
            .inspect_err(|error| self.note_undecodable(publisher, error))
            .ok()
    }

    fn decode(&self, item: QueuedSample) -> Result<ReceivedChange<T>, DecodeError> {
        let is_end = item.is_end();
        let QueuedSample {
            body,
            meta,
            instance,
            ..
        } = item;
        if let Some(statistics) = self.topic_statistics.as_ref().filter(|_| !is_end) {
            statistics.measure(meta.source);
        }
        let info = SampleInfo::new(meta, instance.as_deref());
        if let Some(keyed) = instance.filter(|_| is_end) {
            let key = (self.decode_key)(&keyed.key)?;
            let end = EndedInstance::new(key, info, keyed.info);
            return Ok(ReceivedChange::End(end));
        }
        Ok(ReceivedChange::Sample(match (self.decode)(body)? {
            Decoded::Shared(value) => Sample::shared(value, info),
            Decoded::Owned(value) => Sample::owned(value, info),
        }))
    }

    fn take_timeout(&self, timeout: Duration) -> Option<Sample<T>> {
        if let Some(sample) = self.take() {
            return Some(sample);
        }
        let core = self.node.core();
        let until = core.platform.now().after(timeout.into());
        // Only one thread at a time may wait on the queue.
        let Some(_waiting) = self.wait_lock.try_lock_for(timeout) else {
            return self.take();
        };
        let queue = &self.wait_queue;
        let mut taken = None;
        // Attached as long as this thread waits, even if others wait for it
        // elsewhere.
        let slot = &self.endpoint.slot;
        if self.callback.is_none() {
            slot.attach(Some(queue.clone()), || false);
        }
        core.driver().drive_until(queue, until, || {
            slot.begin_take();
            while queue.pop().is_some() {}
            taken = self.take();
            taken.is_some()
        });
        if self.callback.is_none() {
            self.update_waiters();
        }
        taken
    }

    /// Without a callback: requests notifications of new messages exactly while
    /// somebody waits for one.
    pub(crate) fn update_waiters(&self) {
        // The lock is held so that the last update wins.
        let waiters = self.waiters.lock();
        let executor_queue = waiters.executor_queue.as_ref();
        let executor_queue =
            executor_queue.filter(|executor_queue| waiters.count > 0 || executor_queue.is_wait_set);
        let queue = executor_queue
            .map_or(&self.wait_queue, |executor_queue| &executor_queue.ready)
            .clone();
        let slot = &self.endpoint.slot;
        slot.attach(Some(queue), || self.endpoint.has_samples());
    }

    /// Wakes the waiters if there is a message.
    pub(crate) fn wake_message_waiters(&self) {
        if self.endpoint.has_samples() {
            let wakers = self.waiters.lock().take_wakers();
            for waker in wakers {
                waker.wake();
            }
        }
    }

    fn report_undecodable(&self, outcome: Result<(), UndecodableSample>) {
        if let Err(unreadable) = outcome {
            let (info, error) = *unreadable;
            self.note_undecodable(info.publisher_gid, &error);
        }
    }

    fn note_undecodable(&self, publisher: Guid, error: &DecodeError) {
        let core = self.node.core();
        core.taking()
            .note_undecodable(&self.endpoint, publisher, error);
    }
}

impl<T: 'static> Task for SubscriptionCore<T> {
    fn run(&self) {
        self.endpoint.slot.begin_take();
        if let Some(group) = &self.group {
            group.run_callbacks();
            return;
        }
        let Some(callback) = &self.callback else {
            return self.wake_message_waiters();
        };
        // A full queue made writers wait: taking a sample must look for more.
        if self
            .async_slots
            .as_ref()
            .is_some_and(|async_slots| !async_slots.has_free_slot())
        {
            return;
        }
        // The lock is held when the callback itself spins, or still runs on the
        // previous executor. Its holder looks for more samples afterwards.
        let Some(mut callback) = callback.try_lock() else {
            return;
        };
        let core = self.node.core();
        let calling = core
            .tracer()
            .map(|t| t.begin_callback(self.endpoint.data.guid.entity));
        if let Some(change) = self.take_change() {
            if let Some(calling) = &calling {
                calling.note_user_code_start();
            }
            self.report_undecodable(callback.call(change));
        }
        drop(calling);
        drop(callback);
        if self.endpoint.has_samples() {
            self.endpoint.slot.mark_ready();
        }
    }

    fn gate(&self) -> Option<&MutualExclusionGate> {
        self.callback_group.gate()
    }

    fn node(&self) -> Option<NodeKey> {
        Some(self.callback_group.node)
    }

    fn describe(&self) -> String {
        let node = self.node.fully_qualified_name();
        format!("subscription \"{}\" of node \"{node}\"", self.topic)
    }
}

impl<T: Send + 'static> Waitable for Subscription<T> {
    fn waitable_entity(&self) -> Arc<dyn WaitableEntity> {
        self.core.clone()
    }
}

impl<T: Send + 'static> WaitableEntity for SubscriptionCore<T> {
    fn node_core(&self) -> &Arc<NodeCore> {
        &self.node
    }

    fn rearm(&self) -> bool {
        self.endpoint.slot.begin_take();
        self.endpoint.has_samples()
    }

    fn reader(&self) -> Option<&ReaderEndpoint> {
        Some(&self.endpoint)
    }

    fn input_topic(&self) -> Option<&str> {
        Some(&self.topic)
    }
}

impl<T: 'static> NodeEntity for SubscriptionCore<T> {
    fn attach(&self, executor_queue: Option<&Arc<ExecutorQueue>>) {
        if self.callback.is_some() {
            let queue = executor_queue.map(|executor_queue| executor_queue.ready.clone());
            self.endpoint
                .slot
                .attach(queue, || self.endpoint.has_samples());
        } else {
            self.waiters.lock().executor_queue = executor_queue.cloned();
            self.update_waiters();
        }
        if let Some(task) = &self.on_event {
            task.attach(executor_queue);
        }
    }

    fn callback_group(&self) -> &Arc<CallbackGroupCore> {
        &self.callback_group
    }
}

impl<T> Drop for SubscriptionCore<T> {
    fn drop(&mut self) {
        let core = self.node.core();
        core.discovery()
            .detach_endpoint(self.node.key, self.endpoint.data.guid);
        core.remove_reader(&self.endpoint);
    }
}
