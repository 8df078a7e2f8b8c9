//! Transformable messages: stamped messages with a pose, point or vector.

use pteros_interfaces::geometry_msgs::msg::{
    Point, PointStamped, Pose, PoseStamped, Quaternion, QuaternionStamped, TransformStamped,
    Vector3, Vector3Stamped,
};
use pteros_interfaces::std_msgs::msg::Header;

use super::isometry::Isometry;

/// A message that [`TransformBuffer::transform`](super::TransformBuffer::transform)
/// accepts.
///
/// Implement it for your own messages.
pub trait Transformable: Sized {
    /// Its frame and stamp.
    fn header(&self) -> &Header;

    /// The message in the frame of `by`'s header. Its header names that frame; its
    /// stamp stays.
    fn transformed(&self, by: &TransformStamped) -> Self;
}

/// The header with another frame.
fn transformed_header(header: &Header, by: &TransformStamped) -> Header {
    Header {
        stamp: header.stamp,
        frame_id: by.header.frame_id.clone(),
    }
}

impl Transformable for PointStamped {
    fn header(&self) -> &Header {
        &self.header
    }

    fn transformed(&self, by: &TransformStamped) -> Self {
        let Point { x, y, z } = self.point;
        let [x, y, z] = Isometry::from(&by.transform).point([x, y, z]);
        Self {
            header: transformed_header(&self.header, by),
            point: Point { x, y, z },
        }
    }
}

impl Transformable for Vector3Stamped {
    fn header(&self) -> &Header {
        &self.header
    }

    fn transformed(&self, by: &TransformStamped) -> Self {
        let Vector3 { x, y, z } = self.vector;
        let [x, y, z] = Isometry::from(&by.transform).vector([x, y, z]);
        Self {
            header: transformed_header(&self.header, by),
            vector: Vector3 { x, y, z },
        }
    }
}

impl Transformable for QuaternionStamped {
    fn header(&self) -> &Header {
        &self.header
    }

    fn transformed(&self, by: &TransformStamped) -> Self {
        let Quaternion { x, y, z, w } = self.quaternion;
        let [x, y, z, w] = Isometry::from(&by.transform).orientation([x, y, z, w]);
        Self {
            header: transformed_header(&self.header, by),
            quaternion: Quaternion { x, y, z, w },
        }
    }
}

impl Transformable for PoseStamped {
    fn header(&self) -> &Header {
        &self.header
    }

    fn transformed(&self, by: &TransformStamped) -> Self {
        let pose = Isometry::from(&by.transform) * Isometry::from(&self.pose);
        Self {
            header: transformed_header(&self.header, by),
            pose: Pose::from(pose),
        }
    }
}

/// The pose of frame `child_frame_id`, in another frame.
impl Transformable for TransformStamped {
    fn header(&self) -> &Header {
        &self.header
    }

    fn transformed(&self, by: &TransformStamped) -> Self {
        let transform = Isometry::from(&by.transform) * Isometry::from(&self.transform);
        Self {
            header: transformed_header(&self.header, by),
            child_frame_id: self.child_frame_id.clone(),
            transform: transform.into(),
        }
    }
}
