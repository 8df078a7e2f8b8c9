//! Programs of an installed ROS 2 on the plug-in, unchanged: demos and examples of
//! rclcpp and rclpy, and the verbs of `ros2`. Other graphs mix the plug-in with
//! rmw_cyclonedds_cpp, rmw_fastrtps_cpp and native Pteros nodes.
//!
//! Needs a ROS 2 that PTEROS_ROS2 names, or that is sourced, and the plug-in beside the
//! command (`cargo build -p pteros-rmw`). Elsewhere each test is skipped with a
//! sentence. A program that is not installed leaves its line out.

#![allow(
    clippy::disallowed_methods,
    reason = "deadlines of programs that run in real time"
)]

mod support;

use pteros::NamedQosExt;
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsResponse};
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};
use pteros::prelude::*;
use pteros::qos::QosProfile;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use support::Domain;

const PLUG_IN: &str = "rmw_pteros_cpp";
/// Middlewares of others, where they are installed.
const OTHERS: [&str; 2] = ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"];
/// How long a line of output may take. Python starts slowly on a busy machine.
const LINE_MAX: Duration = Duration::from_secs(60);

/// An installation, and a folder with the plug-in alone.
#[derive(Clone)]
struct Ros2 {
    /// The file to source; none if that was done.
    setup: Option<PathBuf>,
    prefix: PathBuf,
    plug_in: PathBuf,
    /// Variables of its programs, besides the usual ones.
    variables: Vec<(&'static str, String)>,
}

impl Ros2 {
    /// The installation, or none with a sentence.
    fn find() -> Option<Self> {
        let named = std::env::var_os("PTEROS_ROS2").filter(|value| !value.is_empty());
        let list = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let sourced = std::env::split_paths(&list).find(|p| p.join("share/rmw").is_dir());
        let prefix = named.clone().map(PathBuf::from).or(sourced);
        let library =
            Path::new(env!("CARGO_BIN_EXE_pteros")).with_file_name("librmw_pteros_cpp.so");
        let Some(prefix) = prefix.filter(|_| library.is_file()) else {
            println!(
                "skipped: no ROS 2 is sourced or named by PTEROS_ROS2, or no plug-in is built"
            );
            return None;
        };
        let plug_in = std::env::temp_dir().join(format!("pteros_ros2_{}", std::process::id()));
        std::fs::create_dir_all(&plug_in).unwrap();
        // A link: whichever test comes second finds the same one.
        let _ = std::os::unix::fs::symlink(&library, plug_in.join("librmw_pteros_cpp.so"));
        Some(Self {
            setup: named.map(|_| prefix.join("setup.bash")),
            prefix,
            plug_in,
            variables: Vec::new(),
        })
    }

    /// The same, for programs in an enclave.
    fn secured(&self, keystore: &Path, enclave: &str) -> Self {
        Self {
            variables: secured(keystore, enclave).into(),
            ..self.clone()
        }
    }

    fn has(&self, program: &str) -> bool {
        self.path(program).is_some()
    }

    /// The path of `package/program`, or of a command such as `ros2`.
    fn path(&self, program: &str) -> Option<PathBuf> {
        let list = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
        let sourced = std::env::split_paths(&list);
        let place = match program.contains('/') {
            true => Path::new("lib").join(program),
            false => Path::new("bin").join(program),
        };
        let mut prefixes = std::iter::once(self.prefix.clone()).chain(sourced);
        prefixes.find_map(|prefix| {
            let path = prefix.join(&place);
            path.is_file().then_some(path)
        })
    }

    fn has_middleware(&self, rmw: &str) -> bool {
        rmw == PLUG_IN || self.prefix.join(format!("lib/lib{rmw}.so")).is_file()
    }

    /// The middlewares of a mixed graph: the plug-in, and the others that are there.
    fn others(&self) -> impl Iterator<Item = &'static str> {
        OTHERS.into_iter().filter(|rmw| self.has_middleware(rmw))
    }

    /// The plug-in, and the others that are there.
    fn middlewares(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(PLUG_IN).chain(self.others())
    }

    /// Starts `package/program arguments…` or `ros2 verb…`.
    fn start(&self, domain: &Domain, rmw: &str, line: &str) -> Program {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        let path = self.path(name).unwrap_or_else(|| panic!("{name}"));
        self.start_path(domain, rmw, &path, words)
    }

    fn start_path<'a>(
        &self,
        domain: &Domain,
        rmw: &str,
        path: &Path,
        words: impl Iterator<Item = &'a str>,
    ) -> Program {
        let mut script = String::new();
        if let Some(setup) = &self.setup {
            script += &format!(". '{}' > /dev/null\n", setup.display());
        }
        let plug_in = self.plug_in.display();
        script += &format!("export LD_LIBRARY_PATH='{plug_in}':$LD_LIBRARY_PATH\n");
        script += "exec \"$@\" 2>&1\n";
        let mut command = Command::new("bash");
        command
            .args(["-c", &script, "bash"])
            .arg(path)
            .args(words)
            .env("RMW_IMPLEMENTATION", rmw)
            .env("ROS_DOMAIN_ID", domain.id().to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("RCUTILS_COLORIZED_OUTPUT", "0")
            .env("PYTHONUNBUFFERED", "1")
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            // Children of a launch end with it.
            .process_group(0);
        Program::start(command)
    }

    /// The Python of the installation's commands.
    fn python(&self) -> PathBuf {
        let command = self
            .path("ros2")
            .and_then(|p| std::fs::read_to_string(p).ok());
        let first = command.unwrap_or_default();
        let first = first.lines().next().unwrap_or_default().to_owned();
        first.strip_prefix("#!").unwrap_or("python3").into()
    }

    fn start_sizes(&self, domain: &Domain, rmw: &str, role: &str) -> Program {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2_sizes.py");
        let words = [script.to_str().unwrap(), role];
        self.start_path(domain, rmw, &self.python(), words.into_iter())
    }
}

/// The variables of a program in an enclave.
fn secured(keystore: &Path, enclave: &str) -> [(&'static str, String); 4] {
    [
        ("ROS_SECURITY_KEYSTORE", keystore.display().to_string()),
        ("ROS_SECURITY_ENABLE", "true".into()),
        ("ROS_SECURITY_STRATEGY", "Enforce".into()),
        ("ROS_SECURITY_ENCLAVE_OVERRIDE", enclave.into()),
    ]
}

/// A running program and its lines. Killed with its group when dropped.
struct Program {
    child: Child,
    lines: Receiver<String>,
    seen: String,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            lines,
            seen: String::new(),
        }
    }

    /// Waits until the output has the part.
    #[track_caller]
    fn expect(&mut self, part: &str) {
        let end = Instant::now() + LINE_MAX;
        while !self.seen.contains(part) {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen += &format!("{line}\n"),
                Err(RecvTimeoutError::Timeout) => panic!("no {part:?} in time in:\n{}", self.seen),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended without {part:?}:\n{}", self.seen)
                }
            }
        }
    }

    /// Sends SIGINT and waits for the end; checks that nothing was destroyed with an
    /// error. Returns all that it printed.
    #[track_caller]
    fn interrupt(mut self) -> String {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.unwrap().success() || self.child.try_wait().unwrap().is_some());
        let end = Instant::now() + LINE_MAX;
        loop {
            match self
                .lines
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.seen += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.seen),
            }
        }
        for word in ["internal error", "panicked", "Segmentation"] {
            assert!(!self.seen.contains(word), "{}", self.seen);
        }
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        // It may have ended already.
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
    }
}

/// Programs that run together, in this order: command line, and what it prints.
type Together = &'static [(&'static str, &'static str)];

/// Graphs of one program, or of several that may have different middlewares.
const ALONE: &[Together] = &[
    &[(
        "demo_nodes_py/matched_event_detect",
        "First subscription is connected",
    )],
    &[("demo_nodes_py/introspection", "Result of add_two_ints: 5")],
    &[(
        "demo_nodes_py/use_logger_service",
        "Current logger level: 0",
    )],
    &[(
        "examples_rclpy_executors/composed",
        "I heard: \"Hello World: 1\"",
    )],
    &[(
        "examples_rclpy_executors/callback_group",
        "I heard: \"Hello World: 1\"",
    )],
    &[(
        "examples_rclpy_guard_conditions/trigger_guard_condition",
        "guard callback called shutdown",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos durability",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/deadline 600 --publish-for 3000 --pause-for 2000",
        "Requested deadline missed",
    )],
    &[(
        "quality_of_service_demo_py/liveliness 1000 --kill-publisher-after 2000",
        "alive_count_change: -1",
    )],
    &[("composition/manual_composition", "Got result: [5]")],
    &[("composition/linktime_composition", "Got result: [5]")],
    &[(
        "examples_rclcpp_minimal_publisher/publisher_wait_for_all_acked",
        "Publishing: 'Hello, world! 1'",
    )],
    &[(
        "demo_nodes_cpp/matched_event_detect",
        "First subscription is connected",
    )],
    &[("demo_nodes_cpp/parameter_events", "Parameter event")],
    &[("demo_nodes_cpp/set_and_get_parameters", "foo")],
    &[("demo_nodes_cpp/list_parameters", "foo.first")],
    &[("demo_nodes_cpp/one_off_timer", "in one_off_timer callback")],
    &[("demo_nodes_cpp/use_logger_service", "Current logger level")],
    &[(
        "demo_nodes_cpp/even_parameters_node",
        "shows a parameter callback",
    )],
    &[("demo_nodes_cpp/list_parameters_async", "foo.first")],
    &[("demo_nodes_cpp/set_and_get_parameters_async", "foo")],
    &[("demo_nodes_cpp/parameter_events_async", "Parameter event")],
    &[(
        "demo_nodes_cpp/parameter_event_handler",
        "monitoring for the following parameter changes",
    )],
    &[("demo_nodes_cpp/reuse_timer", "resetting one off timer")],
    &[(
        "demo_nodes_cpp/set_parameters_callback",
        "demonstrates the use of parameter callbacks",
    )],
    &[(
        "examples_rclcpp_minimal_timer/timer_lambda",
        "Hello, world!",
    )],
    &[(
        "examples_rclcpp_minimal_timer/timer_member_function",
        "Hello, world!",
    )],
    &[(
        "quality_of_service_demo_py/lifespan 1000 --publish-count 5 --subscribe-after 3000",
        "Listener heard",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos deadline",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos liveliness_policy",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos liveliness_lease_duration",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "quality_of_service_demo_py/incompatible_qos reliability",
        "Requested incompatible qos - total 1",
    )],
    &[(
        "examples_rclpy_executors/custom_callback_group",
        "Publishing: ",
    )],
];

const PAIRS: &[Together] = &[
    &[
        ("demo_nodes_cpp/talker", ""),
        ("demo_nodes_cpp/listener", "I heard: [Hello World"),
    ],
    &[
        ("demo_nodes_py/talker", ""),
        ("demo_nodes_cpp/listener", "I heard: [Hello World"),
    ],
    &[
        ("demo_nodes_cpp/talker", ""),
        ("demo_nodes_py/listener_serialized", "I heard: \"b'"),
    ],
    &[
        ("demo_nodes_cpp/talker_serialized_message", ""),
        (
            "demo_nodes_cpp/listener_serialized_message",
            "I heard data of length: ",
        ),
    ],
    &[
        ("demo_nodes_py/talker_qos", "requesting incompatible QoS"),
        (
            "demo_nodes_py/listener_qos --reliable",
            "offering incompatible QoS",
        ),
    ],
    &[
        ("demo_nodes_cpp/add_two_ints_server", ""),
        (
            "demo_nodes_cpp/add_two_ints_client",
            "Result of add_two_ints: 5",
        ),
        (
            "demo_nodes_py/add_two_ints_client_async",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        ("demo_nodes_py/add_two_ints_server", ""),
        (
            "demo_nodes_py/add_two_ints_client",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        ("demo_nodes_cpp/parameter_blackboard", "ready, and serving"),
        ("demo_nodes_py/async_param_client", "successful: True"),
    ],
    &[
        ("action_tutorials_cpp/fibonacci_action_server", ""),
        ("action_tutorials_py/fibonacci_action_client", "Result: "),
    ],
    &[
        ("action_tutorials_py/fibonacci_action_server", ""),
        (
            "action_tutorials_cpp/fibonacci_action_client",
            "Result received: ",
        ),
    ],
    &[
        ("examples_rclpy_minimal_action_server/server", ""),
        (
            "examples_rclpy_minimal_action_client/client_cancel",
            "Goal successfully canceled",
        ),
    ],
    &[
        ("lifecycle/lifecycle_talker", "on_activate() is called"),
        (
            "lifecycle/lifecycle_listener",
            "Transition from state activating to active",
        ),
        (
            "lifecycle/lifecycle_service_client",
            "has current state active",
        ),
    ],
    &[
        ("examples_rclcpp_minimal_publisher/publisher_lambda", ""),
        (
            "examples_rclcpp_minimal_subscriber/wait_set_subscriber",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/static_wait_set_subscriber",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/time_triggered_wait_set_subscriber",
            "I heard: 'Hello",
        ),
    ],
    &[
        ("demo_nodes_cpp/talker", ""),
        (
            "demo_nodes_cpp/listener_best_effort",
            "I heard: [Hello World",
        ),
    ],
    &[
        ("demo_nodes_cpp/talker_loaned_message", "Publishing: '1"),
        ("demo_nodes_cpp/listener", "I heard: [Hello World"),
    ],
    &[
        ("demo_nodes_cpp/content_filtering_publisher", ""),
        (
            "demo_nodes_cpp/content_filtering_subscriber",
            "I receive an emergency temperature data",
        ),
    ],
    &[
        ("demo_nodes_cpp/introspection_service", ""),
        (
            "demo_nodes_cpp/introspection_client",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        ("demo_nodes_cpp/add_two_ints_server", ""),
        (
            "demo_nodes_cpp/add_two_ints_client_async",
            "Result of add_two_ints: 5",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_publisher/publisher_member_function",
            "Publishing: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_lambda",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_not_composable",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function_with_topic_statistics",
            "I heard: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_content_filtering",
            "I heard: 'Hello",
        ),
        (
            "examples_rclpy_minimal_subscriber/subscriber_lambda",
            "I heard: \"Hello",
        ),
        (
            "examples_rclpy_minimal_subscriber/subscriber_member_function",
            "I heard: \"Hello",
        ),
        (
            "examples_rclpy_minimal_subscriber/subscriber_old_school",
            "I heard: \"Hello",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_publisher/publisher_not_composable",
            "",
        ),
        (
            "examples_rclcpp_minimal_publisher/publisher_member_function_with_type_adapter",
            "Publishing: 'Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function_with_type_adapter",
            "I heard: 'Hello",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_publisher/publisher_member_function_with_unique_network_flow_endpoints",
            "",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_member_function_with_unique_network_flow_endpoints",
            "",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_publisher/publisher_local_function",
            "Publishing: \"Hello",
        ),
        (
            "examples_rclpy_minimal_publisher/publisher_member_function",
            "Publishing: \"Hello",
        ),
        (
            "examples_rclpy_minimal_publisher/publisher_old_school",
            "Publishing: \"Hello",
        ),
        (
            "examples_rclcpp_minimal_subscriber/subscriber_lambda",
            "I heard: 'Hello",
        ),
    ],
    &[
        ("examples_rclcpp_minimal_service/service_main", ""),
        (
            "examples_rclcpp_minimal_client/client_main",
            "result of 41 + 1 = 42",
        ),
        ("examples_rclpy_minimal_client/client", "for 41 + 1 = 42"),
    ],
    &[
        ("examples_rclpy_minimal_service/service", ""),
        (
            "examples_rclpy_minimal_client/client_async",
            "for 41 + 1 = 42",
        ),
        (
            "examples_rclpy_minimal_client/client_async_callback",
            "for 41 + 1 = 42",
        ),
    ],
    &[
        ("examples_rclpy_minimal_service/service_member_function", ""),
        (
            "examples_rclpy_minimal_client/client_async_member_function",
            "for 41 + 1 = 42",
        ),
        (
            "examples_rclcpp_minimal_client/client_main",
            "result of 41 + 1 = 42",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_action_server/action_server_not_composable",
            "",
        ),
        (
            "examples_rclcpp_minimal_action_client/action_client_member_functions",
            "Result received",
        ),
        (
            "examples_rclcpp_minimal_action_client/action_client_not_composable_with_cancel",
            "goal is being canceled",
        ),
    ],
    &[
        (
            "examples_rclcpp_minimal_action_server/action_server_member_functions",
            "",
        ),
        (
            "examples_rclcpp_minimal_action_client/action_client_not_composable",
            "result received",
        ),
        (
            "examples_rclpy_minimal_action_client/client",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_not_composable",
            "",
        ),
        (
            "examples_rclpy_minimal_action_client/client_not_composable",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_single_goal",
            "",
        ),
        (
            "examples_rclpy_minimal_action_client/client_asyncio",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_queue_goals",
            "Received goal request",
        ),
        (
            "examples_rclpy_minimal_action_client/client",
            "Goal succeeded!",
        ),
    ],
    &[
        (
            "examples_rclpy_minimal_action_server/server_defer",
            "Deferring execution",
        ),
        (
            "examples_rclpy_minimal_action_client/client",
            "Goal succeeded!",
        ),
    ],
    &[
        ("examples_rclpy_executors/talker", "Publishing: \"Hello"),
        ("examples_rclpy_executors/listener", "I heard: \"Hello"),
        ("examples_rclpy_executors/custom_executor", "I heard: \""),
    ],
    &[
        (
            "quality_of_service_demo_py/qos_overrides_talker",
            "Publishing: ",
        ),
        (
            "quality_of_service_demo_py/qos_overrides_listener",
            "I heard: [",
        ),
    ],
    &[
        ("topic_monitor/data_publisher probe --period 0.2", ""),
        ("topic_monitor/topic_monitor", "Alive"),
    ],
];

/// Runs programs together; the first one on `first`, the others on `rest`.
fn run_together(ros2: &Ros2, domain: &Domain, first: &str, rest: &str, programs: Together) -> bool {
    let names = programs
        .iter()
        .map(|(line, _)| line.split(' ').next().unwrap());
    for name in names {
        if !ros2.has(name) {
            println!("left out: {name} is not installed");
            return false;
        }
    }
    let mut running = Vec::new();
    for (at, (line, _)) in programs.iter().enumerate() {
        let rmw = if at == 0 { first } else { rest };
        running.push(ros2.start(domain, rmw, line));
    }
    for (program, (_, part)) in running.iter_mut().zip(programs) {
        program.expect(part);
    }
    running
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
    true
}

/// Runs all of them, and names those that failed at the end.
fn run_all(
    ros2: &Ros2,
    domain: &Domain,
    graphs: impl Iterator<Item = (&'static str, &'static str, Together)>,
) {
    let (mut ran, mut failed) = (0, Vec::new());
    for (first, rest, graph) in graphs {
        let run = AssertUnwindSafe(|| run_together(ros2, domain, first, rest, graph));
        match catch_unwind(run) {
            Ok(is_installed) => ran += usize::from(is_installed),
            Err(_) => failed.push(format!("{first}, {rest}: {graph:?}")),
        }
    }
    println!("{ran} graphs ran");
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn programs_run_unchanged_on_the_plug_in() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let graphs = ALONE.iter().chain(PAIRS);
    run_all(
        &ros2,
        &domain,
        graphs.map(|graph| (PLUG_IN, PLUG_IN, *graph)),
    );
}

/// A node in a global variable is destroyed after the main thread's thread-local
/// values.
#[test]
fn a_node_in_a_global_variable_is_destroyed_at_exit() {
    let Some(ros2) = Ros2::find() else { return };
    let server = "examples_rclcpp_minimal_action_server/action_server_member_functions";
    let client = "examples_rclcpp_minimal_action_client/action_client_not_composable_with_feedback";
    if !ros2.has(server) || !ros2.has(client) {
        println!("left out: {server} or {client} is not installed");
        return;
    }
    let domain = Domain::new();
    let _server = ros2.start(&domain, PLUG_IN, server);
    let mut client = ros2.start(&domain, PLUG_IN, client);
    client.expect("Next number in sequence received");
    let text = client.interrupt();
    assert!(!text.contains("Error in destruction"), "{text}");
}

#[test]
fn programs_of_different_middlewares_work_together() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let both_ways = |other| {
        let ways = [(PLUG_IN, other), (other, PLUG_IN)];
        ways.into_iter()
            .flat_map(|(first, rest)| PAIRS.iter().map(move |graph| (first, rest, *graph)))
    };
    run_all(&ros2, &domain, ros2.others().flat_map(both_ways));
}

/// Latched messages from nothing to 8 MiB, between the plug-in, other middlewares and
/// a native node.
#[test]
fn latched_messages_of_every_size_reach_late_joiners_of_every_kind() {
    let Some(ros2) = Ros2::find() else { return };
    let sizes = [0, 1, 1_000, 64_000, 1_000_000, 8_388_608];
    let mut kinds = vec![(PLUG_IN, PLUG_IN)];
    for other in ros2.others() {
        kinds.extend([(PLUG_IN, other), (other, PLUG_IN)]);
    }
    for (from, to) in kinds {
        let domain = Domain::new();
        let mut publisher = ros2.start_sizes(&domain, from, "publish");
        publisher.expect("published");
        let mut subscriber = ros2.start_sizes(&domain, to, "subscribe");
        for size in sizes {
            subscriber.expect(&format!("size {size} whole"));
        }
    }
    for rmw in ros2.middlewares() {
        exchange_sizes_with_a_native_node(&ros2, rmw, &sizes);
    }
}

/// Latched messages from a middleware to a native node, and back.
fn exchange_sizes_with_a_native_node(ros2: &Ros2, rmw: &str, sizes: &[usize]) {
    let domain = Domain::new();
    let mut publisher = ros2.start_sizes(&domain, rmw, "publish");
    publisher.expect("published");
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("native").unwrap();
    let latched = QosProfile::default().keep_last(6).transient_local();
    let subscription = node
        .create_polled_subscription::<UInt8MultiArray>("/sizes".qos(latched.clone()))
        .unwrap();
    let bytes = |size: usize| (0..size).map(|at| (at % 251) as u8);
    for size in sizes {
        let sample = subscription.take_timeout(LINE_MAX).unwrap();
        let is_whole = sample.data.iter().copied().eq(bytes(*size));
        assert!(is_whole, "{rmw}: {size}");
    }
    drop((publisher, subscription));
    let publisher = node
        .create_publisher::<UInt8MultiArray>("/sizes".qos(latched))
        .unwrap();
    for size in sizes {
        let message = UInt8MultiArray {
            data: bytes(*size).collect(),
            ..UInt8MultiArray::default()
        };
        publisher.publish(&message).unwrap();
    }
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    let mut subscriber = ros2.start_sizes(&domain, rmw, "subscribe");
    for size in sizes {
        subscriber.expect(&format!("size {size} whole"));
    }
    context.shutdown();
}

/// Processes of every kind at once: a talker and listeners on each middleware, and a
/// native node that talks and listens. Each listener hears each talker.
#[test]
fn processes_of_every_kind_hear_one_another() {
    let Some(ros2) = Ros2::find() else { return };
    for program in ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"] {
        if !ros2.has(program) {
            println!("left out: {program} is not installed");
            return;
        }
    }
    let domain = Domain::new();
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("native").unwrap();
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    let publisher = node.create_publisher::<Text>("/from_native").unwrap();
    let _timer = node.create_timer(Duration::from_millis(200), move || {
        let message = Text {
            data: "Hello World".into(),
        };
        // The test's own listeners tell of a message that is missing.
        let _ = publisher.publish(&message);
    });
    let (mut talkers, mut native, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
    let names = |line: &str, role: &str, topic: &str| {
        format!("{line} --ros-args -r chatter:={topic} -r __node:={role}_{topic}")
    };
    for rmw in ros2.middlewares() {
        let topic = format!("from_{rmw}");
        let line = names("demo_nodes_cpp/talker", "talker", &topic);
        talkers.push(ros2.start(&domain, rmw, &line));
        let subscription = node
            .create_polled_subscription::<Text>(&format!("/{topic}"))
            .unwrap();
        native.push((topic, subscription));
    }
    let topics: Vec<String> = native.iter().map(|(topic, _)| topic.clone()).collect();
    for rmw in ros2.middlewares() {
        for topic in topics.iter().map(String::as_str).chain(["from_native"]) {
            let line = names("demo_nodes_cpp/listener", &format!("on_{rmw}"), topic);
            listeners.push((format!("{topic} on {rmw}"), ros2.start(&domain, rmw, &line)));
        }
    }
    for (topic, subscription) in &native {
        let sample = subscription.take_timeout(LINE_MAX);
        assert!(sample.is_some(), "the native node heard nothing of {topic}");
    }
    for (name, listener) in &mut listeners {
        let heard = catch_unwind(AssertUnwindSafe(|| {
            listener.expect("I heard: [Hello World");
        }));
        assert!(heard.is_ok(), "nothing was heard {name}");
    }
    let listeners = listeners.into_iter().map(|(_, listener)| listener);
    listeners
        .chain(talkers)
        .for_each(|program| drop(program.interrupt()));
    context.shutdown();
}

/// The command's native nodes with topics, services, actions, parameters and lifecycle
/// nodes of rclcpp and rclpy on each middleware.
#[test]
fn native_nodes_use_those_of_every_middleware() {
    let Some(ros2) = Ros2::find() else { return };
    for rmw in ros2.middlewares() {
        println!("native nodes with {rmw}");
        use_from_native_nodes(&ros2, rmw);
    }
}

/// Servers on one middleware, and another middleware's listener beside them.
fn use_from_native_nodes(ros2: &Ros2, rmw: &str) {
    let domain = Domain::new();
    let sums = "example_interfaces/srv/AddTwoInts";
    let mut running = vec![
        ros2.start(&domain, rmw, "demo_nodes_cpp/talker"),
        ros2.start(&domain, rmw, "demo_nodes_py/add_two_ints_server"),
    ];
    if let Some(other) = ros2.middlewares().find(|other| *other != rmw) {
        running.push(ros2.start(&domain, other, "demo_nodes_cpp/listener"));
    }
    let contains = |words: &str, last: &str, part: &str| {
        let mut text = String::new();
        for _ in 0..20 {
            let answer = match last {
                "" => domain.run(words),
                last => domain.run_with(words, last),
            };
            text = answer.out + &answer.err;
            if text.contains(part) {
                return;
            }
        }
        panic!("pteros {words} {last}: no {part:?} in {text}");
    };
    contains("topic echo --once /chatter", "", "data: 'Hello World");
    contains(
        &format!("service call /add_two_ints {sums}"),
        "{a: 20, b: 22}",
        "sum=42",
    );
    contains(
        "param get /talker use_sim_time",
        "",
        "Boolean value is: False",
    );
    contains("topic info /chatter", "", "Publisher count: 1");
    contains("node info /talker", "", "/chatter: std_msgs/msg/String");
    let server = "examples_rclcpp_minimal_action_server/action_server_member_functions";
    if ros2.has(server) {
        running.push(ros2.start(&domain, rmw, server));
        let fibonacci = "action send_goal /fibonacci example_interfaces/action/Fibonacci";
        contains(
            fibonacci,
            "order: 2",
            "Goal finished with status: SUCCEEDED",
        );
    }
    if ros2.has("lifecycle/lifecycle_talker") {
        running.push(ros2.start(&domain, rmw, "lifecycle/lifecycle_talker"));
        contains(
            "lifecycle set /lc_talker configure",
            "",
            "Transitioning successful",
        );
        contains("lifecycle get /lc_talker", "", "inactive [2]");
    }
    // A native server, and clients on each middleware.
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("native").unwrap();
    let _service = node.create_service::<AddTwoInts>("native_sum", |request| AddTwoIntsResponse {
        sum: request.a + request.b,
    });
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    let line = "demo_nodes_py/add_two_ints_client --ros-args -r add_two_ints:=native_sum";
    for client in ros2.middlewares() {
        let mut client = ros2.start(&domain, client, line);
        client.expect("Result of add_two_ints: 5");
    }
    context.shutdown();
    if let Some(listener) = running.get_mut(2) {
        listener.expect("I heard: [Hello World");
    }
}

/// A secured talker and listener on the plug-in and a secured native node hear one
/// another. Beside them an unsecured node of each kind hears the other one only.
#[test]
fn secured_programs_and_unsecured_ones_are_apart() {
    let Some(ros2) = Ros2::find() else { return };
    for program in ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"] {
        if !ros2.has(program) {
            println!("left out: {program} is not installed");
            return;
        }
    }
    let domain = Domain::new();
    let keystore = ros2.plug_in.join("keystore");
    let words = format!("security init {} -e", keystore.display());
    let words: Vec<&str> = words.split(' ').collect();
    let enclaves = ["/talker", "/listener", "/native"];
    let made = support::finish(domain.command(words.into_iter().chain(enclaves)));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let on_plug_in = |enclave: &str, program: &str| {
        let secured = ros2.secured(&keystore, enclave);
        secured.start(&domain, PLUG_IN, program)
    };
    let talker = on_plug_in("/talker", "demo_nodes_cpp/talker");
    let mut listener = on_plug_in("/listener", "demo_nodes_cpp/listener");
    let mut unsecured = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener");
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("unsecured").unwrap();
    let publisher = node.create_publisher::<Text>("/chatter").unwrap();
    let _timer = node.create_timer(Duration::from_millis(200), move || {
        let message = Text {
            data: "Unsecured".into(),
        };
        // The unsecured listener tells of a message that is missing.
        let _ = publisher.publish(&message);
    });
    let spinning = node.clone();
    std::thread::spawn(move || spinning.spin());
    unsecured.expect("I heard: [Unsecured]");
    listener.expect("I heard: [Hello World");
    let mut command = domain.command("topic echo /chatter --once".split(' '));
    command.envs(secured(&keystore, "/native"));
    let heard = support::finish(command);
    assert!(
        heard.out.contains("Hello World"),
        "{}",
        heard.out + &heard.err
    );
    context.shutdown();
    // What each has heard until now.
    let (heard, unsecured) = (listener.interrupt(), unsecured.interrupt());
    assert!(!heard.contains("Unsecured"), "{heard}");
    assert!(!unsecured.contains("Hello World"), "{unsecured}");
    talker.interrupt();
}

/// Verbs: the program that one needs besides the talker, the words, and a part of the
/// output.
const VERBS: &[(&str, &str, &str)] = &[
    (
        "",
        "topic list -t --no-daemon",
        "/chatter [std_msgs/msg/String]",
    ),
    (
        "",
        "topic info -v --no-daemon /chatter",
        "Publisher count: 1",
    ),
    (
        "",
        "topic echo --no-daemon --once /chatter std_msgs/msg/String",
        "data: 'Hello World",
    ),
    ("", "topic hz -w 2 /chatter", "average rate"),
    ("", "topic find --no-daemon std_msgs/msg/String", "/chatter"),
    ("", "node list --no-daemon", "/talker"),
    (
        "",
        "node info --no-daemon /talker",
        "/chatter: std_msgs/msg/String",
    ),
    ("", "param list --no-daemon /talker", "use_sim_time"),
    ("", "param get --no-daemon /talker use_sim_time", "False"),
    ("", "param dump --no-daemon /talker", "ros__parameters"),
    ("", "interface show std_msgs/msg/String", "string data"),
    (
        "",
        "pkg executables demo_nodes_cpp",
        "demo_nodes_cpp talker",
    ),
    (
        "demo_nodes_cpp/add_two_ints_server",
        "service list -t --no-daemon",
        "/add_two_ints [",
    ),
    (
        "demo_nodes_cpp/add_two_ints_server",
        "service call /add_two_ints example_interfaces/srv/AddTwoInts {a:1,b:2}",
        "sum=3",
    ),
    (
        "action_tutorials_py/fibonacci_action_server",
        "action list -t",
        "/fibonacci [",
    ),
    (
        "action_tutorials_py/fibonacci_action_server",
        "action info /fibonacci",
        "Action servers: 1",
    ),
    (
        "lifecycle/lifecycle_talker",
        "lifecycle nodes --no-daemon",
        "/lc_talker",
    ),
    (
        "lifecycle/lifecycle_talker",
        "lifecycle get --no-daemon /lc_talker",
        "unconfigured [1]",
    ),
    (
        "lifecycle/lifecycle_talker",
        "lifecycle set --no-daemon /lc_talker configure",
        "Transitioning successful",
    ),
    (
        "rclcpp_components/component_container",
        "component list --no-daemon",
        "/ComponentManager",
    ),
    ("", "doctor --report", "rmw_pteros_cpp"),
];

#[test]
fn every_noun_of_ros2_works_on_the_plug_in() {
    let Some(ros2) = Ros2::find() else { return };
    if !ros2.has("ros2") {
        println!("left out: no ros2 command is installed");
        return;
    }
    let domain = Domain::new();
    let mut running = vec![ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/talker")];
    for line in [
        "demo_nodes_cpp/add_two_ints_server",
        "action_tutorials_py/fibonacci_action_server",
        "lifecycle/lifecycle_talker",
        "rclcpp_components/component_container",
    ] {
        if ros2.has(line) {
            running.push(ros2.start(&domain, PLUG_IN, line));
        } else {
            println!("left out: {line} is not installed");
        }
    }
    let fibonacci = "action_tutorials_interfaces/action/Fibonacci";
    let goal = format!("action send_goal /fibonacci {fibonacci} {{order:2}}");
    let with_goal = [(
        "action_tutorials_py/fibonacci_action_server",
        goal.as_str(),
        "SUCCEEDED",
    )];
    let mut failed = Vec::new();
    for (needs, words, part) in VERBS.iter().chain(&with_goal) {
        if !needs.is_empty() && !ros2.has(needs) {
            continue;
        }
        // A flow map needs spaces after its colons in YAML.
        let words = format!("ros2 {words}");
        let spaced = words.replace(":1", ": 1").replace(":2", ": 2");
        let split: Vec<&str> = match spaced.split_once('{') {
            Some((before, map)) => {
                let at = spaced.len() - map.len() - 1;
                let map = &spaced[at..];
                before.split_whitespace().chain([map]).collect()
            }
            None => spaced.split(' ').collect(),
        };
        let path = ros2.path("ros2").unwrap();
        let mut verb = ros2.start_path(&domain, PLUG_IN, &path, split.into_iter().skip(1));
        if catch_unwind(AssertUnwindSafe(|| verb.expect(part))).is_err() {
            failed.push(words);
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    // The daemon, and a launch file of the test's own.
    let mut daemon = ros2.start(&domain, PLUG_IN, "ros2 daemon stop");
    daemon.expect("daemon");
    let launch = ros2.plug_in.join("talk.launch.xml");
    let text = "<launch><node pkg=\"demo_nodes_cpp\" exec=\"talker\" output=\"screen\"/></launch>";
    std::fs::write(&launch, text).unwrap();
    if ros2.prefix.join("share/ros2launch").is_dir() {
        let line = format!("ros2 launch {}", launch.display());
        let mut launched = ros2.start(&domain, PLUG_IN, &line);
        launched.expect("Publishing: 'Hello World");
        launched.interrupt();
    }
    running
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
}

/// Kills of either side, one after the other.
const KILLS: usize = 200;
/// Listeners of one talker.
const PROCESSES: usize = 100;
/// Messages of one per second that a stopped listener misses.
const MISSED: usize = 30;

fn signal(program: &Program, name: &str) {
    let id = program.child.id().to_string();
    let status = Command::new("kill").args([name, &id]).status();
    assert!(status.unwrap().success());
}

/// Talker and listener of rclcpp, or nothing with a sentence.
fn talk(ros2: &Ros2, domain: &Domain) -> Option<(Program, Program)> {
    for program in ["demo_nodes_cpp/talker", "demo_nodes_cpp/listener"] {
        if !ros2.has(program) {
            println!("left out: {program} is not installed");
            return None;
        }
    }
    Some((
        ros2.start(domain, PLUG_IN, "demo_nodes_cpp/talker"),
        ros2.start(domain, PLUG_IN, "demo_nodes_cpp/listener"),
    ))
}

#[test]
#[ignore = "minutes: kills either side 200 times"]
fn survival_of_kills() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let Some((mut talker, mut listener)) = talk(&ros2, &domain) else {
        return;
    };
    for kill in 0..KILLS {
        listener.expect("I heard: [Hello World");
        // Dropping a program kills it with SIGKILL.
        if kill % 2 == 0 {
            listener = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener");
        } else {
            talker = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/talker");
            listener.seen.clear();
        }
    }
    listener.expect("I heard: [Hello World");
    drop((talker.interrupt(), listener.interrupt()));
}

#[test]
#[ignore = "half a minute: a listener is stopped for 30 messages"]
fn survival_of_a_stopped_listener() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let Some((mut talker, mut listener)) = talk(&ros2, &domain) else {
        return;
    };
    let mut second = ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener");
    listener.expect("I heard: [Hello World");
    signal(&listener, "-STOP");
    let number = talker.seen.matches("Publishing").count();
    // The talker goes on, and the other listener hears it.
    talker.expect(&format!("'Hello World: {}'", number + MISSED));
    second.expect(&format!("[Hello World: {}]", number + MISSED));
    signal(&listener, "-CONT");
    talker.expect(&format!("'Hello World: {}'", number + MISSED + 2));
    listener.expect(&format!("[Hello World: {}]", number + MISSED + 2));
    for program in [talker, listener, second] {
        program.interrupt();
    }
}

#[test]
#[ignore = "a minute: 100 processes of rclcpp"]
fn survival_of_a_hundred_processes() {
    let Some(ros2) = Ros2::find() else { return };
    let domain = Domain::new();
    let Some((talker, first)) = talk(&ros2, &domain) else {
        return;
    };
    let more = (1..PROCESSES).map(|_| ros2.start(&domain, PLUG_IN, "demo_nodes_cpp/listener"));
    let mut listeners: Vec<Program> = std::iter::once(first).chain(more).collect();
    for listener in &mut listeners {
        listener.expect("I heard: [Hello World");
    }
    drop(talker.interrupt());
    listeners
        .into_iter()
        .for_each(|program| drop(program.interrupt()));
}
