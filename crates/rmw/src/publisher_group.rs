//! A DDS publisher with several writers: their coherent sets begin and end
//! together, and what they write has one order (DDS 1.4 §2.2.2.4.1.10–11; RTPS
//! 2.5 §8.7.5, §8.7.6).
//!
//! A member writes under the group's lock, so that the order of the numbers is
//! the order of the samples on every path. Lock order: a group, then a writer's
//! `state`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use md5::{Digest, Md5};
use parking_lot::{Mutex, MutexGuard};
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::mark::{Mark, MarkKind};
use pteros_rtps::qos::Presentation;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::deadline::Machine;
use crate::error::GroupError;
use crate::writer::{WriterEndpoint, WriterState};

/// Writers that are presented as one whole.
pub struct PublisherGroup {
    guid: Guid,
    presentation: Presentation,
    state: Mutex<GroupState>,
}

#[derive(Default)]
pub(crate) struct GroupState {
    members: Vec<Weak<WriterEndpoint>>,
    /// The last number given within the group.
    last: i64,
    /// How often a set was begun and not ended.
    depth: usize,
    /// The open set's first number within the group, once it has a sample.
    set: Option<i64>,
    /// What a set says of the group's writers.
    digest: [u8; 4],
}

/// How often sets may be begun within each other.
pub const NESTING_MAX: usize = 1_000;

/// Names a set of writers (RTPS 2.5 §9.3.2, GroupDigest_t): the first bytes of
/// the MD5 of their ids as big-endian CDR, in ascending order; zero for none.
pub(crate) fn digest(writers: &BTreeSet<EntityId>) -> [u8; 4] {
    if writers.is_empty() {
        return [0; 4];
    }
    let count = u32::try_from(writers.len()).unwrap_or(u32::MAX);
    let mut hash = Md5::new();
    hash.update(count.to_be_bytes());
    for writer in writers {
        hash.update(writer.to_bytes());
    }
    let [a, b, c, d, ..]: [u8; 16] = hash.finalize().into();
    [a, b, c, d]
}

impl PublisherGroup {
    /// Its identity, as it is announced with each of its writers.
    pub fn guid(&self) -> Guid {
        self.guid
    }

    /// How its writers are presented.
    pub fn presentation(&self) -> Presentation {
        self.presentation
    }

    /// Whether a set is open.
    pub fn is_open(&self) -> bool {
        self.state.lock().depth > 0
    }

    /// Begins a set; again within one only counts.
    ///
    /// # Errors
    /// [`GroupError::NotCoherent`], [`GroupError::TooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<(), GroupError> {
        if !self.presentation.coherent {
            return Err(GroupError::NotCoherent);
        }
        let mut state = self.state.lock();
        if state.depth >= NESTING_MAX {
            return Err(GroupError::TooDeep { max: NESTING_MAX });
        }
        state.depth += 1;
        Ok(())
    }

    /// Ends what the last [`Self::begin_coherent_changes`] began. The outermost
    /// end lets readers see the set.
    ///
    /// # Errors
    /// [`GroupError::NothingBegun`].
    pub fn end_coherent_changes(&self, core: &Core) -> Result<(), GroupError> {
        let mut state = self.state.lock();
        state.depth = state.depth.checked_sub(1).ok_or(GroupError::NothingBegun)?;
        if state.depth > 0 {
            return Ok(());
        }
        let of_group = self.presentation.is_of_group();
        let set = state.set.take();
        let mark = Mark {
            kind: MarkKind::End,
            group_sequence: of_group.then_some(SequenceNumber(state.last.saturating_add(1))),
            group_set: set.filter(|_| of_group).map(SequenceNumber),
            writers: of_group.then_some(state.digest),
            set: None,
        };
        if set.is_some() && of_group {
            state.last = state.last.saturating_add(1);
        }
        // Still under the lock: nobody writes between two ends of one set.
        for writer in state.members() {
            let wrote = writer.state.lock().set.take().is_some();
            if set.is_some() && (wrote || of_group) {
                core.end_set(&writer, mark);
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

    /// Begins to write in this group.
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn {
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

impl GroupState {
    fn members(&self) -> Vec<Arc<WriterEndpoint>> {
        self.members.iter().filter_map(Weak::upgrade).collect()
    }

    fn count(&mut self) {
        let ids = self.members().into_iter().map(|w| w.guid().entity);
        self.digest = digest(&ids.collect());
    }
}

/// One member's turn to write: nobody else of the group does meanwhile.
pub(crate) struct Turn<'g> {
    presentation: Presentation,
    state: MutexGuard<'g, GroupState>,
}

impl Turn<'_> {
    /// The mark of the next sample of this writer.
    pub fn mark(&self, writer: &WriterState) -> Option<Box<Mark>> {
        let of_group = self.presentation.is_of_group();
        let in_set = self.state.depth > 0;
        if !of_group && !in_set {
            return None;
        }
        let place = self.state.last.saturating_add(1);
        let first = writer.set.unwrap_or(writer.machine.next_sequence());
        let set = self.state.set.unwrap_or(place);
        Some(Box::new(Mark {
            kind: MarkKind::Change,
            set: in_set.then_some(first),
            group_sequence: of_group.then_some(SequenceNumber(place)),
            group_set: (in_set && of_group).then_some(SequenceNumber(set)),
            writers: of_group.then_some(self.state.digest),
        }))
    }

    /// Where writers are put in order, the others tell their readers that
    /// nothing is missing from them.
    pub fn tell_others(&self, core: &Core, now: Instant, writer: &WriterEndpoint) {
        if !self.presentation.orders_group() {
            return;
        }
        for other in self.state.members() {
            if other.guid() == writer.guid() || other.remote_count() == 0 {
                continue;
            }
            let mut state = other.state.lock();
            let place = SequenceNumber(self.state.last);
            state.machine.note_place(now, place, self.state.digest);
            let next = state.next_timeout();
            core.schedule(Machine::Writer(other.guid().entity), next);
        }
    }

    /// The last number given within the group.
    pub fn last(&self) -> i64 {
        self.state.last
    }

    /// The sample that was marked so will be written for sure.
    pub fn accept(&mut self, writer: &mut WriterState, sequence: SequenceNumber) {
        let place = self.state.last.saturating_add(1);
        self.state.last = place;
        if self.presentation.is_of_group() {
            let digest = self.state.digest;
            writer.machine.know_place(SequenceNumber(place), digest);
        }
        if self.state.depth > 0 {
            self.state.set.get_or_insert(place);
            writer.set.get_or_insert(sequence);
        }
    }
}

impl Core {
    /// A publisher whose writers are to be made in it.
    pub fn create_publisher_group(&self, presentation: Presentation) -> Arc<PublisherGroup> {
        let id = EntityId::new(self.next_entity_key(), EntityId::KIND_WRITER_GROUP);
        Arc::new(PublisherGroup {
            guid: self.prefix().with(id),
            presentation,
            state: Mutex::default(),
        })
    }

    /// The digests of the writers that discovery shows of each publisher. O(all
    /// endpoints).
    pub(crate) fn known_writers(&self) -> BTreeMap<Guid, [u8; 4]> {
        let mut members = BTreeMap::<Guid, BTreeSet<EntityId>>::new();
        for (publisher, writer) in self.graph().grouped_writers() {
            members.entry(publisher).or_default().insert(writer.entity);
        }
        let all = members.into_iter();
        all.map(|(publisher, of_it)| (publisher, digest(&of_it)))
            .collect()
    }

    /// Tells every reader of this process, and of others, that a writer's part
    /// of a set ends here.
    fn end_set(&self, writer: &WriterEndpoint, mark: Mark) {
        let now = self.env.now();
        let mut state = writer.state.lock();
        self.end_locally(now, writer, &mut state, mark);
        if let (Some(place), Some(writers)) = (mark.group_sequence, mark.writers) {
            state.machine.know_place(place, writers);
        }
        if !writer.leaves_process() {
            state.machine.skip(now);
            return;
        }
        let change = pteros_rtps::writer::NewChange {
            payload: Bytes::new(),
            mark: Some(Box::new(mark)),
            ..Default::default()
        };
        // The end of a set has no size and takes no room.
        let accepted = state.machine.write(now, change);
        debug_assert!(accepted.is_ok(), "the end of a set was refused");
        self.send_new(writer, state, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_a_set_of_writers_does_not_depend_on_who_counts_them() {
        let id = |n| EntityId::new([0, 0, n], EntityId::KIND_WRITER_NO_KEY);
        assert_eq!(digest(&BTreeSet::new()), [0; 4]);
        let one = digest(&[id(1), id(2)].into());
        assert_eq!(one, digest(&[id(2), id(1), id(2)].into()));
        assert_ne!(one, digest(&[id(1)].into()));
        // MD5 of 00000001 00000103.
        assert_eq!(digest(&[id(1)].into()), [0xc8, 0x80, 0x2b, 0xef]);
    }
}
