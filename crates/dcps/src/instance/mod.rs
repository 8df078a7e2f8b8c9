//! Instances of keyed topics (DDS 1.4 §2.2.2.5.1): instance and view states.

pub(crate) mod state;

pub use pteros_msg::key::{KeyHash, KeyReader};

pub use state::{INSTANCES_MAX_DEFAULT, InstanceInfo, InstanceState, SampleInstance, ViewState};
