//! What happens to an endpoint besides data: matches, missed deadlines, lost
//! liveliness, lost samples, QoS that does not fit. Status counts are DDS's
//! (DDS 1.4 §2.2.4.1): totals never fall, changes are since the last look.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::fault;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::PolicyId;

use crate::ready::Slot;

/// One event of a writer or a reader, delivered in the order it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointEvent {
    /// The set of matched endpoints changed.
    Matched {
        /// Matches ever made.
        total: u64,
        /// Matches now.
        current: usize,
        /// +1 or -1.
        change: i32,
        /// The other endpoint.
        peer: Guid,
    },
    /// An endpoint of the same topic does not fit.
    IncompatibleQos {
        /// How often so far.
        total: u64,
        /// The other endpoint.
        peer: Guid,
        /// What does not fit, most telling first.
        policies: Vec<PolicyId>,
    },
    /// An endpoint of the same topic has another type.
    IncompatibleType {
        /// How often so far.
        total: u64,
        /// The other endpoint.
        peer: Guid,
        /// Its type, as DDS names it.
        peer_type: String,
    },
    /// No sample within the deadline: not written in time (writers), or not
    /// received in time (readers).
    DeadlineMissed {
        /// How often so far.
        total: u64,
    },
    /// A manual writer did not prove to be alive in time (writers).
    LivelinessLost {
        /// How often so far.
        total: u64,
    },
    /// The number of living writers changed (readers).
    LivelinessChanged {
        /// Matched writers that are alive.
        alive: usize,
        /// Matched writers that are not.
        not_alive: usize,
        /// The writer that changed.
        writer: Guid,
    },
    /// Samples, or ends, of instances beyond the limit on them were dropped
    /// (readers of keyed topics).
    SampleRejected {
        /// How many so far.
        total: u64,
    },
    /// Samples were published, but the store of a transient or persistent
    /// writer has no room for them, or its disk refuses. Live traffic goes on.
    NotStored {
        /// Samples that will not be stored, so far.
        total: u64,
        /// Samples that still wait for the disk.
        waiting: usize,
        /// Why, with the file and the way out.
        reason: String,
    },
    /// Samples will never come (readers).
    SampleLost {
        /// How many so far.
        total: u64,
        /// How many this time.
        count: u64,
    },
}

/// The events of one endpoint: those not yet looked at, who is told of them,
/// and the totals they carry. Thread-safe; never blocks.
#[derive(Default)]
pub struct Events {
    waiting: Mutex<VecDeque<EndpointEvent>>,
    /// Where user code waits for events.
    pub slot: Slot,
    matched_total: AtomicU64,
    matched: AtomicUsize,
    incompatible: AtomicU64,
    other_types: AtomicU64,
}

/// Events kept per endpoint for those who do not look. When there are more, the
/// oldest goes: totals in the later ones tell what was missed.
pub const EVENTS_MAX: usize = 256;

impl Events {
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

    /// Adds an event and tells user code.
    pub(crate) fn note(&self, event: EndpointEvent) {
        let mut waiting = self.waiting.lock();
        if waiting.len() == EVENTS_MAX {
            waiting.pop_front();
        }
        waiting.push_back(event);
        drop(waiting);
        self.slot.ready();
    }

    /// Counts a match (+1) or its end (-1).
    pub(crate) fn note_matched(&self, peer: Guid, change: i32) {
        if change > 0 {
            self.matched_total.fetch_add(1, Ordering::Relaxed);
            self.matched.fetch_add(1, Ordering::AcqRel);
        } else if !fault!("end-of-match-not-counted") {
            self.matched.fetch_sub(1, Ordering::AcqRel);
        }
        self.note(EndpointEvent::Matched {
            total: self.matched_total.load(Ordering::Relaxed),
            current: self.matched_count(),
            change,
            peer,
        });
    }

    pub(crate) fn note_other_type(&self, peer: &EndpointData) {
        let total = self.other_types.fetch_add(1, Ordering::Relaxed) + 1;
        self.note(EndpointEvent::IncompatibleType {
            total,
            peer: peer.guid,
            peer_type: peer.type_name.clone(),
        });
    }

    pub(crate) fn note_incompatible(&self, peer: Guid, policies: Vec<PolicyId>) {
        if fault!("misfit-not-told") {
            return;
        }
        let total = self.incompatible.fetch_add(1, Ordering::Relaxed) + 1;
        self.note(EndpointEvent::IncompatibleQos {
            total,
            peer,
            policies,
        });
    }
}
