//! Discovery: what participants tell each other about themselves and their
//! endpoints (RTPS 2.5 §8.5).

pub(crate) mod channel;
pub mod data;
pub(crate) mod lease;
pub(crate) mod liveliness;
pub(crate) mod sedp;
pub mod spdp;
pub(crate) mod stateless;
pub mod type_lookup;
