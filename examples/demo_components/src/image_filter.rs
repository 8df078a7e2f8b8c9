//! Image filter component.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::sensor_msgs::msg::Image;
use pteros::prelude::*;
use pteros::subscription::{MessageView, in_place};

/// Converts the images of `image` to black and white and publishes them on
/// `image_filtered`. Both images stay in place (zero-copy): the filter reads and
/// writes shared memory, and nothing is copied on this host.
///
/// Parameter `threshold`: pixels of at least this brightness become white, 128 by
/// default. It may change at run time.
pub struct ImageFilter {
    node: Node,
    _images: Subscription<pteros::subscription::InPlaceMessage<Image>>,
}

impl Component for ImageFilter {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("image_filter"))?;
        let threshold = node.declare_parameter("threshold", 128_i64)?;
        let publisher = node.create_publisher::<Image>("image_filtered".sensor_data())?;
        let (mut filtered, name) = (Image::default(), node.logger_name());
        let images = node.create_subscription(
            "image".sensor_data(),
            in_place(move |image: MessageView<'_, Image>| {
                filtered.header.stamp = image.header.stamp;
                filtered.header.frame_id = image.header.frame_id.to_string();
                (filtered.width, filtered.height) = (image.width, image.height);
                filtered.step = image.step;
                filtered.encoding = image.encoding.to_string();
                let white_from = threshold.value();
                let sent = publisher
                    .borrow_loaned_sequence(
                        &mut filtered,
                        |image| &mut image.data,
                        image.data.len(),
                    )
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
            }),
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
