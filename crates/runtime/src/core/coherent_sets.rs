//! Coherent sets of remote publishers: tracks the writers of each publisher.

use std::collections::BTreeSet;
use std::sync::Arc;

use pteros_dcps::coherent::GroupDialect;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::VendorId;
use pteros_rtps::qos::{EndpointQos, Reliability};
use pteros_rtps::time::Instant;

use crate::core::discovery::Discovery;
use crate::endpoints::reader::ReaderEndpoint;

impl Discovery {
    /// Adds a matched remote writer.
    pub(crate) fn add_remote_set_writer(
        &self,
        reader: &ReaderEndpoint,
        writer: &EndpointData,
        vendor: VendorId,
    ) {
        if !reader.holds_samples() {
            return;
        }
        let is_reliable = |qos: &EndpointQos| qos.reliability == Reliability::Reliable;
        let is_own = vendor == VendorId::PTEROS;
        let dialect = GroupDialect {
            sends_group_info: is_own && is_reliable(&writer.qos) && is_reliable(&reader.data.qos),
            names_writers: is_own,
        };
        reader.add_set_writer(writer.guid, writer.group, dialect);
    }

    /// Updates the sets with each publisher's writers, as discovered. O(endpoints, plus
    /// matched publishers of readers with group access).
    pub(crate) fn update_publisher_writers(&self, now: Instant) {
        let mut updated = BTreeSet::new();
        let readers: Vec<_> = {
            let table = self.endpoints.read();
            let all = table.readers.values();
            all.filter(|r| r.data.qos.presentation.is_of_group() && r.holds_samples())
                // Once per subscription group.
                .filter(|r| match &r.group {
                    Some(member) => updated.insert(Arc::as_ptr(&member.group)),
                    None => true,
                })
                .cloned()
                .collect()
        };
        if readers.is_empty() {
            return;
        }
        let known_writers_of = self.graph.known_writers();
        for reader in readers {
            let publishers = reader.with_sets(|sets| sets.publishers());
            for publisher in publishers.unwrap_or_default() {
                let known_writers_of = known_writers_of
                    .get(&publisher)
                    .copied()
                    .unwrap_or_default();
                let mut machine = reader.machine.lock();
                reader.change_sets(now, &mut machine, |sets| {
                    sets.set_discovered_digest(now, publisher, known_writers_of)
                });
            }
        }
    }
}
