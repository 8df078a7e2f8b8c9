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
        /// The remote reader that stalled or went on.
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

impl EndpointEvent {
    /// Whether it is about a certain remote endpoint, besides totals.
    fn names_endpoint(&self) -> bool {
        match self {
            Self::Matched { .. }
            | Self::IncompatibleQos { .. }
            | Self::IncompatibleType { .. }
            | Self::LivelinessChanged { .. }
            | Self::ReaderStalled { .. } => true,
            Self::DeadlineMissed { .. }
            | Self::LivelinessLost { .. }
            | Self::SampleRejected { .. }
            | Self::NotStored { .. }
            | Self::SampleLost { .. } => false,
        }
    }
}

/// Events kept per endpoint. Beyond it the oldest is dropped that a later one of its kind
/// succeeds, whose totals show what was missed. So the last event of each kind is told,
/// and a burst of one kind hides no match.
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

    /// Notes a server whose match over a further transport has ended: RTPS may match it next,
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

    /// Adds an event. A loss that follows another one is added to it. Full: drops the
    /// oldest event that has a successor, see [`EVENTS_MAX`].
    pub fn push_or_drop_oldest(&mut self, event: EndpointEvent) {
        if let EndpointEvent::SampleLost { total, count } = &event
            && let Some(EndpointEvent::SampleLost {
                total: last_total,
                count: last_count,
            }) = self.waiting.back_mut()
        {
            *last_total = *total;
            *last_count += count;
            return;
        }
        self.waiting.push_back(event);
        if self.waiting.len() > EVENTS_MAX {
            self.drop_oldest();
        }
    }

    /// Drops the oldest event with a successor, of those that name no endpoint if there is
    /// one.
    fn drop_oldest(&mut self) {
        let without_endpoint = self.oldest_with_successor(|event| !event.names_endpoint());
        let at = without_endpoint.or_else(|| self.oldest_with_successor(|_| true));
        let dropped = self.waiting.remove(at.unwrap_or(0));
        let Some(EndpointEvent::SampleLost { count: more, .. }) = dropped else {
            return;
        };
        let is_loss =
            |event: &&mut EndpointEvent| matches!(event, EndpointEvent::SampleLost { .. });
        if let Some(EndpointEvent::SampleLost { count, .. }) = self.waiting.iter_mut().find(is_loss)
        {
            *count += more;
        }
    }

    /// The index of the oldest event that a later one of its kind succeeds.
    fn oldest_with_successor(&self, counts: impl Fn(&EndpointEvent) -> bool) -> Option<usize> {
        let kind = core::mem::discriminant::<EndpointEvent>;
        let mut all = self.waiting.iter().enumerate();
        let found = all.find(|(at, event)| {
            let mut later = self.waiting.iter().skip(at + 1);
            counts(event) && later.any(|later| kind(later) == kind(event))
        });
        found.map(|(at, _)| at)
    }

    /// Counts a match (+1) or the end of one (-1).
    pub fn note_matched(&mut self, peer: Guid, change: i32) {
        if change > 0 {
            self.matched_total += 1;
            self.matched += 1;
        } else {
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
        self.incompatible += 1;
        self.push_or_drop_oldest(EndpointEvent::IncompatibleQos {
            total: self.incompatible,
            peer,
            policies,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(status: &mut EndpointStatus) -> Vec<EndpointEvent> {
        core::iter::from_fn(|| status.pop()).collect()
    }

    fn lost(total: u64, count: u64) -> EndpointEvent {
        EndpointEvent::SampleLost { total, count }
    }

    /// Found by the simulator (seed 88029542): 240 samples of a history found no space, and
    /// their losses pushed the first match out.
    #[test]
    fn a_burst_of_losses_hides_no_match() {
        let mut status = EndpointStatus::default();
        status.note_matched(Guid::UNKNOWN, 1);
        (1..=1_000).for_each(|total| status.push_or_drop_oldest(lost(total, 1)));
        status.note_matched(Guid::UNKNOWN, 1);
        status.push_or_drop_oldest(lost(1_001, 1));
        let told = told(&mut status);
        assert_eq!(told.len(), 4);
        assert_eq!((&told[1], &told[3]), (&lost(1_000, 1_000), &lost(1_001, 1)));
    }

    /// Each kind may burst, alone or in turns with another one.
    #[test]
    fn the_last_event_of_each_kind_is_told() {
        let writer = Guid::UNKNOWN;
        let kinds: [fn(u64) -> EndpointEvent; 6] = [
            |total| EndpointEvent::DeadlineMissed { total },
            |total| EndpointEvent::LivelinessLost { total },
            |total| EndpointEvent::SampleRejected { total },
            |total| lost(total, 1),
            |total| EndpointEvent::IncompatibleQos {
                total,
                peer: Guid::UNKNOWN,
                policies: Vec::new(),
            },
            |total| EndpointEvent::LivelinessChanged {
                alive: total as usize,
                not_alive: 0,
                writer: Guid::UNKNOWN,
            },
        ];
        for (one, other) in [(0, 1), (0, 3), (2, 3), (4, 4), (4, 5), (5, 3)] {
            let mut status = EndpointStatus::default();
            status.note_matched(writer, 1);
            for total in 1..=1_000 {
                status.push_or_drop_oldest(kinds[one](total));
                status.push_or_drop_oldest(kinds[other](total));
            }
            let told = told(&mut status);
            assert!(told.len() <= EVENTS_MAX, "{}", told.len());
            let is_match = |event: &EndpointEvent| matches!(event, EndpointEvent::Matched { .. });
            assert!(is_match(&told[0]), "{one}, {other}: {:?}", told[0]);
            let counted = told.iter().map(|event| match event {
                EndpointEvent::SampleLost { count, .. } => *count,
                _ => 0,
            });
            let losses = [one, other].into_iter().filter(|kind| *kind == 3).count() as u64;
            assert_eq!(counted.sum::<u64>(), 1_000 * losses, "{one}, {other}");
            let last = match &told[told.len() - 1] {
                EndpointEvent::SampleLost { total, .. } => lost(*total, 1),
                other => other.clone(),
            };
            assert_eq!(last, kinds[other](1_000));
        }
    }

    /// Matches alone: the totals of the last one tell the rest.
    #[test]
    fn of_too_many_matches_the_oldest_is_dropped() {
        let mut status = EndpointStatus::default();
        (0..300).for_each(|_| status.note_matched(Guid::UNKNOWN, 1));
        let told = told(&mut status);
        assert_eq!(told.len(), EVENTS_MAX);
        let EndpointEvent::Matched { total, current, .. } = told[EVENTS_MAX - 1] else {
            panic!("{told:?}");
        };
        assert_eq!((total, current), (300, 300));
    }
}
