//! What a store keeps: the DURABILITY_SERVICE policy (DDS 1.4 §2.2.3.5) and a
//! limit on bytes.

/// Samples that a KEEP_ALL store holds when RESOURCE_LIMITS name no number; as
/// many as a living KEEP_ALL publisher keeps.
pub const SAMPLES_MAX_DEFAULT: usize = 5_000;

/// Bytes of samples in one store unless told otherwise: what a living
/// publisher keeps in memory, for all of a store is loaded when it is opened.
pub const BYTES_MAX_DEFAULT: u64 = 256 << 20;

/// How many samples of each instance are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// The newest; at least one.
    KeepLast(usize),
    /// All, up to the limits.
    KeepAll,
}

/// What stays in the store.
///
/// Beyond `samples_max` or `bytes_max` a KEEP_LAST store drops its oldest
/// sample; a KEEP_ALL store takes no new one and says so, and nothing that is
/// in it goes. An instance beyond `instances_max` is not taken by either.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// How many of each instance.
    pub depth: Depth,
    /// Samples over all instances.
    pub samples_max: usize,
    /// Instances.
    pub instances_max: usize,
    /// Samples of one instance.
    pub samples_per_instance_max: usize,
    /// Bytes of all samples. The file is larger: pages are not cut to size,
    /// and a change is written beside what it replaces.
    pub bytes_max: u64,
    /// How long an instance that ended is kept, nanoseconds; negative: for
    /// ever.
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
    /// Samples of one instance, and whether the oldest makes room.
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
