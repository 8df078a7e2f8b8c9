//! A topic of a bag: name, type, definition and the QoS that its publishers offer.

use pteros::qos::{DurabilityPolicy, HistoryPolicy, QosProfile};

/// Limit of transient-local messages per publisher.
const TRANSIENT_LOCAL_DEPTH_MAX: usize = 100;
/// Limit of transient-local messages per topic, if the publishers are unknown.
const TRANSIENT_LOCAL_TOPIC_MAX: usize = 1000;

/// Description of a recorded topic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BagTopic {
    /// Fully qualified topic name.
    pub name: String,
    /// ROS type, for example `std_msgs/msg/String`.
    pub type_name: String,
    /// Definition of the type with all nested types; empty if unknown.
    pub definition: String,
    /// `cdr` for ROS 2.
    pub serialization_format: String,
    /// QoS profiles of its publishers.
    pub offered_qos: Vec<QosProfile>,
    /// RIHS01 type hash; empty if unknown.
    pub type_hash: String,
    /// Schema of messages that are not ROS 2's, for copies of the bag.
    pub foreign_schema: Option<ForeignSchema>,
}

/// A schema in an encoding that Pteros does not read, such as `protobuf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignSchema {
    /// Encoding of the schema.
    pub encoding: String,
    /// Its content.
    pub data: Vec<u8>,
}

/// A topic of an opened bag, with its message count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedTopic {
    /// Name, type, definition and QoS.
    pub topic: BagTopic,
    /// Number of messages in all files.
    pub message_count: u64,
}

impl BagTopic {
    /// Whether every publisher is transient local, and so serves late joiners.
    pub fn is_transient_local(&self) -> bool {
        let kept = |profile: &QosProfile| {
            !matches!(
                profile.durability,
                DurabilityPolicy::Volatile | DurabilityPolicy::SystemDefault
            )
        };
        !self.offered_qos.is_empty() && self.offered_qos.iter().all(kept)
    }

    /// History depth of one transient-local publisher.
    pub(crate) fn transient_local_depth(&self) -> usize {
        self.transient_local_depths().max().unwrap_or(1)
    }

    /// History depth of all transient-local publishers together. A bag does not record
    /// which publisher sent a message, so the depths are added.
    pub(crate) fn transient_local_depth_of_all(&self) -> usize {
        let sum = self.transient_local_depths().fold(0, usize::saturating_add);
        sum.clamp(1, TRANSIENT_LOCAL_TOPIC_MAX)
    }

    fn transient_local_depths(&self) -> impl Iterator<Item = usize> {
        let profiles = self.offered_qos.iter();
        let depths = profiles.map(|profile| match profile.history {
            HistoryPolicy::KeepLast(depth) => depth,
            HistoryPolicy::KeepAll => TRANSIENT_LOCAL_DEPTH_MAX,
            HistoryPolicy::SystemDefault => 1,
        });
        depths.map(|depth| depth.clamp(1, TRANSIENT_LOCAL_DEPTH_MAX))
    }
}
