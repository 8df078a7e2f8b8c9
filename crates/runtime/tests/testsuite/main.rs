//! The integration tests of the runtime, in one program; each module is a topic.

mod flow_control;
#[cfg(feature = "security")]
mod security;
