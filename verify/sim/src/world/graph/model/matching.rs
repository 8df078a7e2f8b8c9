//! The oracle of endpoint matching: which pairs are compatible, and what must not be
//! lost between them.

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::qos::{EndpointQos, History, Reliability};

/// Whether a writer and a reader of one topic are compatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchDecision {
    /// They match.
    Compatible,
    /// The writer offers less than the reader requests.
    IncompatibleQos,
    /// The types differ.
    IncompatibleType,
}

/// The oracle of endpoint matching. `None`: the topics differ.
pub fn match_decision(writer: &EndpointData, reader: &EndpointData) -> Option<MatchDecision> {
    if writer.topic != reader.topic {
        return None;
    }
    if writer.type_name != reader.type_name {
        return Some(MatchDecision::IncompatibleType);
    }
    let (offered, requested) = (&writer.qos, &reader.qos);
    let (ours, theirs) = (offered.presentation, requested.presentation);
    let fits = ours.access_scope >= theirs.access_scope
        && ours.coherent >= theirs.coherent
        && ours.ordered >= theirs.ordered
        && offered.reliability >= requested.reliability
        && offered.durability >= requested.durability
        && offered.deadline <= requested.deadline
        && offered.liveliness >= requested.liveliness
        && offered.lease_duration <= requested.lease_duration
        && offered.latency_budget <= requested.latency_budget;
    Some(if fits {
        MatchDecision::Compatible
    } else {
        MatchDecision::IncompatibleQos
    })
}

/// Whether no sample may be lost between two sets of policies.
pub fn is_lossless(writer: &EndpointQos, reader: &EndpointQos) -> bool {
    is_reliable(writer, reader)
        && writer.history == History::KeepAll
        && reader.history == History::KeepAll
        && writer.lifespan.is_infinite()
}

/// Whether losses are retransmitted.
pub fn is_reliable(writer: &EndpointQos, reader: &EndpointQos) -> bool {
    writer.reliability == Reliability::Reliable && reader.reliability == Reliability::Reliable
}
