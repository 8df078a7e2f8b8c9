//! Publishers that are presented as one whole: DDS's Publisher (DDS 1.4
//! §2.2.2.4.1, §2.2.3.6).

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use pteros_msg::dynamic::DynamicType;
use pteros_msg::message::Message;
use pteros_rmw::error::{GroupError, QosChangeError};
use pteros_rmw::publisher_group as rmw;

use crate::dynamic::DynamicPublisher;
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::{Publisher, PublisherOptions, RawPublisher};
use crate::qos::{Presentation, QosError, QosProfile};
use crate::set_qos::GroupPolicies;

/// Publishers of one node whose samples belong together. Cheap to clone,
/// thread-safe.
///
/// With [`Presentation::coherent`], what is published between the begin and the
/// end of a set is seen whole or not at all by subscriptions that ask for
/// coherent access: with access scope TOPIC (1) or INSTANCE (0) all that one
/// publisher wrote, with GROUP (2) all that the group wrote. With
/// [`Presentation::ordered`] and scope GROUP, such subscriptions get the group's
/// samples in the order in which they were published, whatever the topic.
/// Other subscriptions get the samples as ever.
///
/// Samples leave at once and wait where they are received. A set that does not
/// arrive whole is dropped there and counted
/// ([`ReaderCounts::incomplete_sets`](crate::ReaderCounts::incomplete_sets)):
/// when a best-effort sample is lost, when KEEP_LAST or RESOURCE_LIMITS of the
/// publisher or the subscription hold fewer samples than the set has, when the
/// publisher dies within it, or when the subscription began in the midst of it.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::{Point, Vector3};
/// use pteros::prelude::*;
/// use pteros::qos::Presentation;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("tracker")?;
/// let group = node.create_publisher_group(Presentation {
///     access_scope: 2,
///     coherent: true,
///     ordered: false,
/// })?;
/// let position = group.create_publisher::<Point>("position", 10)?;
/// let velocity = group.create_publisher::<Vector3>("velocity", 10)?;
/// let changes = group.begin_coherent_changes()?;
/// position.publish_owned(Point::default())?;
/// velocity.publish_owned(Vector3::default())?;
/// changes.end();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PublisherGroup {
    core: Arc<GroupCore>,
}

struct GroupCore {
    node: Node,
    group: Arc<rmw::PublisherGroup>,
    members: Mutex<Vec<Weak<RawPublisher>>>,
    policies: Mutex<GroupPolicies>,
    /// The members while a set is open: none leaves before its end.
    held: Mutex<Vec<Arc<RawPublisher>>>,
}

/// A set of coherent changes that has been begun. It ends with
/// [`CoherentChanges::end`] or, all the same, when it is dropped: DDS knows no
/// way back, since samples are under way from the moment they are published.
///
/// Sets begun within one another are one set, which ends with the outermost.
/// They may end in any order, on any thread.
#[must_use = "the set ends when this is dropped"]
pub struct CoherentChanges {
    core: Arc<GroupCore>,
}

impl Node {
    /// A group whose publishers are presented as `presentation` says; they take
    /// it in place of their profile's.
    ///
    /// # Errors
    /// When there is no such access scope.
    pub fn create_publisher_group(
        &self,
        presentation: Presentation,
    ) -> Result<PublisherGroup, QosError> {
        QosProfile {
            presentation,
            ..QosProfile::default()
        }
        .validate()?;
        let group = self.core().core().create_publisher_group(presentation);
        Ok(PublisherGroup {
            core: Arc::new(GroupCore {
                node: self.clone(),
                group,
                members: Mutex::default(),
                policies: Mutex::default(),
                held: Mutex::default(),
            }),
        })
    }
}

impl PublisherGroup {
    /// A publisher of the group, on a topic of the node.
    ///
    /// # Errors
    /// See [`CreateError`]; [`GroupError::SetOpen`] while a set is open.
    pub fn create_publisher<T: Message>(
        &self,
        topic: &str,
        qos: impl Into<QosProfile>,
    ) -> Result<Publisher<T>, CreateError> {
        self.create_publisher_with(topic, PublisherOptions::new(qos))
    }

    /// A publisher of the group with options.
    ///
    /// # Errors
    /// As [`PublisherGroup::create_publisher`].
    pub fn create_publisher_with<T: Message>(
        &self,
        topic: &str,
        options: PublisherOptions,
    ) -> Result<Publisher<T>, CreateError> {
        let options = self.own(options);
        let publisher: Publisher<T> = self.core.node.create_publisher_with(topic, options)?;
        self.note(&publisher.raw);
        Ok(publisher)
    }

    /// A publisher of the group whose type is known at run time.
    ///
    /// # Errors
    /// As [`PublisherGroup::create_publisher`].
    pub fn create_dynamic_publisher(
        &self,
        topic: &str,
        ty: &DynamicType,
        qos: impl Into<QosProfile>,
    ) -> Result<DynamicPublisher, CreateError> {
        let options = self.own(PublisherOptions::new(qos));
        let publisher = self
            .core
            .node
            .create_dynamic_publisher_with(topic, ty, options)?;
        self.note(&publisher.raw);
        Ok(publisher)
    }

    fn own(&self, mut options: PublisherOptions) -> PublisherOptions {
        options.qos.presentation = self.presentation();
        self.core.policies.lock().apply(&mut options.qos);
        options.group = Some(self.core.group.clone());
        options
    }

    fn note(&self, raw: &Arc<RawPublisher>) {
        let mut members = self.core.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(raw));
    }

    pub(crate) fn change(&self, changed: GroupPolicies) -> Result<(), QosChangeError> {
        changed.validate()?;
        let mut policies = self.core.policies.lock();
        let members: Vec<_> = self.core.members.lock().clone();
        let mut living = members.iter().filter_map(Weak::upgrade);
        living
            .try_for_each(|member| member.change_qos(|qos| changed.apply(qos)))
            .map_err(|error| error.source)?;
        policies.absorb(changed);
        Ok(())
    }

    /// How the group is presented.
    pub fn presentation(&self) -> Presentation {
        self.core.group.presentation()
    }

    /// Begins a set of coherent changes; within one that has been begun, only
    /// counts. What any publisher of the group publishes until the end, on
    /// whatever thread, belongs to it. Never blocks.
    ///
    /// # Errors
    /// [`GroupError::NotCoherent`], [`GroupError::TooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<CoherentChanges, GroupError> {
        let mut held = self.core.held.lock();
        self.core.group.begin_coherent_changes()?;
        if held.is_empty() {
            let members = self.core.members.lock();
            *held = members.iter().filter_map(Weak::upgrade).collect();
        }
        Ok(CoherentChanges {
            core: self.core.clone(),
        })
    }

    /// Whether a set has been begun and not ended.
    pub fn is_changing(&self) -> bool {
        self.core.group.is_open()
    }
}

impl CoherentChanges {
    /// Ends the set: subscriptions may see it. Sends on the caller's thread.
    pub fn end(self) {
        drop(self);
    }
}

impl Drop for CoherentChanges {
    fn drop(&mut self) {
        let mut held = self.core.held.lock();
        let core = self.core.node.core().core();
        let ended = self.core.group.end_coherent_changes(core);
        debug_assert!(ended.is_ok(), "one begin has one end: {ended:?}");
        let over = !self.core.group.is_open();
        let released = match over {
            true => std::mem::take(&mut *held),
            false => Vec::new(),
        };
        drop(held);
        // Publishers that were dropped within the set leave now.
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

impl fmt::Debug for CoherentChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoherentChanges").finish_non_exhaustive()
    }
}
