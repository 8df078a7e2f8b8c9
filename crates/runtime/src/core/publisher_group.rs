//! Publisher groups: creation, and the end of a set on every path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use pteros_dcps::coherent::writer_set_digest;
use pteros_rtps::coherent_mark::CoherentMark;
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::qos::Presentation;

use crate::core::Core;
use crate::core::publish_path::PublishPath;
use crate::endpoints::publisher_group::PublisherGroup;
use crate::endpoints::writer::WriterEndpoint;
use crate::error::GroupError;
use crate::graph::Graph;

impl Graph {
    /// The digest of the known writers of each publisher. O(all endpoints).
    pub(crate) fn known_writers(&self) -> BTreeMap<Guid, [u8; 4]> {
        let mut members = BTreeMap::<Guid, BTreeSet<EntityId>>::new();
        for (publisher, writer) in self.grouped_writers() {
            members.entry(publisher).or_default().insert(writer.entity);
        }
        let all = members.into_iter();
        all.map(|(publisher, of_it)| (publisher, writer_set_digest(&of_it)))
            .collect()
    }
}

impl PublishPath {
    /// Announces the end of a writer's part of a set to all readers.
    fn write_set_end(&self, writer: &WriterEndpoint, mark: CoherentMark) {
        let now = self.platform.now();
        let mut state = writer.state.lock();
        self.intra_process
            .deliver_set_end(now, writer, &mut state, mark);
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

impl Core {
    /// Creates a group, in which writers can then be created.
    pub fn create_publisher_group(&self, presentation: Presentation) -> Arc<PublisherGroup> {
        let guid = self
            .discovery()
            .endpoints
            .new_guid(EntityId::KIND_WRITER_GROUP);
        Arc::new(PublisherGroup::new(guid, presentation))
    }
}

impl PublisherGroup {
    /// Ends the last [`Self::begin_coherent_changes`]. The outermost end releases
    /// the set to readers.
    ///
    /// # Errors
    /// [`GroupError::NotBegun`].
    pub fn end_coherent_changes(&self, core: &Core) -> Result<(), GroupError> {
        self.end_set(|writer, mark| core.discovery().publishing.write_set_end(writer, mark))
    }
}
