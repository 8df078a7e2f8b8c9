//! Frames and transforms: the look-ups against a plain reference, the errors, and
//! nodes that tell and hear.

#![allow(
    clippy::disallowed_methods,
    reason = "a thread waits while another spins"
)]

mod nodes;
mod oracle;
mod words;

use pteros::clock::Time;
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::tf::Isometry;

/// `child` in `parent` at so many milliseconds.
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

/// `x` ahead.
fn ahead(x: f64) -> Isometry {
    Isometry::planar(x, 0.0, 0.0)
}
