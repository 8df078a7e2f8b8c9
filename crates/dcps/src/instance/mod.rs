//! Instances of keyed topics (DDS 1.4 §2.2.2.5.1): dispose, unregister, instance
//! and view states.
//!
//! The subscription side is `cache`, the publisher side `writer_instances`. Local
//! late joiners get their instances from [`crate::history`]. Topics without key pay
//! one check of an empty option.

pub(crate) mod cache;
mod instance_key;
mod keyed_ready_queue;
mod reader_instance;
#[cfg(test)]
mod tests;
mod timers;
mod writer_instances;

pub use crate::sample::instance_info::{InstanceInfo, InstanceState, SampleInstance, ViewState};
pub use crate::sample::sample_limits::INSTANCES_MAX_DEFAULT;
pub use cache::{DropTotals, InstanceCache};
pub use instance_key::{InstanceEnd, InstanceIdentity, TopicKey, identify};
pub use pteros_msg::key::{KeyHash, KeyReader};
pub use writer_instances::{InstanceRefusal, WriterInstances};
