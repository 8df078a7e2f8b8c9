//! How many samples and instances an endpoint keeps (RESOURCE_LIMITS, DDS 1.4
//! §2.2.3.19), and the limits where the policy names none.

use pteros_rtps::qos::ResourceLimits;

/// Limit of KEEP_ALL queues without RESOURCE_LIMITS: at 1 kHz, five seconds of a
/// stalled reader.
pub const KEEP_ALL_SAMPLES_DEFAULT: usize = 5_000;

/// The sample limit of RESOURCE_LIMITS. Without keys there is one instance, so the
/// tighter limit applies.
pub fn samples_max(limits: &ResourceLimits) -> Option<usize> {
    let bounds = [limits.max_samples, limits.max_samples_per_instance];
    let tighter = bounds.into_iter().flatten().min()?;
    Some(tighter.max(1) as usize)
}

/// Maximum number of instances of a publisher or subscription, when RESOURCE_LIMITS
/// names none.
pub const INSTANCES_MAX_DEFAULT: usize = 10_000;

/// How many samples may wait at a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampleLimits {
    /// The most of one instance; equal to `total` on a topic without a key.
    pub per_instance: usize,
    /// Of all instances.
    pub total: usize,
}

impl SampleLimits {
    /// The limits of a topic without a key.
    pub fn without_key(total: usize) -> Self {
        Self {
            per_instance: total,
            total,
        }
    }
}
