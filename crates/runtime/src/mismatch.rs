//! Warnings about incompatible endpoints of one topic (QoS compatibility, type
//! compatibility).
//!
//! Logged once per pair, on both sides, with the policy, both values and the
//! remedy.

use pteros_msg::typeobject::TypeInformation;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::VendorId;

use crate::core::Core;
use crate::names::{DdsTopic, from_dds_topic};
use crate::qos::report::mismatches;

impl Core {
    /// Warns of every policy in which a publisher offers less than a subscription
    /// requests.
    pub(crate) fn warn_about_qos(&self, offered: &EndpointData, requested: &EndpointData) {
        let topic = ros_topic(&offered.topic);
        for mismatch in mismatches(&offered.qos, &requested.qos) {
            tracing::warn!(
                publisher = %offered.guid, subscription = %requested.guid,
                "topic \"{topic}\": {} subscription do not match. {mismatch}",
                self.qos_of_both_sides(offered)
            );
        }
    }

    /// Warns of two types on one topic.
    pub(crate) fn warn_about_types(&self, writer: &EndpointData, reader: &EndpointData) {
        let topic = ros_topic(&writer.topic);
        tracing::warn!(
            publisher = %writer.guid, subscription = %reader.guid,
            "topic \"{topic}\": {} subscription do not match. Type: published {}, subscribed {}; \
             give both the same type, or one of the topics another name",
            self.qos_of_both_sides(writer), writer.type_name, reader.type_name
        );
    }

    /// Warns of two types with one name and different members. They match all the
    /// same, as do endpoints without type information.
    pub(crate) fn warn_about_definitions(&self, local: &EndpointData, remote: &EndpointData) {
        if !has_different_members(local, remote) {
            return;
        }
        let (writer, reader) = if local.is_writer() {
            (local, remote)
        } else {
            (remote, local)
        };
        let topic = ros_topic(&writer.topic);
        tracing::warn!(
            publisher = %writer.guid, subscription = %reader.guid,
            "topic \"{topic}\": {} subscription match by the type name {}, but their definitions \
             differ; messages may be unreadable: give both the same definition",
            self.qos_of_both_sides(writer), writer.type_name
        );
    }

    /// Warns of a subscription that was created without key before a publisher of
    /// another DDS implementation announced one. It receives nothing from that
    /// publisher.
    pub(crate) fn warn_about_key(
        &self,
        reader: &EndpointData,
        writer: &EndpointData,
        by: VendorId,
    ) {
        if !is_unmatched_by_key(reader, writer, by) {
            return;
        }
        let topic = ros_topic(&writer.topic);
        tracing::warn!(
            publisher = %writer.guid, subscription = %reader.guid,
            "topic \"{topic}\": another process's publisher announces that the type {} has a key, which \
             was unknown when our subscription was created, so the publisher does not match it; create \
             the subscription again, or give its options a key reader",
            writer.type_name
        );
    }

    fn qos_of_both_sides(&self, writer: &EndpointData) -> &'static str {
        if writer.guid.prefix == self.prefix {
            "this process's publisher and a"
        } else {
            "another process's publisher and our"
        }
    }
}

/// Whether both announce their type's members, and these differ.
fn has_different_members(one: &EndpointData, other: &EndpointData) -> bool {
    let (Some(one), Some(other)) = (&one.type_information, &other.type_information) else {
        return false;
    };
    let minimal = |announced| Some(TypeInformation::decode(announced).ok()?.minimal?.id);
    match (minimal(one), minimal(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// Other implementations match endpoints only if both have a key, or neither.
fn is_unmatched_by_key(reader: &EndpointData, writer: &EndpointData, by: VendorId) -> bool {
    let keyed = |data: &EndpointData| data.guid.entity.is_keyed();
    by != VendorId::PTEROS && keyed(writer) && !keyed(reader)
}

/// The ROS topic name; names outside of ROS's conventions are returned as they are.
fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) => name,
        _ => dds.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_rtps::id::{EntityId, GuidPrefix};
    use pteros_rtps::qos::EndpointQos;

    fn endpoint(kind: u8) -> EndpointData {
        let guid = GuidPrefix([1; 12]).with(EntityId::new([0, 0, 1], kind));
        EndpointData::new(guid, "rt/t", "T", EndpointQos::default())
    }

    #[test]
    fn other_implementations_do_not_match_a_keyless_reader_with_a_keyed_writer() {
        let readers = [
            endpoint(EntityId::KIND_READER_NO_KEY),
            endpoint(EntityId::KIND_READER_WITH_KEY),
        ];
        let keyed = endpoint(EntityId::KIND_WRITER_WITH_KEY);
        let plain = endpoint(EntityId::KIND_WRITER_NO_KEY);
        let left_out = |writer, by| {
            readers
                .each_ref()
                .map(|r| is_unmatched_by_key(r, writer, by))
        };
        assert_eq!(left_out(&keyed, VendorId::CYCLONE), [true, false]);
        assert_eq!(left_out(&plain, VendorId::CYCLONE), [false, false]);
        assert_eq!(left_out(&keyed, VendorId::PTEROS), [false, false]);
    }
}
