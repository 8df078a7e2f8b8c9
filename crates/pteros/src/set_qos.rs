//! Changeable QoS of existing publishers and subscriptions (DDS 1.4 §2.2.3, column
//! "Changeable").
//!
//! Reads and replaces the current profile. The runtime announces changes and
//! matches again; here the profile is validated and recorded.

use std::sync::Arc;

use parking_lot::Mutex;
use pteros_runtime::error::QosChangeError;

use crate::qos::QosProfile;

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
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut QosProfile),
        set: impl FnOnce(&QosProfile) -> Result<(), QosChangeError>,
    ) -> Result<(), QosChangeError> {
        let mut in_force = self.0.lock();
        let mut qos = (**in_force).clone();
        change(&mut qos);
        match in_force.topic_naming_change(&qos) {
            Some(fixed) => Err(QosChangeError::Immutable(vec![fixed])),
            None => set(&qos),
        }?;
        *in_force = Arc::new(qos);
        Ok(())
    }
}

/// QoS policies set for a whole group; members created later get them too.
#[derive(Clone, Debug, Default)]
pub(crate) struct GroupPolicies {
    partition: Option<Vec<String>>,
    group_data: Option<Vec<u8>>,
}

impl GroupPolicies {
    pub(crate) fn of_partition(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            partition: Some(names.into_iter().map(Into::into).collect()),
            group_data: None,
        }
    }

    pub(crate) fn of_group_data(data: impl Into<Vec<u8>>) -> Self {
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
