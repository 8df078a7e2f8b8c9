//! Endpoints that Zenoh cannot carry. They communicate only within their process.

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::qos::{Durability, Liveliness, Ownership};

use crate::key::Place;

/// The feature that this endpoint needs and Zenoh lacks.
pub fn not_on_zenoh(endpoint: &EndpointData) -> Option<&'static str> {
    let qos = &endpoint.qos;
    if Place::of(endpoint).is_none() {
        return Some("Zenoh has no names without the conventions of ROS");
    }
    if endpoint.guid.entity.is_keyed() {
        return Some("it carries no instances of keyed topics");
    }
    if qos.presentation.holds_samples() {
        return Some("it marks no coherent sets and no order of a group");
    }
    if !qos.partition.is_empty() {
        return Some("it has no partitions");
    }
    if qos.ownership == Ownership::Exclusive {
        return Some("it does not announce the strength of an exclusive owner");
    }
    let is_stored = matches!(
        qos.durability,
        Durability::Transient | Durability::Persistent
    );
    if endpoint.is_writer() && is_stored {
        return Some("it keeps no samples beyond the life of their publisher");
    }
    let is_asserted = qos.liveliness != Liveliness::Automatic;
    if !endpoint.is_writer() && is_asserted && !qos.lease_duration.is_infinite() {
        return Some("nothing on it asserts manual liveliness");
    }
    None
}
