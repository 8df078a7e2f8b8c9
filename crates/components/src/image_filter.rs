//! Makes one image of another.

use pteros::View;
use pteros::component::{Component, ComponentError};
use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;

/// Turns the images of `image` to black and white and publishes them on
/// `image_filtered`. An image is read where its publisher wrote it, and the new
/// one is written where its readers read it: nothing is copied on this host.
/// Parameter `threshold`: what is as bright becomes white, 128 by default; it may
/// change while images come.
pub struct ImageFilter {
    node: Node,
    _images: Subscription<pteros::InPlace<Image>>,
}

impl Component for ImageFilter {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("image_filter"))?;
        let threshold = node.declare_parameter("threshold", 128_i64)?;
        let publisher =
            node.create_publisher::<Image>("image_filtered", QosProfile::sensor_data())?;
        let (mut filtered, name) = (Image::default(), node.logger_name());
        let images = node.create_view_subscription(
            "image",
            QosProfile::sensor_data(),
            move |image: View<'_, Image>| {
                filtered.header.stamp = image.header.stamp;
                filtered.header.frame_id = image.header.frame_id.to_string();
                (filtered.width, filtered.height) = (image.width, image.height);
                filtered.step = image.step;
                filtered.encoding = image.encoding.to_string();
                let white_from = threshold.value();
                let sent = publisher
                    .loan_sequence(&mut filtered, |image| &mut image.data, image.data.len())
                    .and_then(|mut loan| {
                        for (new, old) in loan.iter_mut().zip(image.data.iter()) {
                            *new = if i64::from(*old) >= white_from {
                                255
                            } else {
                                0
                            };
                        }
                        publisher.publish_loaned(loan)
                    });
                if let Err(error) = sent {
                    tracing::warn!("[{name}] {error}");
                }
            },
        )?;
        Ok(Self {
            node,
            _images: images,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}
