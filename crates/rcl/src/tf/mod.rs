//! tf buffer: transforms of the last seconds, look-ups with interpolation, and the
//! texts of their errors (tf2's `BufferCore`).

mod buffer;
mod error;
mod history;
mod isometry;
mod report;
mod transformable;
mod tree;

pub use buffer::{TransformBuffer, TransformBufferOptions, TransformFuture, empty_frame_id_error};
pub use error::{FrameEdge, InvalidTransform, LookupError};
pub use isometry::Isometry;
pub use report::FrameInfo;
pub use transformable::Transformable;
pub use tree::{Authority, check, without_leading_slash};

use crate::time::Time;

/// Requests the latest time at which all frames between two are known (tf2's
/// TimePointZero).
pub const LATEST: Time = Time::from_nanos(0);
