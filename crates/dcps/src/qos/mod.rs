//! Quality of service as in ROS 2: [`QosProfile`], its presets, validation and text
//! forms (DDS 1.4 §2.2.3).
//!
//! A profile is a request and may contain "system default" or "best available". An
//! announced `EndpointQos` of the protocol is always definite. Presets: rmw
//! `qos_profiles.h`, rclcpp `qos.cpp`, rcl `logging_rosout.h`, tf2_ros `qos.hpp`.

pub mod change;
mod data_lifecycle;
mod durability_service;
mod policy;
mod presets;
mod profile;
pub mod report;
#[cfg(test)]
mod tests;
mod text;
mod validate;

pub use change::ImmutablePolicy;
pub use data_lifecycle::DataLifecycle;
pub use durability_service::DurabilityService;
pub use policy::{DurabilityPolicy, HistoryPolicy, LivelinessPolicy, ReliabilityPolicy};
pub use profile::{DEPTH_MAX, QosProfile, SPAN_BEST_AVAILABLE};
pub use pteros_msg::cdr::Representation;
pub use pteros_rtps::qos::{DestinationOrder, History, Ownership, Presentation, ResourceLimits};
pub use text::{QosParseError, parse_duration};
pub use validate::{FREE_DATA_BYTES_MAX, PARTITION_NAME_BYTES_MAX, QosError};
