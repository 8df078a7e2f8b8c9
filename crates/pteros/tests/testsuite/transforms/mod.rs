//! tf: look-ups against a reference model, errors, broadcasters and listeners.

#![allow(clippy::disallowed_methods, reason = "a thread waits beside a spin")]

mod buffer;
mod nodes;
mod reference_model;

use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::tf::Isometry;

/// `child` in `parent` at a time in milliseconds.
fn at(millis: i64, parent: &str, child: &str, isometry: Isometry) -> TransformStamped {
    let mut transform = TransformStamped::default();
    transform.header.stamp = ms(millis).into();
    transform.header.frame_id = parent.into();
    transform.child_frame_id = child.into();
    transform.transform = isometry.into();
    transform
}

fn ms(millis: i64) -> Time {
    Time::from_nanos(millis * 1_000_000)
}

/// A translation by `x`.
fn ahead(x: f64) -> Isometry {
    Isometry::planar(x, 0.0, 0.0)
}
