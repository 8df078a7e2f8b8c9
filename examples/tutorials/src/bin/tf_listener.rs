//! Transforms: where a point seen by the laser lies on the map.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::geometry_msgs::msg::PointStamped;
use pteros::prelude::*;
use pteros::tf::{LATEST, TransformListener};

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("tf_listener")?;
    let transforms = TransformListener::new(&node)?;
    let laser =
        transforms.lookup_transform_within("map", "laser", LATEST, Duration::from_secs(10))?;
    let translation = &laser.transform.translation;
    println!("laser at ({:.2}, {:.2})", translation.x, translation.y);

    let mut obstacle = PointStamped::default();
    obstacle.header.stamp = laser.header.stamp;
    obstacle.header.frame_id = "laser".into();
    obstacle.point.x = 1.0;
    let obstacle = transforms.buffer().transform(&obstacle, "map")?;
    println!(
        "obstacle at ({:.2}, {:.2})",
        obstacle.point.x, obstacle.point.y
    );
    Ok(())
}
