//! Warnings about incompatible endpoints of one topic (QoS compatibility, type
//! compatibility).
//!
//! Logged once per pair, on both sides, with the policy, both values and the
//! remedy.

use pteros_dcps::mismatch::{has_different_members, is_unmatched_by_key};
use pteros_dcps::names::ros_topic;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{GuidPrefix, VendorId};
use pteros_rtps::user_data::type_hash;

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

/// Warns of two types on one topic, or of two versions of one type.
pub(crate) fn warn_about_types(own: GuidPrefix, writer: &EndpointData, reader: &EndpointData) {
    tracing::warn!(
        publisher = %writer.guid, subscription = %reader.guid,
        "{}", type_line(own, writer, reader)
    );
}

fn type_line(own: GuidPrefix, writer: &EndpointData, reader: &EndpointData) -> String {
    let topic = ros_topic(&writer.topic);
    let start = format!(
        "topic \"{topic}\": {} subscription do not match. Type: ",
        both_sides(own, writer)
    );
    let (offered, requested) = (&writer.type_name, &reader.type_name);
    let hash = |data: &EndpointData| type_hash(&data.qos.user_data).unwrap_or("none").to_owned();
    if offered == requested {
        format!(
            "{start}both are {offered}, but of different versions (type hash published {}, \
             subscribed {}); build both from the same definition",
            hash(writer),
            hash(reader)
        )
    } else {
        format!(
            "{start}published {offered}, subscribed {requested}; give both the same type, or one \
             of the topics another name"
        )
    }
}

/// Warns of two types with one name and different members. They match nevertheless, as do
/// endpoints without type information.
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
    fn a_warning_names_both_types_or_both_versions() {
        let data = |type_name: &str, digit: &str| {
            let qos = EndpointQos {
                user_data: format!("typehash=RIHS01_{};", digit.repeat(64)).into(),
                ..EndpointQos::default()
            };
            EndpointData::new(Guid::from_bytes([1; 16]), "rt/a", type_name, qos)
        };
        let line = |reader: &EndpointData| {
            type_line(GuidPrefix([1; 12]), &data("p::msg::dds_::T_", "1"), reader)
        };
        let version = line(&data("p::msg::dds_::T_", "2"));
        assert!(
            version.contains("RIHS01_11") && version.contains("RIHS01_22"),
            "{version}"
        );
        let other = line(&data("p::msg::dds_::U_", "1"));
        assert!(other.contains("subscribed p::msg::dds_::U_;"), "{other}");
    }

    #[test]
    fn a_warning_says_whose_publisher_it_is() {
        let prefix = GuidPrefix([1; 12]);
        let guid = Guid::from_bytes([1; 16]);
        let writer = EndpointData::new(guid, "rt/a", "T", EndpointQos::default());
        assert!(both_sides(prefix, &writer).starts_with("this process's"));
        assert!(both_sides(GuidPrefix([2; 12]), &writer).starts_with("another process's"));
    }
}
