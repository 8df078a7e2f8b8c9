//! QoS policies of publishers and subscriptions that live: which is in force,
//! and how it changes (DDS 1.4 §2.2.3, column "changeable").

use std::sync::Arc;

use parking_lot::Mutex;
use pteros_rmw::error::QosChangeError;

use crate::dynamic::DynamicPublisher;
use crate::publisher::{Publisher, RawPublisher};
use crate::publisher_group::PublisherGroup;
use crate::qos::QosProfile;
use crate::subscription::{Subscription, SubscriptionCore};
use crate::subscription_group::SubscriptionGroup;

/// Why a publisher or a subscription keeps the QoS that it has.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("topic \"{topic}\": {source}")]
pub struct SetQosError {
    /// The topic.
    pub topic: String,
    /// Which policies, and what to do.
    #[source]
    pub source: QosChangeError,
}

/// The profile in force.
pub(crate) struct InForce(Mutex<Arc<QosProfile>>);

impl InForce {
    pub(crate) fn new(qos: QosProfile) -> Self {
        Self(Mutex::new(Arc::new(qos)))
    }

    pub(crate) fn load(&self) -> Arc<QosProfile> {
        self.0.lock().clone()
    }

    /// Replaces it by what `change` makes of it, once `set` has done so.
    fn change(
        &self,
        topic: &str,
        change: impl FnOnce(&mut QosProfile),
        set: impl FnOnce(&QosProfile) -> Result<(), QosChangeError>,
    ) -> Result<(), SetQosError> {
        let mut in_force = self.0.lock();
        let mut qos = (**in_force).clone();
        change(&mut qos);
        let changed = match in_force.name_differs(&qos) {
            Some(fixed) => Err(QosChangeError::Immutable(vec![fixed])),
            None => set(&qos),
        };
        changed.map_err(|source| SetQosError {
            topic: topic.into(),
            source,
        })?;
        *in_force = Arc::new(qos);
        Ok(())
    }
}

impl RawPublisher {
    pub(crate) fn change_qos(
        &self,
        change: impl FnOnce(&mut QosProfile),
    ) -> Result<(), SetQosError> {
        let core = self.node.core();
        self.qos.change(&self.topic, change, |qos| {
            core.set_writer_qos(&self.endpoint, qos)
        })
    }
}

impl<T> SubscriptionCore<T> {
    pub(crate) fn change_qos(
        &self,
        change: impl FnOnce(&mut QosProfile),
    ) -> Result<(), SetQosError> {
        let core = self.node.core();
        self.qos.change(&self.topic, change, |qos| {
            core.set_reader_qos(&self.endpoint, qos)
        })
    }
}

impl<T> Publisher<T> {
    /// The profile in force.
    pub fn qos(&self) -> Arc<QosProfile> {
        self.raw.qos.load()
    }

    /// Gives it another profile from now on, in which the policies differ that
    /// DDS lets a living publisher change: partition, user, topic and group
    /// data, deadline, latency budget, ownership strength, transport priority,
    /// lifespan, and whether it disposes of what it unregisters.
    ///
    /// All peers hear of it. Matches are judged anew: those that no longer fit
    /// end, with an [`IncompatibleQos`](crate::EndpointEvent::IncompatibleQos)
    /// event if a policy does not fit rather than the partition; those that fit
    /// now begin, and get what a transient-local publisher keeps, as any late
    /// joiner does, even if they were matched before. A deadline counts from
    /// now, a lifespan is that of what is published from now on. Never waits for
    /// peers: for a moment they act by what they knew.
    ///
    /// ```no_run
    /// # use pteros::interfaces::std_msgs::msg::String as Text;
    /// # use pteros::prelude::*;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let node = Context::new()?.node("arm")?;
    /// let publisher = node.create_publisher::<Text>("state", 10)?;
    /// let spare = QosProfile::clone(&publisher.qos()).partition(["spare"]);
    /// publisher.set_qos(&spare)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`SetQosError`] names every policy that cannot change, or what the
    /// profile contradicts itself in; nothing has changed then.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), SetQosError> {
        self.raw.change_qos(|now| now.clone_from(qos))
    }
}

impl DynamicPublisher {
    /// The profile in force.
    pub fn qos(&self) -> Arc<QosProfile> {
        self.raw.qos.load()
    }

    /// As [`Publisher::set_qos`].
    ///
    /// # Errors
    /// As there.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), SetQosError> {
        self.raw.change_qos(|now| now.clone_from(qos))
    }
}

impl<T: 'static> Subscription<T> {
    /// The profile in force, "best available" settled.
    pub fn qos(&self) -> Arc<QosProfile> {
        self.core.qos.load()
    }

    /// Gives it another profile from now on, in which the policies differ that
    /// DDS lets a living subscription change: partition, user, topic and group
    /// data, deadline, latency budget, time based filter, and when what was not
    /// taken of ended instances is thrown away. "Best available" stays what it
    /// became.
    ///
    /// Matches are judged anew, see [`Publisher::set_qos`]. What waits to be
    /// taken stays, whoever published it. Deadlines count from now; what the
    /// time filter holds back is handed over as the new one says.
    ///
    /// # Errors
    /// As [`Publisher::set_qos`]; a deadline shorter than the time based filter
    /// is such a contradiction.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), SetQosError> {
        let settled = qos.for_publishers([&*self.core.endpoint.data.qos]);
        self.core.change_qos(|now| *now = settled)
    }
}

/// What belongs to a group as a whole, once it was set: members that are made
/// later have it too.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupPolicies {
    partition: Option<Vec<String>>,
    group_data: Option<Vec<u8>>,
}

impl GroupPolicies {
    fn of_partition(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            partition: Some(names.into_iter().map(Into::into).collect()),
            group_data: None,
        }
    }

    fn of_group_data(data: impl Into<Vec<u8>>) -> Self {
        Self {
            partition: None,
            group_data: Some(data.into()),
        }
    }

    /// Takes over what `newer` says.
    pub(crate) fn absorb(&mut self, newer: Self) {
        self.partition = newer.partition.or(self.partition.take());
        self.group_data = newer.group_data.or(self.group_data.take());
    }

    /// Whether any profile could have them.
    pub(crate) fn validate(&self) -> Result<(), QosChangeError> {
        let mut qos = QosProfile::default();
        self.apply(&mut qos);
        Ok(qos.validate()?)
    }

    /// Puts them into a member's profile.
    pub(crate) fn apply(&self, qos: &mut QosProfile) {
        if let Some(partition) = &self.partition {
            qos.partition.clone_from(partition);
        }
        if let Some(data) = &self.group_data {
            qos.group_data.clone_from(data);
        }
    }
}

impl PublisherGroup {
    /// Puts all publishers of the group, those to come included, into these
    /// partitions; see [`Publisher::set_qos`]. Peers hear of one after the other.
    ///
    /// # Errors
    /// A name that is too long is a [`QosChangeError::Contradiction`]; within a
    /// set of coherent changes it is [`QosChangeError::SetOpen`]. Nothing has
    /// changed then.
    pub fn set_partition(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(), QosChangeError> {
        self.change(GroupPolicies::of_partition(names))
    }

    /// Announces these bytes with all publishers of the group, those to come
    /// included.
    ///
    /// # Errors
    /// [`QosChangeError::Contradiction`]: more bytes than are announced.
    pub fn set_group_data(&self, data: impl Into<Vec<u8>>) -> Result<(), QosChangeError> {
        self.change(GroupPolicies::of_group_data(data))
    }
}

impl SubscriptionGroup {
    /// Puts all subscriptions of the group, those to come included, into these
    /// partitions; see [`Subscription::set_qos`]. Peers hear of one after the
    /// other.
    ///
    /// # Errors
    /// [`QosChangeError::Contradiction`]: a name that is too long. Nothing has
    /// changed then.
    pub fn set_partition(
        &self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<(), QosChangeError> {
        self.change(GroupPolicies::of_partition(names))
    }

    /// Announces these bytes with all subscriptions of the group, those to come
    /// included.
    ///
    /// # Errors
    /// [`QosChangeError::Contradiction`]: more bytes than are announced.
    pub fn set_group_data(&self, data: impl Into<Vec<u8>>) -> Result<(), QosChangeError> {
        self.change(GroupPolicies::of_group_data(data))
    }
}
