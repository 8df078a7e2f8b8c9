//! An image written and read where it lies: the publisher fills memory that it
//! was lent, the subscription's callback reads just that memory, in another
//! process as well. Nobody copies a pixel.

use std::error::Error;
use std::sync::mpsc;
use std::time::Duration;

use pteros::View;
use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;

const PIXELS: usize = 1920 * 1080;

pub fn main() -> Result<(), Box<dyn Error>> {
    // Two contexts are to each other what two processes of a host are.
    let (camera, viewer) = (Context::new()?, Context::new()?);
    let (camera, viewer) = (camera.node("camera")?, viewer.node("viewer")?);
    let publisher = camera.create_publisher::<Image>("image", 1)?;
    let (tell, told) = mpsc::channel();
    let _images = viewer.create_view_subscription("image", 1, move |image: View<'_, Image>| {
        let brightest = image.data.iter().max().copied().unwrap_or(0);
        let path = image.info().path.name();
        let _ = tell.send(format!(
            "{}: brightest {brightest}, by {path}",
            image.encoding
        ));
    })?;
    publisher.wait_for_matched(1, Duration::from_secs(5));

    let mut image = Image {
        height: 1080,
        width: 1920,
        step: 1920,
        encoding: "mono8".into(),
        ..Image::default()
    };
    for shot in 1..=3 {
        let mut pixels = publisher.loan_sequence(&mut image, |image| &mut image.data, PIXELS)?;
        pixels.fill(shot);
        publisher.publish_loaned(pixels)?;
        let mut line = None;
        let came = || {
            line = told.try_recv().ok();
            line.is_some()
        };
        viewer.spin_until(came, Duration::from_secs(5));
        println!("{}", line.ok_or("no image came")?);
    }
    Ok(())
}
