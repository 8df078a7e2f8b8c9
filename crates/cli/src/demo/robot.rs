//! The robot of the demo: nodes, topics and timers in three processes.
//!
//! ```text
//! body        lidar -> /scan -> detector      camera -> /camera/image_raw -> recorder
//!             supervisor -> /status -> logger      controller -> /cmd_vel, <- /odom
//! base        wheels <- /cmd_vel, -> /odom    speaker <- /status
//! perception  mapper <- /scan                 viewer <- /camera/image_raw
//! ```

use super::flow_statistics::FlowStatistics;
use anyhow::Result;
use pteros::NamedQosExt;
use pteros::interfaces::{geometry_msgs, nav_msgs, sensor_msgs, std_msgs};
use pteros::msg::cdr::{Representation, to_payload};
use pteros::msg::{Encode, Message};
use pteros::qos::QosProfile;
use pteros::{Context, Node, Sample, executors::SingleThreadedExecutor};
use std::any::Any;
use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A process of the robot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum RobotProcess {
    /// The process that the user started.
    Body,
    /// Wheels and speaker.
    Base,
    /// The nodes that process images and scans.
    Perception,
}

/// The running nodes of one process.
pub struct Robot {
    executor: SingleThreadedExecutor,
    /// Statistics of its subscriptions.
    pub flows: Vec<FlowStatistics>,
    _nodes: HashMap<&'static str, Node>,
    /// Subscriptions and timers end when dropped.
    _alive: Vec<Box<dyn Any>>,
}

/// Number of nodes in all processes.
pub const NODE_COUNT: usize = 11;
/// Number of processes.
pub const PROCESS_COUNT: usize = 3;

const SCAN: &str = "/scan";
const IMAGE: &str = "/camera/image_raw";
const STATUS: &str = "/status";
const CMD_VEL: &str = "/cmd_vel";
const ODOM: &str = "/odom";

/// Every connection that must carry messages: topic and subscribing node.
pub const CONNECTIONS: &[(&str, &str)] = &[
    (SCAN, "detector"),
    (SCAN, "mapper"),
    (IMAGE, "recorder"),
    (IMAGE, "viewer"),
    (STATUS, "logger"),
    (STATUS, "speaker"),
    (CMD_VEL, "wheels"),
    (ODOM, "controller"),
];

/// Creates the nodes of a process.
pub fn start_process(context: &Context, part: RobotProcess) -> Result<Robot> {
    let mut builder = RobotBuilder {
        context,
        executor: SingleThreadedExecutor::new(context),
        nodes: HashMap::new(),
        flows: Vec::new(),
        alive: Vec::new(),
    };
    match part {
        RobotProcess::Body => builder.body()?,
        RobotProcess::Base => builder.base()?,
        RobotProcess::Perception => builder.perception()?,
    }
    Ok(Robot {
        executor: builder.executor,
        flows: builder.flows,
        _nodes: builder.nodes,
        _alive: builder.alive,
    })
}

impl Robot {
    /// Serves one callback, or waits for it for at most `timeout`.
    pub fn spin_once(&self, timeout: Duration) {
        self.executor.spin_once(timeout);
    }
}

struct RobotBuilder<'a> {
    context: &'a Context,
    executor: SingleThreadedExecutor,
    nodes: HashMap<&'static str, Node>,
    flows: Vec<FlowStatistics>,
    alive: Vec<Box<dyn Any>>,
}

impl RobotBuilder<'_> {
    fn body(&mut self) -> Result<()> {
        self.publish("lidar", SCAN, QosProfile::sensor_data(), 50, scan)?;
        self.publish("camera", IMAGE, image_qos(), 66, image)?;
        self.publish("supervisor", STATUS, QosProfile::default(), 200, status)?;
        self.publish("controller", CMD_VEL, QosProfile::default(), 50, command)?;
        let sensor_data = QosProfile::sensor_data();
        self.subscribe::<sensor_msgs::msg::LaserScan>("lidar", "detector", SCAN, sensor_data)?;
        self.subscribe::<sensor_msgs::msg::Image>("camera", "recorder", IMAGE, image_qos())?;
        self.subscribe::<std_msgs::msg::String>("supervisor", "logger", STATUS, 10.into())?;
        self.subscribe::<nav_msgs::msg::Odometry>("wheels", "controller", ODOM, 10.into())
    }

    fn base(&mut self) -> Result<()> {
        self.publish("wheels", ODOM, QosProfile::default(), 20, odometry)?;
        self.subscribe::<geometry_msgs::msg::Twist>("controller", "wheels", CMD_VEL, 10.into())?;
        self.subscribe::<std_msgs::msg::String>("supervisor", "speaker", STATUS, 10.into())
    }

    fn perception(&mut self) -> Result<()> {
        let sensor_data = QosProfile::sensor_data();
        self.subscribe::<sensor_msgs::msg::LaserScan>("lidar", "mapper", SCAN, sensor_data)?;
        self.subscribe::<sensor_msgs::msg::Image>("camera", "viewer", IMAGE, image_qos())
    }

    /// The node of that name, created when first asked for.
    fn node(&mut self, name: &'static str) -> Result<Node> {
        if let Some(node) = self.nodes.get(name) {
            return Ok(node.clone());
        }
        let node = self.context.create_node(name)?;
        self.executor.add_node(&node)?;
        self.nodes.insert(name, node.clone());
        Ok(node)
    }

    /// Creates a node with a timer that publishes `make(count)`.
    fn publish<T: Message>(
        &mut self,
        node: &'static str,
        topic: &'static str,
        qos: QosProfile,
        period_ms: u64,
        make: fn(u64) -> T,
    ) -> Result<()> {
        let node = self.node(node)?;
        let publisher = node.create_publisher::<T>(topic.qos(qos))?;
        let mut count = 0;
        let timer = node.create_timer(Duration::from_millis(period_ms), move || {
            count += 1;
            // The table shows lost messages, so the error needs no handling.
            let _ = publisher.publish_owned(make(count));
        })?;
        self.alive.push(Box::new(timer));
        Ok(())
    }

    /// Creates a node that counts the messages of a topic.
    fn subscribe<T: Message + Encode>(
        &mut self,
        from: &'static str,
        to: &'static str,
        topic: &'static str,
        qos: QosProfile,
    ) -> Result<()> {
        let node = self.node(to)?;
        let flow = FlowStatistics::new(topic, T::TYPE_NAME, from, to);
        self.flows.push(flow.clone());
        let subscription = node.create_subscription(topic.qos(qos), move |sample: Sample<T>| {
            flow.record(&sample, || {
                to_payload(&*sample, Representation::Xcdr1).len()
            });
        })?;
        self.alive.push(Box::new(subscription));
        Ok(())
    }
}

/// Reliable, so that lost fragments of a large message are retransmitted.
fn image_qos() -> QosProfile {
    QosProfile::default().keep_last(5)
}

fn header(frame: &str) -> std_msgs::msg::Header {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    std_msgs::msg::Header {
        stamp: pteros::interfaces::builtin_interfaces::msg::Time {
            sec: i32::try_from(time.as_secs()).unwrap_or(i32::MAX),
            nanosec: time.subsec_nanos(),
        },
        frame_id: frame.into(),
    }
}

/// A room of 4 m by 4 m around the robot, with one ray per half degree.
fn scan(count: u64) -> sensor_msgs::msg::LaserScan {
    let step = std::f32::consts::TAU / SCAN_POINTS as f32;
    let turned = count as f32 * 0.01;
    let distance = |index: usize| {
        let angle = index as f32 * step + turned;
        2.0 / angle.cos().abs().max(angle.sin().abs())
    };
    sensor_msgs::msg::LaserScan {
        header: header("laser"),
        angle_min: 0.0,
        angle_max: std::f32::consts::TAU - step,
        angle_increment: step,
        time_increment: 0.0,
        scan_time: 0.05,
        range_min: 0.1,
        range_max: 10.0,
        ranges: (0..SCAN_POINTS).map(distance).collect(),
        intensities: vec![100.0; SCAN_POINTS],
    }
}

const SCAN_POINTS: usize = 720;
const IMAGE_WIDTH: u32 = 640;
const IMAGE_HEIGHT: u32 = 480;

/// An image with changing brightness, in the size of a common camera.
fn image(count: u64) -> sensor_msgs::msg::Image {
    let brightness = u8::try_from(count % 256).unwrap_or(0);
    sensor_msgs::msg::Image {
        header: header("camera"),
        height: IMAGE_HEIGHT,
        width: IMAGE_WIDTH,
        encoding: "rgb8".into(),
        is_bigendian: 0,
        step: IMAGE_WIDTH * 3,
        data: vec![brightness; (IMAGE_WIDTH * IMAGE_HEIGHT * 3) as usize],
    }
}

fn status(count: u64) -> std_msgs::msg::String {
    let battery = 100 - (count / 10) % 100;
    std_msgs::msg::String {
        data: format!("status {count}: battery {battery} %, all parts run"),
    }
}

/// A slow circle.
fn command(_count: u64) -> geometry_msgs::msg::Twist {
    let mut twist = geometry_msgs::msg::Twist::default();
    twist.linear.x = 0.2;
    twist.angular.z = 0.1;
    twist
}

fn odometry(count: u64) -> nav_msgs::msg::Odometry {
    let angle = count as f64 * 0.002;
    let mut odometry = nav_msgs::msg::Odometry {
        header: header("odom"),
        child_frame_id: "base_link".into(),
        ..Default::default()
    };
    odometry.pose.pose.position.x = 2.0 * angle.sin();
    odometry.pose.pose.position.y = 2.0 * (1.0 - angle.cos());
    odometry.pose.pose.orientation.z = (angle / 2.0).sin();
    odometry.pose.pose.orientation.w = (angle / 2.0).cos();
    odometry.twist.twist.linear.x = 0.2;
    odometry.twist.twist.angular.z = 0.1;
    odometry
}
