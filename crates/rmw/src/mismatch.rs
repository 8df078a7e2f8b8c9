//! Two endpoints of one topic that do not fit, told to the operator: once per
//! pair, on both ends, with the policy, both values and the way out.

use pteros_msg::typeobject::TypeInformation;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::VendorId;

use crate::core::Core;
use crate::names::{DdsTopic, from_dds_topic};
use crate::qos::report::mismatches;

impl Core {
    /// Warns of every policy in which a publisher offers less than a
    /// subscription requests.
    pub(crate) fn warn_of_qos(&self, offered: &EndpointData, requested: &EndpointData) {
        let topic = ros_topic(&offered.topic);
        for mismatch in mismatches(&offered.qos, &requested.qos) {
            tracing::warn!(
                publisher = %offered.guid, subscription = %requested.guid,
                "topic \"{topic}\": {} subscription do not match. {mismatch}",
                self.both(offered)
            );
        }
    }

    /// Warns of two types on one topic.
    pub(crate) fn warn_of_types(&self, writer: &EndpointData, reader: &EndpointData) {
        let topic = ros_topic(&writer.topic);
        tracing::warn!(
            publisher = %writer.guid, subscription = %reader.guid,
            "topic \"{topic}\": {} subscription do not match. Type: published {}, subscribed {}; \
             give both the same type, or one of the topics another name",
            self.both(writer), writer.type_name, reader.type_name
        );
    }

    /// Warns of two types of one name that are made of different members. They
    /// are matched all the same, as are those whose peers tell no types.
    pub(crate) fn warn_of_definitions(&self, local: &EndpointData, remote: &EndpointData) {
        if !is_made_otherwise(local, remote) {
            return;
        }
        let (writer, reader) = match local.is_writer() {
            true => (local, remote),
            false => (remote, local),
        };
        let topic = ros_topic(&writer.topic);
        tracing::warn!(
            publisher = %writer.guid, subscription = %reader.guid,
            "topic \"{topic}\": {} subscription match by the name {}, but their definitions of it \
             differ; messages may be unreadable: give both the same definition",
            self.both(writer), writer.type_name
        );
    }

    /// Warns of a subscription that was made for a topic without key, before a
    /// publisher of another DDS implementation showed that it has one: it hears
    /// nothing of that.
    pub(crate) fn warn_of_key(&self, reader: &EndpointData, writer: &EndpointData, by: VendorId) {
        if !is_left_out(reader, writer, by) {
            return;
        }
        let topic = ros_topic(&writer.topic);
        tracing::warn!(
            publisher = %writer.guid, subscription = %reader.guid,
            "topic \"{topic}\": another process's publisher says that the type {} has a key, which \
             was not known when our subscription was made, so the publisher does not match it; make \
             the subscription anew, or give its options a key reader",
            writer.type_name
        );
    }

    fn both(&self, writer: &EndpointData) -> &'static str {
        match writer.guid.prefix == self.prefix {
            true => "this process's publisher and a",
            false => "another process's publisher and our",
        }
    }
}

/// Both tell what their type is made of, and it is not the same.
fn is_made_otherwise(one: &EndpointData, other: &EndpointData) -> bool {
    let (Some(one), Some(other)) = (&one.type_information, &other.type_information) else {
        return false;
    };
    let minimal = |told| Some(TypeInformation::decode(told).ok()?.minimal?.id);
    match (minimal(one), minimal(other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    }
}

/// Other implementations match endpoints only if both have a key, or neither.
fn is_left_out(reader: &EndpointData, writer: &EndpointData, by: VendorId) -> bool {
    let keyed = |data: &EndpointData| data.guid.entity.is_keyed();
    by != VendorId::PTEROS && keyed(writer) && !keyed(reader)
}

/// As users know it; names outside ROS's conventions as they are.
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
    fn who_made_a_topic_without_key_is_left_out_by_others_that_know_one() {
        let readers = [
            endpoint(EntityId::KIND_READER_NO_KEY),
            endpoint(EntityId::KIND_READER_WITH_KEY),
        ];
        let keyed = endpoint(EntityId::KIND_WRITER_WITH_KEY);
        let plain = endpoint(EntityId::KIND_WRITER_NO_KEY);
        let left_out = |writer, by| readers.each_ref().map(|r| is_left_out(r, writer, by));
        assert_eq!(left_out(&keyed, VendorId::CYCLONE), [true, false]);
        assert_eq!(left_out(&plain, VendorId::CYCLONE), [false, false]);
        assert_eq!(left_out(&keyed, VendorId::PTEROS), [false, false]);
    }
}
