//! An image that is written into a loaned message and read in place.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;
use pteros::subscription::{MessageView, in_place};

/// Publishes one image in `context` and returns its brightest pixel, read by a view.
pub fn run(context: &Context) -> Result<Option<u8>, Box<dyn Error>> {
    let node = context.create_node("camera")?;
    let publisher = node.create_publisher::<Image>("image".keep_last(2))?;
    let (sender, receiver) = mpsc::channel();
    let _images = node.create_subscription(
        "image".keep_last(2),
        in_place(move |image: MessageView<'_, Image>| {
            // A slice of the memory that the publisher wrote.
            let _ = sender.send(image.data.iter().max().copied());
        }),
    )?;
    publisher.wait_for_matched(1, Duration::from_secs(5));

    let mut image = Image {
        width: 640,
        height: 480,
        step: 640,
        encoding: "mono8".into(),
        ..Image::default()
    };
    // All fields of `image` but the pixels are written now, the pixels in place.
    let mut pixels =
        publisher.borrow_loaned_sequence(&mut image, |image| &mut image.data, 640 * 480)?;
    pixels.fill(10);
    pixels[77] = 200;
    publisher.publish_loaned(pixels)?;

    let mut brightest = None;
    let has_arrived = || {
        brightest = receiver.try_recv().ok();
        brightest.is_some()
    };
    node.spin_until(has_arrived, Duration::from_secs(5));
    Ok(brightest.flatten())
}
