//! The QoS profile, and its conversion from and to the protocol's [`EndpointQos`].
//!
//! It has a field and a builder method for each policy.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use pteros_msg::cdr::Representation;
use pteros_rtps::qos::{
    DestinationOrder, Durability, EndpointQos, History, Liveliness, Ownership, Presentation,
    Reliability, ResourceLimits, XCDR1, XCDR2,
};
use pteros_rtps::time::Duration as Span;

use super::data_lifecycle::DataLifecycle;
use super::durability_service::{self, DurabilityService};
use super::policy::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};

/// The largest depth that the protocol can announce.
pub const DEPTH_MAX: usize = i32::MAX as usize;
/// A deadline or a lease that is "best available": publishers take the shortest of the
/// subscriptions known at creation, subscriptions the longest of the publishers
/// (RMW_QOS_DEADLINE_BEST_AVAILABLE).
pub const SPAN_BEST_AVAILABLE: Duration = Duration::from_nanos(i64::MAX as u64 - 1);

/// Everything that can be asked of a publisher or subscription. A plain value:
/// what contradicts itself is refused when an endpoint is created with it.
///
/// `None` in a duration means infinite; a zero deadline, lifespan or lease
/// means "not given" as in ROS 2 and counts as infinite.
///
/// ```
/// use std::time::Duration;
///
/// use pteros_dcps::qos::{QosProfile, ReliabilityPolicy}; // `pteros::qos` for users
///
/// let map = QosProfile::default().keep_last(1).transient_local();
/// let scans = QosProfile::sensor_data().deadline(Duration::from_millis(200));
/// assert_eq!(scans.reliability, ReliabilityPolicy::BestEffort);
/// assert_eq!(QosProfile::from(10), QosProfile::default());
/// assert!(map.validate().is_ok());
/// assert!(QosProfile::default().keep_last(0).validate().is_err());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct QosProfile {
    /// How many samples are kept.
    pub history: HistoryPolicy,
    /// Whether lost samples are retransmitted.
    pub reliability: ReliabilityPolicy,
    /// Whether late joiners get earlier samples.
    pub durability: DurabilityPolicy,
    /// The longest expected pause between samples.
    pub deadline: Option<Duration>,
    /// The age after which a sample is worthless (publishers).
    pub lifespan: Option<Duration>,
    /// How the publisher asserts its liveliness.
    pub liveliness: LivelinessPolicy,
    /// How long one assertion is valid.
    pub liveliness_lease: Option<Duration>,
    /// How long `publish` may block while unacknowledged samples fill the history
    /// (reliable, keep all).
    ///
    /// Also how long any publish may wait for a full socket without progress, and
    /// ten times that in all. Zero never blocks; the rest is sent later. 100 ms by
    /// default.
    pub max_blocking_time: Option<Duration>,
    /// Use the topic name on the wire as given, without ROS 2's `rt` prefix,
    /// namespace and remapping: `Square`, as other DDS systems name it. (rclcpp
    /// puts a namespace before it even so; write `/chatter` to match it.)
    pub avoid_ros_namespace_conventions: bool,
    /// Upper bounds of what is kept; `None` means the built-in ones.
    pub resource_limits: ResourceLimits,
    /// How long a publisher may hold back small messages (512 bytes serialized) to
    /// combine several in one datagram (batching).
    ///
    /// They are also sent when they fill it, or when as many are held as the
    /// history keeps. A subscription requests a maximum. Zero: each message is sent
    /// at once.
    pub latency_budget: Duration,
    /// The order of samples of several publishers: by reception, or by source
    /// timestamp. By source, a sample older than one already taken is dropped.
    pub destination_order: DestinationOrder,
    /// Whether all publishers are delivered, or only the strongest living one. Both
    /// sides must agree.
    pub ownership: Ownership,
    /// Ownership strength (publishers). The highest is delivered, of equal ones the
    /// lower gid.
    pub ownership_strength: i32,
    /// Coherent and ordered access. Subscriptions request it here. Publishers have
    /// it from their group; what they offer here is only announced.
    pub presentation: Presentation,
    /// Partition names, of which publisher and subscription must share one.
    /// Patterns with `*` and `?` are allowed on one side. Empty: the default
    /// partition.
    pub partition: Vec<String>,
    /// The shortest interval between samples (subscriptions). Earlier ones are
    /// dropped, but a reliable subscription gets the last sample of a burst. Zero:
    /// no filter.
    pub time_based_filter: Duration,
    /// From 1 to 63 the differentiated services code point of a publisher's
    /// datagrams (46: expedited forwarding). Any value orders the asynchronous
    /// publishers of one flow controller, unless they have a priority of their own.
    pub transport_priority: i32,
    /// Samples that the durable store keeps. `None`: as much as history and
    /// resource limits allow, and nothing of ended instances.
    pub durability_service: Option<DurabilityService>,
    /// Whether a publisher that unregisters an instance, or is dropped, disposes of
    /// it (types with a key). True by default.
    ///
    /// Dropping does not block. For two seconds, while the context exists, lost
    /// disposes are retransmitted, except for a group with group access. Readers
    /// that missed them see instances without writers. A transient or persistent
    /// publisher that is dropped does not dispose, since its instances outlive it.
    pub autodispose_unregistered_instances: bool,
    /// How long a subscription keeps untaken samples of an instance without
    /// writers, its end included. `None`: until taken.
    pub autopurge_nowriter_samples_delay: Option<Duration>,
    /// The same for a disposed instance.
    pub autopurge_disposed_samples_delay: Option<Duration>,
    /// The representation that publishers write and subscriptions accept. `None`:
    /// XCDR1, as all of ROS 2 uses, and subscriptions accept XCDR2 too.
    pub representation: Option<Representation>,
    /// Arbitrary bytes announced with the endpoint, after ROS 2's own `key=value;`
    /// entries.
    pub user_data: Vec<u8>,
    /// Arbitrary bytes announced with the topic.
    pub topic_data: Vec<u8>,
    /// Arbitrary bytes announced with the publisher's or subscriber's group.
    pub group_data: Vec<u8>,
}

impl Default for QosProfile {
    /// ROS 2's default: reliable, volatile, keep last 10.
    fn default() -> Self {
        Self {
            history: HistoryPolicy::KeepLast(10),
            reliability: ReliabilityPolicy::Reliable,
            durability: DurabilityPolicy::Volatile,
            deadline: None,
            lifespan: None,
            liveliness: LivelinessPolicy::SystemDefault,
            liveliness_lease: None,
            max_blocking_time: Some(Duration::from_millis(100)),
            avoid_ros_namespace_conventions: false,
            resource_limits: ResourceLimits::default(),
            latency_budget: Duration::ZERO,
            destination_order: DestinationOrder::ByReception,
            ownership: Ownership::Shared,
            ownership_strength: 0,
            presentation: Presentation::default(),
            partition: Vec::new(),
            time_based_filter: Duration::ZERO,
            transport_priority: 0,
            durability_service: None,
            autodispose_unregistered_instances: true,
            autopurge_nowriter_samples_delay: None,
            autopurge_disposed_samples_delay: None,
            representation: None,
            user_data: Vec::new(),
            topic_data: Vec::new(),
            group_data: Vec::new(),
        }
    }
}

impl From<usize> for QosProfile {
    /// The default with another depth, as a bare number means in rclcpp.
    fn from(depth: usize) -> Self {
        Self::default().keep_last(depth)
    }
}

impl From<&QosProfile> for QosProfile {
    fn from(profile: &QosProfile) -> Self {
        profile.clone()
    }
}

/// Conversion to and from the protocol, and validation.
impl QosProfile {
    /// The QoS that a subscription announces: as [`QosProfile::to_endpoint`], but
    /// XCDR2 is accepted beside XCDR1 unless the profile names one of them.
    pub fn to_reader(&self) -> EndpointQos {
        let mut qos = self.to_endpoint();
        if self.representation.is_none() {
            qos.representation = vec![XCDR1, XCDR2];
        }
        qos
    }

    /// The QoS that a publisher announces, representation included.
    ///
    /// System defaults become definite. "Best available" becomes what a publisher without
    /// subscriptions takes; see [`QosProfile::resolved_for_subscriptions`].
    pub fn to_endpoint(&self) -> EndpointQos {
        EndpointQos {
            reliability: match self.reliability {
                ReliabilityPolicy::BestEffort => Reliability::BestEffort,
                _ => Reliability::Reliable,
            },
            max_blocking_time: span(self.max_blocking_time),
            durability: match self.durability {
                DurabilityPolicy::TransientLocal | DurabilityPolicy::BestAvailable => {
                    Durability::TransientLocal
                }
                DurabilityPolicy::Transient => Durability::Transient,
                DurabilityPolicy::Persistent => Durability::Persistent,
                DurabilityPolicy::Volatile | DurabilityPolicy::SystemDefault => {
                    Durability::Volatile
                }
            },
            history: wire_history(self.history),
            resource_limits: self.resource_limits,
            deadline: given_span(self.deadline),
            lifespan: given_span(self.lifespan),
            liveliness: match self.liveliness {
                LivelinessPolicy::ManualByTopic => Liveliness::ManualByTopic,
                LivelinessPolicy::ManualByParticipant => Liveliness::ManualByParticipant,
                LivelinessPolicy::Automatic
                | LivelinessPolicy::SystemDefault
                | LivelinessPolicy::BestAvailable => Liveliness::Automatic,
            },
            lease_duration: given_span(self.liveliness_lease),
            latency_budget: self.latency_budget.into(),
            destination_order: self.destination_order,
            ownership: self.ownership,
            ownership_strength: self.ownership_strength,
            presentation: self.presentation,
            partition: self.partition.clone(),
            time_based_filter: self.time_based_filter.into(),
            transport_priority: self.transport_priority,
            durability_service: self.effective_service().to_wire(),
            representation: match self.representation {
                None | Some(Representation::Xcdr1) => vec![XCDR1],
                Some(Representation::Xcdr2) => vec![XCDR2],
            },
            user_data: self.user_data.clone(),
            topic_data: self.topic_data.clone(),
            group_data: self.group_data.clone(),
        }
    }

    /// Policy for instances that end; not announced.
    pub fn lifecycle(&self) -> DataLifecycle {
        DataLifecycle {
            autodispose_unregistered_instances: self.autodispose_unregistered_instances,
            autopurge_nowriter_samples_delay: span(self.autopurge_nowriter_samples_delay),
            autopurge_disposed_samples_delay: span(self.autopurge_disposed_samples_delay),
        }
    }

    /// The profile of an announced endpoint. A representation other than XCDR2
    /// alone counts as not named.
    pub fn from_endpoint(endpoint: &EndpointQos) -> Self {
        Self {
            history: match endpoint.history {
                History::KeepLast(depth) => HistoryPolicy::KeepLast(depth as usize),
                History::KeepAll => HistoryPolicy::KeepAll,
            },
            reliability: match endpoint.reliability {
                Reliability::BestEffort => ReliabilityPolicy::BestEffort,
                Reliability::Reliable => ReliabilityPolicy::Reliable,
            },
            durability: match endpoint.durability {
                Durability::Volatile => DurabilityPolicy::Volatile,
                Durability::TransientLocal => DurabilityPolicy::TransientLocal,
                Durability::Transient => DurabilityPolicy::Transient,
                Durability::Persistent => DurabilityPolicy::Persistent,
            },
            deadline: endpoint.deadline.to_std(),
            lifespan: endpoint.lifespan.to_std(),
            liveliness: match endpoint.liveliness {
                Liveliness::Automatic => LivelinessPolicy::Automatic,
                Liveliness::ManualByParticipant => LivelinessPolicy::ManualByParticipant,
                Liveliness::ManualByTopic => LivelinessPolicy::ManualByTopic,
            },
            liveliness_lease: endpoint.lease_duration.to_std(),
            max_blocking_time: endpoint.max_blocking_time.to_std(),
            avoid_ros_namespace_conventions: false,
            resource_limits: endpoint.resource_limits,
            latency_budget: endpoint.latency_budget.to_std().unwrap_or(Duration::MAX),
            destination_order: endpoint.destination_order,
            ownership: endpoint.ownership,
            ownership_strength: endpoint.ownership_strength,
            presentation: endpoint.presentation,
            partition: endpoint.partition.clone(),
            time_based_filter: endpoint.time_based_filter.to_std().unwrap_or(Duration::MAX),
            transport_priority: endpoint.transport_priority,
            durability_service: durability_service::announced(endpoint),
            autodispose_unregistered_instances: true,
            autopurge_nowriter_samples_delay: None,
            autopurge_disposed_samples_delay: None,
            representation: (endpoint.representation == [XCDR2]).then_some(Representation::Xcdr2),
            user_data: endpoint.user_data.clone(),
            topic_data: endpoint.topic_data.clone(),
            group_data: endpoint.group_data.clone(),
        }
    }

    /// Whether a policy is "best available", which the endpoints known at creation resolve.
    pub fn is_best_available(&self) -> bool {
        self.reliability == ReliabilityPolicy::BestAvailable
            || self.durability == DurabilityPolicy::BestAvailable
            || self.liveliness == LivelinessPolicy::BestAvailable
            || [self.deadline, self.liveliness_lease].contains(&Some(SPAN_BEST_AVAILABLE))
    }

    /// Resolves "best available" for a publisher with the known subscriptions, so that it
    /// matches them. Reliability and durability are the strong ones in any case.
    pub fn resolved_for_subscriptions<'a>(
        &self,
        subscriptions: impl IntoIterator<Item = &'a EndpointQos>,
    ) -> QosProfile {
        let (mut manual, mut deadline, mut lease) = (false, Span::INFINITE, Span::INFINITE);
        for requested in subscriptions {
            manual |= requested.liveliness == Liveliness::ManualByTopic;
            deadline = deadline.min(requested.deadline);
            lease = lease.min(requested.lease_duration);
        }
        let mut settled = self.resolved_for_publishers([]);
        settled.settle(self, manual, deadline, lease);
        settled
    }

    /// Resolves liveliness and spans that are "best available" in `asked`.
    fn settle(&mut self, asked: &QosProfile, manual: bool, deadline: Span, lease: Span) {
        if asked.liveliness == LivelinessPolicy::BestAvailable {
            self.liveliness = if manual {
                LivelinessPolicy::ManualByTopic
            } else {
                LivelinessPolicy::Automatic
            };
        }
        if asked.deadline == Some(SPAN_BEST_AVAILABLE) {
            self.deadline = deadline.to_std();
        }
        if asked.liveliness_lease == Some(SPAN_BEST_AVAILABLE) {
            self.liveliness_lease = lease.to_std();
        }
    }

    /// Resolves "best available" for a subscription with the known publishers.
    ///
    /// Each such policy is the strong one only if all publishers offer it. Without
    /// publishers the strong ones are taken, as rmw_dds_common does. Later
    /// publishers change nothing.
    pub fn resolved_for_publishers<'a>(
        &self,
        publishers: impl IntoIterator<Item = &'a EndpointQos>,
    ) -> QosProfile {
        let (mut reliable, mut transient_local, mut manual) = (true, true, true);
        let (mut deadline, mut lease) = (None, None);
        for offered in publishers {
            reliable &= offered.reliability == Reliability::Reliable;
            transient_local &= offered.durability >= Durability::TransientLocal;
            manual &= offered.liveliness == Liveliness::ManualByTopic;
            deadline = deadline.max(Some(offered.deadline));
            lease = lease.max(Some(offered.lease_duration));
        }
        let mut settled = self.clone();
        if settled.reliability == ReliabilityPolicy::BestAvailable {
            settled.reliability = if reliable {
                ReliabilityPolicy::Reliable
            } else {
                ReliabilityPolicy::BestEffort
            };
        }
        if settled.durability == DurabilityPolicy::BestAvailable {
            settled.durability = if transient_local {
                DurabilityPolicy::TransientLocal
            } else {
                DurabilityPolicy::Volatile
            };
        }
        let span = |longest: Option<Span>| longest.unwrap_or(Span::INFINITE);
        settled.settle(self, manual, span(deadline), span(lease));
        settled
    }
}

pub(super) fn wire_history(history: HistoryPolicy) -> History {
    match history {
        HistoryPolicy::KeepLast(depth) => History::KeepLast(depth.clamp(1, DEPTH_MAX) as u32),
        HistoryPolicy::KeepAll => History::KeepAll,
        HistoryPolicy::SystemDefault => History::KeepLast(1),
    }
}

/// Infinite if not given.
fn given_span(duration: Option<Duration>) -> Span {
    span(given(duration))
}

pub(super) fn span(duration: Option<Duration>) -> Span {
    duration.map_or(Span::INFINITE, Span::from)
}

/// The duration, unless it is zero, infinite or best available.
pub(super) fn given(duration: Option<Duration>) -> Option<Duration> {
    let is_given =
        |span: &Duration| ![Duration::ZERO, Duration::MAX, SPAN_BEST_AVAILABLE].contains(span);
    duration.filter(is_given)
}
