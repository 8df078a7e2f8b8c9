//! Intra-process communication: a message that is published by value arrives at the
//! same address, without serialization.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let camera = context.create_node("camera")?;
    let viewer = context.create_node("viewer")?;
    let subscription = viewer.create_polled_subscription::<Image>("image".keep_last(1))?;
    let publisher = camera.create_publisher::<Image>("image".keep_last(1))?;
    let image = Arc::new(Image {
        height: 1080,
        width: 1920,
        step: 1920 * 3,
        data: vec![0; 1920 * 1080 * 3],
        ..Image::default()
    });
    publisher.publish_arc(image.clone())?; // or publish_owned(image), given away for good
    let received = subscription
        .take_timeout(Duration::from_secs(5))
        .ok_or("no image received")?;
    println!("same memory: {}", std::ptr::eq(&*received, &*image));
    println!("serialized: {} times", publisher.counts().serialized);
    Ok(())
}
