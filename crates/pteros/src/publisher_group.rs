//! Publisher group: the DDS Publisher entity (DDS 1.4 §2.2.2.4.1) with presentation
//! and coherent sets (§2.2.3.6).

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_msg::type_support::MessageTypeSupport;
use pteros_runtime::error::{GroupError, QosChangeError};
use pteros_runtime::publisher_group as runtime;

use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::{Publisher, PublisherCore, PublisherOptions};
use crate::qos::{Presentation, QosError, QosProfile};
use crate::set_qos::GroupPolicies;

/// Publishers of one node that share a presentation. Cheap to clone, thread-safe.
///
/// With [`Presentation::coherent`], subscriptions that request coherent access see
/// a coherent set as a whole or not at all. The set is everything published between
/// its begin and end: per publisher with access scope TOPIC (1) or INSTANCE (0), of
/// the whole group with GROUP (2). With [`Presentation::ordered`] and scope GROUP,
/// such subscriptions get the group's samples in publishing order across topics.
/// Other subscriptions get the samples as usual.
///
/// Samples are sent at once and wait at the receiver. A reader drops an incomplete
/// set and counts it
/// ([`ReaderCounts::incomplete_sets`](crate::subscription::ReaderCounts::incomplete_sets)). That
/// happens if:
///
/// - a best-effort sample is lost,
/// - KEEP_LAST or RESOURCE_LIMITS of publisher or subscription hold fewer samples
///   than the set has,
/// - the publisher dies within the set,
/// - the subscription matched in the middle of it.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::{Point, Vector3};
/// use pteros::prelude::*;
/// use pteros::publisher::PublisherGroup;
/// use pteros::qos::Presentation;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("tracker")?;
/// let group = PublisherGroup::new(&node, Presentation {
///     access_scope: 2,
///     coherent: true,
///     ordered: false,
/// })?;
/// let position = group.create_publisher::<Point>("position".keep_last(10))?;
/// let velocity = group.create_publisher::<Vector3>("velocity".keep_last(10))?;
/// let changes = group.begin_coherent_changes()?;
/// position.publish_owned(Point::default())?;
/// velocity.publish_owned(Vector3::default())?;
/// changes.end();
/// # Ok(())
/// # }
/// ```
#[must_use = "a publisher group ends when it is dropped: keep it in a variable or a field"]
#[derive(Clone)]
pub struct PublisherGroup {
    core: Arc<PublisherGroupCore>,
}

struct PublisherGroupCore {
    node: Node,
    group: Arc<runtime::PublisherGroup>,
    members: Mutex<Vec<Weak<PublisherCore>>>,
    policies: Mutex<GroupPolicies>,
    /// The members while a set is open: none leaves before its end.
    members_of_open_set: Mutex<Vec<Arc<PublisherCore>>>,
}

/// Guard of an open coherent set; ends it with [`CoherentSet::end`] or when
/// dropped.
///
/// DDS has no rollback: samples are on their way from the moment they are
/// published. Nested sets form one set, which ends with the outermost. They may end
/// in any order, on any thread.
#[must_use = "the coherent set ends when this guard is dropped"]
pub struct CoherentSet {
    core: Arc<PublisherGroupCore>,
}

impl PublisherGroup {
    /// Creates a group of publishers of this node.
    ///
    /// Its presentation replaces that of its publishers' profiles.
    ///
    /// # Errors
    /// When the access scope is invalid.
    pub fn new(node: &Node, presentation: Presentation) -> Result<Self, QosError> {
        QosProfile {
            presentation,
            ..QosProfile::default()
        }
        .validate()?;
        let group = node.core().core().create_publisher_group(presentation);
        Ok(Self {
            core: Arc::new(PublisherGroupCore {
                node: node.clone(),
                group,
                members: Mutex::default(),
                policies: Mutex::default(),
                members_of_open_set: Mutex::default(),
            }),
        })
    }

    /// Creates a publisher of the group, on a topic of the node.
    ///
    /// # Errors
    /// See [`CreateError`]; [`GroupError::SetOpen`] while a set is open.
    pub fn create_publisher<T: MessageTypeSupport>(
        &self,
        options: impl Into<PublisherOptions<T>>,
    ) -> Result<Publisher<T>, CreateError> {
        let mut options = options.into();
        options.qos.presentation = self.presentation();
        self.core.policies.lock().apply(&mut options.qos);
        options.group = Some(self.core.group.clone());
        let publisher = self.core.node.create_publisher(options)?;
        self.add_member(&publisher.raw);
        Ok(publisher)
    }

    fn add_member(&self, raw: &Arc<PublisherCore>) {
        let mut members = self.core.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(raw));
    }

    fn set_policies(&self, changed: GroupPolicies) -> Result<(), QosChangeError> {
        changed.validate()?;
        let mut policies = self.core.policies.lock();
        let members: Vec<_> = self.core.members.lock().clone();
        let mut living = members.iter().filter_map(Weak::upgrade);
        living.try_for_each(|member| member.change_qos(|qos| changed.apply(qos)))?;
        policies.merge(changed);
        Ok(())
    }

    /// Puts all publishers of the group, including future ones, into these
    /// partitions.
    ///
    /// See [`Publisher::set_qos`]. Peers receive the changes one publisher after
    /// the other.
    ///
    /// # Errors
    /// A name that is too long is a [`QosChangeError::Contradiction`]. Within a
    /// coherent set it is [`QosChangeError::SetOpen`]. Nothing has changed then.
    pub fn set_partition(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(), QosChangeError> {
        self.set_policies(GroupPolicies::of_partition(names))
    }

    /// Sets GROUP_DATA of all publishers of the group, including future ones.
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

    /// Begins a coherent set; within an open set it only increases the nesting
    /// depth.
    ///
    /// Everything that publishers of the group publish until the end, on any
    /// thread, belongs to the set. Never blocks.
    ///
    /// # Errors
    /// [`GroupError::NotCoherent`], [`GroupError::NestedTooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<CoherentSet, GroupError> {
        let mut held = self.core.members_of_open_set.lock();
        self.core.group.begin_coherent_changes()?;
        if held.is_empty() {
            let members = self.core.members.lock();
            *held = members.iter().filter_map(Weak::upgrade).collect();
        }
        Ok(CoherentSet {
            core: self.core.clone(),
        })
    }

    /// Whether a coherent set is open.
    pub fn has_open_coherent_set(&self) -> bool {
        self.core.group.is_open()
    }
}

impl CoherentSet {
    /// Ends the set, so that subscriptions may see it. Sends on the caller's
    /// thread.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for CoherentSet {
    fn drop(&mut self) {
        let mut held = self.core.members_of_open_set.lock();
        let core = self.core.node.core().core();
        let result = self.core.group.end_coherent_changes(core);
        debug_assert!(result.is_ok(), "one begin has one end: {result:?}");
        let over = !self.core.group.is_open();
        let released = if over {
            std::mem::take(&mut *held)
        } else {
            Vec::new()
        };
        drop(held);
        // Publishers that were dropped within the set leave the topic now.
        drop(released);
    }
}

impl fmt::Debug for PublisherGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherGroup")
            .field("node", &self.core.node)
            .field("presentation", &self.presentation())
            .field("publishers", &self.core.members.lock().len())
            .finish()
    }
}

impl fmt::Debug for CoherentSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoherentChanges").finish_non_exhaustive()
    }
}
