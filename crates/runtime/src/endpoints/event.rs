//! The status events of an endpoint ([`EndpointStatus`]) with the lock and the slot
//! through which user code waits for them.

use std::sync::atomic::{AtomicBool, Ordering};

pub use pteros_dcps::event::{EVENTS_MAX, EndpointEvent, EndpointStatus};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::PolicyId;

use crate::lock::{Mutex, rank};
use crate::scheduler::ready_queue::ReadySlot;

/// The event queue of one endpoint, its listener and its totals. Thread-safe, never
/// blocks.
#[derive(Default)]
pub struct EndpointEvents {
    status: Mutex<EndpointStatus, rank::EventQueue>,
    /// Whether an event is queued. Written under the lock of `status`.
    has_events: AtomicBool,
    /// Where user code waits for events.
    pub slot: ReadySlot,
}

impl EndpointEvents {
    /// Takes the oldest event.
    pub fn take(&self) -> Option<EndpointEvent> {
        let mut status = self.status.lock();
        let event = status.pop();
        self.has_events.store(!status.is_empty(), Ordering::Release);
        event
    }

    /// Whether no event is queued: one load.
    pub fn is_empty(&self) -> bool {
        !self.has_events.load(Ordering::Acquire)
    }

    /// Endpoints matched now.
    pub fn matched_count(&self) -> usize {
        self.status.lock().matched_count()
    }

    /// Matches that have ended.
    pub(crate) fn ended_count(&self) -> u64 {
        self.status.lock().ended_count()
    }

    /// Notes a peer whose match over a further transport has ended.
    pub(crate) fn note_moved(&self, peer: Guid) {
        self.status.lock().note_moved(peer);
    }

    /// Takes the peers noted by [`EndpointEvents::note_moved`].
    pub(crate) fn take_moved(&self) -> Vec<Guid> {
        self.status.lock().take_moved()
    }

    /// Changes the status and notifies user code.
    fn change(&self, change: impl FnOnce(&mut EndpointStatus)) {
        {
            let mut status = self.status.lock();
            change(&mut status);
            self.has_events.store(!status.is_empty(), Ordering::Release);
        }
        self.slot.mark_ready();
    }

    /// Queues an event and notifies user code.
    pub(crate) fn push(&self, event: EndpointEvent) {
        self.change(|status| status.push_or_drop_oldest(event));
    }

    /// Counts a match (+1) or the end of one (-1).
    pub(crate) fn note_matched(&self, peer: Guid, change: i32) {
        self.change(|status| status.note_matched(peer, change));
    }

    pub(crate) fn note_incompatible_type(&self, peer: &EndpointData) {
        self.change(|status| status.note_incompatible_type(peer));
    }

    pub(crate) fn note_incompatible(&self, peer: Guid, policies: Vec<PolicyId>) {
        self.change(|status| status.note_incompatible(peer, policies));
    }
}
