//! Simulated base: subscribes to `cmd_vel`, publishes `odom` and the transform of
//! `base_link`.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::TimerOptions;
use pteros::clock::Time;
use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, TransformStamped, Twist};
use pteros::interfaces::nav_msgs::msg::Odometry;
use pteros::interfaces::std_msgs::msg::Header;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;
use pteros::tf::TransformBroadcaster;

use crate::diff_drive::{DiffDrive, DriveGeometry, planar_pose};
use crate::floor_map::FloorMap;

/// Period of the simulation.
const PERIOD: Duration = Duration::from_millis(20);
/// Without a new command for this long it stops.
const COMMAND_TIMEOUT: Duration = Duration::from_millis(500);

/// A differential drive in the building of this package. Subscribes to `cmd_vel`.
/// Publishes `odom`, the transform of `odom` to `base_link` on `/tf`, and
/// `ground_truth`, the pose in frame `map`, which a real robot does not have.
///
/// Parameters, metres, seconds and radians: `wheel_separation`, `wheel_radius`,
/// `wheel_speed_max`, `wheel_acceleration`, `radius`, `start` (x, y, yaw).
pub struct Base {
    node: Node,
    _parts: (Subscription<Twist>, Timer),
}

#[derive(Default)]
struct VelocityCommand {
    forward: f64,
    turning: f64,
    since: Time,
}

impl Component for Base {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.create_node(options.name("base"))?;
        let mut drive = DiffDrive::new(
            declare_geometry(&node)?,
            FloorMap::built_in(),
            declare_start(&node)?,
        );
        let (odometry, truth) = (
            node.create_publisher::<Odometry>("odom".keep_last(10))?,
            node.create_publisher::<PoseStamped>("ground_truth".keep_last(1))?,
        );
        let frames = TransformBroadcaster::new(&node)?;
        let wanted = Arc::<Mutex<VelocityCommand>>::default();
        let (shared, clock) = (wanted.clone(), node.clock());
        let commands =
            node.create_subscription::<Twist>("cmd_vel".keep_last(10), move |twist| {
                let command = VelocityCommand {
                    forward: twist.linear.x,
                    turning: twist.angular.z,
                    since: clock.now(),
                };
                if command.forward.is_finite() && command.turning.is_finite() {
                    *shared.lock().expect("the lock is not poisoned") = command;
                }
            })?;
        let (clock, log) = (node.clock(), node.logger());
        let mut last = clock.now();
        let every = TimerOptions::new(PERIOD).on_ros_time();
        let timer = node.create_timer(every, move || {
            let now = clock.now();
            // At most a tenth of a second per step, in case the clock stood still.
            let passed = now.since(last).min(Duration::from_millis(100));
            last = now;
            let (forward, turning) = {
                let wanted = wanted.lock().expect("the lock is not poisoned");
                if now.since(wanted.since) < COMMAND_TIMEOUT {
                    (wanted.forward, wanted.turning)
                } else {
                    (0.0, 0.0)
                }
            };
            let bumps = drive.bumps;
            drive.advance(passed.as_secs_f64(), forward, turning);
            if drive.bumps > bumps {
                pteros::warn!(log, "collided with a wall at {:?}", drive.truth);
            }
            let message = odometry
                .publish_owned(odometry_message(&drive, now))
                .and_then(|()| truth.publish_owned(ground_truth_message(&drive, now)));
            let frame = frames.send_transform(odom_transform(&drive, now));
            if let Err(error) = message.and(frame) {
                pteros::warn!(log, "{error}");
            }
        })?;
        Ok(Self {
            node,
            _parts: (commands, timer),
        })
    }

    fn node(&self) -> &Node {
        &self.node
    }
}

fn declare_geometry(node: &Node) -> Result<DriveGeometry, ComponentError> {
    let length = |name, default: f64, most| {
        let range = ParameterDescriptor::new().float_range(0.01, most, 0.0);
        node.declare_parameter_with(name, default, range.read_only())
            .map(|handle| handle.value())
    };
    Ok(DriveGeometry {
        wheel_separation: length("wheel_separation", 0.3, 5.0)?,
        wheel_radius: length("wheel_radius", 0.04, 1.0)?,
        wheel_speed_max: length("wheel_speed_max", 0.8, 5.0)?,
        wheel_acceleration: length("wheel_acceleration", 1.5, 20.0)?,
        radius: length("radius", 0.2, 5.0)?,
    })
}

fn declare_start(node: &Node) -> Result<[f64; 3], ComponentError> {
    let descriptor = ParameterDescriptor::new().read_only();
    let start = node.declare_parameter_with("start", crate::START.to_vec(), descriptor)?;
    let start = start.value();
    let found = <[f64; 3]>::try_from(start.as_slice());
    found.map_err(|_| {
        format!("parameter 'start' = {start:?}: x, y and yaw are three numbers").into()
    })
}

fn header(frame: &str, now: Time) -> Header {
    Header {
        stamp: now.into(),
        frame_id: frame.into(),
    }
}

fn odometry_message(drive: &DiffDrive, now: Time) -> Odometry {
    let (forward, turning) = drive.velocity();
    let mut odometry = Odometry {
        header: header("odom", now),
        child_frame_id: "base_link".into(),
        ..Odometry::default()
    };
    odometry.pose.pose = planar_pose(drive.odometry).into();
    odometry.twist.twist.linear.x = forward;
    odometry.twist.twist.angular.z = turning;
    odometry
}

fn ground_truth_message(drive: &DiffDrive, now: Time) -> PoseStamped {
    PoseStamped {
        header: header("map", now),
        pose: planar_pose(drive.truth).into(),
    }
}

fn odom_transform(drive: &DiffDrive, now: Time) -> TransformStamped {
    TransformStamped {
        header: header("odom", now),
        child_frame_id: "base_link".into(),
        transform: planar_pose(drive.odometry).into(),
    }
}
