//! A topic of a bag: name, type, definition and the QoS that its publishers offer.

use pteros::qos::{DurabilityPolicy, HistoryPolicy, QosProfile};

/// Transient-local messages kept per publisher.
const TRANSIENT_LOCAL_DEPTH_MAX: usize = 100;
/// Transient-local messages kept per topic, where their publishers are unknown.
const TRANSIENT_LOCAL_TOPIC_MAX: usize = 1000;

/// A topic of a bag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BagTopic {
    /// Its name.
    pub name: String,
    /// Its type, for example `std_msgs/msg/String`.
    pub type_name: String,
    /// The definition of the type with all nested types; empty if nobody knows it.
    pub definition: String,
    /// `cdr`.
    pub serialization_format: String,
    /// The profiles that its publishers offer.
    pub offered_qos: Vec<QosProfile>,
    /// The RIHS01 hash of its type; empty if unknown.
    pub type_hash: String,
}

/// A topic of a bag that is read, with its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedTopic {
    /// Name, type, definition and QoS.
    pub topic: BagTopic,
    /// Its messages in all files.
    pub message_count: u64,
}

impl BagTopic {
    /// Whether every publisher serves late joiners (a transient-local topic).
    pub fn is_transient_local(&self) -> bool {
        let kept = |profile: &QosProfile| {
            !matches!(
                profile.durability,
                DurabilityPolicy::Volatile | DurabilityPolicy::SystemDefault
            )
        };
        !self.offered_qos.is_empty() && self.offered_qos.iter().all(kept)
    }

    /// How many messages a publisher of a transient-local topic keeps.
    pub(crate) fn transient_local_depth(&self) -> usize {
        self.transient_local_depths().max().unwrap_or(1)
    }

    /// How many messages all publishers of a transient-local topic keep. A bag does not say which
    /// publisher a message is of, so the state of several is as many messages.
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
