//! `robot_state_publisher`: publishes a robot model and the transforms of its joints, as
//! ROS 2's node of that name.
//!
//! Fixed joints go to `/tf_static` once, moving joints to `/tf` with each joint state
//! that is due. Mimic joints follow. Floating joints have no transform, as upstream.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros::clock::Time;
use pteros::component::ComponentError;
use pteros::interfaces::geometry_msgs::msg::{Quaternion, TransformStamped};
use pteros::interfaces::sensor_msgs::msg::JointState;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::parameter::{Parameter, ParameterHandle, ParameterValue, QosOverridingOptions};
use pteros::prelude::*;
use pteros::tf::{StaticTransformBroadcaster, TransformBroadcaster};
use pteros::{Logger, SubscriptionOptions, error, info, warn};

use crate::running_node::RunningNode;
use crate::urdf::{Joint, JointKind, Urdf};

const DESCRIPTION: &str = "robot_description";
const FREQUENCY: &str = "publish_frequency";

/// Starts the node. A first argument is the URDF file that an empty parameter
/// `robot_description` falls back to.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    arguments: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(options.name("robot_state_publisher"))?;
    let text = node.declare_parameter(DESCRIPTION, "")?;
    let frequency = node.declare_parameter(FREQUENCY, 20.0)?;
    check_frequency(frequency.value())?;
    let publisher = Arc::new(RobotStatePublisher {
        descriptions: node.create_publisher(DESCRIPTION.keep_last(1).transient_local())?,
        moving: TransformBroadcaster::new(&node)?,
        fixed: StaticTransformBroadcaster::new(&node)?,
        logger: node.logger(),
        frequency,
        frame_prefix: node.declare_parameter("frame_prefix", "")?,
        ignore_timestamp: node.declare_parameter("ignore_timestamp", false)?,
        robot: Mutex::default(),
    });
    let mut text = text.value();
    if let (true, [file, ..]) = (text.is_empty(), arguments) {
        warn!(
            publisher.logger,
            "No robot_description parameter, but command-line argument available. Assuming argument is name of URDF file."
        );
        text = fs::read_to_string(file).map_err(|error| format!("read {file}: {error}"))?;
    }
    if text.is_empty() {
        return Err(
            "robot_description parameter must not be empty; give the text of a URDF document"
                .into(),
        );
    }
    publisher.set_robot(&text, node.now())?;
    let checks = node.add_on_set_parameters_callback(check);
    let (changed, clock) = (publisher.clone(), node.clock());
    let changes = node.add_post_set_parameters_callback(move |parameters| {
        for Parameter { name, value } in parameters {
            if let (DESCRIPTION, ParameterValue::String(text)) = (name.as_str(), value)
                && let Err(problem) = changed.set_robot(text, clock.now())
            {
                warn!(changed.logger, "{problem}");
            }
        }
    });
    let options = SubscriptionOptions::<JointState>::new("joint_states".sensor_data())
        .qos_overrides(QosOverridingOptions::with_default_policies());
    let clock = node.clock();
    let states = node.create_subscription(options, move |state| {
        publisher.handle_joint_state(&state, clock.now().as_nanos());
    })?;
    Ok(RunningNode::new(node, (states, checks, changes)))
}

struct RobotStatePublisher {
    descriptions: Publisher<Text>,
    moving: TransformBroadcaster,
    fixed: StaticTransformBroadcaster,
    logger: Logger,
    frequency: ParameterHandle<f64>,
    frame_prefix: ParameterHandle<String>,
    ignore_timestamp: ParameterHandle<bool>,
    robot: Mutex<Robot>,
}

/// The moving joints, and when they were published.
#[derive(Default)]
struct Robot {
    joints: Vec<Joint>,
    /// Stamps of the last published state of each moving joint; none before the first.
    published: BTreeMap<String, i64>,
    /// The node's time at the last joint state.
    last_received: i64,
}

/// Checks new values before they are set.
fn check(parameters: &[Parameter]) -> Result<(), String> {
    for Parameter { name, value } in parameters {
        match (name.as_str(), value) {
            (DESCRIPTION, ParameterValue::String(text)) if text.is_empty() => {
                return Err("Empty URDF is not allowed".into());
            }
            (DESCRIPTION, ParameterValue::String(text)) => drop(Urdf::parse(text)?),
            (FREQUENCY, ParameterValue::Double(hertz)) => check_frequency(*hertz)?,
            _ => {}
        }
    }
    Ok(())
}

fn check_frequency(hertz: f64) -> Result<(), String> {
    if hertz > 0.0 && hertz <= 1000.0 {
        return Ok(());
    }
    Err(format!(
        "publish_frequency = {hertz}: publish_frequency must be between 0.0 (exclusive) and 1000.0"
    ))
}

impl RobotStatePublisher {
    /// Publishes a model and the transforms of its fixed joints, and follows its moving
    /// joints from now on.
    fn set_robot(&self, text: &str, now: Time) -> Result<(), ComponentError> {
        let model = Urdf::parse(text)?;
        self.descriptions
            .publish_owned(Text { data: text.into() })?;
        let (fixed, moving): (Vec<Joint>, Vec<Joint>) = model
            .joints
            .into_iter()
            .filter(|joint| joint.kind != JointKind::Floating)
            .partition(|joint| matches!(joint.kind, JointKind::Fixed | JointKind::Planar));
        let fixed = fixed.iter().map(|joint| self.transform(joint, 0.0, now));
        self.fixed.send_transforms(fixed.collect())?;
        *self.robot.lock() = Robot {
            joints: moving,
            ..Robot::default()
        };
        info!(self.logger, "Robot initialized");
        Ok(())
    }

    fn transform(&self, joint: &Joint, position: f64, stamp: Time) -> TransformStamped {
        let prefix = self.frame_prefix.value();
        let mut transform = TransformStamped::default();
        transform.header.stamp = stamp.into();
        transform.header.frame_id = format!("{prefix}{}", joint.parent);
        transform.child_frame_id = format!("{prefix}{}", joint.child);
        transform.transform = joint.pose(position).into();
        with_sign_of_matrix(&mut transform.transform.rotation);
        transform
    }

    fn handle_joint_state(&self, state: &JointState, now: i64) {
        if state.name.len() != state.position.len() {
            match (state.position.as_slice(), state.name.first()) {
                ([], Some(first)) => warn!(
                    self.logger,
                    "Robot state publisher ignored a JointState message about joint(s) \"{first}\"(,...) whose position member was empty."
                ),
                _ => error!(
                    self.logger,
                    "Robot state publisher ignored an invalid JointState message"
                ),
            }
            return;
        }
        let stamp = Time::from(&state.header.stamp);
        let transforms = self.due_transforms(state, stamp, now);
        if !transforms.is_empty()
            && let Err(problem) = self.moving.send_transforms(transforms)
        {
            error!(self.logger, "{problem}");
        }
    }

    /// The transforms of a joint state, unless its joints were published within the last
    /// publish period.
    fn due_transforms(&self, state: &JointState, stamp: Time, now: i64) -> Vec<TransformStamped> {
        let robot = &mut *self.robot.lock();
        if robot.last_received > now {
            warn!(
                self.logger,
                "Moved backwards in time, re-publishing joint transforms!"
            );
            robot.published.clear();
        }
        robot.last_received = now;
        let named = state.name.iter().map(String::as_str);
        let mut positions: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, position) in named.zip(&state.position) {
            // The first of several counts.
            positions.entry(name).or_insert(*position);
        }
        let known = robot
            .joints
            .iter()
            .filter(|joint| positions.contains_key(joint.name.as_str()));
        let published = known.map(|joint| robot.published.get(&joint.name).copied().unwrap_or(0));
        let last = published.min().unwrap_or(0).min(now);
        if !self.ignore_timestamp.value() && stamp.as_nanos() < last.saturating_add(self.period()) {
            return Vec::new();
        }
        let mut transforms = Vec::new();
        for joint in &robot.joints {
            let given = positions.get(joint.name.as_str()).copied();
            let position = given.or_else(|| {
                let mimic = joint.mimic.as_ref()?;
                let position = positions.get(mimic.joint.as_str())?;
                Some(position * mimic.multiplier + mimic.offset)
            });
            if let Some(position) = position {
                transforms.push(self.transform(joint, position, stamp));
            }
            if given.is_some() {
                robot.published.insert(joint.name.clone(), stamp.as_nanos());
            }
        }
        transforms
    }

    /// The publish period, in whole milliseconds as upstream, in ns.
    fn period(&self) -> i64 {
        let seconds = Duration::try_from_secs_f64(1.0 / self.frequency.value());
        let millis = seconds.map_or(u128::MAX, |period| period.as_millis());
        i64::try_from(millis)
            .unwrap_or(i64::MAX)
            .saturating_mul(1_000_000)
    }
}

/// Chooses between a quaternion and its negative, which are the same rotation, as KDL
/// does when it converts a matrix: the part that is largest in magnitude is positive, or
/// `w` if it is above a half.
fn with_sign_of_matrix(rotation: &mut Quaternion) {
    let Quaternion { x, y, z, w } = *rotation;
    let largest = [x, y, z]
        .into_iter()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()));
    let decisive = if w.abs() > 0.5 {
        w
    } else {
        largest.unwrap_or(w)
    };
    if decisive < 0.0 {
        *rotation = Quaternion {
            x: -x,
            y: -y,
            z: -z,
            w: -w,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros::interfaces::geometry_msgs::msg::Transform;
    use pteros::tf::Isometry;

    #[test]
    fn a_quaternion_has_the_sign_that_a_rotation_matrix_gives() {
        for (given, expected) in [
            ([0.0, 0.0, 0.6, -0.8], [0.0, 0.0, -0.6, 0.8]),
            ([0.0, -0.9, 0.3, 0.316], [0.0, 0.9, -0.3, -0.316]),
            ([0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0]),
        ] {
            let mut transform = Transform::from(Isometry {
                rotation: given,
                ..Isometry::IDENTITY
            });
            with_sign_of_matrix(&mut transform.rotation);
            assert_eq!(Isometry::from(&transform).rotation, expected);
        }
    }
}
