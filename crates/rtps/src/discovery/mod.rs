//! Discovery protocols (RTPS 2.5 §8.5): SPDP and participant lease, SEDP, WLP,
//! TypeLookup, and the topics of DDS Security.

pub(crate) mod builtin_topic;
pub mod data;
pub(crate) mod lease;
pub(crate) mod liveliness;
pub(crate) mod question;
pub(crate) mod sedp;
pub mod spdp;
pub(crate) mod stateless;
pub mod type_lookup;
