//! Policies for instances that end, of both sides (autodispose, autopurge).

use pteros_rtps::time::Duration;

use crate::sample::instance_info::InstanceState;

/// WRITER_DATA_LIFECYCLE and READER_DATA_LIFECYCLE (DDS 1.4 §2.2.3.21–22). They
/// apply to one side only and are not announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataLifecycle {
    /// Whether unregistering an instance, or dropping its publisher, disposes of it
    /// too.
    pub autodispose_unregistered_instances: bool,
    /// When the rest of an instance without writers is purged.
    pub autopurge_nowriter_samples_delay: Duration,
    /// When the rest of a disposed instance is purged.
    pub autopurge_disposed_samples_delay: Duration,
}

impl DataLifecycle {
    /// The purge delay of an instance that ended in this state.
    pub fn purge_delay(&self, state: InstanceState) -> Duration {
        match state {
            InstanceState::NoWriters => self.autopurge_nowriter_samples_delay,
            _ => self.autopurge_disposed_samples_delay,
        }
    }
}

impl Default for DataLifecycle {
    /// The defaults of DDS: autodispose, never purge.
    fn default() -> Self {
        Self {
            autodispose_unregistered_instances: true,
            autopurge_nowriter_samples_delay: Duration::INFINITE,
            autopurge_disposed_samples_delay: Duration::INFINITE,
        }
    }
}
