//! `joint_state_publisher`: joint states of a robot model without drives, as ROS 2's node
//! of that name.
//!
//! Joints begin at 0, or in the middle of limits that exclude 0. Topics of `source_list`
//! overwrite them; dependent and mimic joints follow. The model comes from a file or
//! from the topic `robot_description`.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::PI;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pteros::component::ComponentError;
use pteros::interfaces::sensor_msgs::msg::JointState;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{TimerOptions, error, info, warn};

use crate::any_parameter::{declaring_overrides, given_or, number, text, texts, truth};
use crate::running_node::RunningNode;
use crate::urdf::{Joint, JointKind, Limits, Mimic, Urdf};

/// Starts the node. A first argument is the URDF file to read in place of the topic.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    arguments: &[String],
) -> Result<RunningNode, ComponentError> {
    let node = context.create_node(declaring_overrides(options.name("joint_state_publisher")))?;
    let settings = Settings::read(&node)?;
    let rate = number("rate", &given_or(&node, "rate", 10)?)?;
    let period = Duration::try_from_secs_f64(1.0 / rate)
        .map_err(|_| format!("rate = {rate}: it is a number of Hertz above 0"))?;
    let sources = texts(
        "source_list",
        given_or(&node, "source_list", Vec::<String>::new())?,
    )?;
    let logger = node.logger();
    let joints: Arc<Mutex<Joints>> = Arc::default();
    let description = if let Some(file) = arguments.first() {
        let text = fs::read_to_string(file).map_err(|error| format!("read {file}: {error}"))?;
        *joints.lock() = Joints::of(&Urdf::parse(&text)?, &settings)?;
        None
    } else {
        info!(
            logger,
            "Waiting for robot_description to be published on the robot_description topic..."
        );
        let (joints, settings, logger) = (joints.clone(), settings.clone(), logger.clone());
        let topic = "robot_description".keep_last(1).transient_local();
        let described = move |text: Sample<Text>| {
            let read = Urdf::parse(&text.data).and_then(|model| Joints::of(&model, &settings));
            match read {
                Ok(read) => *joints.lock() = read,
                Err(problem) => {
                    warn!(
                        logger,
                        "Invalid robot_description given, ignoring: {problem}"
                    );
                }
            }
        };
        Some(node.create_subscription(topic, described)?)
    };
    let mut subscriptions = Vec::new();
    for topic in sources {
        let joints = joints.clone();
        let source = move |state: Sample<JointState>| joints.lock().take(&state);
        subscriptions.push(node.create_subscription(topic.keep_last(10), source)?);
    }
    let publisher = node.create_publisher::<JointState>("joint_states".keep_last(10))?;
    let clock = node.clock();
    let timer = node.create_timer(TimerOptions::new(period).on_ros_time(), move || {
        let mut joints = joints.lock();
        joints.sweep(settings.delta);
        let Some(mut state) = joints.state() else {
            return;
        };
        state.header.stamp = clock.now().into();
        if let Err(problem) = publisher.publish_owned(state) {
            error!(logger, "{problem}");
        }
    })?;
    Ok(RunningNode::new(node, (description, subscriptions, timer)))
}

#[derive(Clone)]
struct Settings {
    /// The values that a free joint has from the beginning.
    positions: bool,
    velocities: bool,
    efforts: bool,
    use_mimic: bool,
    use_soft_limits: bool,
    /// By how much free joints sweep through their limits with each message.
    delta: f64,
    zeros: BTreeMap<String, f64>,
    dependent: BTreeMap<String, Mimic>,
}

impl Settings {
    fn read(node: &Node) -> Result<Self, ComponentError> {
        let flag = |name: &str, default: bool| {
            Ok::<_, ComponentError>(truth(name, &given_or(node, name, default)?)?)
        };
        let mut zeros = BTreeMap::new();
        for name in node.parameter_names("zeros") {
            let joint = name.strip_prefix("zeros.").unwrap_or(&name).to_owned();
            zeros.insert(joint, number(&name, &node.parameter(&name)?)?);
        }
        Ok(Self {
            positions: flag("publish_default_positions", true)?,
            velocities: flag("publish_default_velocities", false)?,
            efforts: flag("publish_default_efforts", false)?,
            use_mimic: flag("use_mimic_tags", true)?,
            use_soft_limits: flag("use_smallest_joint_limits", true)?,
            delta: number("delta", &given_or(node, "delta", 0.0)?)?,
            zeros,
            dependent: dependent_joints(node)?,
        })
    }
}

/// `dependent_joints.NAME.parent`, `.factor` and `.offset`.
fn dependent_joints(node: &Node) -> Result<BTreeMap<String, Mimic>, ComponentError> {
    let mut joints: BTreeMap<String, Mimic> = BTreeMap::new();
    for name in node.parameter_names("dependent_joints") {
        let path = name.strip_prefix("dependent_joints.").unwrap_or(&name);
        let Some((joint, field)) = path.split_once('.') else {
            return Err(format!("Invalid dependent_joint name '{path}'").into());
        };
        let dependent = joints.entry(joint.into()).or_insert_with(|| Mimic {
            joint: String::new(),
            multiplier: 1.0,
            offset: 0.0,
        });
        let value = node.parameter(&name)?;
        match field {
            "parent" => dependent.joint = text(&name, value)?,
            "factor" => dependent.multiplier = number(&name, &value)?,
            "offset" => dependent.offset = number(&name, &value)?,
            _ => {
                return Err(format!(
                    "Invalid dependent_joint name '{field}' (allowed values are 'parent', 'factor', and 'offset')"
                )
                .into());
            }
        }
    }
    if joints.values().any(|dependent| dependent.joint.is_empty()) {
        return Err("All dependent_joints must at least have a parent".into());
    }
    Ok(joints)
}

/// A joint that follows no other.
#[derive(Clone, Debug)]
struct FreeJoint {
    lower: f64,
    upper: f64,
    is_continuous: bool,
    is_falling: bool,
    position: Option<f64>,
    velocity: Option<f64>,
    effort: Option<f64>,
}

/// The joints of a model in its order.
#[derive(Default)]
struct Joints {
    /// Each joint's name, and the free joint whose values it has, by a linear function.
    order: Vec<(String, Mimic)>,
    free: BTreeMap<String, FreeJoint>,
}

impl Joints {
    fn of(model: &Urdf, settings: &Settings) -> Result<Self, String> {
        let mut dependent = settings.dependent.clone();
        let mut joints = Self::default();
        let mut names = Vec::new();
        for joint in &model.joints {
            let Some((lower, upper)) = limits(joint, settings.use_soft_limits) else {
                continue;
            };
            names.push(joint.name.clone());
            if let Some(mimic) = joint.mimic.as_ref().filter(|_| settings.use_mimic) {
                dependent.insert(joint.name.clone(), mimic.clone());
            } else if !dependent.contains_key(&joint.name) {
                let zero = if lower > 0.0 || upper < 0.0 {
                    f64::midpoint(lower, upper)
                } else {
                    0.0
                };
                let zero = settings.zeros.get(&joint.name).copied().unwrap_or(zero);
                let free = FreeJoint {
                    lower,
                    upper,
                    is_continuous: joint.kind == JointKind::Continuous,
                    is_falling: false,
                    position: settings.positions.then_some(zero),
                    velocity: settings.velocities.then_some(0.0),
                    effort: settings.efforts.then_some(0.0),
                };
                joints.free.insert(joint.name.clone(), free);
            }
        }
        for name in names {
            let followed = joints.followed(&name, &dependent)?;
            joints.order.push((name, followed));
        }
        Ok(joints)
    }

    /// The free joint that a joint follows at the end of its chain, itself if it is free.
    fn followed(&self, name: &str, dependent: &BTreeMap<String, Mimic>) -> Result<Mimic, String> {
        let mut followed = Mimic {
            joint: name.into(),
            multiplier: 1.0,
            offset: 0.0,
        };
        let mut seen = BTreeSet::new();
        while let Some(next) = dependent.get(&followed.joint) {
            if !seen.insert(followed.joint.clone()) {
                return Err(format!(
                    "Found an infinite recursive mimic chain: joint \"{name}\" follows itself"
                ));
            }
            followed = Mimic {
                joint: next.joint.clone(),
                offset: followed.offset + followed.multiplier * next.offset,
                multiplier: followed.multiplier * next.multiplier,
            };
        }
        if self.free.contains_key(&followed.joint) {
            return Ok(followed);
        }
        Err(format!(
            "joint \"{name}\" follows \"{}\", which is no moving joint of the model",
            followed.joint
        ))
    }

    /// Takes over the values of a source for the free joints.
    fn take(&mut self, state: &JointState) {
        for (index, name) in state.name.iter().enumerate() {
            let Some(joint) = self.free.get_mut(name) else {
                continue;
            };
            let parts = [
                (&state.position, &mut joint.position),
                (&state.velocity, &mut joint.velocity),
                (&state.effort, &mut joint.effort),
            ];
            for (values, part) in parts {
                if let Some(value) = values.get(index) {
                    *part = Some(*value);
                }
            }
        }
    }

    /// Moves every free joint by `delta` within its limits, up and down.
    fn sweep(&mut self, delta: f64) {
        let joints = self.free.values_mut().filter(|_| delta > 0.0);
        for joint in joints {
            let Some(position) = &mut joint.position else {
                continue;
            };
            if joint.is_falling {
                *position -= delta;
                if *position < joint.lower {
                    *position = joint.lower;
                    joint.is_falling = false;
                }
            } else {
                *position += delta;
                if *position > joint.upper {
                    joint.is_falling = !joint.is_continuous;
                    *position = if joint.is_continuous {
                        joint.lower
                    } else {
                        joint.upper
                    };
                }
            }
        }
    }

    /// The message; `None` before there is a model. A list is empty unless a joint has
    /// such a value; a joint without one has 0.
    fn state(&self) -> Option<JointState> {
        if self.order.is_empty() {
            return None;
        }
        let has =
            |part: fn(&FreeJoint) -> Option<f64>| self.free.values().any(|j| part(j).is_some());
        let values = |part: fn(&FreeJoint) -> Option<f64>, value: fn(f64, &Mimic) -> f64| {
            let of_joint = |followed: &Mimic| {
                let known = self.free.get(&followed.joint).and_then(part);
                known.map_or(0.0, |known| value(known, followed))
            };
            let joints = self.order.iter().filter(|_| has(part));
            joints.map(|(_, followed)| of_joint(followed)).collect()
        };
        Some(JointState {
            name: self.order.iter().map(|(name, _)| name.clone()).collect(),
            position: values(
                |j| j.position,
                |known, by| known * by.multiplier + by.offset,
            ),
            velocity: values(|j| j.velocity, |known, by| known * by.multiplier),
            effort: values(|j| j.effort, |known, _| known),
            ..JointState::default()
        })
    }
}

/// The range of a joint that a position describes. A joint without limits, where it needs
/// them, is left out, as upstream.
fn limits(joint: &Joint, use_soft_limits: bool) -> Option<(f64, f64)> {
    let (mut lower, mut upper) = match joint.kind {
        JointKind::Fixed | JointKind::Floating | JointKind::Planar => return None,
        JointKind::Continuous => (-PI, PI),
        JointKind::Revolute | JointKind::Prismatic => {
            let Limits { lower, upper } = joint.limits?;
            (lower?, upper?)
        }
    };
    if use_soft_limits {
        lower = joint
            .soft_limits
            .lower
            .map_or(lower, |soft| soft.max(lower));
        upper = joint
            .soft_limits
            .upper
            .map_or(upper, |soft| soft.min(upper));
    }
    Some((lower, upper))
}
