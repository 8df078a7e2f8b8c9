//! The robot drives to a goal.
//!
//! It runs composed on one thread with stepped time, as several processes, in a
//! container with one thread per component, and from its launch file.
#![allow(clippy::disallowed_methods, reason = "a client waits beside a spin")]

use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pteros::action::{ActionClient, ActionError, GoalStatus};
use pteros::clock::{ClockServer, Time};
use pteros::component::Component;
use pteros::interfaces::geometry_msgs::msg::PoseStamped;
use pteros::prelude::*;
use pteros::tf::Isometry;
use pteros_bag::BagReader;
use robot::nav2_msgs::action::{NavigateToPose, NavigateToPoseGoal, NavigateToPoseResult};
use robot::{Base, Controller, Laser, MapServer, Planner};

/// Real time, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
const DOOR: [f64; 3] = [3.5, 2.0, -1.6];
const HALL: [f64; 3] = [6.5, 1.0, 3.0];

fn goal([x, y, yaw]: [f64; 3]) -> NavigateToPoseGoal {
    let mut goal = NavigateToPoseGoal::default();
    goal.pose.header.frame_id = "map".into();
    goal.pose.pose = Isometry::planar(x, y, yaw).into();
    goal
}

/// A client that sends goals to the robot, in its own context.
struct Operator {
    node: Node,
    client: ActionClient<NavigateToPose>,
    truth: Arc<Mutex<[f64; 3]>>,
    _poses: Subscription<PoseStamped>,
}

impl Operator {
    fn new(context: &Context) -> Self {
        let node = context.create_node("operator").unwrap();
        let truth = Arc::<Mutex<[f64; 3]>>::default();
        let seen = truth.clone();
        let poses =
            node.create_subscription::<PoseStamped>("ground_truth".keep_last(1), move |pose| {
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

    /// Sends the goal as soon as the controller accepts goals.
    fn drive(&self, target: [f64; 3]) -> (GoalStatus, NavigateToPoseResult) {
        let mut sent = self.client.send_goal(goal(target), TIMEOUT);
        let ended = self.node.context().clone();
        while matches!(sent, Err(ActionError::Rejected { .. })) && !ended.is_shut_down() {
            self.node.spin_once(Duration::from_millis(50));
            sent = self.client.send_goal(goal(target), TIMEOUT);
        }
        let end = sent.unwrap().result(TIMEOUT).unwrap();
        (end.status, end.result.clone())
    }

    fn assert_reached(&self, target: [f64; 3]) {
        let near = || {
            let [x, y, yaw] = *self.truth.lock().unwrap();
            let turned = (yaw - target[2]).sin().abs();
            (x - target[0]).hypot(y - target[1]) < 0.15 && turned < 0.15
        };
        let there = self.node.spin_until(near, TIMEOUT);
        let truth = self.truth.lock().unwrap();
        assert!(there, "it is at {truth:?} and not at {target:?}");
    }
}

/// A separate domain for each test of each run.
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
fn composed_it_drives_through_the_door_turns_back_and_reports_an_unreachable_goal() {
    let context = local(domain(0), true);
    let time = context.create_node("time").unwrap();
    let time = ClockServer::new(&time, Time::from_nanos(1_000_000_000), TIMEOUT).unwrap();
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
            let ended = StopOnDrop(&done);
            let operator = Operator::new(&context);
            let refused = operator.client.send_goal(goal(DOOR), TIMEOUT);
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
            operator.assert_reached(DOOR);
            // A newer goal replaces the older one. The newer one is cancelled.
            let older = operator
                .client
                .send_goal(goal([1.0, 5.0, 0.0]), TIMEOUT)
                .unwrap();
            let newer = operator.client.send_goal(goal(HALL), TIMEOUT).unwrap();
            let older = older.result(TIMEOUT).unwrap();
            assert_eq!(older.status, GoalStatus::Aborted);
            assert_eq!(older.result.error_msg, "a newer goal has replaced it");
            newer.cancel(TIMEOUT).unwrap();
            assert_eq!(newer.result(TIMEOUT).unwrap().status, GoalStatus::Canceled);
            let (status, message) = operator.drive([0.1, 0.1, 0.0]);
            assert_eq!((status, message.error_code), (GoalStatus::Aborted, 9000));
            assert!(
                message
                    .error_msg
                    .contains("there is no path, after 6 recoveries"),
                "{message:?}"
            );
            let mut elsewhere = goal(DOOR);
            elsewhere.pose.header.frame_id = "moon".into();
            let elsewhere = operator.client.send_goal(elsewhere, TIMEOUT).unwrap();
            let message = elsewhere.result(TIMEOUT).unwrap();
            assert_eq!(message.result.error_code, NavigateToPoseResult::TF_ERROR);
            assert!(
                message.result.error_msg.contains("no frame \"moon\""),
                "{message:?}"
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

/// Sets the flag when dropped, also after a failed assertion.
struct StopOnDrop<'d>(&'d AtomicBool);

impl Drop for StopOnDrop<'_> {
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

/// The folder where cargo puts the library that is built beside the tests.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().map(PathBuf::from).unwrap()
}

#[test]
fn as_seven_processes_it_drives_to_the_goal_in_accelerated_time() {
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
    let (status, message) = operator.drive(DOOR);
    assert_eq!(status, GoalStatus::Succeeded, "{message:?}");
    operator.assert_reached(DOOR);
}

#[test]
fn loaded_by_an_isolated_container_it_drives_to_the_goal() {
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
    let (status, message) = operator.drive(DOOR);
    assert_eq!(status, GoalStatus::Succeeded, "{message:?}");
    operator.assert_reached(DOOR);
}

#[test]
fn launched_as_seven_processes_one_process_or_a_container_it_drives_to_the_goal() {
    let placements = [("processes", 7), ("composed", 2), ("isolated", 3)];
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/launch/robot.launch.xml");
    for (test, (placement, count)) in (3..).zip(placements) {
        let domain = domain(test);
        let place = format!("placement:={placement}");
        let words = [file, &place, "use_sim_time:=true", "speed:=4.0"];
        let launch = Launch::start(domain, &words);
        let operator = Operator::new(&local(domain, false));
        let (status, message) = operator.drive(DOOR);
        assert_eq!(status, GoalStatus::Succeeded, "{placement}: {message:?}");
        operator.assert_reached(DOOR);
        let output = launch.interrupt();
        let started = output.matches("process started with pid").count();
        assert_eq!(started, count, "{placement}:\n{output}");
    }
}

/// What was recorded beside the robot is played to its planner and controller.
#[test]
fn launched_with_a_recorder_it_is_replayed_by_its_launch_file() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/launch/robot.launch.xml");
    let bag = Folder::absent("robot-bag");
    let record = format!("record:={}", bag.display());
    let words = [file, "use_sim_time:=true", "speed:=4.0", &record];
    let mut launch = Launch::start(domain(7), &words);
    // Plans are published once, for a goal that the robot accepts as soon as it is up.
    launch.wait_for("Subscribed to topic '/plan'");
    let operator = Operator::new(&local(domain(7), false));
    let (status, message) = operator.drive(DOOR);
    assert_eq!(status, GoalStatus::Succeeded, "{message:?}");
    let output = launch.interrupt();
    assert!(output.contains("/scan: "), "{output}");

    let recorded = BagReader::open(&bag).unwrap();
    assert_eq!(recorded.problems(), [""; 0]);
    let count = |name: &str| {
        let mut topics = recorded.topics().iter();
        let topic = topics.find(|topic| topic.topic.name == name);
        topic.map_or(0, |topic| topic.message_count)
    };
    let names = ["/clock", "/odom", "/scan", "/map", "/plan"];
    assert!(names.iter().all(|name| count(name) > 0), "{output}");
    assert!(count("/navigate_to_pose/_action/feedback") > 0, "{output}");

    let played = [
        "/clock",
        "/odom",
        "/tf",
        "/tf_static",
        "/scan",
        "/map",
        "/initialpose",
    ];
    let played: u64 = played.iter().map(|name| count(name)).sum();
    let replay = format!("replay:={}", bag.display());
    let mut launch = Launch::start(domain(8), &[file, "use_sim_time:=true", &replay]);
    let output = launch.wait_for("messages published");
    assert!(
        output.contains(&format!("{played} messages published")),
        "{played}: {output}"
    );
    let output = launch.interrupt();
    let started = output.matches("process started with pid").count();
    assert_eq!(
        started, 4,
        "the player, planner, controller and supervisor:\n{output}"
    );
}

/// `pteros launch` starts real processes and brings them up. Its timer uses the clock of
/// one of them, which runs a hundred times as fast once everything else was checked.
#[test]
fn managed_nodes_come_up_in_order_and_a_timer_uses_the_clock_of_a_launched_process() {
    let domain = domain(6);
    let file = Folder::absent("robot.launch.xml");
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
    let output = launch.wait_for("/controller is active");
    let (planner, controller) = output.split_at(output.find("/planner is active").unwrap());
    assert!(!planner.contains("/controller is active"), "{output}");
    assert!(controller.contains("/controller is active"), "{output}");
    // The controller accepts goals once it is active.
    let operator = Operator::new(&local(domain, false));
    let sent = operator.client.send_goal(goal(DOOR), TIMEOUT).unwrap();
    sent.cancel(TIMEOUT).unwrap();
    assert!(
        !launch.output().contains("time is over"),
        "200 s are longer"
    );
    let mut status = launch.command(&["param", "set", "/sim_clock", "speed", "100.0"]);
    assert!(status.status().unwrap().success());
    let output = launch.end();
    assert!(output.contains("shutdown: time is over"), "{output}");
}

/// The command in a domain, with log files in that folder.
fn pteros(domain: u32, folder: &Path) -> Command {
    let program = libraries().with_file_name("pteros");
    assert!(
        program.is_file(),
        "{} is not there; build it: cargo build -p pteros-cli",
        program.display()
    );
    // Launch files start it by its name.
    let known = std::env::var_os("PATH").unwrap_or_default();
    let folders = program.parent().map(Path::to_path_buf).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&known))).unwrap();
    let mut command = Command::new(program);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("ROS_LOG_DIR", folder.join("log"))
        .env("PATH", path)
        .env("PTEROS_COMPONENT_PATH", libraries())
        .env_remove("AMENT_PREFIX_PATH");
    command
}

/// A running `pteros launch`. Its processes end with it.
struct Launch {
    child: Child,
    folder: Folder,
    domain: u32,
}

impl Launch {
    fn start(domain: u32, words: &[&str]) -> Self {
        let folder = Folder::new(&format!("robot-{domain}"));
        let output = std::fs::File::create(folder.join("said")).unwrap();
        let mut command = pteros(domain, &folder);
        let child = command.arg("launch").args(words).stdout(output).spawn();
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

    fn output(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap()
    }

    /// Waits for these words. Returns the output so far.
    fn wait_for(&mut self, words: &str) -> String {
        let until = std::time::Instant::now() + TIMEOUT;
        loop {
            let output = self.output();
            if output.contains(words) {
                return output;
            }
            let has_ended = self.child.try_wait().unwrap();
            assert!(
                has_ended.is_none(),
                "{has_ended:?} before {words:?}:\n{output}"
            );
            assert!(std::time::Instant::now() < until, "no {words:?}:\n{output}");
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

    /// The complete output. The process must exit without error.
    fn end(mut self) -> String {
        let status = self.child.wait().unwrap();
        let output = self.output();
        assert!(status.success(), "{status}:\n{output}");
        output
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        // The watchdog ends its processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
