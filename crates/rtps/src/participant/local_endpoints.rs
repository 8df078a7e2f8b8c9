//! Local endpoints of a participant, indexed by GUID and by topic.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::Guid;

/// A set of endpoints with an index by topic.
#[derive(Default)]
pub(super) struct LocalEndpoints {
    by_guid: BTreeMap<Guid, Arc<EndpointData>>,
    by_topic: BTreeMap<String, Vec<Guid>>,
}

impl LocalEndpoints {
    /// Adds or replaces one; returns the replaced one.
    pub(super) fn insert(&mut self, data: Arc<EndpointData>) -> Option<Arc<EndpointData>> {
        let guid = data.guid;
        let topic = data.topic.clone();
        let old = self.by_guid.insert(guid, data);
        if old.as_ref().is_some_and(|old| old.topic != topic) {
            self.unindex(old.as_deref());
        } else if old.is_some() {
            return old;
        }
        self.by_topic.entry(topic).or_default().push(guid);
        old
    }

    /// Removes one.
    pub(super) fn remove(&mut self, guid: Guid) -> Option<Arc<EndpointData>> {
        let old = self.by_guid.remove(&guid);
        self.unindex(old.as_deref());
        old
    }

    fn unindex(&mut self, old: Option<&EndpointData>) {
        let Some(old) = old else { return };
        if let Some(list) = self.by_topic.get_mut(&old.topic) {
            list.retain(|guid| *guid != old.guid);
            if list.is_empty() {
                self.by_topic.remove(&old.topic);
            }
        }
    }

    pub(super) fn find(&self, guid: Guid) -> Option<&Arc<EndpointData>> {
        self.by_guid.get(&guid)
    }

    /// Those on `topic` that are writers, or readers.
    pub(super) fn on_topic(
        &self,
        topic: &str,
        writers: bool,
    ) -> impl Iterator<Item = &Arc<EndpointData>> {
        self.by_topic
            .get(topic)
            .into_iter()
            .flatten()
            .filter(move |guid| guid.entity.is_writer() == writers)
            .filter_map(|guid| self.by_guid.get(guid))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<EndpointData>> {
        self.by_guid.values()
    }
}
