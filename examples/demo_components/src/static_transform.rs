//! `StaticTransformPublisher`: a static transform between two frames, set by
//! parameters.

use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;
use pteros::tf::StaticTransformBroadcaster;

/// Publishes one transform on `/tf_static`, as tf2's static_transform_publisher
/// does.
///
/// Parameters: `frame_id` and `child_frame_id`, required; `translation.x`, `.y`,
/// `.z` in metres, and `rotation.x`, `.y`, `.z`, `.w`, the identity by default.
/// Invalid transforms are refused with the reason.
pub struct StaticTransformPublisher {
    node: Node,
    _frames: StaticTransformBroadcaster,
}

impl Component for StaticTransformPublisher {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("static_transform_publisher"))?;
        let frame = |name, what: &str| {
            let descriptor = ParameterDescriptor::new().description(what).read_only();
            let frame = node.declare_required_parameter::<String>(name, descriptor)?;
            Ok::<_, ComponentError>(frame.value())
        };
        let number = |name: &str, default: f64| {
            let descriptor = ParameterDescriptor::new().read_only();
            let number = node.declare_parameter_with(name, default, descriptor)?;
            Ok::<_, ComponentError>(number.value())
        };
        let mut transform = TransformStamped {
            child_frame_id: frame("child_frame_id", "child frame of the transform")?,
            ..TransformStamped::default()
        };
        transform.header.frame_id = frame("frame_id", "parent frame of the transform")?;
        transform.header.stamp = node.now().into();
        let moved = &mut transform.transform.translation;
        for (name, axis) in [
            ("x", &mut moved.x),
            ("y", &mut moved.y),
            ("z", &mut moved.z),
        ] {
            *axis = number(&format!("translation.{name}"), 0.0)?;
        }
        let turned = &mut transform.transform.rotation;
        for (name, part, default) in [
            ("x", &mut turned.x, 0.0),
            ("y", &mut turned.y, 0.0),
            ("z", &mut turned.z, 0.0),
            ("w", &mut turned.w, 1.0),
        ] {
            *part = number(&format!("rotation.{name}"), default)?;
        }
        let frames = StaticTransformBroadcaster::new(&node)?;
        frames.send_transform(transform)?;
        Ok(Self {
            node,
            _frames: frames,
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}
