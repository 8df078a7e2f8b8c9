//! Changeable QoS of existing publishers and subscriptions (DDS 1.4 §2.2.3, column
//! "Changeable").
//!
//! Reads and replaces the current profile. The runtime announces changes and
//! matches again; here the profile is validated and recorded.

use std::sync::Arc;

use parking_lot::Mutex;
use pteros_msg::type_support::MessageTypeSupport;
use pteros_runtime::error::QosChangeError;

use crate::publisher::{Publisher, PublisherCore};
use crate::publisher_group::PublisherGroup;
use crate::qos::QosProfile;
use crate::subscription::{Subscription, SubscriptionCore};
use crate::subscription_group::SubscriptionGroup;

/// Why a publisher or a subscription keeps its current QoS.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("topic \"{topic}\": {source}")]
pub struct SetQosError {
    /// The topic.
    pub topic: String,
    /// Which policies, and what to do.
    #[source]
    pub source: QosChangeError,
}

/// The current QoS profile.
pub(crate) struct CurrentQos(Mutex<Arc<QosProfile>>);

impl CurrentQos {
    pub(crate) fn new(qos: QosProfile) -> Self {
        Self(Mutex::new(Arc::new(qos)))
    }

    pub(crate) fn load(&self) -> Arc<QosProfile> {
        self.0.lock().clone()
    }

    /// Replaces the profile by the result of `set_policies`, after `set` has succeeded.
    fn change(
        &self,
        topic: &str,
        change: impl FnOnce(&mut QosProfile),
        set: impl FnOnce(&QosProfile) -> Result<(), QosChangeError>,
    ) -> Result<(), SetQosError> {
        let mut in_force = self.0.lock();
        let mut qos = (**in_force).clone();
        change(&mut qos);
        let changed = match in_force.topic_naming_change(&qos) {
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

impl PublisherCore {
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

impl<T: MessageTypeSupport> Publisher<T> {
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
    /// [`SetQosError`] names every policy that cannot change, or the contradiction
    /// within the profile. Nothing has changed then.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), SetQosError> {
        self.raw.change_qos(|now| now.clone_from(qos))
    }
}

impl<T: 'static> Subscription<T> {
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
    /// Endpoint matching runs again, see [`Publisher::set_qos`]. Waiting samples
    /// stay, whoever published them. Deadlines count from now. Samples that
    /// the time-based filter holds back are delivered by the new separation.
    ///
    /// # Errors
    /// As [`Publisher::set_qos`]. A deadline shorter than the time-based filter is
    /// such a contradiction.
    pub fn set_qos(&self, qos: &QosProfile) -> Result<(), SetQosError> {
        let settled = qos.resolved_for_publishers([&*self.core.endpoint.data.qos]);
        self.core.change_qos(|now| *now = settled)
    }
}

/// QoS policies set for a whole group; members created later get them too.
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

    /// Overwrites the policies that `newer` sets.
    pub(crate) fn merge(&mut self, newer: Self) {
        self.partition = newer.partition.or(self.partition.take());
        self.group_data = newer.group_data.or(self.group_data.take());
    }

    /// Whether a profile with them would be valid.
    pub(crate) fn validate(&self) -> Result<(), QosChangeError> {
        let mut qos = QosProfile::default();
        self.apply(&mut qos);
        Ok(qos.validate()?)
    }

    /// Writes them into a member's profile.
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
}

impl SubscriptionGroup {
    /// Puts all subscriptions of the group, including future ones, into these
    /// partitions.
    ///
    /// See [`Subscription::set_qos`]. Peers receive the changes one subscription
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
}
