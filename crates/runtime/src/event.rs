//! Status events of an endpoint: matches, missed deadlines, lost liveliness, lost
//! samples and incompatible QoS.
//!
//! Covers the deadline monitor and the liveliness assertion of DDS. Status counts
//! are those of DDS (DDS 1.4 §2.2.4.1): totals never fall, changes count since the
//! last read.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::fault;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::PolicyId;

use crate::ready_queue::ReadySlot;

/// One event of a writer or a reader, delivered in the order it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The set of matched endpoints changed.
    Matched {
        /// Matches in total.
        total: u64,
        /// Matches at present.
        current: usize,
        /// +1 or -1.
        change: i32,
        /// The other endpoint.
        peer: Guid,
    },
    /// An endpoint of the same topic has incompatible QoS (request/offered).
    IncompatibleQos {
        /// Total so far.
        total: u64,
        /// The other endpoint.
        peer: Guid,
        /// The incompatible policies, most relevant first.
        policies: Vec<PolicyId>,
    },
    /// An endpoint of the same topic has an incompatible type.
    IncompatibleType {
        /// Total so far.
        total: u64,
        /// The other endpoint.
        peer: Guid,
        /// Its DDS type name.
        peer_type: String,
    },
    /// No sample within the DEADLINE: not written in time (writers), or not
    /// received in time (readers).
    DeadlineMissed {
        /// Total so far.
        total: u64,
    },
    /// A manual writer did not assert its liveliness in time (writers).
    LivelinessLost {
        /// Total so far.
        total: u64,
    },
    /// The number of alive writers changed (readers).
    LivelinessChanged {
        /// Matched writers that are alive.
        alive: usize,
        /// Matched writers that are not alive.
        not_alive: usize,
        /// The writer that changed.
        writer: Guid,
    },
    /// Samples or ends of instances beyond the instance limit were dropped (readers
    /// of keyed topics).
    SampleRejected {
        /// Total so far.
        total: u64,
    },
    /// Samples were published but not stored: the store of a transient or
    /// persistent writer is full, or its disk refuses. Publishing continues.
    NotStored {
        /// Samples that will not be stored, in total.
        total: u64,
        /// Samples that wait for the disk.
        queued: usize,
        /// The cause, with the file and the remedy.
        reason: String,
    },
    /// Samples are lost for good (readers).
    SampleLost {
        /// Total so far.
        total: u64,
        /// Number in this event.
        count: u64,
    },
}

/// The event queue of one endpoint, its listener and its totals. Thread-safe, never
/// blocks.
#[derive(Default)]
pub struct EndpointEvents {
    waiting: Mutex<VecDeque<EndpointEvent>>,
    /// Where user code waits for events.
    pub slot: ReadySlot,
    matched_total: AtomicU64,
    matched: AtomicUsize,
    incompatible: AtomicU64,
    incompatible_types: AtomicU64,
}

/// Events kept per endpoint. Beyond it the oldest is dropped; the totals in later
/// events show what was missed.
pub const EVENTS_MAX: usize = 256;

impl EndpointEvents {
    /// Takes the oldest event.
    pub fn take(&self) -> Option<EndpointEvent> {
        self.waiting.lock().pop_front()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }

    /// Endpoints matched now.
    pub fn matched_count(&self) -> usize {
        self.matched.load(Ordering::Acquire)
    }

    /// Matches that have ended.
    pub(crate) fn ended_count(&self) -> u64 {
        let current = self.matched.load(Ordering::Acquire) as u64;
        let total = self.matched_total.load(Ordering::Acquire);
        total.saturating_sub(current)
    }

    /// Queues an event and notifies user code.
    pub(crate) fn push(&self, event: EndpointEvent) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == EVENTS_MAX {
            waiting.pop_front();
        }
        waiting.push_back(event);
        drop(waiting);
        self.slot.mark_ready();
    }

    /// Counts a match (+1) or an unmatch (-1).
    pub(crate) fn note_matched(&self, peer: Guid, change: i32) {
        if change > 0 {
            self.matched_total.fetch_add(1, Ordering::Relaxed);
            self.matched.fetch_add(1, Ordering::AcqRel);
        } else if !fault!("end-of-match-not-counted") {
            self.matched.fetch_sub(1, Ordering::AcqRel);
        }
        self.push(EndpointEvent::Matched {
            total: self.matched_total.load(Ordering::Relaxed),
            current: self.matched_count(),
            change,
            peer,
        });
    }

    pub(crate) fn note_incompatible_type(&self, peer: &EndpointData) {
        let total = self.incompatible_types.fetch_add(1, Ordering::Relaxed) + 1;
        self.push(EndpointEvent::IncompatibleType {
            total,
            peer: peer.guid,
            peer_type: peer.type_name.clone(),
        });
    }

    pub(crate) fn note_incompatible(&self, peer: Guid, policies: Vec<PolicyId>) {
        if fault!("incompatible-qos-not-reported") {
            return;
        }
        let total = self.incompatible.fetch_add(1, Ordering::Relaxed) + 1;
        self.push(EndpointEvent::IncompatibleQos {
            total,
            peer,
            policies,
        });
    }
}
