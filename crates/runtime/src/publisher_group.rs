//! Publisher group: a DDS publisher with several writers, with common coherent sets
//! and one order (presentation / coherent set, DDS 1.4 §2.2.2.4.1.10–11; RTPS 2.5
//! §8.7.5, §8.7.6).
//!
//! A member writes under the group's lock, so that group sequence numbers have the
//! order of the samples on every path.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::qos::Presentation;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::error::GroupError;
use crate::lock::{Mutex, MutexGuard, rank};
use crate::timeout_queue::TimeoutOwner;
use crate::writer::{WriterEndpoint, WriterState};

/// Writers with a common presentation.
pub struct PublisherGroup {
    guid: Guid,
    presentation: Presentation,
    state: Mutex<PublisherGroupState, rank::PublisherGroup>,
}

#[derive(Default)]
pub(crate) struct PublisherGroupState {
    members: Vec<Weak<WriterEndpoint>>,
    /// The last group sequence number.
    last_group_sequence: i64,
    /// How often a set was begun and not ended.
    depth: usize,
    /// The group sequence number of the open set's first sample, if it has one.
    open_set: Option<i64>,
    /// The digest of the group's writers that sets carry.
    digest: [u8; 4],
}

/// Maximum nesting of sets.
pub const NESTING_MAX: usize = 1_000;

/// The digest of a set of writers (RTPS 2.5 §9.3.2, GroupDigest_t): the first bytes
/// of the MD5 of their ids as big-endian CDR, in ascending order; zero for none.
pub(crate) fn writer_set_digest(writers: &BTreeSet<EntityId>) -> [u8; 4] {
    if writers.is_empty() {
        return [0; 4];
    }
    let count = u32::try_from(writers.len()).unwrap_or(u32::MAX);
    let mut hash = md5::Context::new();
    hash.consume(count.to_be_bytes());
    for writer in writers {
        hash.consume(writer.to_bytes());
    }
    let [a, b, c, d, ..]: [u8; 16] = hash.finalize().into();
    [a, b, c, d]
}

impl PublisherGroup {
    /// The GUID that each of its writers announces.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// The presentation of its writers.
    pub fn presentation(&self) -> Presentation {
        self.presentation
    }

    /// Whether a set is open.
    pub fn is_open(&self) -> bool {
        self.state.lock().depth > 0
    }

    /// Begins a coherent set; within an open one only counts.
    ///
    /// # Errors
    /// [`GroupError::NotCoherent`], [`GroupError::NestedTooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<(), GroupError> {
        if !self.presentation.coherent {
            return Err(GroupError::NotCoherent);
        }
        let mut state = self.state.lock();
        if state.depth >= NESTING_MAX {
            return Err(GroupError::NestedTooDeep { max: NESTING_MAX });
        }
        state.depth += 1;
        Ok(())
    }

    /// Ends the last [`Self::begin_coherent_changes`]. The outermost end releases
    /// the set to readers.
    ///
    /// # Errors
    /// [`GroupError::NotBegun`].
    pub fn end_coherent_changes(&self, core: &Core) -> Result<(), GroupError> {
        let mut state = self.state.lock();
        state.depth = state.depth.checked_sub(1).ok_or(GroupError::NotBegun)?;
        if state.depth > 0 {
            return Ok(());
        }
        let of_group = self.presentation.is_of_group();
        let set = state.open_set.take();
        let mark = CoherentMark {
            kind: CoherentMarkKind::SetEnd,
            group_sequence: of_group
                .then_some(SequenceNumber(state.last_group_sequence.saturating_add(1))),
            group_coherent_set: set.filter(|_| of_group).map(SequenceNumber),
            writer_group_digest: of_group.then_some(state.digest),
            coherent_set: None,
        };
        if set.is_some() && of_group {
            state.last_group_sequence = state.last_group_sequence.saturating_add(1);
        }
        // Still under the lock: no member writes between two ends of one set.
        for writer in state.members() {
            let wrote = writer.state.lock().open_set_begin.take().is_some();
            if set.is_some() && (wrote || of_group) {
                core.write_set_end(&writer, mark);
            }
        }
        Ok(())
    }

    /// Adds a writer that is about to be announced.
    pub(crate) fn add(&self, writer: &Arc<WriterEndpoint>) -> Result<(), GroupError> {
        let mut state = self.state.lock();
        if state.depth > 0 {
            return Err(GroupError::SetOpen);
        }
        state.members.push(Arc::downgrade(writer));
        state.count();
        Ok(())
    }

    pub(crate) fn remove(&self, writer: &WriterEndpoint) {
        let mut state = self.state.lock();
        let guid = writer.guid();
        let others = |member: &Weak<WriterEndpoint>| {
            member.upgrade().is_some_and(|member| member.guid() != guid)
        };
        state.members.retain(others);
        state.count();
    }

    /// Begins a write of a member.
    pub(crate) fn begin_write(&self) -> GroupWriteGuard<'_> {
        GroupWriteGuard {
            presentation: self.presentation,
            state: self.state.lock(),
        }
    }
}

impl fmt::Debug for PublisherGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublisherGroup")
            .field("guid", &self.guid)
            .field("presentation", &self.presentation)
            .finish()
    }
}

impl PublisherGroupState {
    fn members(&self) -> Vec<Arc<WriterEndpoint>> {
        self.members.iter().filter_map(Weak::upgrade).collect()
    }

    fn count(&mut self) {
        let ids = self.members().into_iter().map(|w| w.guid().entity);
        self.digest = writer_set_digest(&ids.collect());
    }
}

/// The exclusive right of one member to write.
pub(crate) struct GroupWriteGuard<'g> {
    presentation: Presentation,
    state: MutexGuard<'g, PublisherGroupState, rank::PublisherGroup>,
}

impl GroupWriteGuard<'_> {
    /// The coherent-set mark of this writer's next sample.
    pub fn coherent_mark(&self, writer: &WriterState) -> Option<Box<CoherentMark>> {
        let of_group = self.presentation.is_of_group();
        let in_set = self.state.depth > 0;
        if !of_group && !in_set {
            return None;
        }
        let group_sequence = self.state.last_group_sequence.saturating_add(1);
        let first = writer
            .open_set_begin
            .unwrap_or(writer.machine.next_sequence());
        let set = self.state.open_set.unwrap_or(group_sequence);
        Some(Box::new(CoherentMark {
            kind: CoherentMarkKind::CacheChange,
            coherent_set: in_set.then_some(first),
            group_sequence: of_group.then_some(SequenceNumber(group_sequence)),
            group_coherent_set: (in_set && of_group).then_some(SequenceNumber(set)),
            writer_group_digest: of_group.then_some(self.state.digest),
        }))
    }

    /// In ordered access: the other writers announce that nothing is missing from
    /// them.
    pub fn announce_group_position(&self, core: &Core, now: Instant, writer: &WriterEndpoint) {
        if !self.presentation.orders_group() {
            return;
        }
        for other in self.state.members() {
            if other.guid() == writer.guid() || other.remote_count() == 0 {
                continue;
            }
            let mut state = other.state.lock();
            let group_sequence = SequenceNumber(self.state.last_group_sequence);
            state
                .machine
                .announce_group_sequence(now, group_sequence, self.state.digest);
            let next = state.next_timeout();
            core.schedule(TimeoutOwner::Writer(other.guid().entity), next);
        }
    }

    /// The last group sequence number.
    pub fn last_group_sequence(&self) -> i64 {
        self.state.last_group_sequence
    }

    /// Confirms that the marked sample will be written.
    pub fn commit(&mut self, writer: &mut WriterState, sequence: SequenceNumber) {
        let group_sequence = self.state.last_group_sequence.saturating_add(1);
        self.state.last_group_sequence = group_sequence;
        if self.presentation.is_of_group() {
            let digest = self.state.digest;
            writer
                .machine
                .set_group_sequence(SequenceNumber(group_sequence), digest);
        }
        if self.state.depth > 0 {
            self.state.open_set.get_or_insert(group_sequence);
            writer.open_set_begin.get_or_insert(sequence);
        }
    }
}

impl Core {
    /// Creates a group, in which writers can then be created.
    pub fn create_publisher_group(&self, presentation: Presentation) -> Arc<PublisherGroup> {
        let id = EntityId::new(self.next_entity_key(), EntityId::KIND_WRITER_GROUP);
        Arc::new(PublisherGroup {
            guid: self.prefix().with(id),
            presentation,
            state: Mutex::default(),
        })
    }

    /// The digest of the known writers of each publisher. O(all endpoints).
    pub(crate) fn known_writers(&self) -> BTreeMap<Guid, [u8; 4]> {
        let mut members = BTreeMap::<Guid, BTreeSet<EntityId>>::new();
        for (publisher, writer) in self.graph().grouped_writers() {
            members.entry(publisher).or_default().insert(writer.entity);
        }
        let all = members.into_iter();
        all.map(|(publisher, of_it)| (publisher, writer_set_digest(&of_it)))
            .collect()
    }

    /// Announces the end of a writer's part of a set to all readers.
    fn write_set_end(&self, writer: &WriterEndpoint, mark: CoherentMark) {
        let now = self.platform.now();
        let mut state = writer.state.lock();
        self.deliver_set_end_locally(now, writer, &mut state, mark);
        if let (Some(group_sequence), Some(writers)) =
            (mark.group_sequence, mark.writer_group_digest)
        {
            state.machine.set_group_sequence(group_sequence, writers);
        }
        if !writer.leaves_process() {
            state.machine.skip_sequence_number(now);
            return;
        }
        let change = pteros_rtps::writer::NewChange {
            payload: Bytes::new(),
            coherent_mark: Some(Box::new(mark)),
            ..Default::default()
        };
        // The end of a set has no size and needs no space.
        let accepted = state.machine.write(now, change);
        debug_assert!(accepted.is_ok(), "the end of a set was refused");
        self.send_new(writer, state, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_set_of_writers_does_not_depend_on_their_order() {
        let id = |n| EntityId::new([0, 0, n], EntityId::KIND_WRITER_NO_KEY);
        assert_eq!(writer_set_digest(&BTreeSet::new()), [0; 4]);
        let one = writer_set_digest(&[id(1), id(2)].into());
        assert_eq!(one, writer_set_digest(&[id(2), id(1), id(2)].into()));
        assert_ne!(one, writer_set_digest(&[id(1)].into()));
        // MD5 of 00000001 00000103.
        assert_eq!(writer_set_digest(&[id(1)].into()), [0xc8, 0x80, 0x2b, 0xef]);
    }
}
