//! Within a process a message that is given away arrives as it is: the same
//! bytes at the same place, never serialized.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let camera = context.node("camera")?;
    let viewer = context.node("viewer")?;
    let subscription = viewer.create_polled_subscription::<Image>("image", 1)?;
    let publisher = camera.create_publisher::<Image>("image", 1)?;
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
        .ok_or("no image came")?;
    println!("same memory: {}", std::ptr::eq(&*received, &*image));
    println!("serialized: {} times", publisher.counts().serialized);
    Ok(())
}
