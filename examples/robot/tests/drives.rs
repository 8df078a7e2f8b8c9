//! The robot drives to a goal: composed on one thread in stepped time, as many
//! processes, loaded by a container with a thread for each, and as its launch file says.
#![allow(
    clippy::disallowed_methods,
    reason = "a client waits in a thread while another spins"
)]

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::clock::{ClockServer, Time};
use pteros::component::Component;
use pteros::interfaces::geometry_msgs::msg::PoseStamped;
use pteros::prelude::*;
use pteros::tf::Isometry;
use pteros::{ActionClient, ActionError, GoalStatus};
use pteros_launch::{Packages, Plan, Request};
use robot::nav2_msgs::action::{NavigateToPose, NavigateToPose_Goal, NavigateToPose_Result};
use robot::{Base, Controller, Laser, MapServer, Planner};

/// Of real time, on a machine with other things to do.
const PATIENCE: Duration = Duration::from_secs(120);
const DOOR: [f64; 3] = [3.5, 2.0, -1.6];
const HALL: [f64; 3] = [6.5, 1.0, 3.0];

fn goal([x, y, yaw]: [f64; 3]) -> NavigateToPose_Goal {
    let mut goal = NavigateToPose_Goal::default();
    goal.pose.header.frame_id = "map".into();
    goal.pose.pose = Isometry::planar(x, y, yaw).into();
    goal
}

/// Whoever sends the robot about: in a context of its own.
struct Operator {
    node: Node,
    client: ActionClient<NavigateToPose>,
    truth: Arc<Mutex<[f64; 3]>>,
    _poses: Subscription<PoseStamped>,
}

impl Operator {
    fn new(context: &Context) -> Self {
        let node = context.node("operator").unwrap();
        let truth = Arc::<Mutex<[f64; 3]>>::default();
        let seen = truth.clone();
        let poses = node.create_subscription::<PoseStamped>("ground_truth", 1, move |pose| {
            let pose = Isometry::from(&pose.pose);
            let [x, y, _] = pose.translation;
            *seen.lock().unwrap() = [x, y, pose.yaw()];
        });
        Self {
            client: node.create_action_client("navigate_to_pose").unwrap(),
            _poses: poses.unwrap(),
            truth,
            node,
        }
    }

    /// Sends the goal as soon as the controller takes goals.
    fn drive(&self, target: [f64; 3]) -> (GoalStatus, NavigateToPose_Result) {
        let mut sent = self.client.send_goal(goal(target), PATIENCE);
        let ended = self.node.context().clone();
        while matches!(sent, Err(ActionError::Rejected { .. })) && !ended.is_shut_down() {
            self.node.spin_once(Duration::from_millis(50));
            sent = self.client.send_goal(goal(target), PATIENCE);
        }
        let end = sent.unwrap().result(PATIENCE).unwrap();
        (end.status, end.result.clone())
    }

    fn is_there(&self, target: [f64; 3]) {
        let near = || {
            let [x, y, yaw] = *self.truth.lock().unwrap();
            let turned = (yaw - target[2]).sin().abs();
            (x - target[0]).hypot(y - target[1]) < 0.15 && turned < 0.15
        };
        let there = self.node.spin_until(near, PATIENCE);
        let truth = self.truth.lock().unwrap();
        assert!(there, "it is at {truth:?} and not at {target:?}");
    }
}

/// A domain for each test of each run.
fn domain(test: u32) -> u32 {
    30 + (std::process::id() * 3 + test) % 70
}

fn local(domain: u32, use_sim_time: bool) -> Context {
    let options = ContextOptions {
        use_sim_time,
        ..ContextOptions::local(domain)
    };
    Context::with_options(options).unwrap()
}

#[test]
fn composed_it_drives_through_the_door_turns_back_and_says_why_it_cannot() {
    let context = local(domain(0), true);
    let time = context.node("time").unwrap();
    let time = ClockServer::new(&time, Time::from_nanos(1_000_000_000), PATIENCE).unwrap();
    time.pause();
    let options = NodeOptions::default;
    let base = Base::new(&context, options()).unwrap();
    let laser = Laser::new(&context, options()).unwrap();
    let map_server = MapServer::new(&context, options()).unwrap();
    let planner = Planner::new(&context, options()).unwrap();
    let controller = Controller::new(&context, options()).unwrap();
    let executor = SingleThreadedExecutor::new(&context);
    for node in [
        base.node(),
        laser.node(),
        map_server.node(),
        planner.node(),
        controller.node(),
    ] {
        executor.add_node(node).unwrap();
    }
    for node in [planner.managed(), controller.managed()] {
        node.configure().unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let operator = scope.spawn(|| {
            let ended = Ended(&done);
            let operator = Operator::new(&context);
            let refused = operator.client.send_goal(goal(DOOR), PATIENCE);
            assert!(
                matches!(refused, Err(ActionError::Rejected { .. })),
                "not active yet"
            );
            for node in [planner.managed(), controller.managed()] {
                while node.activate().is_err() {
                    operator.node.spin_once(Duration::from_millis(10));
                }
            }
            assert_eq!(operator.drive(DOOR).0, GoalStatus::Succeeded);
            operator.is_there(DOOR);
            // A newer goal takes the place of the older; that one is cancelled.
            let older = operator
                .client
                .send_goal(goal([1.0, 5.0, 0.0]), PATIENCE)
                .unwrap();
            let newer = operator.client.send_goal(goal(HALL), PATIENCE).unwrap();
            let older = older.result(PATIENCE).unwrap();
            assert_eq!(older.status, GoalStatus::Aborted);
            assert_eq!(older.result.error_msg, "a newer goal took its place");
            newer.cancel(PATIENCE).unwrap();
            assert_eq!(newer.result(PATIENCE).unwrap().status, GoalStatus::Canceled);
            let (status, told) = operator.drive([0.1, 0.1, 0.0]);
            assert_eq!((status, told.error_code), (GoalStatus::Aborted, 9000));
            assert!(
                told.error_msg
                    .contains("there is no way, after 6 recoveries"),
                "{told:?}"
            );
            let mut elsewhere = goal(DOOR);
            elsewhere.pose.header.frame_id = "moon".into();
            let elsewhere = operator.client.send_goal(elsewhere, PATIENCE).unwrap();
            let told = elsewhere.result(PATIENCE).unwrap();
            assert_eq!(told.result.error_code, NavigateToPose_Result::TF_ERROR);
            assert!(
                told.result.error_msg.contains("no frame \"moon\""),
                "{told:?}"
            );
            drop(ended);
        });
        while !done.load(Ordering::Relaxed) {
            time.step(Duration::from_millis(20));
            while executor.spin_once(Duration::from_millis(1)) {}
        }
        operator.join().unwrap();
    });
}

/// Says that it is over, also when an assertion fails.
struct Ended<'d>(&'d AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A program in the background; killed when dropped.
struct Running(Child);

impl Running {
    fn start(program: &str, domain: u32, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        command
            .env("ROS_DOMAIN_ID", domain.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("PTEROS_COMPONENT_PATH", libraries())
            .env_remove("AMENT_PREFIX_PATH")
            .args(arguments);
        Self(command.spawn().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where cargo puts the library that is built beside the tests.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().map(PathBuf::from).unwrap()
}

#[test]
fn as_seven_processes_it_drives_to_the_goal_in_faster_time() {
    let domain = domain(1);
    let program = env!("CARGO_BIN_EXE_robot");
    let simulated = ["--ros-args", "-p", "use_sim_time:=true"];
    let start = |words: &[&str]| Running::start(program, domain, &[words, &simulated].concat());
    let speed = ["sim_clock", "--ros-args", "-p", "speed:=4.0"];
    let _processes = [
        Running::start(program, domain, &speed),
        start(&["base"]),
        start(&["laser"]),
        start(&["map_server"]),
        start(&["planner"]),
        start(&["controller"]),
        start(&["supervisor"]),
    ];
    let operator = Operator::new(&local(domain, false));
    let (status, told) = operator.drive(DOOR);
    assert_eq!(status, GoalStatus::Succeeded, "{told:?}");
    operator.is_there(DOOR);
}

#[test]
fn loaded_by_a_container_with_a_thread_each_it_drives_to_the_goal() {
    let domain = domain(2);
    let program = env!("CARGO_BIN_EXE_robot_container");
    let mut words = vec!["--executor", "isolated"];
    let parts = ["Base", "Laser", "MapServer", "Planner", "Controller"];
    let classes = parts.map(|part| format!("robot::{part}"));
    for class in &classes {
        words.extend(["--load", "robot", class, "-p", "use_sim_time:=true"]);
    }
    words.extend(["--load", "robot", "robot::SimClock", "-p", "speed:=4.0"]);
    let _container = Running::start(program, domain, &words);
    let context = local(domain, false);
    let robot = env!("CARGO_BIN_EXE_robot");
    let _supervisor = Running::start(robot, domain, &["supervisor"]);
    let operator = Operator::new(&context);
    let (status, told) = operator.drive(DOOR);
    assert_eq!(status, GoalStatus::Succeeded, "{told:?}");
    operator.is_there(DOOR);
}

/// What the launch file starts for these arguments, started.
fn launched(domain: u32, arguments: &[(&str, &str)]) -> Vec<Running> {
    let mut environment: std::collections::BTreeMap<String, String> = std::env::vars().collect();
    let more = [
        ("ROS_DOMAIN_ID", domain.to_string()),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST".into()),
        ("PTEROS_COMPONENT_PATH", libraries().display().to_string()),
    ];
    environment.extend(more.map(|(name, value)| (name.into(), value)));
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let components = pteros_component::Index::from_environment();
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let request = Request {
        file: folder.join("launch/robot.launch.xml"),
        arguments: arguments
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        environment,
        packages: Packages::new(&components, target).with_workspace_of(&folder),
        components,
        log_folder: libraries().join("robot_launch_log"),
        host: "here".into(),
        process: std::process::id(),
    };
    let plan = Plan::read(&request).unwrap_or_else(|faults| panic!("{faults}"));
    let start = |process: &pteros_launch::plan::Process| {
        for (path, text) in &process.files {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let mut command = Command::new(&process.words[0]);
        command
            .args(&process.words[1..])
            .env_clear()
            .envs(&process.environment);
        Running(command.spawn().unwrap())
    };
    plan.processes().into_iter().map(start).collect()
}

#[test]
fn launched_it_is_seven_processes_or_one_or_a_container_and_drives_to_the_goal() {
    let placements = [("processes", 7), ("composed", 2), ("isolated", 3)];
    for (test, (placement, count)) in (3..).zip(placements) {
        let arguments = [
            ("placement", placement),
            ("use_sim_time", "true"),
            ("speed", "4.0"),
        ];
        let domain = domain(test);
        let processes = launched(domain, &arguments);
        assert_eq!(processes.len(), count, "{placement}");
        let operator = Operator::new(&local(domain, false));
        let (status, told) = operator.drive(DOOR);
        assert_eq!(status, GoalStatus::Succeeded, "{placement}: {told:?}");
        operator.is_there(DOOR);
    }
}
