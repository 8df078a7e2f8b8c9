//! Limits of decoding, so that received bytes decide neither the depth of the stack
//! nor the size of an allocation.

/// Structures may be nested this deep; ROS types in use reach about 8.
pub const DEPTH_MAX: u8 = 64;

/// Limit of the memory for members that senders of older appendable types leave
/// out, in the inner structures of one payload: 1 MiB.
pub const MISSING_BYTES_MAX: usize = 1 << 20;

/// For the `bound` of sequences and strings that have none.
pub const UNBOUNDED: usize = usize::MAX;
