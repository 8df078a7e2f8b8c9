//! Where things are: coordinate frames and the transforms between them, as tf2.
//!
//! A [`TransformListener`] hears `/tf` and `/tf_static` for all nodes of the process,
//! a [`TransformBuffer`] answers, [`TransformBroadcaster`] and
//! [`StaticTransformBroadcaster`] tell. `docs/tf.md` has the whole of it.

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
pub use buffer::{TransformBuffer, TransformBufferOptions, TransformWait};
pub use error::{BroadcastError, Link, LookupError, TransformRefused};
pub use isometry::Isometry;
pub use listener::TransformListener;
pub use report::FrameReport;
pub use transformable::Transformable;

pub(crate) use listener::TransformEars;

use crate::clock::Time;

/// Asks for the latest time at which all frames between two are known.
pub const LATEST: Time = Time::from_nanos(0);
