//! Publishers that are silent while their node is not at work.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pteros_msg::message::Message;

use super::activation::Activation;
use crate::PublishError;
use crate::publisher::Publisher;

/// A publisher of a managed node: what it is given while the node is not active
/// is dropped, counted, and warned of once between two activations. It speaks
/// from when `on_activate` is called until `on_deactivate` has returned. Cheap to
/// clone, thread-safe.
pub struct LifecyclePublisher<T> {
    publisher: Publisher<T>,
    silence: Arc<Silence>,
}

struct Silence {
    activation: Arc<Activation>,
    node: String,
    dropped: AtomicU64,
    /// The phase in which was warned, and one.
    warned: AtomicU64,
}

impl<T> Clone for LifecyclePublisher<T> {
    fn clone(&self) -> Self {
        Self {
            publisher: self.publisher.clone(),
            silence: self.silence.clone(),
        }
    }
}

impl<T: Message> LifecyclePublisher<T> {
    pub(super) fn new(publisher: Publisher<T>, activation: &Arc<Activation>, node: String) -> Self {
        Self {
            publisher,
            silence: Arc::new(Silence {
                activation: activation.clone(),
                node,
                dropped: AtomicU64::new(0),
                warned: AtomicU64::new(0),
            }),
        }
    }

    /// As [`Publisher::publish`]; while the node is not active the message is
    /// dropped, which is no error.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish(&self, message: &T) -> Result<(), PublishError> {
        self.when_active()
            .map_or(Ok(()), |publisher| publisher.publish(message))
    }

    /// As [`Publisher::publish_owned`]; while the node is not active the message
    /// is dropped, which is no error.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_owned(&self, message: T) -> Result<(), PublishError> {
        self.when_active()
            .map_or(Ok(()), |publisher| publisher.publish_owned(message))
    }

    /// As [`Publisher::publish_arc`]; while the node is not active the message is
    /// dropped, which is no error.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn publish_arc(&self, message: Arc<T>) -> Result<(), PublishError> {
        self.when_active()
            .map_or(Ok(()), |publisher| publisher.publish_arc(message))
    }

    /// The publisher itself, for loans, instances and stamps, while it may speak;
    /// otherwise this counts as a message that was dropped.
    pub fn when_active(&self) -> Option<&Publisher<T>> {
        if self.is_activated() {
            return Some(&self.publisher);
        }
        self.silence.note(self.publisher.topic());
        None
    }

    /// Whether it speaks.
    pub fn is_activated(&self) -> bool {
        self.silence.activation.is_open()
    }

    /// Messages dropped because the node was not active, so far.
    pub fn dropped_count(&self) -> u64 {
        self.silence.dropped.load(Ordering::Relaxed)
    }

    /// The topic's fully qualified name, after remapping.
    pub fn topic(&self) -> &str {
        self.publisher.topic()
    }

    /// Subscriptions matched now, whether it speaks or not.
    pub fn matched_count(&self) -> usize {
        self.publisher.matched_count()
    }
}

impl Silence {
    fn note(&self, topic: &str) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
        let phase = self.activation.phase() + 1;
        if self.warned.swap(phase, Ordering::Relaxed) != phase {
            tracing::warn!(
                node = %self.node,
                "topic \"{topic}\": a message was dropped because the node is not active; activate it first (further ones are only counted until then)"
            );
        }
    }
}

impl<T> fmt::Debug for LifecyclePublisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LifecyclePublisher")
            .field("publisher", &self.publisher)
            .field("dropped", &self.silence.dropped.load(Ordering::Relaxed))
            .finish()
    }
}
