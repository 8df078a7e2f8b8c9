//! Subscriptions that are presented as one whole: DDS's Subscriber (DDS 1.4
//! §2.2.2.5.2, §2.2.3.6).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::hash::TypeHash;
use pteros_msg::message::Message;
use pteros_msg::view::Viewable;
use pteros_rmw::error::QosChangeError;
use pteros_rmw::ready::{ReadyQueue, Task};
use pteros_rmw::rtps::id::Guid;
use pteros_rmw::sample::Item;
use pteros_rmw::subscription_group as rmw;

use crate::error::CreateError;
use crate::instance::Change;
use crate::node::Node;
use crate::qos::{Presentation, QosError, QosProfile};
use crate::sample::{Sample, SampleInfo};
use crate::set_qos::{GroupPolicies, SetQosError};
use crate::subscription::{Subscription, SubscriptionOptions};
use crate::view::InPlace;

/// Subscriptions of one node whose messages belong together. Cheap to clone,
/// thread-safe.
///
/// With access scope GROUP (2), coherent sets of a
/// [`PublisherGroup`](crate::PublisherGroup) are put together over all the
/// subscriptions: a set is seen on every topic or, if anything of it is missing
/// on one, on none ([`ReaderCounts::incomplete_sets`](crate::ReaderCounts) of each that had a part
/// counts it). With [`Presentation::ordered`] too or instead,
/// [`SubscriptionGroup::take`] yields what the publishing group wrote in the
/// order of its writing, whatever the topic. With a lower scope each
/// subscription is for itself; what they share is the access.
///
/// [`SubscriptionGroup::begin_access`] freezes the view: until its end what was
/// there is there, whichever subscription is looked at first, and nothing else
/// comes to be seen. Callbacks of a group run within an access, in order, never
/// two at a time. A `take` without an access is an access of its own, so that
/// between two of them a newer set may be added or, where KEEP_LAST needs the
/// room, the rest of an older one given up.
///
/// What waits is bounded by each subscription's history and limits, once more
/// while an access is open; a set that does not fit one of them is dropped on
/// all. KEEP_LAST gives up the oldest, whole sets at a time
/// ([`overwritten`](crate::ReaderCounts::overwritten)), after an access too;
/// KEEP_ALL holds reliable publishers back. Parts of sets wait for each other
/// as long as needed but for two things: 5 s for a publisher that has said
/// nothing since another ended its part, then the set is dropped; 1 s for
/// discovery to show all the publishers that a set names, then it goes without. Of
/// one publishing group 5 000 sets and 20 000 samples wait at the most, then the
/// oldest is given up.
///
/// Make all the subscriptions before the first is looked at, by a `take`, an
/// access or a callback: what comes before waits, so that they begin together.
/// One that is added later is part of the sets that begin after it has matched;
/// one that is dropped is missed by nobody. Ownership, the time based filter and
/// the deadlines of instances are looked at when a message is taken, as of the
/// time it was ready; the deadline of a topic without key when it comes.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::{Point, Vector3};
/// use pteros::prelude::*;
/// use pteros::qos::Presentation;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("watcher")?;
/// let group = node.create_subscription_group(Presentation {
///     access_scope: 2,
///     coherent: true,
///     ordered: true,
/// })?;
/// let position = group.create_polled_subscription::<Point>("position", 10)?;
/// let velocity = group.create_polled_subscription::<Vector3>("velocity", 10)?;
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
#[derive(Clone)]
pub struct SubscriptionGroup {
    core: Arc<GroupCore>,
}

/// A look at a group's subscriptions, see
/// [`SubscriptionGroup::begin_access`]. It ends when this is dropped.
#[must_use = "the access ends when this is dropped"]
pub struct Access {
    core: Arc<GroupCore>,
}

/// What a group handed over: a message or the end of an instance, of one of its
/// subscriptions.
#[derive(Clone)]
pub struct GroupChange {
    gid: Guid,
    item: Item,
}

pub(crate) struct GroupCore {
    node: Node,
    pub(crate) group: Arc<rmw::SubscriptionGroup>,
    members: Mutex<BTreeMap<Guid, Weak<dyn Member>>>,
    policies: Mutex<GroupPolicies>,
    /// Held by whoever runs callbacks.
    running: Mutex<()>,
    /// Where a thread in `take_timeout` sleeps.
    own_queue: Mutex<Arc<ReadyQueue>>,
}

/// A subscription as its group knows it.
pub(crate) trait Member: Send + Sync {
    fn has_callback(&self) -> bool;
    /// Takes over what belongs to the group.
    fn change(&self, policies: &GroupPolicies) -> Result<(), SetQosError>;
    /// Runs the callback.
    fn call(&self, item: Item);
}

impl Node {
    /// A group in which subscriptions can be made that see what belongs together
    /// together.
    ///
    /// # Errors
    /// [`QosError`] when the access scope is none.
    pub fn create_subscription_group(
        &self,
        presentation: Presentation,
    ) -> Result<SubscriptionGroup, QosError> {
        QosProfile {
            presentation,
            ..QosProfile::default()
        }
        .validate()?;
        let runtime = self.core().core();
        let group = runtime.create_subscription_group(presentation);
        let queue = runtime.ready_queue();
        let core = Arc::new(GroupCore {
            node: self.clone(),
            group,
            members: Mutex::default(),
            policies: Mutex::default(),
            running: Mutex::default(),
            own_queue: Mutex::new(queue.clone()),
        });
        let task: Weak<GroupCore> = Arc::downgrade(&core);
        core.group.slot.set_task(task);
        core.group.slot.attach(Some(queue), || false);
        Ok(SubscriptionGroup { core })
    }
}

impl SubscriptionGroup {
    /// A subscription of the group whose callback runs in the node's executor,
    /// within an access.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_subscription<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
        callback: impl FnMut(Sample<T>) + Send + 'static,
    ) -> Result<Subscription<T>, CreateError> {
        self.create_subscription_with(topic, SubscriptionOptions::new(qos).callback(callback))
    }

    /// A subscription of the group that is polled, by itself or with
    /// [`SubscriptionGroup::take`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_polled_subscription<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
    ) -> Result<Subscription<T>, CreateError> {
        self.create_subscription_with(topic, SubscriptionOptions::new(qos))
    }

    /// A subscription of the group with options.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_subscription_with<T: Message>(
        &self,
        topic: &str,
        options: SubscriptionOptions<T>,
    ) -> Result<Subscription<T>, CreateError> {
        let options = self.own(options);
        self.core.node.create_subscription_with(topic, options)
    }

    /// A subscription of the group to messages where they lie; see
    /// [`Node::create_view_subscription_with`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_view_subscription_with<T: Viewable>(
        &self,
        topic: &str,
        options: SubscriptionOptions<InPlace<T>>,
    ) -> Result<Subscription<InPlace<T>>, CreateError> {
        let options = self.own(options);
        self.core.node.create_view_subscription_with(topic, options)
    }

    /// A subscription of the group whose type is known at run time.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_dynamic_subscription(
        &self,
        topic: &str,
        ty: &DynamicType,
        options: SubscriptionOptions<DynamicMessage>,
    ) -> Result<Subscription<DynamicMessage>, CreateError> {
        let options = self.own(options);
        self.core
            .node
            .create_dynamic_subscription(topic, ty, options)
    }

    /// A subscription of the group to serialized messages; see
    /// [`Node::create_raw_subscription`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_raw_subscription(
        &self,
        topic: &str,
        type_name: &str,
        hash: Option<TypeHash>,
        options: SubscriptionOptions<Bytes>,
    ) -> Result<Subscription<Bytes>, CreateError> {
        let options = self.own(options);
        self.core
            .node
            .create_raw_subscription(topic, type_name, hash, options)
    }

    fn own<T>(&self, mut options: SubscriptionOptions<T>) -> SubscriptionOptions<T> {
        options.qos.presentation = self.presentation();
        self.core.policies.lock().apply(&mut options.qos);
        options.group = Some(self.core.clone());
        options
    }

    pub(crate) fn change(&self, changed: GroupPolicies) -> Result<(), QosChangeError> {
        changed.validate()?;
        let mut policies = self.core.policies.lock();
        let members: Vec<_> = self.core.members.lock().values().cloned().collect();
        let mut living = members.iter().filter_map(Weak::upgrade);
        living
            .try_for_each(|member| member.change(&changed))
            .map_err(|error| error.source)?;
        policies.absorb(changed);
        Ok(())
    }

    /// How the group is presented.
    pub fn presentation(&self) -> Presentation {
        self.core.group.presentation()
    }

    /// Begins an access: what waits now, whole sets, is what can be taken of all
    /// the group's subscriptions, on whatever thread, until it ends. What is left
    /// then stays. Within an access that is open, only counts. Never blocks.
    pub fn begin_access(&self) -> Access {
        self.core.access()
    }

    /// Whether an access has been begun and not ended.
    pub fn is_accessed(&self) -> bool {
        self.core.group.is_open()
    }

    /// Takes the oldest message, or end of an instance, of the subscriptions
    /// without callback. Never blocks and looks at no socket, as
    /// [`Subscription::take`].
    pub fn take(&self) -> Option<GroupChange> {
        self.core.take()
    }

    /// As [`SubscriptionGroup::take`], waiting at most `timeout`: not within an
    /// access, to which nothing comes. Blocks; drives the network itself, so no
    /// executor is needed. Of several threads that wait, one at a time is served.
    pub fn take_timeout(&self, timeout: Duration) -> Option<GroupChange> {
        self.core.take_timeout(timeout)
    }
}

impl Access {
    /// Ends the access.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        let core = self.core.node.core().core();
        core.end_access(&self.core.group);
    }
}

impl GroupChange {
    /// The subscription it is for: its [`Subscription::gid`].
    pub fn gid(&self) -> Guid {
        self.gid
    }

    /// Where and when it came from.
    pub fn info(&self) -> SampleInfo {
        SampleInfo::new(self.item.meta, self.item.instance.as_deref())
    }

    /// The message, if it is one and for that subscription. Decodes it; one that
    /// cannot be decoded is counted by the subscription and is none.
    pub fn sample_of<T: 'static>(&self, subscription: &Subscription<T>) -> Option<Sample<T>> {
        match self.change_of(subscription)? {
            Change::Sample(sample) => Some(sample),
            Change::End(_) => None,
        }
    }

    /// As [`GroupChange::sample_of`], the end of an instance included.
    pub fn change_of<T: 'static>(&self, subscription: &Subscription<T>) -> Option<Change<T>> {
        if subscription.gid() != self.gid {
            return None;
        }
        subscription.decode(self.item.clone())
    }
}

impl GroupCore {
    pub(crate) fn note(&self, gid: Guid, member: Weak<dyn Member>) {
        let mut members = self.members.lock();
        members.retain(|_, member| member.strong_count() > 0);
        members.insert(gid, member);
    }

    fn access(self: &Arc<Self>) -> Access {
        self.node.core().core().begin_access(&self.group);
        Access { core: self.clone() }
    }

    fn members(&self, with_callback: bool) -> BTreeMap<Guid, Arc<dyn Member>> {
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
        let (gid, item) = core.take_of_group(&self.group, |gid| polled.contains_key(&gid))?;
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
        let until = core.env.now().after(timeout.into());
        // A bed is one thread's.
        let Some(queue) = self.own_queue.try_lock_for(timeout) else {
            return self.take();
        };
        let mut taken = None;
        core.drive_until(&queue, until, || {
            self.group.slot.taken();
            while queue.pop().is_some() {}
            taken = self.take();
            taken.is_some()
        });
        taken
    }

    /// Runs the callbacks for what is there, in order, within an access. Whoever
    /// does so already finds the rest at the access's end.
    pub(crate) fn run_callbacks(self: &Arc<Self>) {
        let Some(running) = self.running.try_lock() else {
            return;
        };
        let access = self.access();
        let called = self.members(true);
        let core = self.node.core().core();
        while let Some((gid, item)) =
            core.take_of_group(&self.group, |gid| called.contains_key(&gid))
        {
            if let Some(member) = called.get(&gid) {
                member.call(item);
            }
        }
        // Before the end, which makes those ready that have more.
        drop(running);
        drop(access);
    }
}

/// Its place in a queue only wakes a thread in `take_timeout`.
impl Task for GroupCore {
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

impl fmt::Debug for Access {
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
