//! The simulated base: hears `cmd_vel`, tells `odom` and where `base_link` is.

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

use crate::drive::{Drive, Shape, placed};
use crate::floor::Floor;

/// How often it moves.
const PERIOD: Duration = Duration::from_millis(20);
/// Without a word for so long it stops.
const PATIENCE: Duration = Duration::from_millis(500);

/// A differential drive in the building of this package. Subscribes to `cmd_vel`;
/// publishes `odom`, `odom` to `base_link` on `/tf`, and `ground_truth`, which a real
/// robot does not know: the pose in frame `map`.
///
/// Parameters, metres, seconds and radians: `wheel_separation`, `wheel_radius`,
/// `wheel_speed_max`, `wheel_acceleration`, `radius`, `start` (x, y, yaw).
pub struct Base {
    node: Node,
    _parts: (Subscription<Twist>, Timer),
}

#[derive(Default)]
struct Wanted {
    forward: f64,
    turning: f64,
    since: Time,
}

impl Component for Base {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = context.node_with(options.name("base"))?;
        let mut drive = Drive::new(shape(&node)?, Floor::own(), start(&node)?);
        let (odometry, truth) = (
            node.create_publisher::<Odometry>("odom", 10)?,
            node.create_publisher::<PoseStamped>("ground_truth", 1)?,
        );
        let frames = TransformBroadcaster::new(&node)?;
        let wanted = Arc::<Mutex<Wanted>>::default();
        let (heard, clock) = (wanted.clone(), node.clock());
        let commands = node.create_subscription::<Twist>("cmd_vel", 10, move |twist| {
            let command = Wanted {
                forward: twist.linear.x,
                turning: twist.angular.z,
                since: clock.now(),
            };
            if command.forward.is_finite() && command.turning.is_finite() {
                *heard.lock().expect("no panic holds it") = command;
            }
        })?;
        let (clock, log) = (node.clock(), node.logger());
        let mut last = clock.now();
        let every = TimerOptions::new(PERIOD).on_ros_time();
        let timer = node.create_timer_with(every, move || {
            let now = clock.now();
            // At most a tenth of a second at once, should time have stood.
            let passed = now.since(last).min(Duration::from_millis(100));
            last = now;
            let command = {
                let wanted = wanted.lock().expect("no panic holds it");
                match now.since(wanted.since) < PATIENCE {
                    true => (wanted.forward, wanted.turning),
                    false => (0.0, 0.0),
                }
            };
            let bumps = drive.bumps;
            drive.advance(passed.as_secs_f64(), command);
            if drive.bumps > bumps {
                pteros::warn!(log, "ran into a wall at {:?}", drive.truth);
            }
            let told = odometry
                .publish_owned(told_odometry(&drive, now))
                .and_then(|()| truth.publish_owned(told_truth(&drive, now)));
            let frame = frames.send(told_frame(&drive, now));
            if let Err(error) = told.map_err(Into::into).and(frame) {
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

fn shape(node: &Node) -> Result<Shape, ComponentError> {
    let length = |name, default: f64, most| {
        let range = ParameterDescriptor::new().float_range(0.01, most, 0.0);
        node.declare_parameter_with(name, default, range.read_only())
            .map(|handle| handle.value())
    };
    Ok(Shape {
        wheel_separation: length("wheel_separation", 0.3, 5.0)?,
        wheel_radius: length("wheel_radius", 0.04, 1.0)?,
        wheel_speed_max: length("wheel_speed_max", 0.8, 5.0)?,
        wheel_acceleration: length("wheel_acceleration", 1.5, 20.0)?,
        radius: length("radius", 0.2, 5.0)?,
    })
}

fn start(node: &Node) -> Result<[f64; 3], ComponentError> {
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

fn told_odometry(drive: &Drive, now: Time) -> Odometry {
    let (forward, turning) = drive.velocity();
    let mut odometry = Odometry {
        header: header("odom", now),
        child_frame_id: "base_link".into(),
        ..Odometry::default()
    };
    odometry.pose.pose = placed(drive.odometry).into();
    odometry.twist.twist.linear.x = forward;
    odometry.twist.twist.angular.z = turning;
    odometry
}

fn told_truth(drive: &Drive, now: Time) -> PoseStamped {
    PoseStamped {
        header: header("map", now),
        pose: placed(drive.truth).into(),
    }
}

fn told_frame(drive: &Drive, now: Time) -> TransformStamped {
    TransformStamped {
        header: header("odom", now),
        child_frame_id: "base_link".into(),
        transform: placed(drive.odometry).into(),
    }
}
