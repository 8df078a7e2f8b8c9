//! Nodes for `cargo xtask bench composition`: empty nodes, and a graph of fifteen
//! managed nodes that is shaped like Nav2's.

use std::any::Any;
use std::time::Duration;

use pteros::component::{Component, ComponentError};
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, Twist};
use pteros::interfaces::nav_msgs::msg::{OccupancyGrid, Odometry, Path};
use pteros::interfaces::sensor_msgs::msg::LaserScan;
use pteros::lifecycle::LifecycleNode;
use pteros::parameter::ParameterDescriptor;
use pteros::prelude::*;

/// A node without any entities.
pub struct Empty(Node);

impl Component for Empty {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        Ok(Self(context.create_node(options.name("empty"))?))
    }

    fn node(&self) -> &Node {
        &self.0
    }
}

/// A node without parameter services.
pub struct Bare(Node);

impl Component for Bare {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let options = options
            .name("bare")
            .start_parameter_services(false)
            .start_parameter_event_publisher(false);
        Ok(Self(context.create_node(options)?))
    }

    fn node(&self) -> &Node {
        &self.0
    }
}

/// Message types of the graph.
#[derive(Clone, Copy)]
enum Kind {
    Scan,
    Odometry,
    Twist,
    Grid,
    Path,
    Pose,
}

/// A managed node of the graph.
struct Row {
    name: &'static str,
    publishes: &'static [(&'static str, Kind, u32)],
    subscribes: &'static [(&'static str, Kind)],
}

const fn row(
    name: &'static str,
    publishes: &'static [(&'static str, Kind, u32)],
    subscribes: &'static [(&'static str, Kind)],
) -> Row {
    Row {
        name,
        publishes,
        subscribes,
    }
}

use Kind::{Grid, Odometry as Odom, Path as Plan, Pose, Scan, Twist as Velocity};

/// Topics with rates. The message sizes are in `publish`.
const GRAPH: [Row; 15] = [
    row("lidar", &[("scan", Scan, 10)], &[]),
    row("base", &[("odom", Odom, 50)], &[("cmd_vel", Velocity)]),
    row("map_server", &[("map", Grid, 1)], &[]),
    row(
        "amcl",
        &[("pose", Pose, 10)],
        &[("scan", Scan), ("map", Grid), ("odom", Odom)],
    ),
    row(
        "local_costmap",
        &[("local_costmap", Grid, 5)],
        &[("scan", Scan), ("odom", Odom)],
    ),
    row(
        "global_costmap",
        &[("global_costmap", Grid, 1)],
        &[("map", Grid), ("scan", Scan)],
    ),
    row(
        "planner_server",
        &[("plan", Plan, 1)],
        &[("global_costmap", Grid), ("pose", Pose), ("goal", Pose)],
    ),
    row(
        "smoother_server",
        &[("plan_smoothed", Plan, 1)],
        &[("plan", Plan)],
    ),
    row(
        "controller_server",
        &[("cmd_vel_nav", Velocity, 20)],
        &[
            ("odom", Odom),
            ("local_costmap", Grid),
            ("plan_smoothed", Plan),
        ],
    ),
    row(
        "velocity_smoother",
        &[("cmd_vel_smoothed", Velocity, 20)],
        &[("cmd_vel_nav", Velocity), ("odom", Odom)],
    ),
    row(
        "collision_monitor",
        &[("cmd_vel", Velocity, 20)],
        &[("cmd_vel_smoothed", Velocity), ("scan", Scan)],
    ),
    row(
        "behavior_server",
        &[("cmd_vel_behavior", Velocity, 1)],
        &[("local_costmap", Grid), ("odom", Odom)],
    ),
    row(
        "bt_navigator",
        &[("goal", Pose, 1)],
        &[("odom", Odom), ("plan", Plan), ("pose", Pose)],
    ),
    row("waypoint_follower", &[], &[("pose", Pose)]),
    row("docking_server", &[], &[("scan", Scan), ("pose", Pose)]),
];

/// Number of nodes of the graph.
#[allow(dead_code, reason = "only programs that compose by hand ask")]
pub const GRAPH_NODES: usize = GRAPH.len();

/// A node of the graph, active at once. The parameter `row` selects it.
pub struct GraphNode {
    node: LifecycleNode,
    _parts: Vec<Box<dyn Any + Send>>,
}

impl Component for GraphNode {
    fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
        let node = LifecycleNode::new(context, options.name("graph_node"), ())?;
        let number = node
            .node()
            .declare_required_parameter::<i64>("row", ParameterDescriptor::new())?
            .value();
        let row = usize::try_from(number).ok().and_then(|row| GRAPH.get(row));
        let row = row.ok_or_else(|| format!("parameter 'row' = {number}: 0 to 14"))?;
        let mut parts = Vec::new();
        for (topic, kind) in row.subscribes {
            parts.push(subscribe(node.node(), topic, *kind)?);
        }
        for (topic, kind, rate) in row.publishes {
            parts.push(publish(&node, topic, *kind, *rate)?);
        }
        node.configure()?;
        node.activate()?;
        Ok(Self {
            node,
            _parts: parts,
        })
    }

    fn node(&self) -> &Node {
        self.node.node()
    }
}

/// The node name of a row.
#[allow(dead_code, reason = "only programs that compose by hand ask")]
pub fn name_of(row: usize) -> &'static str {
    GRAPH[row].name
}

type KeptEntity = Box<dyn Any + Send>;

fn subscribe(node: &Node, topic: &str, kind: Kind) -> Result<KeptEntity, ComponentError> {
    fn listen<T: Message>(node: &Node, topic: &str) -> Result<KeptEntity, ComponentError> {
        let part = node.create_subscription::<T>(topic.keep_last(10), |message| {
            std::hint::black_box(&*message);
        })?;
        Ok(Box::new(part))
    }
    match kind {
        Scan => listen::<LaserScan>(node, topic),
        Odom => listen::<Odometry>(node, topic),
        Velocity => listen::<Twist>(node, topic),
        Grid => listen::<OccupancyGrid>(node, topic),
        Plan => listen::<Path>(node, topic),
        Pose => listen::<PoseStamped>(node, topic),
    }
}

fn publish(
    node: &LifecycleNode,
    topic: &str,
    kind: Kind,
    rate: u32,
) -> Result<KeptEntity, ComponentError> {
    fn publish_periodically<T: Message + Clone>(
        node: &LifecycleNode,
        topic: &str,
        rate: u32,
        message: T,
    ) -> Result<KeptEntity, ComponentError> {
        let publisher = node.create_publisher::<T>(topic.keep_last(10))?;
        let period = Duration::from_secs(1) / rate;
        let timer = node.create_timer(period, move || {
            let _ = publisher.publish_owned(message.clone());
        })?;
        Ok(Box::new(timer))
    }
    match kind {
        Scan => {
            let scan = LaserScan {
                ranges: vec![1.0; 360],
                ..LaserScan::default()
            };
            publish_periodically(node, topic, rate, scan)
        }
        Odom => publish_periodically(node, topic, rate, Odometry::default()),
        Velocity => publish_periodically(node, topic, rate, Twist::default()),
        Grid => {
            let grid = OccupancyGrid {
                data: vec![0; 200 * 200],
                ..OccupancyGrid::default()
            };
            publish_periodically(node, topic, rate, grid)
        }
        Plan => {
            let plan = Path {
                poses: vec![PoseStamped::default(); 100],
                ..Path::default()
            };
            publish_periodically(node, topic, rate, plan)
        }
        Pose => publish_periodically(node, topic, rate, PoseStamped::default()),
    }
}
