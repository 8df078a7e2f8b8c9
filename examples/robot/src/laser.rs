//! Simulated laser: ray casting from the robot's pose, `scan` and the frame
//! `laser`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::TimerOptions;
use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, TransformStamped};
use pteros::interfaces::sensor_msgs::msg::LaserScan;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;
use pteros::tf::{Isometry, StaticTransformBroadcaster};

use crate::floor_map::FloorMap;

/// Distance ahead of the base's centre in metres.
const LASER_OFFSET: f64 = 0.1;

/// A laser scanner with 360 degrees. Subscribes to `ground_truth`, publishes `scan`
/// with the sensor data QoS, and its transform on `/tf_static`.
///
/// Parameters: `rate` in Hz (10), `rays` (180), `range_max` in metres (6).
pub struct Laser {
    node: Node,
    _parts: (Subscription<PoseStamped>, Timer, StaticTransformBroadcaster),
}

impl Component for Laser {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("laser"))?;
        let rate = ParameterDescriptor::new().float_range(0.1, 100.0, 0.0);
        let rate = node.declare_parameter_with("rate", 10.0, rate.read_only())?;
        let rays = ParameterDescriptor::new().integer_range(4, 3_600, 1);
        let rays = node.declare_parameter_with("rays", 180_i64, rays)?;
        let reach = ParameterDescriptor::new().float_range(0.5, 100.0, 0.0);
        let reach = node.declare_parameter_with("range_max", 6.0, reach)?;
        let mount = Isometry::planar(LASER_OFFSET, 0.0, 0.0);
        let frames = StaticTransformBroadcaster::new(&node)?;
        let mut frame = TransformStamped::default();
        frame.header.frame_id = "base_link".into();
        frame.child_frame_id = "laser".into();
        frame.transform = mount.into();
        frames.send_transform(frame)?;
        let place = Arc::<Mutex<Option<PoseStamped>>>::default();
        let shared = place.clone();
        let poses =
            node.create_subscription::<PoseStamped>("ground_truth".keep_last(1), move |pose| {
                *shared.lock().expect("the lock is not poisoned") = Some(pose.into_inner());
            })?;
        let publisher = node.create_publisher::<LaserScan>("scan".sensor_data())?;
        let (floor, log) = (FloorMap::built_in(), node.logger());
        let every = Duration::from_secs_f64(1.0 / rate.value());
        let every_tick = TimerOptions::new(every).on_ros_time();
        let timer = node.create_timer(every_tick, move || {
            let Some(place) = place.lock().expect("the lock is not poisoned").clone() else {
                return;
            };
            let from = Isometry::from(&place.pose) * mount;
            let rays = u32::try_from(rays.value()).unwrap_or(180);
            let mut scan = scan(&floor, &from, rays, reach.value());
            scan.header.stamp = place.header.stamp;
            scan.scan_time = every.as_secs_f32();
            if let Err(error) = publisher.publish_owned(scan) {
                pteros::warn!(log, "{error}");
            }
        })?;
        Ok(Self {
            node,
            _parts: (poses, timer, frames),
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

/// The scan from a pose. A range beyond the maximum is infinite (REP 117).
#[expect(
    clippy::cast_possible_truncation,
    reason = "ROS's scans are single precision"
)]
fn scan(floor: &FloorMap, from: &Isometry, rays: u32, reach: f64) -> LaserScan {
    let [x, y, _] = from.translation;
    let yaw = from.yaw();
    let step = std::f64::consts::TAU / f64::from(rays);
    let angle = |ray| -std::f64::consts::PI + step * f64::from(ray);
    let range = |ray| match floor.cast_ray([x, y], yaw + angle(ray), reach) {
        range if range >= reach => f32::INFINITY,
        range => range as f32,
    };
    let mut scan = LaserScan::default();
    scan.header.frame_id = "laser".into();
    scan.angle_min = angle(0) as f32;
    scan.angle_max = angle(rays - 1) as f32;
    scan.angle_increment = step as f32;
    scan.range_min = 0.02;
    scan.range_max = reach as f32;
    scan.ranges = (0..rays).map(range).collect();
    scan
}
