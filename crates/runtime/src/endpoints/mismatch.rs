//! Warnings about incompatible endpoints of one topic (QoS compatibility, type
//! compatibility).
//!
//! Logged once per pair, on both sides, with the policy, both values and the
//! remedy.

use pteros_dcps::mismatch::{has_different_members, is_unmatched_by_key};
use pteros_dcps::names::ros_topic;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{GuidPrefix, VendorId};

use crate::qos::report::mismatches;

/// Warns of every policy in which a publisher offers less than a subscription
/// requests.
pub(crate) fn warn_about_qos(own: GuidPrefix, offered: &EndpointData, requested: &EndpointData) {
    let topic = ros_topic(&offered.topic);
    for mismatch in mismatches(&offered.qos, &requested.qos) {
        tracing::warn!(
            publisher = %offered.guid, subscription = %requested.guid,
            "topic \"{topic}\": {} subscription do not match. {mismatch}",
            both_sides(own, offered)
        );
    }
}

/// Warns of two types on one topic.
pub(crate) fn warn_about_types(own: GuidPrefix, writer: &EndpointData, reader: &EndpointData) {
    let topic = ros_topic(&writer.topic);
    tracing::warn!(
        publisher = %writer.guid, subscription = %reader.guid,
        "topic \"{topic}\": {} subscription do not match. Type: published {}, subscribed {}; \
         give both the same type, or one of the topics another name",
        both_sides(own, writer), writer.type_name, reader.type_name
    );
}

/// Warns of two types with one name and different members. They match all the
/// same, as do endpoints without type information.
pub(crate) fn warn_about_definitions(own: GuidPrefix, local: &EndpointData, remote: &EndpointData) {
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
        both_sides(own, writer), writer.type_name
    );
}

/// Warns of a subscription that was created without key before a publisher of
/// another DDS implementation announced one. It receives nothing from that
/// publisher.
pub(crate) fn warn_about_key(reader: &EndpointData, writer: &EndpointData, by: VendorId) {
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

fn both_sides(own: GuidPrefix, writer: &EndpointData) -> &'static str {
    if writer.guid.prefix == own {
        "this process's publisher and a"
    } else {
        "another process's publisher and our"
    }
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::Guid;
    use pteros_rtps::qos::EndpointQos;

    use super::*;

    #[test]
    fn a_warning_says_whose_publisher_it_is() {
        let prefix = GuidPrefix([1; 12]);
        let guid = Guid::from_bytes([1; 16]);
        let writer = EndpointData::new(guid, "rt/a", "T", EndpointQos::default());
        assert!(both_sides(prefix, &writer).starts_with("this process's"));
        assert!(both_sides(GuidPrefix([2; 12]), &writer).starts_with("another process's"));
    }
}
