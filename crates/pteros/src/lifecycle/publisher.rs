//! Lifecycle publishers: drop messages while their node is not active.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pteros_msg::type_support::MessageTypeSupport;

use super::activation::Activation;
use crate::error::PublishError;
use crate::publisher::Publisher;

/// Publisher of a managed node. Messages published while the node is not active are
/// dropped and counted, with one warning between two activations. It is enabled
/// from the call of `on_activate` until `on_deactivate` has returned. Cheap to
/// clone, thread-safe.
pub struct LifecyclePublisher<T: MessageTypeSupport> {
    publisher: Publisher<T>,
    drops: Arc<InactiveDrops>,
}

struct InactiveDrops {
    activation: Arc<Activation>,
    node: String,
    dropped: AtomicU64,
    /// Activation count at the last warning, plus one.
    warned: AtomicU64,
}

impl<T: MessageTypeSupport> Clone for LifecyclePublisher<T> {
    fn clone(&self) -> Self {
        Self {
            publisher: self.publisher.clone(),
            drops: self.drops.clone(),
        }
    }
}

impl<T: MessageTypeSupport> LifecyclePublisher<T> {
    pub(super) fn new(publisher: Publisher<T>, activation: &Arc<Activation>, node: String) -> Self {
        Self {
            publisher,
            drops: Arc::new(InactiveDrops {
                activation: activation.clone(),
                node,
                dropped: AtomicU64::new(0),
                warned: AtomicU64::new(0),
            }),
        }
    }

    /// Like [`Publisher::publish`]. While the node is not active the message is
    /// dropped without an error.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish(&self, message: &T) -> Result<(), PublishError> {
        self.when_active()
            .map_or(Ok(()), |publisher| publisher.publish(message))
    }

    /// Like [`Publisher::publish_owned`]. While the node is not active the message
    /// is dropped without an error.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_owned(&self, message: T) -> Result<(), PublishError> {
        self.when_active()
            .map_or(Ok(()), |publisher| publisher.publish_owned(message))
    }

    /// Like [`Publisher::publish_arc`]. While the node is not active the message is
    /// dropped without an error.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_arc(&self, message: Arc<T>) -> Result<(), PublishError> {
        self.when_active()
            .map_or(Ok(()), |publisher| publisher.publish_arc(message))
    }

    /// The underlying publisher, for loaned messages, instances and timestamps.
    /// Returns `None` while the node is not active, and counts a dropped message.
    pub fn when_active(&self) -> Option<&Publisher<T>> {
        if self.is_activated() {
            return Some(&self.publisher);
        }
        self.drops.count_drop(self.publisher.topic());
        None
    }

    /// Whether the publisher is enabled.
    pub fn is_activated(&self) -> bool {
        self.drops.activation.are_publishers_active()
    }

    /// Number of messages dropped because the node was not active.
    pub fn dropped_count(&self) -> u64 {
        self.drops.dropped.load(Ordering::Relaxed)
    }

    /// Fully qualified name of the topic, after remapping.
    pub fn topic(&self) -> &str {
        self.publisher.topic()
    }

    /// Number of matched subscriptions, whether it is enabled or not.
    pub fn matched_count(&self) -> usize {
        self.publisher.matched_count()
    }
}

impl InactiveDrops {
    fn count_drop(&self, topic: &str) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        let activation_count = self.activation.activation_count() + 1;
        if self.warned.swap(activation_count, Ordering::Relaxed) != activation_count {
            tracing::warn!(
                node = %self.node,
                "topic \"{topic}\": message dropped: the node is not active; activate it first (further drops are only counted until then)"
            );
        }
    }
}

impl<T: MessageTypeSupport> fmt::Debug for LifecyclePublisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecyclePublisher")
            .field("publisher", &self.publisher)
            .field("dropped", &self.drops.dropped.load(Ordering::Relaxed))
            .finish()
    }
}
