//! Subscriptions of a subscription group: how they are created, and how they decode
//! and handle what the group takes for them.

use parking_lot::Mutex;
use pteros_runtime::error::QosChangeError;
use pteros_runtime::sample::QueuedSample;

use super::{
    Subscription, SubscriptionCallback, SubscriptionCore, SubscriptionMessage, SubscriptionOptions,
    erase,
};
use crate::error::CreateError;
use crate::instance::ReceivedChange;
use crate::sample::Sample;
use crate::set_qos::GroupPolicies;
use crate::subscription_group::{GroupChange, GroupMember, SubscriptionGroup};

impl SubscriptionGroup {
    /// Creates a subscription of the group whose callback runs in the node's executor,
    /// within an access.
    ///
    /// # Errors
    /// See [`CreateError`]; [`CreateError::AsyncInGroup`] for an async callback.
    pub fn create_subscription<T: SubscriptionMessage>(
        &self,
        options: impl Into<SubscriptionOptions<T>>,
        callback: impl SubscriptionCallback<T>,
    ) -> Result<Subscription<T>, CreateError> {
        let mut options = options.into();
        options.callback = Some(erase(callback));
        self.create(options)
    }

    /// Creates a subscription of the group without callback.
    ///
    /// Read it on its own or with [`SubscriptionGroup::take`].
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_polled_subscription<T: SubscriptionMessage>(
        &self,
        options: impl Into<SubscriptionOptions<T>>,
    ) -> Result<Subscription<T>, CreateError> {
        self.create(options.into())
    }

    pub(crate) fn create<T: SubscriptionMessage>(
        &self,
        mut options: SubscriptionOptions<T>,
    ) -> Result<Subscription<T>, CreateError> {
        self.apply_to(&mut options.qos);
        options.group = Some(self.core.clone());
        self.core.node.core().create_subscription(options)
    }
}

impl GroupChange {
    /// The message, if it is one and belongs to that subscription.
    ///
    /// Decodes it. A message that cannot be decoded is counted by the subscription
    /// and yields `None`.
    pub fn sample_of<T: 'static>(&self, subscription: &Subscription<T>) -> Option<Sample<T>> {
        match self.change_of(subscription)? {
            ReceivedChange::Sample(sample) => Some(sample),
            ReceivedChange::End(_) => None,
        }
    }

    /// As [`GroupChange::sample_of`], including the end of an instance.
    pub fn change_of<T: 'static>(
        &self,
        subscription: &Subscription<T>,
    ) -> Option<ReceivedChange<T>> {
        if subscription.gid() != self.gid() {
            return None;
        }
        subscription.decode_member(self.item.clone())
    }
}

impl<T: Send + 'static> GroupMember for SubscriptionCore<T> {
    fn has_callback(&self) -> bool {
        self.callback.is_some()
    }

    fn apply_policies(&self, policies: &GroupPolicies) -> Result<(), QosChangeError> {
        self.change_qos(|qos| policies.apply(qos))
    }

    fn run_callback(&self, item: QueuedSample) {
        // Its group runs one callback at a time.
        let callback = self.callback.as_ref().and_then(Mutex::try_lock);
        let tracer = self.node.core().tracer();
        let reader = self.endpoint.data.guid.entity;
        let calling = tracer.map(|t| (t.begin_callback(reader), t));
        if let Some((_, tracer)) = &calling {
            tracer.note_taken(reader, &item.meta, item.weight());
        }
        if let (Some(mut callback), Some(change)) = (callback, self.decode_member(item)) {
            if let Some((calling, _)) = &calling {
                calling.note_user_code_start();
            }
            self.report_undecodable(callback.call(change));
        }
    }
}
