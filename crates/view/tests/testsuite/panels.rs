//! The page in Chromium, where one is found: a robot with a publisher for each display, and
//! each panel with its data. The scene's pixels are read back.

use std::any::Any;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::action::ServerGoalHandle;
use pteros::interfaces::composition_interfaces::srv::{
    ListNodes, ListNodesRequest, ListNodesResponse, LoadNode, LoadNodeRequest, LoadNodeResponse,
    UnloadNode, UnloadNodeRequest, UnloadNodeResponse,
};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciResult,
};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::geometry_msgs::msg::{PoseStamped, Twist};
use pteros::interfaces::sensor_msgs::msg::JointState;
use pteros::lifecycle::LifecycleNode;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};
use pteros::{NamedQosExt, Node, NodeOptions, PublisherOptions, Sample};
use pteros_test_support::folder::Folder;
use pteros_test_support::spin_thread::SpinThread;
use serde_json::{Value, json};

use crate::chromium::{self, Browser};
use crate::viewer::{PATIENCE, Robot, allow_all, wait_until};

/// Read at run time, as the tests of the page's modules are: a change of it needs no build.
const STEPS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/testsuite/panels.js");
/// What the camera sees, red, green, blue and a dark one, as a canvas has it.
const IMAGE_PIXELS: [u8; 16] = [
    255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 10, 20, 30, 255,
];
const PERIOD: Duration = Duration::from_millis(100);
/// Metres are 60 pixels, see `pixels` of the steps.
const RVIZ: &str = r"
Panels:
  - Class: rviz_common/Displays
Visualization Manager:
  Displays:
    - {Class: rviz_default_plugins/RobotModel, Name: Robot, Enabled: true, Description Topic: {Value: /robot_description}}
    - {Class: rviz_default_plugins/TF, Name: TF, Enabled: false}
    - {Class: rviz_default_plugins/LaserScan, Name: Scan, Enabled: true, Color: 255; 0; 0, Color Transformer: FlatColor, Style: Points, Size (Pixels): 5, Topic: {Value: /scan, Reliability Policy: Reliable, Durability Policy: Transient Local}}
    - {Class: rviz_default_plugins/PointCloud2, Name: Cloud, Enabled: true, Color: 0; 255; 0, Color Transformer: FlatColor, Style: Points, Size (Pixels): 6, Topic: {Value: /cloud}}
    - {Class: rviz_default_plugins/Map, Name: Map, Enabled: true, Color Scheme: map, Topic: {Value: /map}}
    - {Class: rviz_default_plugins/Path, Name: Plan, Enabled: true, Color: 0; 0; 255, Topic: {Value: /plan}}
    - {Class: rviz_default_plugins/Marker, Name: Box, Enabled: true, Topic: {Value: /markers}}
    - {Class: rviz_default_plugins/Image, Name: Camera, Enabled: true, Topic: {Value: /camera/image_raw}}
    - {Class: other_plugins/Radar, Name: Radar}
  Global Options: {Background Color: 0; 0; 0, Fixed Frame: map}
  Tools:
    - {Class: rviz_default_plugins/SetGoal, Topic: {Value: /goal}}
  Views:
    Current: {Class: rviz_default_plugins/TopDownOrtho, X: 0, Y: 0, Scale: 60, Angle: 0, Target Frame: <Fixed Frame>}
";
const URDF: &str = "<robot name='box'><material name='yellow'><color rgba='1 0.9 0 1'/></material>\
<link name='base_link'><visual><geometry><box size='0.6 0.6 0.2'/></geometry><material name='yellow'/></visual></link>\
<link name='upper'/><link name='hand'/>\
<joint name='elbow' type='revolute'><parent link='base_link'/><child link='upper'/><limit lower='-1' upper='1'/></joint>\
<joint name='finger' type='prismatic'><parent link='upper'/><child link='hand'/><limit lower='0' upper='2'/><mimic joint='elbow' multiplier='2' offset='0.1'/></joint></robot>";

/// Topics with type and message, and whether the message is kept for late joiners.
fn messages() -> Vec<(&'static str, &'static str, String, bool)> {
    let header = "header: {frame_id: map}";
    let base = "header: {frame_id: base_link}";
    let point = |i: u32| {
        let at = |index: u32, from: f32| from + 0.05 * index as f32;
        [at(i % 21, -2.0), at(i / 21, 1.0), 0.0]
    };
    let points = (0..441).flat_map(point).flat_map(f32::to_le_bytes);
    let points: Vec<u8> = points.collect();
    let fields = ["x", "y", "z"].iter().zip([0, 4, 8]);
    let fields = fields
        .map(|(name, offset)| json!({ "name": name, "offset": offset, "datatype": 7, "count": 1 }));
    let cloud = json!({
        "header": { "frame_id": "map" }, "height": 1, "width": 441,
        "fields": fields.collect::<Vec<_>>(), "point_step": 12, "row_step": 12 * 441,
        "data": points, "is_dense": true,
    });
    let image = json!({
        "height": 2, "width": 2, "encoding": "rgb8", "step": 6,
        "data": [255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 20, 30],
    });
    let scan = format!(
        "{{{base}, angle_max: 6.2, angle_increment: 0.1745, range_max: 5.0, ranges: {:?}}}",
        [1.0; 36]
    );
    let map = format!(
        "{{{header}, info: {{resolution: 0.1, width: 20, height: 20, origin: {{position: {{x: -2.0, y: -3.0}}}}}}, data: {:?}}}",
        [100; 400]
    );
    let urdf = json!({ "data": URDF }).to_string();
    vec![
        (
            "/tf_static",
            "tf2_msgs/msg/TFMessage",
            format!(
                "transforms: [{{{header}, child_frame_id: base_link, transform: {{translation: {{x: 1.0}}}}}}, \
                 {{{base}, child_frame_id: upper}}, {{{base}, child_frame_id: hand}}]"
            ),
            true,
        ),
        ("/robot_description", "std_msgs/msg/String", urdf, true),
        ("/map", "nav_msgs/msg/OccupancyGrid", map, true),
        ("/scan", "sensor_msgs/msg/LaserScan", scan.clone(), false),
        ("/other_scan", "sensor_msgs/msg/LaserScan", scan, false),
        (
            "/cloud",
            "sensor_msgs/msg/PointCloud2",
            cloud.to_string(),
            false,
        ),
        (
            "/plan",
            "nav_msgs/msg/Path",
            format!(
                "{{{header}, poses: [{{pose: {{position: {{x: -2.0, y: -3.5}}}}}}, {{pose: {{position: {{x: 2.0, y: -3.5}}}}}}]}}"
            ),
            false,
        ),
        (
            "/markers",
            "visualization_msgs/msg/Marker",
            format!(
                "{{{header}, type: 1, pose: {{position: {{x: 3.0, y: 2.0}}}}, scale: {{x: 0.6, y: 0.6, z: 0.1}}, color: {{r: 1.0, b: 1.0, a: 1.0}}}}"
            ),
            false,
        ),
        (
            "/camera/image_raw",
            "sensor_msgs/msg/Image",
            image.to_string(),
            false,
        ),
        ("/number", "std_msgs/msg/Float64", "data: 1.5".into(), false),
        (
            "/diagnostics",
            "diagnostic_msgs/msg/DiagnosticArray",
            "status: [{level: 1, name: power, message: battery low}]".into(),
            false,
        ),
        (
            "/rosout",
            "rcl_interfaces/msg/Log",
            "{level: 20, name: dock, msg: Reached the dock}".into(),
            false,
        ),
    ]
}

/// Publishes each message ten times a second. What it returns keeps the publishers.
fn publish_all(node: &Node) -> impl Sized + use<> {
    let library = pteros::interfaces::library();
    let mut publishers = Vec::new();
    for (topic, type_name, text, is_latched) in messages() {
        let ty = DynamicType::new(&library.describe(type_name).unwrap()).unwrap();
        let mut qos = topic.keep_last(10);
        if is_latched {
            qos = topic.transient_local().keep_last(1);
        }
        let publisher =
            node.create_publisher::<DynamicMessage>(PublisherOptions::of_type(&ty, qos));
        let message = DynamicMessage::from_yaml(&ty, &text)
            .unwrap_or_else(|error| panic!("{topic}: {error}"));
        publishers.push((publisher.unwrap(), message, is_latched));
    }
    let mut is_first = true;
    node.create_timer(PERIOD, move || {
        for (publisher, message, is_latched) in &publishers {
            if is_first || !is_latched {
                publisher.publish(message).unwrap();
            }
        }
        is_first = false;
    })
    .unwrap()
}

/// A container with one component, which it does not unload.
fn container(node: &Node) -> impl Sized + use<> {
    let list = |_: Sample<ListNodesRequest>| ListNodesResponse {
        full_node_names: vec!["/talker".into()],
        unique_ids: vec![1],
    };
    let load = |_: Sample<LoadNodeRequest>| LoadNodeResponse::default();
    let unload = |_: Sample<UnloadNodeRequest>| UnloadNodeResponse {
        success: false,
        error_message: "it is needed".into(),
    };
    let name = |part: &str| format!("/box/_container/{part}");
    (
        node.create_service::<ListNodes>(name("list_nodes").as_str(), list)
            .unwrap(),
        node.create_service::<LoadNode>(name("load_node").as_str(), load)
            .unwrap(),
        node.create_service::<UnloadNode>(name("unload_node").as_str(), unload)
            .unwrap(),
    )
}

/// The robot, the page, and what the page has published.
struct Page {
    robot: Robot,
    browser: Browser,
    goals: Receiver<ServerGoalHandle<Fibonacci>>,
    received: Arc<Mutex<Vec<String>>>,
    _kept: Vec<Box<dyn Any>>,
}

impl Page {
    fn open(program: &Path) -> Self {
        let folder = Folder::new("view_panels");
        let file = folder.path().join("robot.rviz");
        std::fs::write(&file, RVIZ).unwrap();
        let robot = Robot::start(|options| {
            allow_all(options);
            options.rviz = Some(file);
        });
        let node = &robot.node;
        node.declare_parameter("speed", 1.0).unwrap();
        let add = |request: Sample<AddTwoIntsRequest>| AddTwoIntsResponse {
            sum: request.a + request.b,
        };
        let (send, goals) = channel();
        let take = move |goal: ServerGoalHandle<Fibonacci>| send.send(goal).unwrap();
        let arm = LifecycleNode::new(node.context(), NodeOptions::new("arm"), ()).unwrap();
        let received: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept: Vec<Box<dyn Any>> = vec![
            Box::new(publish_all(node)),
            Box::new(container(node)),
            Box::new(node.create_service::<AddTwoInts>("/add", add).unwrap()),
            Box::new(node.create_action_server("dance", take).unwrap()),
            Box::new(SpinThread::of_node(arm.node(), ())),
            Box::new(arm),
            note(node, "/joint_states", &received, |state: &JointState| {
                format!("{:?} {:?}", state.name, state.position)
            }),
            note(node, "/cmd_vel", &received, |twist: &Twist| {
                format!("x {}", twist.linear.x)
            }),
            note(node, "/goal", &received, |pose: &PoseStamped| {
                format!("goal in {}", pose.header.frame_id)
            }),
        ];
        let mut browser = Browser::open(program, &robot.view.url(), (1400, 860));
        browser.run(&std::fs::read_to_string(STEPS).unwrap());
        Self {
            robot,
            browser,
            goals,
            received,
            _kept: kept,
        }
    }

    /// Runs a step, and keeps a picture of the page after it.
    fn step(&mut self, name: &str) -> Value {
        let value = self.browser.run(&format!("steps.{name}()"));
        self.browser.screenshot(name);
        value
    }

    /// Waits until the robot has received a message.
    fn heard(&self, text: &str) {
        let has = || self.received.lock().unwrap().iter().any(|one| one == text);
        wait_until(has, text);
    }

    /// The displays of the file, as pixels of the drawn scene.
    fn check_scene(&mut self) {
        self.step("connect");
        assert_eq!(self.step("displays"), json!(IMAGE_PIXELS));
        let picture = self.browser.screenshot("scene");
        let pixels = self.browser.run(&format!("steps.pixels('{picture}')"));
        let kinds = pixels.as_object().unwrap();
        assert!(kinds.values().all(|is_drawn| *is_drawn == true), "{pixels}");
    }

    /// A parameter is set by the page and read by the robot, and the other way round.
    fn check_parameters(&mut self) {
        self.step("parameters");
        let node = self.robot.node.clone();
        let is_set = || node.parameter("speed").unwrap() == 2.5.into();
        wait_until(is_set, "the page has not set the parameter");
        node.set_parameter("speed", 3.5).unwrap();
        self.step("update");
    }

    fn check_action(&mut self) {
        self.step("action");
        let goal = self.goals.recv_timeout(PATIENCE).unwrap();
        assert_eq!(goal.goal().order, 5);
        let graph = self.robot.node.context().graph();
        let is_heard = || !graph.subscriptions("/dance/_action/feedback").is_empty();
        assert!(graph.wait_until(PATIENCE, is_heard));
        goal.publish_feedback(FibonacciFeedback { sequence: vec![2] });
        self.step("feedback");
        goal.succeed(FibonacciResult { sequence: vec![5] }).unwrap();
        self.step("result");
        self.step("send");
        let goal = self.goals.recv_timeout(PATIENCE).unwrap();
        self.step("cancel");
        wait_until(|| goal.is_canceling(), "the page has not canceled its goal");
        goal.canceled(FibonacciResult::default()).unwrap();
        self.step("canceled");
    }

    /// Joints, velocities and a goal pose reach the robot.
    fn check_publishing(&mut self) {
        self.step("joints");
        self.heard(r#"["elbow", "finger"] [0.5, 1.1]"#);
        self.step("teleop");
        self.heard("x 0.3");
        self.heard("x 0");
        self.step("goal");
        self.heard("goal in map");
    }
}

/// Notes the messages of a topic as texts.
fn note<M: pteros::msg::Message + Send + Sync + 'static>(
    node: &Node,
    topic: &str,
    to: &Arc<Mutex<Vec<String>>>,
    text: impl Fn(&M) -> String + Send + 'static,
) -> Box<dyn Any> {
    let to = to.clone();
    let take = move |sample: Sample<M>| to.lock().unwrap().push(text(&sample));
    Box::new(node.create_subscription(topic.keep_last(10), take).unwrap())
}

#[test]
fn every_panel_shows_the_robot_in_chromium() {
    let Some(program) = chromium::find() else {
        let text = "skipped: no chromium on PATH or in $PTEROS_CHROMIUM runs the page";
        let _ = writeln!(std::io::stdout(), "\n{text}");
        return;
    };
    let mut page = Page::open(&program);
    page.check_scene();
    for name in ["topics", "plot", "graph", "logs", "diagnostics"] {
        page.step(name);
    }
    assert_eq!(page.step("images"), json!(IMAGE_PIXELS));
    page.check_parameters();
    page.step("services");
    page.check_action();
    page.step("lifecycle");
    page.step("components");
    page.check_publishing();
    page.step("close");
    assert_eq!(page.browser.faults, [""; 0], "errors and foreign requests");
}
