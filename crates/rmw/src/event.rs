//! What happens to an endpoint besides data: matches, missed deadlines, lost
//! liveliness, lost samples, QoS that does not fit. Status counts are DDS's
//! (DDS 1.4 §2.2.4.1): totals never fall, changes are since the last look.

use pteros_rtps::id::Guid;
use pteros_rtps::qos::PolicyId;

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
    /// Samples will never come (readers).
    SampleLost {
        /// How many so far.
        total: u64,
        /// How many this time.
        count: u64,
    },
}

/// A bounded list of events not yet looked at. When full, the oldest goes:
/// totals in the later ones tell what was missed.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: std::collections::VecDeque<EndpointEvent>,
}

/// Events kept per endpoint for those who do not look.
pub const EVENTS_MAX: usize = 256;

impl EventQueue {
    /// Adds an event.
    pub fn push_or_drop_oldest(&mut self, event: EndpointEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }

    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}
