//! The robot drives to a goal: composed on one thread in stepped time, as many
//! processes, loaded by a container with a thread for each, and as its launch file says.
#![allow(
    clippy::disallowed_methods,
    reason = "a client waits in a thread while another spins"
)]

use std::path::{Path, PathBuf};
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

#[test]
fn launched_it_is_seven_processes_or_one_or_a_container_and_drives_to_the_goal() {
    let placements = [("processes", 7), ("composed", 2), ("isolated", 3)];
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/launch/robot.launch.xml");
    for (test, (placement, count)) in (3..).zip(placements) {
        let domain = domain(test);
        let place = format!("placement:={placement}");
        let words = [file, &place, "use_sim_time:=true", "speed:=4.0"];
        let launch = Launch::start(domain, &words);
        let operator = Operator::new(&local(domain, false));
        let (status, told) = operator.drive(DOOR);
        assert_eq!(status, GoalStatus::Succeeded, "{placement}: {told:?}");
        operator.is_there(DOOR);
        let said = launch.interrupt();
        let started = said.matches("process started with pid").count();
        assert_eq!(started, count, "{placement}:\n{said}");
    }
}

/// Real processes that `pteros launch` starts, brings up and times by the clock of one
/// of them, which goes a hundred times as fast when all else has been seen.
#[test]
fn managed_nodes_come_up_in_order_and_a_timer_goes_by_the_clock_of_a_launched_process() {
    let domain = domain(6);
    let name = format!("pteros-robot-{}.launch.xml", std::process::id());
    let file = std::env::temp_dir().join(name);
    let text = r#"<launch>
      <node pkg="robot" exec="robot" args="sim_clock"><param name="speed" value="1.0"/></node>
      <group>
        <set_use_sim_time value="true"/>
        <node pkg="robot" exec="robot" args="base"/>
        <node pkg="robot" exec="robot" args="map_server"/>
        <lifecycle_node pkg="robot" exec="robot" args="controller" name="controller"
          autostart="true" depends_on="planner"/>
        <lifecycle_node pkg="robot" exec="robot" args="planner" name="planner" autostart="true"/>
        <ros_timer period="200"><shutdown reason="time is over"/></ros_timer>
      </group>
    </launch>"#;
    std::fs::write(&file, text).unwrap();
    let mut launch = Launch::start(domain, &[file.to_str().unwrap()]);
    let said = launch.wait_for("/controller is active");
    let (planner, controller) = said.split_at(said.find("/planner is active").unwrap());
    assert!(!planner.contains("/controller is active"), "{said}");
    assert!(controller.contains("/controller is active"), "{said}");
    // Goals are taken: the controller is what says so.
    let operator = Operator::new(&local(domain, false));
    let sent = operator.client.send_goal(goal(DOOR), PATIENCE).unwrap();
    sent.cancel(PATIENCE).unwrap();
    assert!(!launch.said().contains("time is over"), "200 s are longer");
    let mut status = launch.command(&["param", "set", "/sim_clock", "speed", "100.0"]);
    assert!(status.status().unwrap().success());
    let said = launch.end();
    let _ = std::fs::remove_file(&file);
    assert!(said.contains("shutdown: time is over"), "{said}");
}

/// The command, in a domain, with log files in that folder.
fn pteros(domain: u32, folder: &Path) -> Command {
    let program = libraries().with_file_name("pteros");
    assert!(
        program.is_file(),
        "{} is not there; build it: cargo build -p pteros-cli",
        program.display()
    );
    let mut command = Command::new(program);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("ROS_LOG_DIR", folder.join("log"))
        .env("PTEROS_COMPONENT_PATH", libraries())
        .env_remove("AMENT_PREFIX_PATH");
    command
}

/// `pteros launch`; what it has started ends with it.
struct Launch {
    child: Child,
    folder: PathBuf,
    domain: u32,
}

impl Launch {
    fn start(domain: u32, words: &[&str]) -> Self {
        let name = format!("pteros-robot-{domain}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let said = std::fs::File::create(folder.join("said")).unwrap();
        let mut command = pteros(domain, &folder);
        let child = command.arg("launch").args(words).stdout(said).spawn();
        Self {
            child: child.unwrap(),
            folder,
            domain,
        }
    }

    /// `pteros WORDS` in its domain.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = pteros(self.domain, &self.folder);
        command.args(words);
        command
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap()
    }

    /// Waits until it has said these words; all that it has said.
    fn wait_for(&mut self, words: &str) -> String {
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            let said = self.said();
            if said.contains(words) {
                return said;
            }
            let has_ended = self.child.try_wait().unwrap();
            assert!(
                has_ended.is_none(),
                "{has_ended:?} before {words:?}:\n{said}"
            );
            assert!(std::time::Instant::now() < until, "no {words:?}:\n{said}");
            std::thread::yield_now();
        }
    }

    /// Ctrl-C, then as [`end`](Self::end).
    fn interrupt(self) -> String {
        let mut command = Command::new("kill");
        let status = command.args(["-INT".into(), self.child.id().to_string()]);
        assert!(status.status().unwrap().success());
        self.end()
    }

    /// All that it has said when it has ended, which it has to do cleanly.
    fn end(mut self) -> String {
        let status = self.child.wait().unwrap();
        let said = self.said();
        assert!(status.success(), "{status}:\n{said}");
        said
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        // A guard ends what it has started.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
