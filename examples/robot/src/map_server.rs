//! Map server: `map`, and the transform of the odometry's origin.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::interfaces::nav_msgs::msg::OccupancyGrid;
use pteros::prelude::*;
use pteros::tf::{Isometry, StaticTransformBroadcaster};

use crate::floor_map::FloorMap;

/// Publishes `map`, transient local, and the transform of `map` to `odom` on
/// `/tf_static`. The start pose is known, and the odometry is accurate enough for
/// this building.
///
/// Parameter `start`: x, y, yaw of the start pose, equal to that of the base.
pub struct MapServer {
    node: Node,
    _parts: (Publisher<OccupancyGrid>, StaticTransformBroadcaster),
}

impl Component for MapServer {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("map_server"))?;
        let start = node
            .declare_parameter("start", crate::START.to_vec())?
            .value();
        let [x, y, yaw] = start[..] else {
            let message = format!("parameter 'start' = {start:?}: x, y and yaw are three numbers");
            return Err(message.into());
        };
        let latched = QosProfile::default().keep_last(1).transient_local();
        let publisher = node.create_publisher::<OccupancyGrid>("map".qos(latched))?;
        let mut map = FloorMap::built_in().map();
        map.header.frame_id = "map".into();
        map.header.stamp = node.now().into();
        map.info.map_load_time = map.header.stamp;
        publisher.publish_owned(map)?;
        let frames = StaticTransformBroadcaster::new(&node)?;
        let mut frame = TransformStamped::default();
        frame.header.frame_id = "map".into();
        frame.child_frame_id = "odom".into();
        frame.transform = Isometry::planar(x, y, yaw).into();
        frames.send_transform(frame)?;
        Ok(Self {
            node,
            _parts: (publisher, frames),
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}
