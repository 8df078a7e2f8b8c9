//! Publisher group: a DDS publisher with several writers, common coherent sets and one
//! order.
//!
//! Implements presentation / coherent set (DDS 1.4 §2.2.2.4.1.10–11; RTPS 2.5 §8.7.5,
//! §8.7.6).
//!
//! A member writes under the group's lock, so that group sequence numbers have the
//! order of the samples on every path.

use std::fmt;
use std::sync::{Arc, Weak};

use pteros_dcps::coherent::PublisherSets;
use pteros_rtps::coherent_mark::CoherentMark;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::Presentation;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::Instant;

use crate::endpoints::writer::{WriterEndpoint, WriterState};
use crate::error::GroupError;
use crate::lock::{Mutex, MutexGuard, rank};
use crate::scheduler::Scheduler;
use crate::scheduler::timeout_queue::TimeoutOwner;

/// Writers with a common presentation.
pub struct PublisherGroup {
    guid: Guid,
    presentation: Presentation,
    state: Mutex<PublisherGroupState, rank::PublisherGroup>,
}

struct PublisherGroupState {
    members: Vec<Weak<WriterEndpoint>>,
    sets: PublisherSets,
}

impl PublisherGroup {
    pub(crate) fn new(guid: Guid, presentation: Presentation) -> Self {
        Self {
            guid,
            presentation,
            state: Mutex::new(PublisherGroupState {
                members: Vec::new(),
                sets: PublisherSets::new(presentation),
            }),
        }
    }

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
        self.state.lock().sets.is_open()
    }

    /// Starts a coherent set; within an open one it only counts.
    ///
    /// # Errors
    /// [`GroupError::NotCoherent`], [`GroupError::NestedTooDeep`].
    pub fn begin_coherent_changes(&self) -> Result<(), GroupError> {
        self.state.lock().sets.begin()
    }

    /// Ends the last [`Self::begin_coherent_changes`]. The outermost end passes
    /// the writers to `write_end`, under the group's lock.
    ///
    /// # Errors
    /// [`GroupError::NotBegun`].
    pub(crate) fn end_set(
        &self,
        mut write_end: impl FnMut(&WriterEndpoint, CoherentMark),
    ) -> Result<(), GroupError> {
        let mut state = self.state.lock();
        let Some(mark) = state.sets.end()? else {
            return Ok(());
        };
        // Still under the lock: no member writes between two ends of one set.
        for writer in state.members() {
            let wrote = writer.state.lock().open_set_begin.take().is_some();
            if wrote || self.presentation.is_of_group() {
                write_end(&writer, mark);
            }
        }
        Ok(())
    }

    /// Adds a writer that is about to be announced.
    pub(crate) fn add(&self, writer: &Arc<WriterEndpoint>) -> Result<(), GroupError> {
        let mut state = self.state.lock();
        if state.sets.is_open() {
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
        let ids = ids.collect();
        self.sets.set_writers(&ids);
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
        let next = writer.machine.next_sequence();
        self.state.sets.coherent_mark(writer.open_set_begin, next)
    }

    /// In ordered access: announces at the other writers that none of their samples is
    /// missing.
    pub fn announce_group_position(
        &self,
        scheduler: &Scheduler,
        now: Instant,
        writer: &WriterEndpoint,
    ) {
        if !self.presentation.orders_group() {
            return;
        }
        for other in self.state.members() {
            if other.guid() == writer.guid() || other.remote_count() == 0 {
                continue;
            }
            let mut state = other.state.lock();
            let sets = &self.state.sets;
            state.machine.announce_group_sequence(
                now,
                SequenceNumber(sets.last_group_sequence()),
                sets.digest(),
            );
            let next = state.next_timeout();
            scheduler.schedule(TimeoutOwner::Writer(other.guid().entity), next);
        }
    }

    /// The last group sequence number.
    pub fn last_group_sequence(&self) -> i64 {
        self.state.sets.last_group_sequence()
    }

    /// Confirms that the marked sample will be written.
    pub fn commit(&mut self, writer: &mut WriterState, sequence: SequenceNumber) {
        let sets = &mut self.state.sets;
        let group_sequence = SequenceNumber(sets.commit());
        if self.presentation.is_of_group() {
            writer
                .machine
                .set_group_sequence(group_sequence, sets.digest());
        }
        if sets.is_open() {
            writer.open_set_begin.get_or_insert(sequence);
        }
    }
}
