//! The C ABI of rmw 7.8, ROS 2 Kilted, where it differs from other distributions: events
//! count from 1, and the init options have no `localhost_only`.

pub use super::since_iron::{DiscoveryOptions as DiscoveryFields, *};
pub use super::until_kilted::*;

/// The number of the first event, after `RMW_EVENT_INVALID`.
pub(crate) const FIRST_EVENT_TYPE: u32 = 1;

#[cfg(test)]
pub(crate) mod headers {
    pub(crate) use super::super::since_iron::headers::*;
    pub(crate) use super::super::until_kilted::headers::*;

    use super::DiscoveryFields;
    use crate::header_check::Field;

    pub(crate) fn discovery_fields() -> Vec<Field> {
        vec![Field {
            c: "discovery_options",
            rust: "discovery",
            offset: 0,
            bytes: size_of::<DiscoveryFields>(),
        }]
    }
}
