//! What says where frames are: publishers of `/tf` and `/tf_static`.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_interfaces::tf2_msgs::msg::TFMessage;

use super::error::{BroadcastError, TransformRefused};
use super::tree::{bare, check};
use crate::error::CreateError;
use crate::node::Node;
use crate::publisher::Publisher;
use crate::qos::QosProfile;

/// Publishes transforms that change, on `/tf`. Cheap to clone, thread-safe.
///
/// ```no_run
/// use pteros::interfaces::geometry_msgs::msg::TransformStamped;
/// use pteros::prelude::*;
/// use pteros::tf::{Isometry, TransformBroadcaster};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let node = Context::new()?.node("odometry")?;
/// let broadcaster = TransformBroadcaster::new(&node)?;
/// let mut base = TransformStamped::default();
/// base.header.stamp = node.now().into();
/// base.header.frame_id = "odom".into();
/// base.child_frame_id = "base_link".into();
/// base.transform = Isometry::planar(1.0, 2.0, 0.5).into();
/// broadcaster.send(base)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TransformBroadcaster {
    publisher: Publisher<TFMessage>,
}

impl TransformBroadcaster {
    /// A publisher of `/tf` with ROS 2's QoS.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        let publisher = node.create_publisher("/tf", QosProfile::tf())?;
        Ok(Self { publisher })
    }

    /// Publishes a transform.
    ///
    /// # Errors
    /// See [`BroadcastError`]; what every reader would refuse is not sent.
    pub fn send(&self, transform: TransformStamped) -> Result<(), BroadcastError> {
        self.send_all(vec![transform])
    }

    /// Publishes several in one message; all or, if one is refused, none.
    ///
    /// # Errors
    /// See [`BroadcastError`].
    pub fn send_all(&self, transforms: Vec<TransformStamped>) -> Result<(), BroadcastError> {
        let transforms = checked(transforms)?;
        self.publisher.publish_owned(TFMessage { transforms })?;
        Ok(())
    }

    /// The publisher.
    pub fn publisher(&self) -> &Publisher<TFMessage> {
        &self.publisher
    }
}

/// Publishes transforms that always hold, on `/tf_static`. Each message has all of
/// this broadcaster, so that who comes late gets them with the last one. Cheap to
/// clone, thread-safe; when the last clone is dropped they are told to no newcomer.
#[derive(Clone)]
pub struct StaticTransformBroadcaster {
    publisher: Publisher<TFMessage>,
    told: Arc<Mutex<Vec<TransformStamped>>>,
}

impl StaticTransformBroadcaster {
    /// A publisher of `/tf_static` with ROS 2's QoS.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn new(node: &Node) -> Result<Self, CreateError> {
        Ok(Self {
            publisher: node.create_publisher("/tf_static", QosProfile::tf_static())?,
            told: Arc::default(),
        })
    }

    /// Publishes a transform with those before; one of the same child frame takes the
    /// place of the earlier.
    ///
    /// # Errors
    /// See [`BroadcastError`]; what every reader would refuse is not sent.
    pub fn send(&self, transform: TransformStamped) -> Result<(), BroadcastError> {
        self.send_all(vec![transform])
    }

    /// As [`StaticTransformBroadcaster::send`], of several; all or none.
    ///
    /// # Errors
    /// See [`BroadcastError`].
    pub fn send_all(&self, transforms: Vec<TransformStamped>) -> Result<(), BroadcastError> {
        let new = checked(transforms)?;
        // Held while it is published: the last message must have them all.
        let mut told = self.told.lock();
        for transform in new {
            let same = |known: &&mut TransformStamped| {
                bare(&known.child_frame_id) == bare(&transform.child_frame_id)
            };
            match told.iter_mut().find(same) {
                Some(known) => *known = transform,
                None => told.push(transform),
            }
        }
        let transforms = told.clone();
        self.publisher.publish_owned(TFMessage { transforms })?;
        Ok(())
    }

    /// The publisher.
    pub fn publisher(&self) -> &Publisher<TFMessage> {
        &self.publisher
    }
}

impl fmt::Debug for StaticTransformBroadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTransformBroadcaster")
            .field("transforms", &self.told.lock().len())
            .finish()
    }
}

fn checked(transforms: Vec<TransformStamped>) -> Result<Vec<TransformStamped>, TransformRefused> {
    transforms.iter().try_for_each(check)?;
    Ok(transforms)
}
