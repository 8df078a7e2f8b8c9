//! QoS policies of DDS, and QoS compatibility (request/offered) of a writer and a
//! reader (DDS 1.4 §2.2.3).
//!
//! Among them: reliability, durability (transient local for a late joiner), history
//! (keep last / keep all), deadline, lifespan, liveliness, ownership strength,
//! partition, presentation, destination order, time-based filter, durability
//! service. [`EndpointQos`] has a field for each.

use alloc::string::String;
use alloc::vec::Vec;

use crate::time::Duration;

/// All QoS policies of one endpoint. A policy of the other side only (a writer's
/// lifespan, a reader's time-based filter) is ignored.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct EndpointQos {
    /// Whether lost samples are retransmitted.
    pub reliability: Reliability,
    /// How long a reliable write may block while the history is full.
    pub max_blocking_time: Duration,
    /// Whether late joiners get earlier samples.
    pub durability: Durability,
    /// How many samples are kept.
    pub history: History,
    /// Upper limits of the history, whatever `history` requests.
    pub resource_limits: ResourceLimits,
    /// The longest expected period between samples.
    pub deadline: Duration,
    /// The age at which a sample expires (writers only).
    pub lifespan: Duration,
    /// The side that asserts the liveliness of a writer.
    pub liveliness: Liveliness,
    /// How long one assertion is valid.
    pub lease_duration: Duration,
    /// How long a writer may delay samples to batch them; for a reader, the delay
    /// it accepts.
    pub latency_budget: Duration,
    /// Order of samples of several writers.
    pub destination_order: DestinationOrder,
    /// Whether several writers may update one instance.
    pub ownership: Ownership,
    /// Rank among exclusive owners (writers only).
    pub ownership_strength: i32,
    /// Coherent and ordered access.
    pub presentation: Presentation,
    /// Names of partitions; none means the default partition.
    pub partition: Vec<String>,
    /// The minimum separation between samples (readers only).
    pub time_based_filter: Duration,
    /// Hint for the transport and for flow control among writers.
    pub transport_priority: i32,
    /// History that the durability service keeps of a deleted transient or
    /// persistent writer.
    pub durability_service: DurabilityService,
    /// Data representations offered (writers: the first is used) or accepted.
    /// Empty means XCDR1 alone (XTypes 1.3 §7.6.3.1.1).
    pub representation: Vec<i16>,
    /// Opaque data of the application. ROS puts the type hash here.
    pub user_data: Vec<u8>,
    /// Opaque data of the topic.
    pub topic_data: Vec<u8>,
    /// Opaque data of the publisher or subscriber.
    pub group_data: Vec<u8>,
}

/// Data representation id of XCDR version 1.
pub const XCDR1: i16 = 0;
/// Data representation id of XML.
pub const XML: i16 = 1;
/// Data representation id of XCDR version 2.
pub const XCDR2: i16 = 2;

impl Default for EndpointQos {
    /// ROS 2's default: reliable, volatile, keep the last 10.
    fn default() -> Self {
        Self {
            reliability: Reliability::Reliable,
            max_blocking_time: Duration::from_millis(100),
            durability: Durability::Volatile,
            history: History::KeepLast(10),
            resource_limits: ResourceLimits::default(),
            deadline: Duration::INFINITE,
            lifespan: Duration::INFINITE,
            liveliness: Liveliness::Automatic,
            lease_duration: Duration::INFINITE,
            latency_budget: Duration::ZERO,
            destination_order: DestinationOrder::ByReception,
            ownership: Ownership::Shared,
            ownership_strength: 0,
            presentation: Presentation::default(),
            partition: Vec::new(),
            time_based_filter: Duration::ZERO,
            transport_priority: 0,
            durability_service: DurabilityService::default(),
            representation: Vec::new(),
            user_data: Vec::new(),
            topic_data: Vec::new(),
            group_data: Vec::new(),
        }
    }
}

/// RELIABILITY. Ordered by strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Reliability {
    /// Losses are counted, not repaired.
    BestEffort,
    /// Lost samples are retransmitted as long as the writer keeps them.
    Reliable,
}

/// DURABILITY. Ordered by strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Durability {
    /// Late joiners start with the next sample.
    Volatile,
    /// Late joiners get the history of the living writer.
    TransientLocal,
    /// Late joiners also get the stored history of a deleted writer.
    Transient,
    /// The same, and the store survives a restart of the machine.
    Persistent,
}

/// HISTORY.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum History {
    /// The newest samples of each instance; at least one.
    KeepLast(u32),
    /// Everything, up to the resource limits.
    KeepAll,
}

/// RESOURCE_LIMITS. `None` means the default limit of this stack (see `history`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct ResourceLimits {
    /// Samples over all instances.
    pub max_samples: Option<u32>,
    /// Instances of one writer or reader.
    pub max_instances: Option<u32>,
    /// Samples of each instance; `max_samples` counts over all of them.
    pub max_samples_per_instance: Option<u32>,
}

/// LIVELINESS. Ordered by strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Liveliness {
    /// The middleware asserts it.
    Automatic,
    /// The application asserts it for all writers of the participant.
    ManualByParticipant,
    /// The application asserts it for each writer.
    ManualByTopic,
}

/// DESTINATION_ORDER. Ordered by strength.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum DestinationOrder {
    /// By reception timestamp.
    ByReception,
    /// By source timestamp.
    BySource,
}

/// OWNERSHIP. Must be equal on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Ownership {
    /// Every writer updates an instance.
    Shared,
    /// Only the strongest living writer updates an instance.
    Exclusive,
}

/// PRESENTATION.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub struct Presentation {
    /// 0 instance, 1 topic, 2 group.
    pub access_scope: u8,
    /// Coherent sets are delivered completely or not at all.
    pub coherent: bool,
    /// Changes are delivered in their order.
    pub ordered: bool,
}

impl Presentation {
    /// Whether the scope is the group: all writers of one publisher.
    pub fn is_of_group(&self) -> bool {
        self.access_scope >= 2
    }

    /// Whether the changes of several writers are delivered in their order.
    pub fn orders_group(&self) -> bool {
        self.ordered && self.is_of_group()
    }

    /// Whether samples may have to wait for others before delivery.
    pub fn holds_samples(&self) -> bool {
        self.coherent || self.orders_group()
    }
}

/// DURABILITY_SERVICE.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct DurabilityService {
    /// How long a disposed instance is kept.
    pub cleanup_delay: Duration,
    /// The history kept for each instance.
    pub history: History,
    /// Limits of that history.
    pub resource_limits: ResourceLimits,
}

impl Default for DurabilityService {
    fn default() -> Self {
        Self {
            cleanup_delay: Duration::ZERO,
            history: History::KeepLast(1),
            resource_limits: ResourceLimits::default(),
        }
    }
}

/// Names of policies, with the DDS policy id (DDS 1.4 §2.3.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
#[repr(u8)]
pub enum PolicyId {
    /// DURABILITY.
    Durability = 2,
    /// PRESENTATION.
    Presentation = 3,
    /// DEADLINE.
    Deadline = 4,
    /// LATENCY_BUDGET.
    LatencyBudget = 5,
    /// OWNERSHIP.
    Ownership = 6,
    /// LIVELINESS.
    Liveliness = 8,
    /// PARTITION.
    Partition = 10,
    /// RELIABILITY.
    Reliability = 11,
    /// DESTINATION_ORDER.
    DestinationOrder = 12,
    /// DATA_REPRESENTATION (XTypes).
    DataRepresentation = 23,
}

impl PolicyId {
    /// The policy's name as ROS 2 and DDS write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Durability => "DURABILITY",
            Self::Presentation => "PRESENTATION",
            Self::Deadline => "DEADLINE",
            Self::LatencyBudget => "LATENCY_BUDGET",
            Self::Ownership => "OWNERSHIP",
            Self::Liveliness => "LIVELINESS",
            Self::Partition => "PARTITION",
            Self::Reliability => "RELIABILITY",
            Self::DestinationOrder => "DESTINATION_ORDER",
            Self::DataRepresentation => "DATA_REPRESENTATION",
        }
    }
}

/// QoS compatibility: the policies in which the offer falls short of the request,
/// most important first; empty when compatible.
pub fn incompatibilities(offered: &EndpointQos, requested: &EndpointQos) -> Vec<PolicyId> {
    let o = offered;
    let r = requested;
    let mut found = Vec::new();
    let mut need = |met: bool, policy: PolicyId| {
        if !met {
            found.push(policy);
        }
    };
    need(o.reliability >= r.reliability, PolicyId::Reliability);
    let durable = o.durability >= r.durability;
    need(durable, PolicyId::Durability);
    need(o.deadline <= r.deadline, PolicyId::Deadline);
    need(
        o.liveliness >= r.liveliness && o.lease_duration <= r.lease_duration,
        PolicyId::Liveliness,
    );
    need(
        o.latency_budget <= r.latency_budget,
        PolicyId::LatencyBudget,
    );
    need(o.ownership == r.ownership, PolicyId::Ownership);
    need(
        o.destination_order >= r.destination_order,
        PolicyId::DestinationOrder,
    );
    need(
        presentation_fits(&o.presentation, &r.presentation),
        PolicyId::Presentation,
    );
    need(
        partitions_meet(&o.partition, &r.partition),
        PolicyId::Partition,
    );
    need(
        representation_fits(&o.representation, &r.representation),
        PolicyId::DataRepresentation,
    );
    found
}

fn presentation_fits(offered: &Presentation, requested: &Presentation) -> bool {
    offered.access_scope >= requested.access_scope
        && (offered.coherent || !requested.coherent)
        && (offered.ordered || !requested.ordered)
}

/// The writer uses the first representation it offers; the reader must accept
/// that one (XTypes 1.3 §7.6.3.1.2).
fn representation_fits(offered: &[i16], requested: &[i16]) -> bool {
    let used = offered.first().copied().unwrap_or(XCDR1);
    if requested.is_empty() {
        return used == XCDR1;
    }
    requested.contains(&used)
}

/// Whether two PARTITION lists share a name.
///
/// Either side may use `*`, `?` and `[a-z]`, but two patterns never match each
/// other (DDS 1.4 §2.2.3.13).
pub fn partitions_meet(ours: &[String], theirs: &[String]) -> bool {
    let ours = or_default(ours);
    let theirs = or_default(theirs);
    ours.iter().any(|a| theirs.iter().any(|b| names_meet(a, b)))
}

fn or_default(names: &[String]) -> Vec<&str> {
    if names.is_empty() {
        alloc::vec![""]
    } else {
        names.iter().map(String::as_str).collect()
    }
}

fn names_meet(a: &str, b: &str) -> bool {
    let is_pattern = |s: &str| s.contains(['*', '?', '[']);
    match (is_pattern(a), is_pattern(b)) {
        (false, false) => a == b,
        (true, false) => glob(a.as_bytes(), b.as_bytes()),
        (false, true) => glob(b.as_bytes(), a.as_bytes()),
        // Cyclone DDS takes brackets literally, and they may be meant so.
        (true, true) => a == b && !a.contains(['*', '?']),
    }
}

/// Matches `*`, `?`, `[a-z]` and `[!a-z]` (POSIX fnmatch) in time bounded by
/// the product of the lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p.saturating_add(1), t));
                p = p.saturating_add(1);
            }
            Some(_) if let Some(end) = one_matches(pattern, p, text.get(t)) => {
                p = end;
                t = t.saturating_add(1);
            }
            _ => match retry {
                Some((after_star, from)) => {
                    p = after_star;
                    t = from.saturating_add(1);
                    retry = Some((after_star, t));
                }
                None => return false,
            },
        }
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|c| *c == b'*'))
}

/// Whether the pattern element at `at` matches that byte. If so, returns the offset
/// of the next element. An unclosed bracket matches itself.
fn one_matches(pattern: &[u8], at: usize, byte: Option<&u8>) -> Option<usize> {
    let byte = byte?;
    let (head, body) = pattern.get(at..)?.split_first()?;
    if *head == b'['
        && let Some((holds, length)) = set_holds(body, *byte)
    {
        return holds.then_some(at.saturating_add(1).saturating_add(length));
    }
    (*head == b'?' || head == byte).then_some(at.saturating_add(1))
}

/// Whether a set, given from behind its opening bracket on, contains a byte, and
/// the set's length with its closing bracket.
fn set_holds(body: &[u8], byte: u8) -> Option<(bool, usize)> {
    let negated = matches!(body.first(), Some(b'!' | b'^'));
    let first = usize::from(negated);
    // The first member may be the closing bracket itself.
    let after_first = first.saturating_add(1);
    let members_max = body.get(after_first..)?;
    let close = after_first.saturating_add(members_max.iter().position(|b| *b == b']')?);
    let mut members = body.get(first..close)?;
    let mut holds = false;
    while let Some((low, rest)) = members.split_first() {
        let (high, rest) = match rest {
            [b'-', high, rest @ ..] => (high, rest),
            _ => (low, rest),
        };
        holds |= (*low..=*high).contains(&byte);
        members = rest;
    }
    Some((holds != negated, close.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_incompatible_policy_is_named() {
        let requested = EndpointQos::default();
        let offered = EndpointQos {
            reliability: Reliability::BestEffort,
            ..EndpointQos::default()
        };
        assert_eq!(
            incompatibilities(&offered, &requested),
            [PolicyId::Reliability]
        );
        assert!(incompatibilities(&requested, &offered).is_empty());

        let requested = EndpointQos {
            durability: Durability::TransientLocal,
            deadline: Duration::from_millis(10),
            liveliness: Liveliness::ManualByTopic,
            ..EndpointQos::default()
        };
        assert_eq!(
            incompatibilities(&EndpointQos::default(), &requested),
            [
                PolicyId::Durability,
                PolicyId::Deadline,
                PolicyId::Liveliness
            ]
        );
    }

    #[test]
    fn an_xcdr2_writer_needs_a_reader_that_accepts_it() {
        let writer = EndpointQos {
            representation: alloc::vec![XCDR2],
            ..EndpointQos::default()
        };
        let old = EndpointQos::default();
        let new = EndpointQos {
            representation: alloc::vec![XCDR1, XCDR2],
            ..EndpointQos::default()
        };
        assert_eq!(
            incompatibilities(&writer, &old),
            [PolicyId::DataRepresentation]
        );
        assert!(incompatibilities(&writer, &new).is_empty());
        assert!(incompatibilities(&old, &new).is_empty());
    }

    #[test]
    fn partitions_match_by_name_or_pattern_but_not_pattern_to_pattern() {
        let names = |n: &[&str]| n.iter().map(|s| String::from(*s)).collect::<Vec<_>>();
        assert!(partitions_meet(&[], &names(&[""])));
        assert!(partitions_meet(&names(&["robot*"]), &names(&["robot7"])));
        assert!(!partitions_meet(&names(&["robot*"]), &names(&["*7"])));
        assert!(!partitions_meet(&names(&["robot*"]), &names(&["robot*"])));
        assert!(partitions_meet(&names(&["room[1]"]), &names(&["room[1]"])));
        assert!(!partitions_meet(&names(&["a"]), &[]));
        for (pattern, met, apart) in [
            ("robot[1-3]", "robot2", "robot4"),
            ("[!a-c]*", "delta", "beta"),
            ("*[]x]", "a]", "a"),
            ("[ab][^c]", "bd", "bc"),
            ("open[", "open[", "open"),
            ("*a?c*", "xxabcab", "ac"),
            ("[a-]", "-", "b"),
        ] {
            assert!(partitions_meet(&names(&[pattern]), &names(&[met])), "{met}");
            assert!(
                !partitions_meet(&names(&[pattern]), &names(&[apart])),
                "{apart}"
            );
        }
    }

    #[test]
    fn only_ordered_groups_and_coherent_sets_hold_samples() {
        let of = |access_scope, coherent, ordered| Presentation {
            access_scope,
            coherent,
            ordered,
        };
        for (presentation, orders_group, holds_samples) in [
            (of(0, false, false), false, false),
            (of(1, false, true), false, false),
            (of(2, false, false), false, false),
            (of(2, false, true), true, true),
            (of(0, true, false), false, true),
        ] {
            assert_eq!(
                presentation.orders_group(),
                orders_group,
                "{presentation:?}"
            );
            assert_eq!(
                presentation.holds_samples(),
                holds_samples,
                "{presentation:?}"
            );
        }
    }
}
