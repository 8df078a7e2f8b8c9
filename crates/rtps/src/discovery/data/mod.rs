//! The contents of discovery's samples: participants, endpoints, liveliness
//! assertions (RTPS 2.5 §8.5.3, §8.5.4, §9.6).
//!
//! All are read in either byte order and written little endian. Parameters
//! that are not known are skipped, unless marked as must-understand. Every
//! length that a peer chooses has a limit.

mod encapsulation;
mod endpoint;
mod filter;
pub mod limits;
mod participant;
mod participant_message;
mod product;
mod qos;
mod signed;
mod value;

pub use endpoint::EndpointData;
pub(crate) use endpoint::protects_alike;
pub use limits::DataLimits;
pub use participant::ParticipantData;
pub use participant_message::ParticipantMessageData;
pub use product::ProductVersion;
