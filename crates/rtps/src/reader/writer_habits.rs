//! Habits of a matched writer that the standard leaves open: what its stack and its
//! QoS let the reader conclude.

use super::config::{ReaderConfig, WriterProxyConfig};
use crate::id::VendorId;
use crate::qos::Durability;

/// Behaviour of one writer, by its vendor and QoS.
#[derive(Debug)]
pub(super) struct WriterHabits {
    /// Both sides are transient-local: heartbeats name all available numbers.
    pub heartbeats_name_all: bool,
    /// The first number for a reader is that of their match: the writer is Pteros, and
    /// sends this reader no history.
    pub begins_at_match: bool,
    /// Fast DDS answers an ACKNACK before its first heartbeat only if the base is
    /// 0, as in its own. Another base delays its next heartbeat, by 3 s by default.
    pub preemptive_base_zero: bool,
    /// A heartbeat follows each sample soon: the writer is Pteros.
    pub heartbeat_follows_sample: bool,
    /// The writer belongs to another stack, filters for us and sends best-effort
    /// readers no GAP for filtered samples. Missing numbers then mean nothing.
    pub filters_silently: bool,
}

impl WriterHabits {
    pub fn of(reader: &ReaderConfig, writer: &WriterProxyConfig) -> Self {
        let heartbeats_name_all = reader.qos.durability >= Durability::TransientLocal
            && writer.qos.durability >= Durability::TransientLocal;
        Self {
            heartbeats_name_all,
            begins_at_match: writer.vendor == VendorId::PTEROS && !heartbeats_name_all,
            preemptive_base_zero: answers_base_zero_only(writer.vendor),
            heartbeat_follows_sample: writer.vendor == VendorId::PTEROS,
            filters_silently: false,
        }
    }

    /// Notes that the writer applies our filter, since it sent a result.
    pub fn note_writer_filters(&mut self) {
        self.filters_silently = !self.heartbeat_follows_sample;
    }
}

/// Whether writers of this stack answer an ACKNACK before their first heartbeat only if
/// its base is 0.
pub(super) fn answers_base_zero_only(vendor: VendorId) -> bool {
    vendor == VendorId::FAST_DDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{EntityId, GuidPrefix};
    use crate::locator::Route;
    use crate::qos::EndpointQos;

    /// A volatile reader, or one of a volatile writer, begins in the middle of what
    /// HEARTBEATs name. So they name all that is available only if both are
    /// transient-local.
    #[test]
    fn heartbeats_name_all_only_between_transient_local_endpoints() {
        let qos = |durability| EndpointQos {
            durability,
            ..EndpointQos::default()
        };
        let guid = GuidPrefix([1; 12]).with(EntityId::UNKNOWN);
        let name_all = |reader, writer| {
            let reader = ReaderConfig::new(guid, qos(reader));
            let writer = WriterProxyConfig {
                guid,
                qos: qos(writer).into(),
                route: Route::by_socket(&[], false),
                vendor: VendorId::PTEROS,
            };
            let habits = WriterHabits::of(&reader, &writer);
            assert_ne!(habits.heartbeats_name_all, habits.begins_at_match);
            habits.heartbeats_name_all
        };
        let (volatile, local) = (Durability::Volatile, Durability::TransientLocal);
        assert!(name_all(local, local));
        assert!(!name_all(volatile, local));
        assert!(!name_all(local, volatile));
        assert!(!name_all(volatile, volatile));
    }
}
