//! Retention: the samples that a store keeps, by the DURABILITY_SERVICE policy (DDS
//! 1.4 §2.2.3.5) and a limit on bytes.

/// Sample limit of a KEEP_ALL store without RESOURCE_LIMITS, as for a KEEP_ALL
/// publisher in memory.
pub const SAMPLES_MAX_DEFAULT: usize = 5_000;

/// Default limit of the bytes of a store's samples, as for a publisher's cache in
/// memory, because a store is loaded whole when it is opened.
pub const BYTES_MAX_DEFAULT: u64 = 256 << 20;

/// Samples kept per instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// The newest ones; at least one.
    KeepLast(usize),
    /// All, up to the limits.
    KeepAll,
}

/// Limits of a store.
///
/// Beyond `samples_max` or `bytes_max` a KEEP_LAST store drops its oldest sample; a
/// KEEP_ALL store refuses the new one and reports it, and keeps its samples. Both
/// refuse an instance beyond `instances_max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// Samples per instance.
    pub depth: Depth,
    /// Samples over all instances.
    pub samples_max: usize,
    /// Instances at a time; one more is refused.
    pub instances_max: usize,
    /// Samples of each instance, in addition to `samples_max`.
    pub samples_per_instance_max: usize,
    /// Bytes of all samples. The file is larger: pages are not cut to size,
    /// and a change is written beside what it replaces.
    pub bytes_max: u64,
    /// How long a disposed instance is kept, nanoseconds; negative: forever.
    pub cleanup_nanos: i64,
}

impl Default for Retention {
    /// The newest ten samples, within [`BYTES_MAX_DEFAULT`].
    fn default() -> Self {
        Self {
            depth: Depth::KeepLast(10),
            samples_max: usize::MAX,
            instances_max: usize::MAX,
            samples_per_instance_max: usize::MAX,
            bytes_max: BYTES_MAX_DEFAULT,
            cleanup_nanos: 0,
        }
    }
}

impl Retention {
    /// Limit of samples per instance, and whether the oldest is dropped at the
    /// limit.
    pub(crate) fn per_instance(&self) -> (usize, bool) {
        let limit = self.samples_per_instance_max.max(1);
        match self.depth {
            Depth::KeepLast(depth) => (depth.max(1).min(limit), true),
            Depth::KeepAll => (limit, false),
        }
    }

    pub(crate) fn samples_max(&self) -> usize {
        match self.depth {
            Depth::KeepAll if self.samples_max == usize::MAX => SAMPLES_MAX_DEFAULT,
            _ => self.samples_max.max(1),
        }
    }
}
