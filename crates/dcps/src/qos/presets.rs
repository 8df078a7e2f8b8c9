//! ROS 2's presets and the builders that vary them.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use pteros_msg::cdr::Representation;
use pteros_rtps::qos::{DestinationOrder, Ownership, ResourceLimits};

use super::durability_service::DurabilityService;
use super::policy::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};
use super::profile::{QosProfile, SPAN_BEST_AVAILABLE};

/// ROS 2's presets.
impl QosProfile {
    /// Sensor streams: best effort, volatile, keep last 5.
    pub fn sensor_data() -> Self {
        Self::default().keep_last(5).best_effort()
    }

    /// Services: reliable, volatile, keep last 10.
    pub fn services() -> Self {
        Self::default()
    }

    /// Parameter services: reliable, volatile, keep last 1000.
    pub fn parameters() -> Self {
        Self::default().keep_last(1000)
    }

    /// `/parameter_events`: reliable, volatile, keep last 1000.
    pub fn parameter_events() -> Self {
        Self::default().keep_last(1000)
    }

    /// `/clock`: best effort, volatile, keep last 1.
    pub fn clock() -> Self {
        Self::default().keep_last(1).best_effort()
    }

    /// `/rosout`: reliable, transient local, keep last 1000, lifespan 10 s.
    pub fn rosout() -> Self {
        Self::default()
            .keep_last(1000)
            .transient_local()
            .lifespan(Duration::from_secs(10))
    }

    /// Status of actions: reliable, transient local, keep last 1.
    pub fn action_status() -> Self {
        Self::default().keep_last(1).transient_local()
    }

    /// `/tf`, both sides: reliable, volatile, keep last 100.
    pub fn tf() -> Self {
        Self::default().keep_last(100)
    }

    /// `/tf_static` of a publisher: reliable, transient local, keep last 1.
    pub fn tf_static() -> Self {
        Self::default().keep_last(1).transient_local()
    }

    /// `/tf_static` of a subscription: reliable, transient local, keep last
    /// 100.
    pub fn tf_static_listener() -> Self {
        Self::default().keep_last(100).transient_local()
    }

    /// The defaults of the middleware.
    pub fn system_default() -> Self {
        Self {
            history: HistoryPolicy::SystemDefault,
            reliability: ReliabilityPolicy::SystemDefault,
            durability: DurabilityPolicy::SystemDefault,
            ..Self::default()
        }
    }

    /// The strongest policies that match the endpoints known at creation.
    pub fn best_available() -> Self {
        Self {
            reliability: ReliabilityPolicy::BestAvailable,
            durability: DurabilityPolicy::BestAvailable,
            liveliness: LivelinessPolicy::BestAvailable,
            deadline: Some(SPAN_BEST_AVAILABLE),
            liveliness_lease: Some(SPAN_BEST_AVAILABLE),
            ..Self::default()
        }
    }
}

/// Builders.
impl QosProfile {
    /// Keep the newest `depth` samples.
    pub fn keep_last(mut self, depth: usize) -> Self {
        self.history = HistoryPolicy::KeepLast(depth);
        self
    }

    /// Keep everything, up to the resource limits.
    pub fn keep_all(mut self) -> Self {
        self.history = HistoryPolicy::KeepAll;
        self
    }

    /// Retransmit lost samples.
    pub fn reliable(mut self) -> Self {
        self.reliability = ReliabilityPolicy::Reliable;
        self
    }

    /// Do not retransmit lost samples.
    pub fn best_effort(mut self) -> Self {
        self.reliability = ReliabilityPolicy::BestEffort;
        self
    }

    /// Late joiners get what is kept.
    pub fn transient_local(mut self) -> Self {
        self.durability = DurabilityPolicy::TransientLocal;
        self
    }

    /// Late joiners get what is kept, and what was stored before the process
    /// of the publisher ended. See [`DurabilityPolicy::Transient`].
    pub fn transient(mut self) -> Self {
        self.durability = DurabilityPolicy::Transient;
        self
    }

    /// As transient, and what was stored outlives a power cut. See
    /// [`DurabilityPolicy::Persistent`].
    pub fn persistent(mut self) -> Self {
        self.durability = DurabilityPolicy::Persistent;
        self
    }

    /// Samples that a transient or persistent publisher's store keeps; without it,
    /// as much as its history.
    pub fn durability_service(mut self, service: DurabilityService) -> Self {
        self.durability_service = Some(service);
        self
    }

    /// Late joiners start with the next sample.
    pub fn volatile(mut self) -> Self {
        self.durability = DurabilityPolicy::Volatile;
        self
    }

    /// Expect a sample at least this often.
    pub fn deadline(mut self, period: Duration) -> Self {
        self.deadline = Some(period);
        self
    }

    /// Unregister instances without disposing of them (publishers of types with a
    /// key).
    pub fn no_autodispose(mut self) -> Self {
        self.autodispose_unregistered_instances = false;
        self
    }

    /// Purge untaken samples of an instance this long after its last writer left
    /// (types with a key).
    pub fn autopurge_nowriter(mut self, delay: Duration) -> Self {
        self.autopurge_nowriter_samples_delay = Some(delay);
        self
    }

    /// Purge untaken samples of an instance this long after it was disposed of
    /// (types with a key).
    pub fn autopurge_disposed(mut self, delay: Duration) -> Self {
        self.autopurge_disposed_samples_delay = Some(delay);
        self
    }

    /// Drop samples older than this (LIFESPAN).
    pub fn lifespan(mut self, age: Duration) -> Self {
        self.lifespan = Some(age);
        self
    }

    /// Set how liveliness is asserted, and how long an assertion is valid.
    pub fn liveliness(mut self, policy: LivelinessPolicy, lease: Duration) -> Self {
        self.liveliness = policy;
        self.liveliness_lease = Some(lease);
        self
    }

    /// Wait at most this long in publish when the history is full.
    pub fn max_blocking_time(mut self, time: Duration) -> Self {
        self.max_blocking_time = Some(time);
        self
    }

    /// Use the topic name on the wire as it is.
    pub fn avoid_ros_namespace_conventions(mut self) -> Self {
        self.avoid_ros_namespace_conventions = true;
        self
    }

    /// Bound what is kept.
    pub fn resource_limits(mut self, limits: ResourceLimits) -> Self {
        self.resource_limits = limits;
        self
    }

    /// Deliver only the strongest living publisher. Both sides must request it.
    pub fn exclusive(mut self) -> Self {
        self.ownership = Ownership::Exclusive;
        self
    }

    /// Ownership strength of a publisher, where ownership is exclusive.
    pub fn ownership_strength(mut self, strength: i32) -> Self {
        self.ownership_strength = strength;
        self
    }

    /// Deliver samples in the order of their source timestamps, from all
    /// publishers.
    ///
    /// A publisher that offers it also matches subscriptions that do not request
    /// it.
    pub fn order_by_source(mut self) -> Self {
        self.destination_order = DestinationOrder::BySource;
        self
    }

    /// Take at most one sample per `separation` (subscriptions).
    pub fn time_based_filter(mut self, separation: Duration) -> Self {
        self.time_based_filter = separation;
        self
    }

    /// How long a publisher may hold back small messages (batching); matched.
    pub fn latency_budget(mut self, budget: Duration) -> Self {
        self.latency_budget = budget;
        self
    }

    /// Mark a publisher's datagrams with this code point, 1 to 63.
    pub fn transport_priority(mut self, code_point: i32) -> Self {
        self.transport_priority = code_point;
        self
    }

    /// Write samples in this representation (publishers), or accept no other
    /// (subscriptions).
    pub fn representation(mut self, representation: Representation) -> Self {
        self.representation = Some(representation);
        self
    }

    /// Announce arbitrary bytes with the endpoint.
    pub fn user_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.user_data = data.into();
        self
    }

    /// Announce arbitrary bytes with the topic.
    pub fn topic_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.topic_data = data.into();
        self
    }

    /// Announce arbitrary bytes with the publisher's or subscriber's group.
    pub fn group_data(mut self, data: impl Into<Vec<u8>>) -> Self {
        self.group_data = data.into();
        self
    }

    /// Match only endpoints that share one of these partition names.
    pub fn partition<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.partition = names.into_iter().map(Into::into).collect();
        self
    }
}
