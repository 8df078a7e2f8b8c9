//! Quality of service as ROS 2 names it: [`QosProfile`], its presets, the
//! words for its values, and the way to and from the protocol's
//! [`EndpointQos`].
//!
//! A profile is what a user asks for and may say "system default" or "best
//! available"; an [`EndpointQos`] is what an endpoint announces and is always
//! definite. Presets: rmw `qos_profiles.h`, rclcpp `qos.cpp`, rcl
//! `logging_rosout.h`, tf2_ros `qos.hpp`.

pub(crate) mod change;
mod presets;
pub mod report;
mod service;
mod words;

use std::time::Duration;

pub use change::FixedPolicy;
pub use pteros_msg::cdr::Representation;
pub use pteros_rtps::qos::{DestinationOrder, History, Ownership, Presentation, ResourceLimits};
use pteros_rtps::qos::{Durability, EndpointQos, Liveliness, Reliability, XCDR1, XCDR2};
use pteros_rtps::time::Duration as Span;

use crate::instance::Lifecycle;
pub use service::DurabilityService;
pub use words::{QosWordError, parse_duration};

/// How many samples are kept, on either side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum HistoryPolicy {
    /// The newest so many samples; at least one.
    KeepLast(usize),
    /// Everything, up to the resource limits.
    KeepAll,
    /// DDS's own default: the last sample.
    SystemDefault,
}

/// Whether lost samples are repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ReliabilityPolicy {
    /// Repaired, as long as the publisher keeps them.
    Reliable,
    /// Counted, not repaired.
    BestEffort,
    /// What rmw implementations take for it: reliable.
    SystemDefault,
    /// Publishers: reliable. Subscriptions: reliable if every publisher that
    /// is known when the subscription is created is.
    BestAvailable,
}

/// Whether late joiners get earlier samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DurabilityPolicy {
    /// They start with the next sample.
    Volatile,
    /// They get what the living publisher keeps.
    TransientLocal,
    /// Publishers: they also get what was stored before the publisher's
    /// process ended, however it ended, once the publisher is created again.
    /// Subscriptions: only such publishers match. ROS 2 has no word for it.
    Transient,
    /// As `Transient`, and what was stored outlives a power cut too: each batch
    /// of samples is synced to the disk.
    Persistent,
    /// DDS's own default: volatile.
    SystemDefault,
    /// Publishers: transient local. Subscriptions: transient local if every
    /// publisher that is known when the subscription is created is.
    BestAvailable,
}

/// Who proves that a publisher is alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LivelinessPolicy {
    /// The middleware, as long as the process runs.
    Automatic,
    /// The application, for all publishers of the context at once (DDS only;
    /// ROS 2 has no word for it any more).
    ManualByParticipant,
    /// The application, for each publisher, by publishing or asserting.
    ManualByTopic,
    /// DDS's own default: automatic.
    SystemDefault,
    /// Publishers: manual by topic. Subscriptions: manual by topic if every
    /// publisher that is known when the subscription is created is.
    BestAvailable,
}

/// Everything that can be asked of a publisher or subscription. A plain value:
/// what contradicts itself is refused when an endpoint is created with it.
///
/// `None` in a duration means infinite; a zero deadline, lifespan or lease
/// means "not given" as in ROS 2 and counts as infinite.
///
/// ```
/// use std::time::Duration;
///
/// use pteros_rmw::qos::{QosProfile, ReliabilityPolicy}; // `pteros::qos` for users
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
    /// Whether lost samples are repaired.
    pub reliability: ReliabilityPolicy,
    /// Whether late joiners get earlier samples.
    pub durability: DurabilityPolicy,
    /// The longest expected pause between samples.
    pub deadline: Option<Duration>,
    /// The age after which a sample is worthless (publishers).
    pub lifespan: Option<Duration>,
    /// Who proves that the publisher is alive.
    pub liveliness: LivelinessPolicy,
    /// For how long one proof of life holds.
    pub liveliness_lease: Option<Duration>,
    /// How long a publish may wait for room when unacknowledged samples fill
    /// the history: reliable publishers that keep all. Also how long any publish
    /// may wait for a full socket without progress, and ten times that in all;
    /// zero never waits, what is left is sent later. 100 ms by default.
    pub max_blocking_time: Option<Duration>,
    /// Use the topic name on the wire as it is given, without ROS 2's `rt`
    /// prefix, namespace and remapping: `Square`, as other DDS systems name it.
    /// (rclcpp puts a namespace before it even so; write `/chatter` to meet it.)
    pub avoid_ros_namespace_conventions: bool,
    /// Upper bounds of what is kept; `None` means the stack's own.
    pub resource_limits: ResourceLimits,
    /// How long a publisher may hold small messages (512 bytes serialized) back
    /// to put several into one datagram; also sent when they fill it, or as many
    /// are held as the history keeps. A subscription asks for at most so much.
    /// Zero: each message goes at once.
    pub latency_budget: Duration,
    /// Order of samples of several publishers: as they arrive, or by source
    /// time; then what is older than a sample already taken is dropped.
    pub destination_order: DestinationOrder,
    /// Whether all publishers are heard, or the strongest living one alone;
    /// both sides must say the same.
    pub ownership: Ownership,
    /// Rank among exclusive owners (publishers); the highest is heard, of
    /// equal ones the lower gid.
    pub ownership_strength: i32,
    /// Coherent and ordered access. Subscriptions ask for it here; publishers
    /// have it through the group they are made in, and what they offer here is
    /// announced alone.
    pub presentation: Presentation,
    /// Names that publisher and subscription must share; patterns with `*`
    /// and `?` are allowed on one side. Empty: the default partition.
    pub partition: Vec<String>,
    /// The shortest wanted pause between samples (subscriptions). What comes
    /// sooner is dropped, but a reliable subscription gets the last sample of
    /// a burst. Zero: no filter.
    pub time_based_filter: Duration,
    /// From 1 to 63 the differentiated services code point that a publisher's
    /// datagrams carry (46: expedited forwarding). Any value ranks asynchronous
    /// publishers of one flow controller, unless their pace names a priority.
    pub transport_priority: i32,
    /// What a transient or persistent publisher's store keeps. `None`: as much
    /// as its history and resource limits say, and of instances that ended
    /// nothing.
    pub durability_service: Option<DurabilityService>,
    /// Whether a publisher that unregisters an instance, or is dropped,
    /// disposes of it (types with a key). True by default. Dropping waits for
    /// nobody: for two seconds, while the context is there, what was lost of it
    /// is repeated (not by a publisher of a group with group access); whoever has
    /// not got it by then finds no writers instead. A transient or
    /// persistent publisher that is dropped leaves its instances alone, for
    /// they are to outlive it.
    pub autodispose_unregistered_instances: bool,
    /// How long a subscription keeps what was not taken of an instance that
    /// nobody writes any more, its end included. `None`: until taken.
    pub autopurge_nowriter_samples_delay: Option<Duration>,
    /// The same of an instance that was disposed of.
    pub autopurge_disposed_samples_delay: Option<Duration>,
    /// How publishers write samples, and the only way that subscriptions take.
    /// `None`: XCDR1, as all of ROS 2 does, and subscriptions take XCDR2 too.
    pub representation: Option<Representation>,
    /// Free bytes announced with the endpoint, after ROS 2's own `key=value;`
    /// entries.
    pub user_data: Vec<u8>,
    /// Free bytes announced with the topic.
    pub topic_data: Vec<u8>,
    /// Free bytes announced with the publisher's or subscriber's group.
    pub group_data: Vec<u8>,
}

/// Why a profile cannot be had.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("QoS {policy} {value}: {reason}; {way_out}")]
pub struct QosError {
    /// The policy's name as in [`pteros_rtps::qos::PolicyId::name`].
    pub policy: &'static str,
    /// The value asked for.
    pub value: String,
    /// What is wrong with it.
    pub reason: String,
    /// What to write instead.
    pub way_out: String,
}

/// The largest depth that the protocol can announce.
pub const DEPTH_MAX: usize = i32::MAX as usize;
/// The longest partition name that is announced, as for topic names.
pub const PARTITION_NAME_BYTES_MAX: usize = 255;
/// The most bytes of user, topic or group data that are announced.
pub const FREE_DATA_BYTES_MAX: usize = 1024;

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

/// To, from and against the protocol's form.
impl QosProfile {
    /// What a subscription with this profile announces: as
    /// [`QosProfile::to_endpoint`], and XCDR2 is accepted beside XCDR1 unless
    /// the profile names one of them.
    pub fn to_reader(&self) -> EndpointQos {
        let mut qos = self.to_endpoint();
        if self.representation.is_none() {
            qos.representation = vec![XCDR1, XCDR2];
        }
        qos
    }

    /// What a publisher with this profile announces, its representation included. System
    /// defaults become definite; "best available" becomes the strongest (see
    /// [`QosProfile::for_publishers`] for subscriptions).
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
                LivelinessPolicy::ManualByTopic | LivelinessPolicy::BestAvailable => {
                    Liveliness::ManualByTopic
                }
                LivelinessPolicy::ManualByParticipant => Liveliness::ManualByParticipant,
                LivelinessPolicy::Automatic | LivelinessPolicy::SystemDefault => {
                    Liveliness::Automatic
                }
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
            durability_service: self.settled_service().to_wire(),
            representation: match self.representation {
                None | Some(Representation::Xcdr1) => vec![XCDR1],
                Some(Representation::Xcdr2) => vec![XCDR2],
            },
            user_data: self.user_data.clone(),
            topic_data: self.topic_data.clone(),
            group_data: self.group_data.clone(),
        }
    }

    /// What becomes of instances that end; not announced.
    pub fn lifecycle(&self) -> Lifecycle {
        Lifecycle {
            autodispose_unregistered_instances: self.autodispose_unregistered_instances,
            autopurge_nowriter_samples_delay: span(self.autopurge_nowriter_samples_delay),
            autopurge_disposed_samples_delay: span(self.autopurge_disposed_samples_delay),
        }
    }

    /// The profile that describes an announced endpoint. A representation other
    /// than XCDR2 alone reads as not named.
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
            durability_service: service::announced(endpoint),
            autodispose_unregistered_instances: true,
            autopurge_nowriter_samples_delay: None,
            autopurge_disposed_samples_delay: None,
            representation: (endpoint.representation == [XCDR2]).then_some(Representation::Xcdr2),
            user_data: endpoint.user_data.clone(),
            topic_data: endpoint.topic_data.clone(),
            group_data: endpoint.group_data.clone(),
        }
    }

    /// The profile of a subscription, "best available" settled by the
    /// publishers known now: each such policy is the strong one only if all
    /// publishers offer it. With no publisher the strong ones are taken, as
    /// rmw_dds_common does. Later publishers change nothing.
    pub fn for_publishers<'a>(
        &self,
        publishers: impl IntoIterator<Item = &'a EndpointQos>,
    ) -> QosProfile {
        let (mut reliable, mut transient_local, mut manual) = (true, true, true);
        for offered in publishers {
            reliable &= offered.reliability == Reliability::Reliable;
            transient_local &= offered.durability >= Durability::TransientLocal;
            manual &= offered.liveliness == Liveliness::ManualByTopic;
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
        if settled.liveliness == LivelinessPolicy::BestAvailable {
            settled.liveliness = if manual {
                LivelinessPolicy::ManualByTopic
            } else {
                LivelinessPolicy::Automatic
            };
        }
        settled
    }

    /// Whether the profile can be had at all. The first contradiction found
    /// is the error.
    pub fn validate(&self) -> Result<(), QosError> {
        self.validate_history()?;
        self.validate_service()?;
        if let (Some(period), filter) = (given(self.deadline), self.time_based_filter)
            && period < filter
        {
            return Err(QosError {
                policy: "DEADLINE",
                value: words::duration_text(Some(period)),
                reason: format!(
                    "shorter than the time based filter of {}, so it would always be missed",
                    words::duration_text(Some(filter))
                ),
                way_out: "lengthen the deadline or shorten the filter".into(),
            });
        }
        if self.presentation.access_scope > 2 {
            return Err(QosError {
                policy: "PRESENTATION",
                value: format!("access scope {}", self.presentation.access_scope),
                reason: "no such scope".into(),
                way_out: "use 0 (instance), 1 (topic) or 2 (group)".into(),
            });
        }
        if let Some(name) = self
            .partition
            .iter()
            .find(|name| name.len() > PARTITION_NAME_BYTES_MAX || name.contains('\0'))
        {
            return Err(QosError {
                policy: "PARTITION",
                value: format!("{name:?}"),
                reason: format!("longer than {PARTITION_NAME_BYTES_MAX} bytes or holding a NUL"),
                way_out: "shorten the name".into(),
            });
        }
        self.validate_free_data()
    }

    fn validate_history(&self) -> Result<(), QosError> {
        let limits = &self.resource_limits;
        let wrong = |policy, value: String, reason: String, way_out: &str| {
            Err(QosError {
                policy,
                value,
                reason,
                way_out: way_out.into(),
            })
        };
        if let HistoryPolicy::KeepLast(depth) = self.history {
            if depth == 0 {
                return wrong(
                    "HISTORY",
                    "keep last 0".into(),
                    "would keep nothing, not even the sample just published".into(),
                    "use a depth of 1 or more, or keep all",
                );
            }
            if depth > DEPTH_MAX {
                return wrong(
                    "HISTORY",
                    format!("keep last {depth}"),
                    format!("the wire holds depths up to {DEPTH_MAX}"),
                    "use a smaller depth, or keep all",
                );
            }
            let bounds = [
                ("max samples", limits.max_samples),
                ("max samples per instance", limits.max_samples_per_instance),
            ];
            for (name, bound) in bounds {
                if let Some(bound) = bound.filter(|b| (*b as usize) < depth) {
                    return wrong(
                        "RESOURCE_LIMITS",
                        format!("{name} {bound}"),
                        format!("less than the history depth {depth}"),
                        "raise the limit or lower the depth",
                    );
                }
            }
        }
        if let (Some(all), Some(each)) = (limits.max_samples, limits.max_samples_per_instance)
            && all < each
        {
            return wrong(
                "RESOURCE_LIMITS",
                format!("max samples {all}"),
                format!("less than max samples per instance {each}"),
                "raise the first or lower the second",
            );
        }
        if [
            limits.max_samples,
            limits.max_instances,
            limits.max_samples_per_instance,
        ]
        .contains(&Some(0))
        {
            return wrong(
                "RESOURCE_LIMITS",
                "0".into(),
                "leaves no room for any sample".into(),
                "use 1 or more, or None for the default bound",
            );
        }
        Ok(())
    }

    fn validate_free_data(&self) -> Result<(), QosError> {
        let kinds = [
            ("USER_DATA", &self.user_data),
            ("TOPIC_DATA", &self.topic_data),
            ("GROUP_DATA", &self.group_data),
        ];
        match kinds.iter().find(|(_, d)| d.len() > FREE_DATA_BYTES_MAX) {
            None => Ok(()),
            Some((policy, data)) => Err(QosError {
                policy,
                value: format!("of {} bytes", data.len()),
                reason: format!("more than the {FREE_DATA_BYTES_MAX} bytes that peers accept"),
                way_out: "announce less, and publish the rest on a topic".into(),
            }),
        }
    }
}

fn wire_history(history: HistoryPolicy) -> History {
    match history {
        HistoryPolicy::KeepLast(depth) => History::KeepLast(depth.clamp(1, DEPTH_MAX) as u32),
        HistoryPolicy::KeepAll => History::KeepAll,
        HistoryPolicy::SystemDefault => History::KeepLast(1),
    }
}

fn given(duration: Option<Duration>) -> Option<Duration> {
    duration.filter(|d| *d != Duration::ZERO && *d != Duration::MAX)
}

fn given_span(duration: Option<Duration>) -> Span {
    span(given(duration))
}

fn span(duration: Option<Duration>) -> Span {
    duration.map_or(Span::INFINITE, Span::from)
}

#[cfg(test)]
mod tests;
