//! Two endpoints of one topic that do not fit, told to the operator: once per
//! pair, on both ends, with the policy, both values and the way out.

use pteros_rtps::discovery::data::EndpointData;

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

    fn both(&self, writer: &EndpointData) -> &'static str {
        match writer.guid.prefix == self.prefix {
            true => "this process's publisher and a",
            false => "another process's publisher and our",
        }
    }
}

/// As users know it; names outside ROS's conventions as they are.
fn ros_topic(dds: &str) -> String {
    match from_dds_topic(dds) {
        DdsTopic::Topic(name) => name,
        _ => dds.to_owned(),
    }
}
