//! Benchmark graph of the size of iRobot's Create 3 (Macenski et al. 2023, VI-B):
//! ten nodes, over thirty topics, ten services and ten actions. `create3 all` runs
//! it in one process, `create3 I` only the node of that number. It prints `ready`
//! when all nodes exist. `cargo xtask bench robot` measures it.

use std::any::Any;
use std::time::Duration;

use pteros::action::{ActionServerOptions, ServerGoalHandle};
use pteros::component::ComponentError;
use pteros::interfaces::example_interfaces::action::Fibonacci;
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, TransformStamped, Twist};
use pteros::interfaces::nav_msgs::msg::Odometry;
use pteros::interfaces::sensor_msgs::msg::{BatteryState, Imu, JointState, Range};
use pteros::interfaces::std_msgs::msg::{Bool, Header, Int32MultiArray};
use pteros::interfaces::std_srvs::srv::{SetBool, SetBoolResponse};
use pteros::prelude::*;
use pteros::tf::{Isometry, StaticTransformBroadcaster, TransformBroadcaster, TransformListener};

/// Message types of the graph.
#[derive(Clone, Copy)]
enum Kind {
    Flag,
    Battery,
    Imu,
    Joints,
    Odometry,
    Pose,
    Range,
    Ticks,
    Twist,
}

use Kind::{Battery, Flag, Imu as Inertia, Joints, Odometry as Odom, Pose, Ticks};
use Kind::{Range as Distance, Twist as Velocity};

/// A node: its topics with rates, subscriptions, services and actions.
struct Row {
    name: &'static str,
    publishes: &'static [(&'static str, Kind, u32)],
    subscribes: &'static [(&'static str, Kind)],
    services: &'static [&'static str],
    actions: &'static [&'static str],
    frames: Frames,
}

#[derive(Clone, Copy)]
enum Frames {
    No,
    Broadcasts,
    Fixed,
    Listens,
}

const GRAPH: [Row; 10] = [
    Row {
        name: "motion_control",
        publishes: &[
            ("wheel_vels_set", Joints, 50),
            ("stop_status", Flag, 10),
            ("motion_state", Flag, 10),
        ],
        subscribes: &[
            ("cmd_vel", Velocity),
            ("odom", Odom),
            ("hazard_detection", Flag),
            ("kidnap_status", Flag),
        ],
        services: &["set_reflexes"],
        actions: &["drive_arc", "drive_distance", "rotate_angle", "wall_follow"],
        frames: Frames::Listens,
    },
    Row {
        name: "wheels",
        publishes: &[
            ("wheel_status", Joints, 10),
            ("wheel_ticks", Ticks, 50),
            ("wheel_vels", Joints, 50),
        ],
        subscribes: &[("wheel_vels_set", Joints)],
        services: &["release_wheels"],
        actions: &[],
        frames: Frames::No,
    },
    Row {
        name: "odometry",
        publishes: &[("odom", Odom, 50), ("slip_status", Flag, 10)],
        subscribes: &[("wheel_ticks", Ticks), ("imu", Inertia), ("mouse", Pose)],
        services: &["reset_pose"],
        actions: &[],
        frames: Frames::Broadcasts,
    },
    Row {
        name: "sensors",
        publishes: &[
            ("imu", Inertia, 100),
            ("mouse", Pose, 50),
            ("ir_intensity", Ticks, 20),
            ("cliff_left", Distance, 20),
            ("cliff_right", Distance, 20),
            ("bump", Flag, 20),
        ],
        subscribes: &[],
        services: &["calibrate"],
        actions: &[],
        frames: Frames::No,
    },
    Row {
        name: "hazards",
        publishes: &[("hazard_detection", Flag, 20), ("kidnap_status", Flag, 10)],
        subscribes: &[
            ("bump", Flag),
            ("cliff_left", Distance),
            ("cliff_right", Distance),
            ("slip_status", Flag),
            ("imu", Inertia),
        ],
        services: &[],
        actions: &[],
        frames: Frames::No,
    },
    Row {
        name: "dock",
        publishes: &[
            ("dock_status", Flag, 1),
            ("ir_opcode", Ticks, 10),
            ("dock_pose", Pose, 1),
        ],
        subscribes: &[
            ("ir_intensity", Ticks),
            ("odom", Odom),
            ("battery_state", Battery),
        ],
        services: &["forget_dock"],
        actions: &["dock", "undock"],
        frames: Frames::Listens,
    },
    Row {
        name: "navigation",
        publishes: &[
            ("cmd_vel", Velocity, 20),
            ("path_pose", Pose, 5),
            ("goal_reached", Flag, 1),
        ],
        subscribes: &[
            ("odom", Odom),
            ("dock_pose", Pose),
            ("hazard_detection", Flag),
        ],
        services: &["cancel_motion"],
        actions: &["navigate_to_position", "explore"],
        frames: Frames::Listens,
    },
    Row {
        name: "robot_state",
        publishes: &[
            ("battery_state", Battery, 1),
            ("power_state", Flag, 1),
            ("joint_states", Joints, 20),
            ("health", Flag, 1),
        ],
        subscribes: &[("dock_status", Flag), ("stop_status", Flag)],
        services: &["e_stop", "robot_power"],
        actions: &[],
        frames: Frames::No,
    },
    Row {
        name: "ui",
        publishes: &[
            ("interface_buttons", Ticks, 10),
            ("lightring", Ticks, 10),
            ("audio_state", Flag, 1),
        ],
        subscribes: &[
            ("battery_state", Battery),
            ("power_state", Flag),
            ("hazard_detection", Flag),
        ],
        services: &["mute", "brightness"],
        actions: &["audio_note_sequence", "led_animation"],
        frames: Frames::No,
    },
    Row {
        name: "static_transform",
        publishes: &[("robot_description_ok", Flag, 1)],
        subscribes: &[("joint_states", Joints)],
        services: &[],
        actions: &[],
        frames: Frames::Fixed,
    },
];

type KeptEntity = Box<dyn Any + Send>;

fn main() -> Result<(), ComponentError> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let rows = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["all"] => &GRAPH[..],
        ["count"] => {
            count();
            return Ok(());
        }
        [row] => {
            let row = row.parse::<usize>()?;
            let found = GRAPH.get(row..=row);
            found.ok_or_else(|| format!("node {row}: 0 to {}", GRAPH.len() - 1))?
        }
        _ => return Err("usage: create3 all | count | I".into()),
    };
    let context = Context::new()?;
    let executor = SingleThreadedExecutor::new(&context);
    let mut kept = Vec::new();
    for row in rows {
        let node = context.create_node(row.name)?;
        executor.add_node(&node)?;
        parts(&node, row, &mut kept)?;
    }
    println!("ready");
    executor.spin();
    Ok(())
}

/// Prints the size of the graph in one line.
fn count() {
    let mut topics: Vec<&str> = GRAPH
        .iter()
        .flat_map(|row| row.publishes.iter().map(|topic| topic.0))
        .chain(["/tf", "/tf_static"])
        .collect();
    topics.sort_unstable();
    topics.dedup();
    let sum = |of: fn(&Row) -> usize| GRAPH.iter().map(of).sum::<usize>();
    println!(
        "{} nodes, {} topics, {} services, {} actions, {} messages a second",
        GRAPH.len(),
        topics.len(),
        sum(|row| row.services.len()),
        sum(|row| row.actions.len()),
        sum(|row| row.publishes.iter().map(|topic| topic.2 as usize).sum()) + 50,
    );
}

fn parts(node: &Node, row: &Row, kept: &mut Vec<KeptEntity>) -> Result<(), ComponentError> {
    for (topic, kind) in row.subscribes {
        kept.push(subscribe(node, topic, *kind)?);
    }
    for (topic, kind, rate) in row.publishes {
        kept.push(publish(node, topic, *kind, *rate)?);
    }
    for service in row.services {
        let service = node.create_service::<SetBool>(*service, |_| SetBoolResponse {
            success: true,
            ..SetBoolResponse::default()
        })?;
        kept.push(Box::new(service));
    }
    for action in row.actions {
        let options = ActionServerOptions::<Fibonacci>::new(*action);
        let server = node.create_action_server(options, |goal: ServerGoalHandle<Fibonacci>| {
            // No client calls during the measurement. A goal succeeds at once.
            let _ = goal.succeed(Default::default());
        })?;
        kept.push(Box::new(server));
    }
    match row.frames {
        Frames::No => {}
        Frames::Listens => kept.push(Box::new(TransformListener::new(node)?)),
        Frames::Broadcasts => {
            let frames = TransformBroadcaster::new(node)?;
            let named = node.clone();
            let timer = node.create_timer(Duration::from_millis(20), move || {
                let _ = frames.send_transform(frame(&named, "odom", "base_link"));
            })?;
            kept.push(Box::new(timer));
        }
        Frames::Fixed => {
            let frames = StaticTransformBroadcaster::new(node)?;
            let sensors = [
                "imu",
                "mouse",
                "bump_front",
                "cliff_left",
                "cliff_right",
                "ir_omni",
            ];
            let fixed = sensors.map(|sensor| frame(node, "base_link", sensor));
            frames.send_transforms(fixed.to_vec())?;
            kept.push(Box::new(frames));
        }
    }
    Ok(())
}

fn header(node: &Node, frame: &str) -> Header {
    Header {
        stamp: node.now().into(),
        frame_id: frame.into(),
    }
}

fn frame(node: &Node, parent: &str, child: &str) -> TransformStamped {
    TransformStamped {
        header: header(node, parent),
        child_frame_id: child.into(),
        transform: Isometry::planar(0.1, 0.0, 0.0).into(),
    }
}

fn subscribe(node: &Node, topic: &str, kind: Kind) -> Result<KeptEntity, ComponentError> {
    fn listen<T: Message>(node: &Node, topic: &str) -> Result<KeptEntity, ComponentError> {
        let part = node.create_subscription::<T>(topic.sensor_data(), |message| {
            std::hint::black_box(&*message);
        })?;
        Ok(Box::new(part))
    }
    match kind {
        Flag => listen::<Bool>(node, topic),
        Battery => listen::<BatteryState>(node, topic),
        Inertia => listen::<Imu>(node, topic),
        Joints => listen::<JointState>(node, topic),
        Odom => listen::<Odometry>(node, topic),
        Pose => listen::<PoseStamped>(node, topic),
        Distance => listen::<Range>(node, topic),
        Ticks => listen::<Int32MultiArray>(node, topic),
        Velocity => listen::<Twist>(node, topic),
    }
}

fn publish(node: &Node, topic: &str, kind: Kind, rate: u32) -> Result<KeptEntity, ComponentError> {
    fn publish_periodically<T: Message + Clone>(
        node: &Node,
        topic: &str,
        rate: u32,
        message: T,
    ) -> Result<KeptEntity, ComponentError> {
        let publisher = node.create_publisher::<T>(topic.sensor_data())?;
        let timer = node.create_timer(Duration::from_secs(1) / rate, move || {
            let _ = publisher.publish_owned(message.clone());
        })?;
        Ok(Box::new(timer))
    }
    match kind {
        Flag => publish_periodically(node, topic, rate, Bool::default()),
        Battery => publish_periodically(node, topic, rate, BatteryState::default()),
        Inertia => publish_periodically(node, topic, rate, Imu::default()),
        Joints => {
            let names = ["left_wheel", "right_wheel"].map(String::from).to_vec();
            let joints = JointState {
                name: names,
                position: vec![0.0; 2],
                velocity: vec![0.0; 2],
                ..JointState::default()
            };
            publish_periodically(node, topic, rate, joints)
        }
        Odom => publish_periodically(node, topic, rate, Odometry::default()),
        Pose => publish_periodically(node, topic, rate, PoseStamped::default()),
        Distance => publish_periodically(node, topic, rate, Range::default()),
        Ticks => {
            let ticks = Int32MultiArray {
                data: vec![0; 7],
                ..Int32MultiArray::default()
            };
            publish_periodically(node, topic, rate, ticks)
        }
        Velocity => publish_periodically(node, topic, rate, Twist::default()),
    }
}
