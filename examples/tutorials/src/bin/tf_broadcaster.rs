//! Transforms: a laser that is fixed to a robot, and a robot that drives a circle.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::prelude::*;
use pteros::tf::{Isometry, StaticTransformBroadcaster, TransformBroadcaster};

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("tf_broadcaster")?;

    let mut laser = TransformStamped::default();
    laser.header.stamp = node.now().into();
    laser.header.frame_id = "base_link".into();
    laser.child_frame_id = "laser".into();
    laser.transform = Isometry::planar(0.2, 0.0, 0.0).into();
    let fixed = StaticTransformBroadcaster::new(&node)?;
    fixed.send_transform(laser)?;

    let moving = TransformBroadcaster::new(&node)?;
    let clock = node.clock();
    let mut angle = 0.0_f64;
    let _timer = node.create_timer(Duration::from_millis(50), move || {
        angle += 0.01;
        let mut robot = TransformStamped::default();
        robot.header.stamp = clock.now().into();
        robot.header.frame_id = "map".into();
        robot.child_frame_id = "base_link".into();
        robot.transform = Isometry::planar(2.0 * angle.cos(), 2.0 * angle.sin(), angle).into();
        if let Err(error) = moving.send_transform(robot) {
            eprintln!("{error}");
        }
    })?;
    println!("broadcasting");
    node.spin();
    Ok(())
}
