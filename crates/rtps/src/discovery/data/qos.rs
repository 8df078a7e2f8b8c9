//! QoS policies as parameters (RTPS 2.5 §9.6.4, table 9.14; XTypes 1.3 §7.6.3.1).

use alloc::string::String;
use alloc::vec::Vec;

use super::limits::{self, DataLimits};
use super::value::{
    boolean, duration, name, octets, put_duration, put_string, put_u32, read, write_duration,
    write_octets, write_u32,
};
use crate::qos::{
    DestinationOrder, Durability, DurabilityService, EndpointQos, History, Liveliness, Ownership,
    Presentation, Reliability, ResourceLimits,
};
use crate::time::Duration;
use crate::wire::{
    Cursor, Parameter, WireError, begin_parameter, end_parameter, pid, write_parameter,
};

/// The policies that hold when a peer omits them: the defaults of DDS 1.4 §2.2.3,
/// not those of ROS 2. Writers and readers differ in the default of RELIABILITY.
pub(super) fn dds_defaults(is_writer: bool) -> EndpointQos {
    EndpointQos {
        reliability: if is_writer {
            Reliability::Reliable
        } else {
            Reliability::BestEffort
        },
        history: History::KeepLast(1),
        ..EndpointQos::default()
    }
}

/// Applies a parameter if it is a policy; false otherwise.
pub(super) fn parse_policy(
    qos: &mut EndpointQos,
    parameter: Parameter<'_>,
    within: &DataLimits,
) -> Result<bool, WireError> {
    let id = parameter.id;
    match id {
        pid::RELIABILITY => {
            (qos.reliability, qos.max_blocking_time) = read(parameter, reliability)?;
        }
        pid::DURABILITY => qos.durability = read(parameter, durability)?,
        pid::DURABILITY_SERVICE => qos.durability_service = read(parameter, durability_service)?,
        pid::HISTORY => qos.history = read(parameter, history)?,
        pid::RESOURCE_LIMITS => qos.resource_limits = read(parameter, resource_limits)?,
        pid::DEADLINE => qos.deadline = read(parameter, duration)?,
        pid::LIFESPAN => qos.lifespan = read(parameter, duration)?,
        pid::LATENCY_BUDGET => qos.latency_budget = read(parameter, duration)?,
        pid::TIME_BASED_FILTER => qos.time_based_filter = read(parameter, duration)?,
        pid::LIVELINESS => (qos.liveliness, qos.lease_duration) = read(parameter, liveliness)?,
        pid::DESTINATION_ORDER => qos.destination_order = read(parameter, destination_order)?,
        pid::OWNERSHIP => qos.ownership = read(parameter, ownership)?,
        pid::OWNERSHIP_STRENGTH => qos.ownership_strength = read(parameter, Cursor::i32)?,
        pid::PRESENTATION => qos.presentation = read(parameter, presentation)?,
        pid::TRANSPORT_PRIORITY => qos.transport_priority = read(parameter, Cursor::i32)?,
        pid::PARTITION => qos.partition = read(parameter, |at| partition(parameter, at, within))?,
        pid::DATA_REPRESENTATION => {
            qos.representation = read(parameter, |at| representation(parameter, at))?;
        }
        pid::USER_DATA => qos.user_data = octets(parameter, within.user_data_bytes)?,
        pid::TOPIC_DATA => qos.topic_data = octets(parameter, within.user_data_bytes)?,
        pid::GROUP_DATA => qos.group_data = octets(parameter, within.user_data_bytes)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn reliability(at: &mut Cursor<'_>) -> Result<(Reliability, Duration), WireError> {
    let kind = match at.u32()? {
        1 => Reliability::BestEffort,
        2 => Reliability::Reliable,
        _ => return Err(WireError::InvalidLength),
    };
    Ok((kind, duration(at)?))
}

fn durability(at: &mut Cursor<'_>) -> Result<Durability, WireError> {
    Ok(match at.u32()? {
        0 => Durability::Volatile,
        1 => Durability::TransientLocal,
        2 => Durability::Transient,
        3 => Durability::Persistent,
        _ => return Err(WireError::InvalidLength),
    })
}

fn history(at: &mut Cursor<'_>) -> Result<History, WireError> {
    let kind = at.u32()?;
    let depth = at.i32()?;
    match kind {
        0 => Ok(History::KeepLast(u32::try_from(depth).unwrap_or(1).max(1))),
        1 => Ok(History::KeepAll),
        _ => Err(WireError::InvalidLength),
    }
}

/// Unlimited is -1.
fn limit(at: &mut Cursor<'_>) -> Result<Option<u32>, WireError> {
    at.i32().map(|limit| u32::try_from(limit).ok())
}

fn resource_limits(at: &mut Cursor<'_>) -> Result<ResourceLimits, WireError> {
    Ok(ResourceLimits {
        max_samples: limit(at)?,
        max_instances: limit(at)?,
        max_samples_per_instance: limit(at)?,
    })
}

fn durability_service(at: &mut Cursor<'_>) -> Result<DurabilityService, WireError> {
    Ok(DurabilityService {
        cleanup_delay: duration(at)?,
        history: history(at)?,
        resource_limits: resource_limits(at)?,
    })
}

fn liveliness(at: &mut Cursor<'_>) -> Result<(Liveliness, Duration), WireError> {
    let kind = match at.u32()? {
        0 => Liveliness::Automatic,
        1 => Liveliness::ManualByParticipant,
        2 => Liveliness::ManualByTopic,
        _ => return Err(WireError::InvalidLength),
    };
    Ok((kind, duration(at)?))
}

fn destination_order(at: &mut Cursor<'_>) -> Result<DestinationOrder, WireError> {
    Ok(match at.u32()? {
        0 => DestinationOrder::ByReception,
        1 => DestinationOrder::BySource,
        _ => return Err(WireError::InvalidLength),
    })
}

fn ownership(at: &mut Cursor<'_>) -> Result<Ownership, WireError> {
    Ok(match at.u32()? {
        0 => Ownership::Shared,
        1 => Ownership::Exclusive,
        _ => return Err(WireError::InvalidLength),
    })
}

fn presentation(at: &mut Cursor<'_>) -> Result<Presentation, WireError> {
    let access_scope = match at.u32()? {
        scope @ 0..=2 => scope as u8,
        _ => return Err(WireError::InvalidLength),
    };
    Ok(Presentation {
        access_scope,
        coherent: boolean(at)?,
        ordered: boolean(at)?,
    })
}

fn partition(
    parameter: Parameter<'_>,
    at: &mut Cursor<'_>,
    within: &DataLimits,
) -> Result<Vec<String>, WireError> {
    let count = at.u32()? as usize;
    if count > limits::PARTITIONS {
        return Err(WireError::TooLong(parameter.id));
    }
    let mut one = || name(parameter, at, within.name_bytes);
    (0..count).map(|_| one()).collect()
}

fn representation(parameter: Parameter<'_>, at: &mut Cursor<'_>) -> Result<Vec<i16>, WireError> {
    let count = at.u32()? as usize;
    if count > limits::REPRESENTATIONS {
        return Err(WireError::TooLong(parameter.id));
    }
    (0..count).map(|_| at.i16()).collect()
}

/// Appends the policies of an endpoint that differ from the defaults of DDS, and
/// DURABILITY: Fast DDS takes a writer without it for transient-local. Cyclone DDS
/// leaves out defaults, too. Dust DDS 0.15 misreads an infinite duration.
pub(super) fn write_policies(out: &mut Vec<u8>, qos: &EndpointQos, is_writer: bool) {
    let defaults = dds_defaults(is_writer);
    write_matching_policies(out, qos, &defaults);
    if is_writer {
        write_writer_policies(out, qos);
    } else if qos.time_based_filter != Duration::ZERO {
        write_duration(out, pid::TIME_BASED_FILTER, qos.time_based_filter);
    }
    if qos.history != defaults.history {
        let at = begin_parameter(out, pid::HISTORY);
        put_history(out, qos.history);
        end_parameter(out, at);
    }
    if qos.resource_limits != ResourceLimits::default() {
        let at = begin_parameter(out, pid::RESOURCE_LIMITS);
        put_resource_limits(out, qos.resource_limits);
        end_parameter(out, at);
    }
    for (id, octets) in [
        (pid::USER_DATA, &qos.user_data),
        (pid::TOPIC_DATA, &qos.topic_data),
        (pid::GROUP_DATA, &qos.group_data),
    ] {
        if !octets.is_empty() {
            write_octets(out, id, octets);
        }
    }
}

fn write_matching_policies(out: &mut Vec<u8>, qos: &EndpointQos, defaults: &EndpointQos) {
    let reliability = |of: &EndpointQos| (of.reliability, of.max_blocking_time);
    if reliability(qos) != reliability(defaults) {
        let kind = match qos.reliability {
            Reliability::BestEffort => 1,
            Reliability::Reliable => 2,
        };
        write_kind_and_duration(out, pid::RELIABILITY, kind, qos.max_blocking_time);
    }
    write_u32(out, pid::DURABILITY, qos.durability as u32);
    if qos.deadline != defaults.deadline {
        write_duration(out, pid::DEADLINE, qos.deadline);
    }
    if qos.latency_budget != defaults.latency_budget {
        write_duration(out, pid::LATENCY_BUDGET, qos.latency_budget);
    }
    let liveliness = |of: &EndpointQos| (of.liveliness, of.lease_duration);
    if liveliness(qos) != liveliness(defaults) {
        let kind = qos.liveliness as u32;
        write_kind_and_duration(out, pid::LIVELINESS, kind, qos.lease_duration);
    }
    if qos.ownership != defaults.ownership {
        write_u32(out, pid::OWNERSHIP, qos.ownership as u32);
    }
    if qos.destination_order != defaults.destination_order {
        write_u32(out, pid::DESTINATION_ORDER, qos.destination_order as u32);
    }
    if qos.presentation != defaults.presentation {
        let scope = u32::from(qos.presentation.access_scope).to_le_bytes();
        let [a, b, c, d] = scope;
        let coherent = u8::from(qos.presentation.coherent);
        let ordered = u8::from(qos.presentation.ordered);
        let presentation = [a, b, c, d, coherent, ordered, 0, 0];
        write_parameter(out, pid::PRESENTATION, &presentation);
    }
    if !qos.partition.is_empty() {
        let at = begin_parameter(out, pid::PARTITION);
        put_u32(out, qos.partition.len() as u32);
        for partition in &qos.partition {
            put_string(out, partition);
        }
        end_parameter(out, at);
    }
    if !qos.representation.is_empty() {
        let at = begin_parameter(out, pid::DATA_REPRESENTATION);
        put_u32(out, qos.representation.len() as u32);
        for representation in &qos.representation {
            out.extend_from_slice(&representation.to_le_bytes());
        }
        end_parameter(out, at);
    }
    if qos.transport_priority != 0 {
        write_u32(out, pid::TRANSPORT_PRIORITY, qos.transport_priority as u32);
    }
}

fn write_writer_policies(out: &mut Vec<u8>, qos: &EndpointQos) {
    if qos.lifespan != Duration::INFINITE {
        write_duration(out, pid::LIFESPAN, qos.lifespan);
    }
    if qos.ownership_strength != 0 {
        write_u32(out, pid::OWNERSHIP_STRENGTH, qos.ownership_strength as u32);
    }
    if qos.durability_service != DurabilityService::default() {
        let service = &qos.durability_service;
        let at = begin_parameter(out, pid::DURABILITY_SERVICE);
        put_duration(out, service.cleanup_delay);
        put_history(out, service.history);
        put_resource_limits(out, service.resource_limits);
        end_parameter(out, at);
    }
}

fn write_kind_and_duration(out: &mut Vec<u8>, id: u16, kind: u32, span: Duration) {
    let at = begin_parameter(out, id);
    put_u32(out, kind);
    put_duration(out, span);
    end_parameter(out, at);
}

fn put_history(out: &mut Vec<u8>, history: History) {
    let (kind, depth) = match history {
        History::KeepLast(depth) => (0, i32::try_from(depth).unwrap_or(i32::MAX)),
        History::KeepAll => (1, -1),
    };
    put_u32(out, kind);
    put_u32(out, depth as u32);
}

fn put_resource_limits(out: &mut Vec<u8>, limits: ResourceLimits) {
    for limit in [
        limits.max_samples,
        limits.max_instances,
        limits.max_samples_per_instance,
    ] {
        let limit = limit.map_or(-1, |limit| i32::try_from(limit).unwrap_or(i32::MAX));
        put_u32(out, limit as u32);
    }
}
