//! Status events of an endpoint and their totals: matches, missed deadlines, lost
//! liveliness, lost samples and incompatible QoS.
//!
//! Covers the deadline monitor and the liveliness assertion of DDS. Status counts
//! are those of DDS (DDS 1.4 §2.2.4.1): totals never fall, changes count since the
//! last read.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::fault;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::PolicyId;

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
    /// of keyed topics), or samples beyond the receive memory were refused. A reliable
    /// publisher sends the latter again.
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
    /// A matched reliable reader acknowledges nothing new for 2 s although samples are
    /// outstanding, or does again (writers).
    ReaderStalled {
        /// Matched readers that acknowledge nothing now.
        current: usize,
        /// +1 or -1.
        change: i32,
        /// The reader.
        reader: Guid,
    },
    /// Samples are lost for good (readers).
    SampleLost {
        /// Total so far.
        total: u64,
        /// Number in this event.
        count: u64,
    },
}

/// Events kept per endpoint. Beyond it the oldest is dropped; the totals in later
/// events show what was missed.
pub const EVENTS_MAX: usize = 256;

/// The events of one endpoint that were not taken, and its totals. Holds at most
/// [`EVENTS_MAX`] events.
#[derive(Default)]
pub struct EndpointStatus {
    waiting: VecDeque<EndpointEvent>,
    matched_total: u64,
    matched: usize,
    incompatible: u64,
    incompatible_types: u64,
    moved: Vec<Guid>,
}

impl EndpointStatus {
    /// Takes the oldest event.
    pub fn pop(&mut self) -> Option<EndpointEvent> {
        self.waiting.pop_front()
    }

    /// Whether no event waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Endpoints matched now.
    #[inline]
    pub fn matched_count(&self) -> usize {
        self.matched
    }

    /// Matches that have ended.
    pub fn ended_count(&self) -> u64 {
        self.matched_total.saturating_sub(self.matched as u64)
    }

    /// Notes a server whose match over a further wire has ended: RTPS may match it next,
    /// and open calls are lost all the same. Of a client's writer of requests. At most [`EVENTS_MAX`]: the oldest is dropped.
    pub fn note_moved(&mut self, peer: Guid) {
        if self.moved.len() == EVENTS_MAX {
            self.moved.remove(0);
        }
        self.moved.push(peer);
    }

    /// Takes those that [`EndpointStatus::note_moved`] has noted.
    pub fn take_moved(&mut self) -> Vec<Guid> {
        core::mem::take(&mut self.moved)
    }

    /// Adds an event. Full: the oldest is dropped.
    pub fn push_or_drop_oldest(&mut self, event: EndpointEvent) {
        if self.waiting.len() == EVENTS_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    /// Counts a match (+1) or the end of one (-1).
    pub fn note_matched(&mut self, peer: Guid, change: i32) {
        if change > 0 {
            self.matched_total += 1;
            self.matched += 1;
        } else if !fault!("end-of-match-not-counted") {
            self.matched -= 1;
        }
        self.push_or_drop_oldest(EndpointEvent::Matched {
            total: self.matched_total,
            current: self.matched,
            change,
            peer,
        });
    }

    /// Counts an endpoint of the same topic with another type.
    pub fn note_incompatible_type(&mut self, peer: &EndpointData) {
        self.incompatible_types += 1;
        self.push_or_drop_oldest(EndpointEvent::IncompatibleType {
            total: self.incompatible_types,
            peer: peer.guid,
            peer_type: peer.type_name.clone(),
        });
    }

    /// Counts an endpoint of the same topic with incompatible policies.
    pub fn note_incompatible(&mut self, peer: Guid, policies: Vec<PolicyId>) {
        if fault!("incompatible-qos-not-reported") {
            return;
        }
        self.incompatible += 1;
        self.push_or_drop_oldest(EndpointEvent::IncompatibleQos {
            total: self.incompatible,
            peer,
            policies,
        });
    }
}
