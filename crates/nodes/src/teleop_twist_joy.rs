//! `teleop_twist_joy teleop_node`: velocities from a joystick while its enable button is
//! held, as ROS 2's node of that name.
//!
//! The turbo button has scales of its own and comes first. When the buttons are released,
//! one velocity of zero stops the robot; then the node is silent.

use pteros::component::ComponentError;
use pteros::info;
use pteros::interfaces::geometry_msgs::msg::Twist;
use pteros::interfaces::sensor_msgs::msg::Joy;
use pteros::parameter::ParameterHandle;
use pteros::prelude::*;

use crate::running_node::RunningNode;
use crate::velocity::VelocityPublisher;

/// Starts the node.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(options.name("teleop_twist_joy_node"))?;
    let is_stamped = node.declare_parameter("publish_stamped_twist", false)?;
    let frame = node.declare_parameter("frame", "teleop_twist_joy")?;
    let frame = is_stamped.value().then(|| frame.value());
    let output = VelocityPublisher::new(&node, frame)?;
    let mut teleop = Teleop::declare(&node)?;
    teleop.log(&node);
    let joystick = node.create_subscription("joy".keep_last(10), move |joy: Sample<Joy>| {
        if let Some(twist) = teleop.velocity(&joy) {
            output.publish(twist);
        }
    })?;
    Ok(RunningNode::new(node, joystick))
}

/// A part of a velocity: the axis of the joystick, and its scales.
struct Part {
    name: &'static str,
    axis: ParameterHandle<i64>,
    scale: ParameterHandle<f64>,
    turbo_scale: ParameterHandle<f64>,
}

/// The parameters, which count at once when they change.
struct Teleop {
    require_enable_button: ParameterHandle<bool>,
    enable_button: ParameterHandle<i64>,
    enable_turbo_button: ParameterHandle<i64>,
    inverted_reverse: ParameterHandle<bool>,
    /// x, y, z.
    linear: Vec<Part>,
    /// Yaw, pitch, roll.
    angular: Vec<Part>,
    is_stopped: bool,
}

impl Teleop {
    fn declare(node: &Node) -> Result<Self, ComponentError> {
        let parts = |group: &str, names: [&'static str; 3], axis: i64| {
            // The first of each group has an axis by default.
            let defaults = [(axis, 0.5, 1.0), (-1, 0.0, 0.0), (-1, 0.0, 0.0)];
            let parts = names.into_iter().zip(defaults);
            let declare = |(name, (axis, scale, turbo)): (&'static str, (i64, f64, f64))| {
                Ok::<_, ComponentError>(Part {
                    name,
                    axis: node.declare_parameter(&format!("axis_{group}.{name}"), axis)?,
                    scale: node.declare_parameter(&format!("scale_{group}.{name}"), scale)?,
                    turbo_scale: node
                        .declare_parameter(&format!("scale_{group}_turbo.{name}"), turbo)?,
                })
            };
            parts.map(declare).collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            require_enable_button: node.declare_parameter("require_enable_button", true)?,
            enable_button: node.declare_parameter("enable_button", 5)?,
            enable_turbo_button: node.declare_parameter("enable_turbo_button", -1)?,
            inverted_reverse: node.declare_parameter("inverted_reverse", false)?,
            linear: parts("linear", ["x", "y", "z"], 5)?,
            angular: parts("angular", ["yaw", "pitch", "roll"], 2)?,
            is_stopped: false,
        })
    }

    fn log(&self, node: &Node) {
        let logger = node.logger();
        let turbo = self.enable_turbo_button.value();
        if self.require_enable_button.value() {
            info!(
                logger,
                "Teleop enable button {}.",
                self.enable_button.value()
            );
        }
        if turbo >= 0 {
            info!(logger, "Turbo on button {turbo}.");
        }
        let groups = [("Linear", &self.linear), ("Angular", &self.angular)];
        for (group, parts) in groups {
            for part in parts.iter().filter(|part| part.axis.value() != -1) {
                let (name, axis, scale) = (part.name, part.axis.value(), part.scale.value());
                info!(logger, "{group} axis {name} on {axis} at scale {scale:.6}.");
                if turbo >= 0 {
                    let scale = part.turbo_scale.value();
                    let group = group.to_lowercase();
                    info!(logger, "Turbo for {group} axis {name} is scale {scale:.6}.");
                }
            }
        }
    }

    /// The velocity to publish for a state of the joystick, if any.
    fn velocity(&mut self, joy: &Joy) -> Option<Twist> {
        let is_held = |button: i64| {
            let button = usize::try_from(button).ok();
            button.is_some_and(|at| joy.buttons.get(at).is_some_and(|value| *value != 0))
        };
        let is_turbo = is_held(self.enable_turbo_button.value());
        let is_enabled =
            is_turbo || !self.require_enable_button.value() || is_held(self.enable_button.value());
        if !is_enabled && self.is_stopped {
            return None;
        }
        self.is_stopped = !is_enabled;
        let mut twist = Twist::default();
        if is_enabled {
            let [x, y, z] = values(&self.linear, joy, is_turbo);
            let [yaw, pitch, roll] = values(&self.angular, joy, is_turbo);
            (twist.linear.x, twist.linear.y, twist.linear.z) = (x, y, z);
            let is_inverted = x < 0.0 && self.inverted_reverse.value();
            twist.angular.z = if is_inverted { -yaw } else { yaw };
            (twist.angular.y, twist.angular.x) = (pitch, roll);
        }
        Some(twist)
    }
}

/// Three parts; 0 for one whose axis the joystick does not have.
fn values(parts: &[Part], joy: &Joy, is_turbo: bool) -> [f64; 3] {
    let value = |part: &Part| {
        let axis = usize::try_from(part.axis.value()).ok()?;
        let value = f64::from(*joy.axes.get(axis)?);
        let scale = if is_turbo {
            &part.turbo_scale
        } else {
            &part.scale
        };
        Some(value * scale.value())
    };
    [0, 1, 2].map(|at| parts.get(at).and_then(value).unwrap_or(0.0))
}
