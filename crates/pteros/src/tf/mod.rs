//! Coordinate frames and transforms, as tf2.
//!
//! A [`TransformListener`] subscribes to `/tf` and `/tf_static` for all nodes of
//! the process. A [`TransformBuffer`] (the tf buffer) stores transforms and
//! interpolates. [`TransformBroadcaster`] and [`StaticTransformBroadcaster`]
//! publish. See `docs/tutorials/transforms.md`.

mod broadcaster;
mod listener;

pub use broadcaster::{StaticTransformBroadcaster, TransformBroadcaster};
pub use listener::TransformListener;
pub use pteros_rcl::tf::{
    FrameEdge, FrameInfo, InvalidTransform, Isometry, LATEST, LookupError, TransformBuffer,
    TransformBufferOptions, TransformFuture, Transformable,
};
