//! Coordinate frames and transforms, as tf2.
//!
//! A [`TransformListener`] subscribes to `/tf` and `/tf_static` for all nodes of
//! the process. A [`TransformBuffer`] (the tf buffer) stores transforms and
//! interpolates. [`TransformBroadcaster`] and [`StaticTransformBroadcaster`]
//! publish. See `docs/tutorials/transforms.md`.

mod broadcaster;
mod buffer;
mod error;
mod history;
mod isometry;
mod listener;
mod report;
mod transformable;
mod tree;

pub use broadcaster::{StaticTransformBroadcaster, TransformBroadcaster};
pub use buffer::{TransformBuffer, TransformBufferOptions, TransformFuture};
pub use error::{FrameEdge, InvalidTransform, LookupError};
pub use isometry::Isometry;
pub use listener::TransformListener;
pub use report::FrameInfo;
pub use transformable::Transformable;

use crate::time::Time;

/// Requests the latest time at which all frames between two are known (tf2's
/// TimePointZero).
pub const LATEST: Time = Time::from_nanos(0);
