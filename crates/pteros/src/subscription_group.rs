//! Subscription group: the DDS Subscriber entity (DDS 1.4 §2.2.2.5.2) with coherent
//! and ordered access (presentation, §2.2.3.6).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use pteros_runtime::error::QosChangeError;
use pteros_runtime::ready_queue::{ReadyQueue, Task};
use pteros_runtime::rtps::id::Guid;
use pteros_runtime::sample::QueuedSample;
use pteros_runtime::subscription_group as runtime;

use crate::node::Node;
use crate::qos::{Presentation, QosError, QosProfile};
use crate::sample::SampleInfo;
use crate::set_qos::GroupPolicies;

/// Subscriptions of one node that share a presentation. Cheap to clone,
/// thread-safe.
///
/// With access scope GROUP (2), coherent sets of a
/// [`PublisherGroup`](crate::publisher::PublisherGroup) are assembled across all
/// subscriptions. A set is visible on every topic, or on none if any part of it is
/// missing ([`ReaderCounts::incomplete_sets`](crate::subscription::ReaderCounts) counts it, for
/// each subscription that had a part). With [`Presentation::ordered`],
/// [`SubscriptionGroup::take`] yields samples in the publishing group's order
/// across topics. With a lower scope the subscriptions are independent and share
/// only the access.
///
/// [`SubscriptionGroup::begin_access`] freezes the view until its end: samples
/// present at the begin stay takeable, in any order of subscriptions, and no new
/// ones appear. Callbacks of a group run within an access, in order, never two at a
/// time. A `take` without an open access is an access of its own. Between two of
/// them a newer set may appear or, if KEEP_LAST needs the room, the rest of an
/// older one may be dropped.
///
/// Each subscription's history and limits bound what waits, once more while an
/// access is open. A set that exceeds one of them is dropped on all topics.
/// KEEP_LAST drops the oldest, whole sets at a time
/// ([`overwritten`](crate::subscription::ReaderCounts::overwritten)), also after an access.
/// KEEP_ALL blocks reliable publishers. Parts of sets wait for each other without
/// limit, with two exceptions:
///
/// - After another publisher has ended its part, a silent publisher has 5 s; then
///   the set is dropped.
/// - Discovery has 1 s to find all publishers that a set names; then the set goes
///   on without them.
///
/// Of one publishing group at most 5 000 sets and 20 000 samples wait; beyond that
/// the oldest is dropped.
///
/// Create all subscriptions before the first `take`, access or callback. Samples
/// that arrive earlier wait, so that all subscriptions begin together. A
/// subscription added later takes part in sets that begin after it has matched. A
/// dropped one is no longer waited for. Ownership, the time-based filter and the
/// deadlines of instances are evaluated when a message is taken, as of the time it
/// was ready; the deadline of a topic without key is evaluated on arrival.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::{Point, Vector3};
/// use pteros::prelude::*;
/// use pteros::qos::Presentation;
/// use pteros::subscription::SubscriptionGroup;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("watcher")?;
/// let group = SubscriptionGroup::new(&node, Presentation {
///     access_scope: 2,
///     coherent: true,
///     ordered: true,
/// })?;
/// let position = group.create_polled_subscription::<Point>("position".keep_last(10))?;
/// let velocity = group.create_polled_subscription::<Vector3>("velocity".keep_last(10))?;
/// let access = group.begin_access();
/// while let Some(next) = group.take() {
///     if let Some(point) = next.sample_of(&position) {
///         println!("at {}", point.x);
///     } else if let Some(vector) = next.sample_of(&velocity) {
///         println!("moving {}", vector.x);
///     }
/// }
/// access.end();
/// # Ok(())
/// # }
/// ```
#[must_use = "a subscription group ends when it is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct SubscriptionGroup {
    pub(crate) core: Arc<SubscriptionGroupCore>,
}

/// Guard of an open group access, see [`SubscriptionGroup::begin_access`].
///
/// The access ends when it is dropped.
#[must_use = "the group access ends when this guard is dropped"]
pub struct GroupAccess {
    core: Arc<SubscriptionGroupCore>,
}

/// A message or the end of an instance, for one subscription of a group.
#[derive(Clone)]
pub struct GroupChange {
    gid: Guid,
    pub(crate) item: QueuedSample,
}

pub(crate) struct SubscriptionGroupCore {
    pub(crate) node: Node,
    pub(crate) group: Arc<runtime::SubscriptionGroup>,
    members: Mutex<BTreeMap<Guid, Weak<dyn GroupMember>>>,
    policies: Mutex<GroupPolicies>,
    /// Held by the thread that runs callbacks.
    running: Mutex<()>,
    /// Queue on which a thread in `take_timeout` waits.
    wait_queue: Mutex<Arc<ReadyQueue>>,
}

/// A subscription, as seen by its group.
pub(crate) trait GroupMember: Send + Sync {
    fn has_callback(&self) -> bool;
    /// Applies the QoS policies that belong to the group.
    fn apply_policies(&self, policies: &GroupPolicies) -> Result<(), QosChangeError>;
    fn run_callback(&self, item: QueuedSample);
}

impl SubscriptionGroup {
    /// Creates a group of subscriptions of this node: coherent or ordered access
    /// across topics.
    ///
    /// # Errors
    /// [`QosError`] when the access scope is invalid.
    pub fn new(node: &Node, presentation: Presentation) -> Result<Self, QosError> {
        QosProfile {
            presentation,
            ..QosProfile::default()
        }
        .validate()?;
        let runtime = node.core().core();
        let group = runtime.create_subscription_group(presentation);
        let queue = runtime.ready_queue();
        let core = Arc::new(SubscriptionGroupCore {
            node: node.clone(),
            group,
            members: Mutex::default(),
            policies: Mutex::default(),
            running: Mutex::default(),
            wait_queue: Mutex::new(queue.clone()),
        });
        let task: Weak<SubscriptionGroupCore> = Arc::downgrade(&core);
        core.group.slot.set_task(task);
        core.group.slot.attach(Some(queue), || false);
        Ok(Self { core })
    }

    /// Applies the group's presentation and policies to a member's profile.
    pub(crate) fn apply_to(&self, qos: &mut QosProfile) {
        qos.presentation = self.presentation();
        self.core.policies.lock().apply(qos);
    }

    fn set_policies(&self, changed: GroupPolicies) -> Result<(), QosChangeError> {
        changed.validate()?;
        let mut policies = self.core.policies.lock();
        let members: Vec<_> = self.core.members.lock().values().cloned().collect();
        let mut living = members.iter().filter_map(Weak::upgrade);
        living.try_for_each(|member| member.apply_policies(&changed))?;
        policies.merge(changed);
        Ok(())
    }

    /// Puts all subscriptions of the group, including future ones, into these
    /// partitions.
    ///
    /// See [`Subscription::set_qos`](crate::Subscription::set_qos). Peers receive the changes one subscription
    /// after the other.
    ///
    /// # Errors
    /// [`QosChangeError::Contradiction`]: a name that is too long. Nothing has changed
    /// then.
    pub fn set_partition(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(), QosChangeError> {
        self.set_policies(GroupPolicies::of_partition(names))
    }

    /// Sets GROUP_DATA of all subscriptions of the group, including future ones.
    ///
    /// # Errors
    /// [`QosChangeError::Contradiction`]: more bytes than can be announced.
    pub fn set_group_data(&self, data: impl Into<Vec<u8>>) -> Result<(), QosChangeError> {
        self.set_policies(GroupPolicies::of_group_data(data))
    }

    /// The group's presentation policy.
    pub fn presentation(&self) -> Presentation {
        self.core.group.presentation()
    }

    /// Begins an access: freezes the sets that wait now.
    ///
    /// They can be taken from all subscriptions of the group, on any thread, until
    /// the end of the access.
    ///
    /// Samples not taken stay. Within an open access it only increases the nesting
    /// depth. Never blocks.
    pub fn begin_access(&self) -> GroupAccess {
        self.core.access()
    }

    /// Whether an access is open.
    pub fn has_open_access(&self) -> bool {
        self.core.group.is_open()
    }

    /// Takes the oldest message, or end of an instance, of the subscriptions
    /// without callback.
    ///
    /// Never blocks and reads no socket, as [`Subscription::take`](crate::Subscription::take).
    pub fn take(&self) -> Option<GroupChange> {
        self.core.take()
    }

    /// As [`SubscriptionGroup::take`], waiting at most `timeout`. Blocks.
    ///
    /// Does not wait within an access, since nothing new appears in it. Drives the
    /// network itself, so no executor is needed. If several threads wait, one at a
    /// time is served.
    pub fn take_timeout(&self, timeout: Duration) -> Option<GroupChange> {
        self.core.take_timeout(timeout)
    }
}

impl GroupAccess {
    /// Ends the access.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for GroupAccess {
    fn drop(&mut self) {
        self.core.group.end_access();
    }
}

impl GroupChange {
    /// The gid of its subscription: [`Subscription::gid`](crate::Subscription::gid).
    pub fn gid(&self) -> Guid {
        self.gid
    }

    /// Source, timestamps and instance of the sample.
    pub fn info(&self) -> SampleInfo {
        SampleInfo::new(self.item.meta, self.item.instance.as_deref())
    }
}

impl SubscriptionGroupCore {
    pub(crate) fn add_member(&self, gid: Guid, member: Weak<dyn GroupMember>) {
        let mut members = self.members.lock();
        members.retain(|_, member| member.strong_count() > 0);
        members.insert(gid, member);
    }

    fn access(self: &Arc<Self>) -> GroupAccess {
        self.node.core().core().taking().begin_access(&self.group);
        GroupAccess { core: self.clone() }
    }

    fn members(&self, with_callback: bool) -> BTreeMap<Guid, Arc<dyn GroupMember>> {
        let members = self.members.lock();
        let living = members
            .iter()
            .filter_map(|(gid, member)| Some((*gid, member.upgrade()?)));
        living
            .filter(|(_, member)| member.has_callback() == with_callback)
            .collect()
    }

    fn take(&self) -> Option<GroupChange> {
        let polled = self.members(false);
        let core = self.node.core().core();
        let (gid, item) = core
            .taking()
            .take_of_group(&self.group, |gid| polled.contains_key(&gid))?;
        if let Some(tracer) = core.tracer() {
            tracer.note_taken(gid.entity, &item.meta, item.weight());
        }
        Some(GroupChange { gid, item })
    }

    fn take_timeout(&self, timeout: Duration) -> Option<GroupChange> {
        if let Some(change) = self.take() {
            return Some(change);
        }
        let core = self.node.core().core();
        let until = core.platform.now().after(timeout.into());
        // Only one thread at a time may wait on the queue.
        let Some(queue) = self.wait_queue.try_lock_for(timeout) else {
            return self.take();
        };
        let mut taken = None;
        core.driver().drive_until(&queue, until, || {
            self.group.slot.begin_take();
            while queue.pop().is_some() {}
            taken = self.take();
            taken.is_some()
        });
        taken
    }

    /// Runs the callbacks for all waiting samples, in order, within an access. If
    /// another thread is doing so, that thread runs the rest at the end of its
    /// access.
    pub(crate) fn run_callbacks(self: &Arc<Self>) {
        let Some(running) = self.running.try_lock() else {
            return;
        };
        let access = self.access();
        let called = self.members(true);
        let core = self.node.core().core();
        while let Some((gid, item)) = core
            .taking()
            .take_of_group(&self.group, |gid| called.contains_key(&gid))
        {
            if let Some(member) = called.get(&gid) {
                member.run_callback(item);
            }
        }
        // Released before the access ends, which readies the subscriptions that
        // have more.
        drop(running);
        drop(access);
    }
}

/// Its entry in a queue only wakes a thread in `take_timeout`.
impl Task for SubscriptionGroupCore {
    fn run(&self) {}
}

impl fmt::Debug for SubscriptionGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscriptionGroup")
            .field("node", &self.core.node)
            .field("presentation", &self.presentation())
            .field("subscriptions", &self.core.members.lock().len())
            .finish()
    }
}

impl fmt::Debug for GroupAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

impl fmt::Debug for GroupChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupChange")
            .field("gid", &self.gid)
            .field("info", &self.info())
            .finish()
    }
}
