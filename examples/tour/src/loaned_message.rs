//! Loaned messages (zero-copy): the publisher writes an image into memory borrowed
//! from the middleware. The subscription's callback reads the same memory, also in
//! another process. No pixel is copied.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;
use pteros::subscription::{MessageView, in_place};

const PIXELS: usize = 1920 * 1080;

pub fn main() -> Result<(), Box<dyn Error>> {
    // Two contexts communicate as two processes of a host do.
    let (camera, viewer) = (Context::new()?, Context::new()?);
    let (camera, viewer) = (camera.create_node("camera")?, viewer.create_node("viewer")?);
    let publisher = camera.create_publisher::<Image>("image".keep_last(1))?;
    let (sender, receiver) = mpsc::channel();
    let _images = viewer.create_subscription(
        "image".keep_last(1),
        in_place(move |image: MessageView<'_, Image>| {
            let brightest = image.data.iter().max().copied().unwrap_or(0);
            let path = image.info().delivery_path.name();
            let _ = sender.send(format!(
                "{}: brightest {brightest}, by {path}",
                image.encoding
            ));
        }),
    )?;
    publisher.wait_for_matched(1, Duration::from_secs(5));

    let mut image = Image {
        height: 1080,
        width: 1920,
        step: 1920,
        encoding: "mono8".into(),
        ..Image::default()
    };
    for shot in 1..=3 {
        let mut pixels =
            publisher.borrow_loaned_sequence(&mut image, |image| &mut image.data, PIXELS)?;
        pixels.fill(shot);
        publisher.publish_loaned(pixels)?;
        let mut line = None;
        let came = || {
            line = receiver.try_recv().ok();
            line.is_some()
        };
        viewer.spin_until(came, Duration::from_secs(5));
        println!("{}", line.ok_or("no image received")?);
    }
    Ok(())
}
