//! Instances of keyed topics (DDS 1.4 §2.2.2.5.1): dispose, unregister, instance
//! and view states.
//!
//! The subscription side is `cache`, the publisher side `writer_instances`. Local
//! late joiners get their instances from `crate::local_history`. Topics without key
//! pay one check of an empty option.

mod cache;
mod instance_end;
mod instance_key;
mod keyed_ready_queue;
mod reader_instance;
#[cfg(test)]
mod tests;
mod timers;
mod writer_instances;

pub use pteros_dcps::instance::{
    INSTANCES_MAX_DEFAULT, InstanceInfo, InstanceState, KeyHash, KeyReader, SampleInstance,
    ViewState,
};
pub use pteros_dcps::qos::DataLifecycle;

pub(crate) use cache::{DropTotals, InstanceCache};
pub use instance_end::{InstanceEnd, InstanceIdentity};
pub use instance_key::TopicKey;
pub(crate) use instance_key::identify;
pub(crate) use writer_instances::{InstanceRefusal, WriterInstances};
