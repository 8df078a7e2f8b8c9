//! `tf2_ros static_transform_publisher`: one transform on `/tf_static`, from the command
//! line.
//!
//! It takes the flags (`--x 1 --frame-id map …`), and the older words by position: x y z
//! yaw pitch roll FRAME CHILD, or with a quaternion. The texts of its errors are
//! upstream's, since people search for them.

use pteros::component::ComponentError;
use pteros::info;
use pteros::interfaces::geometry_msgs::msg::TransformStamped;
use pteros::parameter::{Parameter, ParameterDescriptor};
use pteros::prelude::*;
use pteros::tf::{Isometry, StaticTransformBroadcaster};
use pteros::warn;

use crate::running_node::{CommandRequest, RunningNode};

const USAGE: &str = "usage: static_transform_publisher [--x X] [--y Y] [--z Z] [--qx QX] [--qy QY] [--qz QZ] [--qw QW] [--roll ROLL] [--pitch PITCH] [--yaw YAW] --frame-id FRAME_ID --child-frame-id CHILD_FRAME_ID";

/// Flags with a number. The first three are the translation, the next four the
/// quaternion, the last three the angles.
const NUMBERS: [&str; 10] = [
    "--x", "--y", "--z", "--qx", "--qy", "--qz", "--qw", "--roll", "--pitch", "--yaw",
];

/// Parameters of the transform with their defaults.
const NAMES: [(&str, f64); 7] = [
    ("translation.x", 0.0),
    ("translation.y", 0.0),
    ("translation.z", 0.0),
    ("rotation.x", 0.0),
    ("rotation.y", 0.0),
    ("rotation.z", 0.0),
    ("rotation.w", 1.0),
];

/// Starts the node with the transform of the command line.
pub(crate) fn start(
    context: &Context,
    options: NodeOptions,
    arguments: &[String],
) -> Result<RunningNode, ComponentError> {
    if arguments
        .iter()
        .any(|word| word == "-h" || word == "--help")
    {
        return Err(CommandRequest::Usage(USAGE.into()).into());
    }
    let wanted = StaticTransform::parse(arguments)
        .map_err(|problem| format!("error parsing command line arguments: {problem}; {USAGE}"))?;
    let Isometry {
        translation,
        rotation,
    } = wanted.transform;
    let numbers = translation.into_iter().chain(rotation);
    let overrides = NAMES.iter().zip(numbers);
    let overrides = overrides.map(|((name, _), number)| Parameter::new(*name, number));
    let frames = [
        Parameter::new("frame_id", wanted.parent.as_str()),
        Parameter::new("child_frame_id", wanted.child.as_str()),
    ];
    let options = options.parameter_overrides(overrides.chain(frames));
    let running = start_component(context, options, &[])?;
    let logger = running.node().logger();
    if wanted.is_old_style {
        warn!(
            logger,
            "Old-style arguments are deprecated; see --help for new-style arguments"
        );
    }
    let ([x, y, z], [qx, qy, qz, qw]) = (translation, rotation);
    info!(
        logger,
        "Spinning until stopped - publishing transform, translation: ('{x:.6}', '{y:.6}', '{z:.6}'), rotation: ('{qx:.6}', '{qy:.6}', '{qz:.6}', '{qw:.6}'), from '{}' to '{}'",
        wanted.parent,
        wanted.child
    );
    Ok(running)
}

/// Starts the node with the transform of its parameters.
pub(crate) fn start_component(
    context: &Context,
    options: NodeOptions,
    _: &[String],
) -> Result<RunningNode, ComponentError> {
    // A participant's id is unique, as upstream's random suffix.
    let suffix = context
        .guid()
        .prefix
        .to_string()
        .replace(['.', ':', '-'], "");
    let node = context.create_node(options.name(format!("static_transform_publisher_{suffix}")))?;
    let read_only = || ParameterDescriptor::new().read_only();
    let mut numbers = Vec::new();
    for (name, default) in NAMES {
        let number = node.declare_parameter_with(name, default, read_only())?;
        numbers.push(number.value());
    }
    let frame = |name: &str, default: &str| {
        let frame = node.declare_parameter_with(name, default, read_only());
        frame.map(|frame| frame.value())
    };
    let (parent, child) = (
        frame("frame_id", "/frame")?,
        frame("child_frame_id", "/child")?,
    );
    if parent == child {
        return Err(format!(
            "cannot publish static transform from '{parent}' to '{child}': child_frame_id cannot equal frame_id"
        )
        .into());
    }
    let mut transform = TransformStamped::default();
    if let [x, y, z, qx, qy, qz, qw] = *numbers.as_slice() {
        let wanted = Isometry {
            translation: [x, y, z],
            rotation: [qx, qy, qz, qw],
        };
        transform.transform = wanted.into();
    }
    transform.header.stamp = node.now().into();
    transform.header.frame_id = parent;
    transform.child_frame_id = child;
    let frames = StaticTransformBroadcaster::new(&node)?;
    frames.send_transform(transform)?;
    Ok(RunningNode::new(node, frames))
}

/// The requested transform, and its frames.
#[derive(Debug, PartialEq)]
struct StaticTransform {
    transform: Isometry,
    parent: String,
    child: String,
    is_old_style: bool,
}

impl StaticTransform {
    fn parse(words: &[String]) -> Result<Self, String> {
        let mut given = [None; NUMBERS.len()];
        let (mut parent, mut child) = (None, None);
        let mut positional: Vec<&str> = Vec::new();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let mut value = || {
                let value = words.next();
                value.ok_or_else(|| format!("Not enough arguments for {word}"))
            };
            match word {
                "--frame-id" => parent = Some(value()?.to_owned()),
                "--child-frame-id" => child = Some(value()?.to_owned()),
                _ => match NUMBERS
                    .iter()
                    .zip(&mut given)
                    .find(|(flag, _)| **flag == word)
                {
                    Some((flag, number)) => *number = Some(float(flag, value()?)?),
                    None => positional.push(word),
                },
            }
        }
        let has_new_style =
            parent.is_some() || child.is_some() || given.iter().any(Option::is_some);
        if !positional.is_empty() {
            return Self::parse_old_style(&positional, has_new_style);
        }
        let [x, y, z, qx, qy, qz, qw, roll, pitch, yaw] = given;
        let angles = [roll, pitch, yaw];
        let quaternion = [qx, qy, qz, qw];
        let has_angles = angles.iter().any(Option::is_some);
        if has_angles && quaternion.iter().any(Option::is_some) {
            return Err("Cannot specify both quaternion and Euler rotations".into());
        }
        let translation = [x, y, z].map(Option::unwrap_or_default);
        let mut transform = Isometry::from_rpy(translation, angles.map(Option::unwrap_or_default));
        if !has_angles {
            let [x, y, z, w] = quaternion;
            let zero = Option::unwrap_or_default;
            transform.rotation = [zero(x), zero(y), zero(z), w.unwrap_or(1.0)];
        }
        let frames = (parent.unwrap_or_default(), child.unwrap_or_default());
        Self::checked(transform, frames, false)
    }

    fn parse_old_style(words: &[&str], has_new_style: bool) -> Result<Self, String> {
        let (names, numbers, parent, child) = match words {
            [numbers @ .., parent, child] if numbers.len() == 6 => (
                ["x", "y", "z", "yaw", "pitch", "roll", ""],
                numbers,
                parent,
                child,
            ),
            [numbers @ .., parent, child] if numbers.len() == 7 => (
                ["x", "y", "z", "qx", "qy", "qz", "qw"],
                numbers,
                parent,
                child,
            ),
            _ => return Err("Extra unparsed arguments on command-line".into()),
        };
        if has_new_style {
            return Err("Cannot specify both new-style (flags) and old-style (arguments)".into());
        }
        let numbers = names
            .iter()
            .zip(numbers)
            .map(|(name, text)| float(name, text));
        let transform = match *numbers.collect::<Result<Vec<_>, _>>()?.as_slice() {
            [x, y, z, yaw, pitch, roll] => Isometry::from_rpy([x, y, z], [roll, pitch, yaw]),
            [x, y, z, qx, qy, qz, qw] => Isometry {
                translation: [x, y, z],
                rotation: [qx, qy, qz, qw],
            },
            _ => Isometry::IDENTITY,
        };
        Self::checked(transform, ((*parent).into(), (*child).into()), true)
    }

    fn checked(
        transform: Isometry,
        (parent, child): (String, String),
        is_old_style: bool,
    ) -> Result<Self, String> {
        if parent.is_empty() {
            return Err("Frame id must not be empty".into());
        }
        if child.is_empty() {
            return Err("Child frame id must not be empty".into());
        }
        Ok(Self {
            transform,
            parent,
            child,
            is_old_style,
        })
    }
}

fn float(name: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().parse();
    number.map_err(|_| format!("Failed to parse {name} argument as float"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<StaticTransform, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        StaticTransform::parse(&words)
    }

    #[test]
    fn old_and_new_arguments_mean_the_same_transform() {
        let angles =
            parse("--x 1 --z -0.5 --yaw 0.3 --roll 0.1 --frame-id map --child-frame-id odom");
        let old = parse("1 0 -0.5 0.3 0 0.1 map odom").unwrap();
        assert!(old.is_old_style);
        let angles = angles.unwrap();
        assert_eq!(angles.transform, old.transform);
        assert_eq!((angles.parent, angles.child), (old.parent, old.child));
        let quaternion = parse("--y 2 --qz 1 --qw 0 --frame-id a --child-frame-id b").unwrap();
        assert_eq!(
            quaternion.transform,
            parse("0 2 0 0 0 1 0 a b").unwrap().transform
        );
    }

    #[test]
    fn wrong_arguments_are_refused_with_the_texts_of_upstream() {
        for (line, problem) in [
            ("--x", "Not enough arguments for --x"),
            ("--x a", "Failed to parse --x argument as float"),
            (
                "--qw 1 --yaw 2",
                "Cannot specify both quaternion and Euler rotations",
            ),
            ("1 2 3", "Extra unparsed arguments on command-line"),
            (
                "1 0 0 0 0 0 a b --x 1",
                "Cannot specify both new-style (flags) and old-style (arguments)",
            ),
            ("1 0 0 t 0 0 a b", "Failed to parse yaw argument as float"),
            ("--x 1", "Frame id must not be empty"),
            ("--frame-id map", "Child frame id must not be empty"),
        ] {
            assert_eq!(parse(line), Err(problem.into()), "{line}");
        }
    }
}
