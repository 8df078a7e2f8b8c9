//! Transform broadcasters: publishers of `/tf` and `/tf_static`, as tf2_ros.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_interfaces::tf2_msgs::msg::TFMessage;
use pteros_runtime::error::PublishError;

use crate::error::CreateError;
use crate::named_qos::NamedQosExt;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::qos::QosProfile;
use pteros_rcl::tf::{InvalidTransform, check, without_leading_slash};

/// Publishes transforms that change, on `/tf`. Cheap to clone, thread-safe.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::TransformStamped;
/// use pteros::prelude::*;
/// use pteros::tf::{Isometry, TransformBroadcaster};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.create_node("odometry")?;
/// let broadcaster = TransformBroadcaster::new(&node)?;
/// let mut base = TransformStamped::default();
/// base.header.stamp = node.now().into();
/// base.header.frame_id = "odom".into();
/// base.child_frame_id = "base_link".into();
/// base.transform = Isometry::planar(1.0, 2.0, 0.5).into();
/// broadcaster.send_transform(base)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TransformBroadcaster {
    publisher: Publisher<TFMessage>,
}

impl TransformBroadcaster {
    /// Creates a publisher of `/tf` with ROS 2's QoS.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        let publisher = node.create_publisher("/tf".qos(QosProfile::tf()))?;
        Ok(Self { publisher })
    }

    /// Publishes a transform.
    ///
    /// # Errors
    /// See [`PublishError`]; what every reader would refuse is not sent.
    pub fn send_transform(&self, transform: TransformStamped) -> Result<(), PublishError> {
        self.send_transforms(vec![transform])
    }

    /// Publishes several transforms in one message; all, or none if one is invalid.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn send_transforms(&self, transforms: Vec<TransformStamped>) -> Result<(), PublishError> {
        let transforms = checked(transforms).map_err(|reason| invalid(&self.publisher, &reason))?;
        self.publisher.publish_owned(TFMessage { transforms })?;
        Ok(())
    }

    /// The publisher of the transforms, for its matches and counts.
    pub fn publisher(&self) -> &Publisher<TFMessage> {
        &self.publisher
    }
}

/// Publishes static transforms on `/tf_static`. Cheap to clone, thread-safe.
///
/// Each message has all transforms of this broadcaster, so that a late joiner gets
/// them with the last one (transient local). They are no longer available to late
/// joiners when the last clone is dropped.
#[derive(Clone)]
pub struct StaticTransformBroadcaster {
    publisher: Publisher<TFMessage>,
    sent: Arc<Mutex<Vec<TransformStamped>>>,
}

impl StaticTransformBroadcaster {
    /// Creates a publisher of `/tf_static` with ROS 2's QoS.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        Ok(Self {
            publisher: node.create_publisher("/tf_static".qos(QosProfile::tf_static()))?,
            sent: Arc::default(),
        })
    }

    /// Publishes a transform together with the earlier ones.
    ///
    /// It replaces an earlier one of the same child frame.
    ///
    /// # Errors
    /// See [`PublishError`]; what every reader would refuse is not sent.
    pub fn send_transform(&self, transform: TransformStamped) -> Result<(), PublishError> {
        self.send_transforms(vec![transform])
    }

    /// As [`StaticTransformBroadcaster::send_transform`] for several transforms;
    /// all or none.
    ///
    /// # Errors
    /// See [`PublishError`].
    pub fn send_transforms(&self, transforms: Vec<TransformStamped>) -> Result<(), PublishError> {
        let new = checked(transforms).map_err(|reason| invalid(&self.publisher, &reason))?;
        // Held while publishing: the last message must have all transforms.
        let mut sent = self.sent.lock();
        for transform in new {
            let same = |known: &&mut TransformStamped| {
                without_leading_slash(&known.child_frame_id)
                    == without_leading_slash(&transform.child_frame_id)
            };
            match sent.iter_mut().find(same) {
                Some(known) => *known = transform,
                None => sent.push(transform),
            }
        }
        let transforms = sent.clone();
        self.publisher.publish_owned(TFMessage { transforms })?;
        Ok(())
    }

    /// The publisher of the transforms, for its matches and counts.
    pub fn publisher(&self) -> &Publisher<TFMessage> {
        &self.publisher
    }
}

impl fmt::Debug for StaticTransformBroadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTransformBroadcaster")
            .field("transforms", &self.sent.lock().len())
            .finish()
    }
}

fn checked(transforms: Vec<TransformStamped>) -> Result<Vec<TransformStamped>, InvalidTransform> {
    transforms.iter().try_for_each(check)?;
    Ok(transforms)
}

fn invalid(publisher: &Publisher<TFMessage>, reason: &InvalidTransform) -> PublishError {
    PublishError::Invalid {
        topic: publisher.topic().into(),
        reason: reason.to_string(),
    }
}
