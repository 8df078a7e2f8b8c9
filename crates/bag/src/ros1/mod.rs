//! Bags of ROS 1 (`#ROSBAG V2.0`): container, message definitions, and conversion of
//! messages to CDR of ROS 2 types.

mod container;
mod convert;
mod definition;
mod plan;
mod standard_definition;
mod type_pairs;

pub(crate) use container::{ChunkInfo, Connection, Container, parse_records};
pub(crate) use type_pairs::{Converter, TypePairs};

/// First bytes of a bag of version 2.0.
pub(crate) const MAGIC: &[u8] = b"#ROSBAG V2.0\n";
