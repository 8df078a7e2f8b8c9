//! Image source component, a camera replacement.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;

use crate::period::period;

/// Publishes grey images (`mono8`) of a moving diagonal wave on `image`. The pixels
/// are written into loaned messages.
///
/// Parameters: `rate` in images per second, 30 by default; `width` and `height` in
/// pixels, 640 and 480 by default.
pub struct ImageSource {
    node: Node,
    _timer: Timer,
}

/// Largest side in pixels. A larger message could exceed the message size limit.
const SIDE_MAX: i64 = 16_384;

impl Component for ImageSource {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("image_source"))?;
        let rate = node.declare_parameter("rate", 30.0)?.value();
        let width = side(&node, "width", 640)?;
        let height = side(&node, "height", 480)?;
        let publisher = node.create_publisher::<Image>("image".sensor_data())?;
        let mut image = Image {
            width,
            height,
            step: width,
            encoding: "mono8".into(),
            ..Image::default()
        };
        image.header.frame_id = "camera".into();
        let (mut count, name) = (0_usize, node.logger_name());
        let timer = node.create_timer(period(rate)?, move || {
            count += 1;
            let pixels = width as usize * height as usize;
            let sent = publisher
                .borrow_loaned_sequence(&mut image, |image| &mut image.data, pixels)
                .and_then(|mut loan| {
                    wave(&mut loan, width as usize, count);
                    publisher.publish_loaned(loan)
                });
            if let Err(error) = sent {
                tracing::warn!("[{name}] {error}");
            }
        })?;
        Ok(Self {
            node,
            _timer: timer,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

fn side(node: &Node, name: &str, default: i64) -> Result<u32, ComponentError> {
    let pixels = node.declare_parameter(name, default)?.value();
    let fits = (1..=SIDE_MAX).contains(&pixels);
    let pixels_or = u32::try_from(pixels).ok().filter(|_| fits);
    pixels_or.ok_or_else(|| {
        format!("parameter '{name}' = {pixels}: give a number of pixels from 1 to {SIDE_MAX}")
            .into()
    })
}

/// Brightness grows along the diagonal and wraps after 256 pixels.
fn wave(pixels: &mut [u8], width: usize, shift: usize) {
    for (y, row) in pixels.chunks_mut(width).enumerate() {
        for (x, pixel) in row.iter_mut().enumerate() {
            *pixel = (x + y + shift) as u8;
        }
    }
}
