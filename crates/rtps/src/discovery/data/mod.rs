//! Discovery data: participants, endpoints and liveliness assertions as parameter
//! lists (RTPS 2.5 §8.5.3, §8.5.4, §9.6).
//!
//! Both byte orders are read; little endian is written. Unknown parameters are
//! skipped, unless they are marked as must-understand. Every length that a peer
//! chooses has a limit.

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
pub(crate) use endpoint::has_same_protection;
pub use limits::DataLimits;
pub use participant::ParticipantData;
pub use participant_message::ParticipantMessageData;
pub use product::ProductVersion;
