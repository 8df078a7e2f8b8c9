//! The integration tests of stores, in one program; each module is a topic.

#[cfg(feature = "database")]
mod kill;
#[cfg(feature = "database")]
mod store;
