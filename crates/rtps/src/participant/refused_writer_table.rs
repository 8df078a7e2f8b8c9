//! What is known of refused writers besides their records: those that discovery did not
//! store, and when each was answered. `refused_writers.rs` says what they are.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Route;
use crate::time::{Duration, Instant};

use super::remote_endpoints::short_hash;

/// Writers without a record that are remembered, of all participants and of one. Further
/// ones are not answered.
const UNSTORED_MAX: usize = 4_096;
const UNSTORED_OF_ONE_MAX: usize = 256;

/// The least time between two answers to a writer. Its next HEARTBEAT gets what this one
/// does not, and many HEARTBEATs in one datagram get one answer.
const ANSWER_PERIOD: Duration = Duration::from_millis(5);

/// Writers whose last answer is remembered. If there are more, all are forgotten.
const ANSWERED_MAX: usize = 4_096;

/// Data about refused writers besides their records.
#[derive(Default)]
pub(super) struct RefusedWriters {
    /// The reliable writers that discovery announced and did not store, with the hash of
    /// their topic.
    pub(super) unstored: BTreeMap<Guid, u32>,
    /// When each was last answered.
    answered: BTreeMap<Guid, Instant>,
}

impl RefusedWriters {
    pub(super) fn note_unstored(&mut self, guid: Guid, topic: &str) {
        let of_one = self.unstored.range(guid.prefix.with(EntityId::UNKNOWN)..);
        let of_one = of_one.take_while(|(writer, _)| writer.prefix == guid.prefix);
        if self.unstored.len() < UNSTORED_MAX && of_one.count() < UNSTORED_OF_ONE_MAX {
            self.unstored.insert(guid, short_hash(topic));
        }
    }

    /// Forgets a writer that is stored now, or that has ended.
    pub(super) fn remove(&mut self, guid: Guid) {
        self.unstored.remove(&guid);
        self.answered.remove(&guid);
    }

    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.unstored.retain(|writer, _| writer.prefix != prefix);
        self.answered.retain(|writer, _| writer.prefix != prefix);
    }

    /// Forgets the writers of a participant that are not in `announced`.
    pub(super) fn retain(&mut self, prefix: GuidPrefix, announced: &[Guid]) {
        self.unstored
            .retain(|writer, _| writer.prefix != prefix || announced.contains(writer));
    }

    pub(super) fn is_just_answered(&self, now: Instant, writer: Guid) -> bool {
        let last = self.answered.get(&writer);
        last.is_some_and(|last| now < last.after(ANSWER_PERIOD))
    }

    pub(super) fn note_answered(&mut self, now: Instant, writer: Guid) {
        if self.answered.len() >= ANSWERED_MAX {
            self.answered.clear();
        }
        self.answered.insert(writer, now);
    }
}

/// Which local readers refused a writer, and where its acknowledgements go.
#[derive(Debug)]
pub struct RefusedWriter {
    /// The readers of this participant that refused it.
    pub readers: Vec<EntityId>,
    /// The route to the writer.
    pub route: Route,
}
