//! Why a writer refuses a write.

use core::fmt;

/// Why the writer refused a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WriteError {
    /// KEEP_ALL, and the history is full of samples that some reliable reader has
    /// not acknowledged (back-pressure). Wait for [`WriterEvent::SpaceFreed`](super::WriterEvent::SpaceFreed), at
    /// most `max_blocking_time`, and try again.
    WouldBlock {
        /// Samples in the history.
        samples: usize,
        /// The limit on samples.
        samples_max: usize,
        /// Bytes in the history.
        bytes: usize,
        /// The limit on bytes.
        bytes_max: usize,
    },
    /// The sample is larger than the writer's limit.
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
}

pteros_msg::debug_as_display!(WriteError);

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WouldBlock {
                samples,
                samples_max,
                bytes,
                bytes_max,
            } => write!(
                f,
                "the history holds {samples} of {samples_max} samples and {bytes} of {bytes_max} \
                 bytes that a reader has not acknowledged; wait, or raise its resource limits"
            ),
            Self::TooLarge { bytes, bytes_max } => write!(
                f,
                "the sample has {bytes} bytes, the limit of the writer is {bytes_max}; raise its \
                 sample_bytes_max"
            ),
        }
    }
}

impl core::error::Error for WriteError {}
