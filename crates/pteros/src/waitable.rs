//! Waitable: the interface of an entity for wait sets and chains of callbacks.
//! Subscriptions, timers, guard conditions, clients and services implement it in their
//! own files.

use std::sync::Arc;

use pteros_runtime::reader::ReaderEndpoint;
use pteros_runtime::ready_queue::Task;

use crate::node::{NodeCore, NodeEntity};

/// Entities that a [`WaitSet`](crate::wait_set::WaitSet) accepts: subscriptions,
/// timers, guard conditions, clients and services. Sealed.
#[diagnostic::on_unimplemented(
    message = "a wait set cannot wait for `{Self}`",
    label = "not a subscription, service, client, timer or guard condition"
)]
pub trait Waitable {
    #[doc(hidden)]
    fn waitable_entity(&self) -> Arc<dyn WaitableEntity>;
}

/// An entity in a wait set. It wakes the set through its task in the set's ready
/// queue, or as a due timer.
#[allow(private_bounds, reason = "implemented only by entities of this crate")]
pub trait WaitableEntity: Task + NodeEntity {
    #[doc(hidden)]
    #[allow(
        private_interfaces,
        reason = "implemented only by entities of this crate"
    )]
    fn node_core(&self) -> &Arc<NodeCore>;

    /// Enables wake-ups for new data and returns whether data is already there.
    #[doc(hidden)]
    fn rearm(&self) -> bool;

    /// Reader that feeds the callback, for subscriptions, services (requests) and
    /// clients (replies).
    #[doc(hidden)]
    #[allow(
        private_interfaces,
        reason = "implemented only by entities of this crate"
    )]
    fn reader(&self) -> Option<&ReaderEndpoint> {
        None
    }

    /// Number of arrivals so far, and how many of them still wait.
    #[doc(hidden)]
    fn arrivals(&self) -> Arrivals {
        self.reader()
            .map_or_else(Arrivals::default, |reader| Arrivals {
                received: reader.received_count(),
                waiting: reader.queued_count(),
            })
    }

    /// Topic that triggers the entity.
    #[doc(hidden)]
    fn input_topic(&self) -> Option<&str> {
        None
    }
}

/// Messages, requests, replies or triggers that reached an entity.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// Received so far.
    pub received: u64,
    /// Of these, not taken yet.
    pub waiting: usize,
}
