//! `ros2` and `pteros` on one graph print the same text, and nodes of ROS 2 log no
//! warning about Pteros. Needs a ROS 2: `ros2` on PATH, or PTEROS_ROS2 with an
//! installation prefix (`/opt/ros/kilted`). Elsewhere the tests are skipped with a
//! sentence.

#![allow(
    clippy::disallowed_methods,
    reason = "finds an installation of ROS 2 by the environment"
)]

use crate::support::{Answer, Domain, Running, assert_contains, finish, start};
use std::path::PathBuf;
use std::process::Command;

/// Middlewares of others, where they are installed.
const MIDDLEWARES: [&str; 2] = ["rmw_cyclonedds_cpp", "rmw_fastrtps_cpp"];

/// How `ros2` is started.
enum Place {
    OnPath,
    Prefix(PathBuf),
}

struct Ros2 {
    place: Place,
    /// The middleware of its programs; none for the default of this shell.
    middleware: Option<&'static str>,
}

impl Ros2 {
    fn find() -> Option<Self> {
        if let Some(prefix) = std::env::var_os("PTEROS_ROS2").map(PathBuf::from) {
            assert!(
                prefix.join("setup.bash").is_file(),
                "PTEROS_ROS2={}: this has no setup.bash; name an installation prefix",
                prefix.display()
            );
            return Some(Self::at(Place::Prefix(prefix)));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).any(|folder| folder.join("ros2").is_file());
        found.then(|| Self::at(Place::OnPath))
    }

    fn at(place: Place) -> Self {
        Self {
            place,
            middleware: None,
        }
    }

    /// The middlewares of others that are installed.
    fn middlewares(&self) -> Vec<&'static str> {
        let prefixes = match &self.place {
            Place::Prefix(prefix) => vec![prefix.clone()],
            Place::OnPath => {
                let list = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
                std::env::split_paths(&list).collect()
            }
        };
        let library = |name: &str| format!("lib/lib{name}.so");
        let is_there = |name: &&str| prefixes.iter().any(|p| p.join(library(name)).is_file());
        MIDDLEWARES.into_iter().filter(is_there).collect()
    }

    /// Runs `ros2` in a domain, on this host only.
    fn run(&self, domain: &Domain, words: &[&str]) -> Answer {
        finish(self.command(domain, &[&["ros2"], words].concat()))
    }

    /// Starts a program of a package, if it is installed. Its node is named after both:
    /// of two servers of one name, rmw_fastrtps_cpp's slower one warns that the client
    /// has left.
    fn start_program(&self, domain: &Domain, package: &str, program: &str) -> Option<Running> {
        let found = self.run(domain, &["pkg", "prefix", package]);
        let path = PathBuf::from(found.out.trim()).join(format!("lib/{package}/{program}"));
        if found.code != Some(0) || !path.is_file() {
            eprintln!("left out: {package} {program} is not installed");
            return None;
        }
        let path = path.into_os_string().into_string().unwrap();
        let name = format!("__node:={package}_{program}");
        let words = [&path, "--ros-args", "-r", &name];
        Some(start(self.command(domain, &words)))
    }

    /// A program with the environment of this ROS 2, in a domain on this host.
    fn command(&self, domain: &Domain, words: &[&str]) -> Command {
        let mut command = match &self.place {
            Place::OnPath => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]);
                command
            }
            Place::Prefix(prefix) => {
                let mut command = Command::new("bash");
                let script = r#"source "$0/setup.bash" && exec "$@""#;
                command.arg("-c").arg(script).arg(prefix).args(words);
                command
            }
        };
        command
            .env("ROS_DOMAIN_ID", domain.id().to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env_remove("ROS_LOCALHOST_ONLY")
            .env_remove("ROS_STATIC_PEERS");
        if let Some(middleware) = self.middleware {
            command.env("RMW_IMPLEMENTATION", middleware);
        }
        command
    }
}

/// The text without what depends on the RMW implementation or on the order of a folder:
/// discovery tells the history of an endpoint to some RMW implementations, `ros2` keeps
/// the blanks of a definition's lines, and lists a package's interfaces in any order.
fn comparable(words: &[&str], text: &str) -> String {
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("History (Depth):"))
        .map(|line| match words {
            ["interface", "show", ..] => {
                let indent: String = line.chars().take_while(|c| c.is_whitespace()).collect();
                let words: Vec<&str> = line.split_whitespace().collect();
                indent + &words.join(" ")
            }
            _ => line.to_owned(),
        })
        .collect();
    if let ["interface", "package", ..] = words {
        lines.sort();
    }
    lines.join("\n")
}

/// Verbs that read the graph without a daemon. Both commands get `--spin-time`.
const OF_GRAPH: &[&[&str]] = &[
    &["topic", "list"],
    &["topic", "list", "-t"],
    &["topic", "list", "-c"],
    &["topic", "info", "/greeting"],
    &["topic", "info", "-v", "/greeting"],
    &["topic", "type", "/greeting"],
    &["topic", "find", "std_msgs/msg/String"],
    &["topic", "find", "std_msgs/msg/Bool", "-c"],
    &["node", "list"],
    &["node", "list", "-c"],
    &["service", "list"],
    &["service", "list", "-t"],
    &["service", "info", "/talker/get_parameters"],
    &["param", "list", "/talker"],
    &["param", "get", "/talker", "use_sim_time"],
    &["param", "get", "/talker", "use_sim_time", "--hide-type"],
    &["topic", "echo", "/greeting", "--once"],
    &["topic", "echo", "/greeting", "--once", "--field", "data"],
    &["topic", "echo", "/greeting", "--once", "--csv"],
    &["topic", "echo", "/greeting", "--once", "--no-str"],
    &["topic", "echo", "/scan", "--once"],
    &["topic", "echo", "/scan", "--once", "--no-arr"],
    &["topic", "echo", "/scan", "--once", "-l", "2"],
    &["topic", "echo", "/scan", "--once", "--flow-style"],
    &["topic", "echo", "/scan", "--once", "--csv"],
    &["topic", "echo", "/scan", "--once", "--field", "angle_min"],
];

/// Verbs that need no graph.
const OF_FILES: &[&[&str]] = &[
    &["interface", "proto", "std_msgs/msg/String"],
    &["interface", "proto", "geometry_msgs/msg/Twist"],
    &["interface", "show", "std_msgs/msg/String", "--no-comments"],
    &[
        "interface",
        "show",
        "geometry_msgs/msg/Twist",
        "--no-comments",
    ],
    &["interface", "package", "std_srvs"],
];

#[test]
fn both_commands_print_the_same() {
    let Some(ros2) = Ros2::find() else {
        eprintln!("skipped: no ros2 on PATH, and PTEROS_ROS2 names no installation prefix");
        return;
    };
    let domain = Domain::new();
    let words = "topic pub /greeting std_msgs/msg/String -r 10 -p 0 -n greeter";
    let mut greeter = domain.start_with(words, "data: 'Hello: 1'");
    assert_eq!(greeter.line(), "publisher: beginning loop");
    let words = "topic pub /scan sensor_msgs/msg/LaserScan -r 10 -p 0 -n laser";
    let values = "{header: {frame_id: laser}, angle_min: 0.1, ranges: [0.1, 2, 3]}";
    let mut laser = domain.start_with(words, values);
    assert_eq!(laser.line(), "publisher: beginning loop");
    let _talker = domain.start("demo talker");
    domain.run_until("param list /talker", |answer| answer.code == Some(0));
    let mut differences = Vec::new();
    let mut compare = |words: &[&str]| {
        let (theirs, ours) = (ros2.run(&domain, words), finish(domain.command(words)));
        let same = comparable(words, &theirs.out) == comparable(words, &ours.out);
        if theirs.code != ours.code || !same {
            differences.push(format!(
                "{}\nros2, exit code {:?}:\n{}{}\npteros, exit code {:?}:\n{}{}",
                words.join(" "),
                theirs.code,
                theirs.out,
                theirs.err,
                ours.code,
                ours.out,
                ours.err
            ));
        }
    };
    for words in OF_GRAPH {
        let quick = ["--no-daemon", "--spin-time", "3"];
        compare(&words.iter().copied().chain(quick).collect::<Vec<_>>());
    }
    OF_FILES.iter().for_each(|words| compare(words));
    assert!(
        differences.is_empty(),
        "{} of {} commands differ:\n\n{}",
        differences.len(),
        OF_GRAPH.len() + OF_FILES.len(),
        differences.join("\n")
    );
}

/// Verbs that read or use a graph of both kinds of nodes and end by themselves.
const BESIDE_STOCK_NODES: &[&str] = &[
    "topic list -t --include-hidden-topics",
    "topic info -v /chatter",
    "topic echo /chatter --once",
    "topic echo /rosout --once",
    "topic why /chatter",
    "topic pub /chatter std_msgs/msg/String -w 0 -t 3 -r 20",
    "topic pub /chatter std_msgs/msg/String -w 0 --once --qos-durability transient_local",
    "node list -a",
    "node info /demo_nodes_cpp_listener",
    "node info /demo_nodes_py_talker",
    "node info /talker",
    "service list -t --include-hidden-services",
    "service call /add_two_ints example_interfaces/srv/AddTwoInts",
    "param list /demo_nodes_cpp_listener",
    "param dump /demo_nodes_cpp_listener",
    "param get /demo_nodes_cpp_listener use_sim_time",
    "param set /demo_nodes_cpp_listener use_sim_time false",
    "param list /demo_nodes_py_listener",
    "param dump /demo_nodes_py_listener",
    "param get /demo_nodes_py_listener use_sim_time",
    "param set /demo_nodes_py_listener use_sim_time false",
    "action list -t",
    "lifecycle nodes",
    "component list",
    "doctor",
];

/// Verbs that run until they are stopped.
const ENDLESS: &[&str] = &[
    "topic hz /chatter",
    "topic bw /chatter",
    "topic echo /rosout --full-length",
    "demo talker",
    "demo listener",
    "component container",
];

#[test]
fn stock_nodes_log_nothing_about_pteros() {
    let Some(mut ros2) = Ros2::find() else {
        eprintln!("skipped: no ros2 on PATH, and PTEROS_ROS2 names no installation prefix");
        return;
    };
    let mut complaints = Vec::new();
    for middleware in ros2.middlewares() {
        ros2.middleware = Some(middleware);
        let lines = complaints_beside_pteros(&ros2);
        complaints.extend(lines.into_iter().map(|line| format!("{middleware} {line}")));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Runs the command beside stock nodes. Returns the unusual lines of those nodes.
fn complaints_beside_pteros(ros2: &Ros2) -> Vec<String> {
    let domain = Domain::new();
    let programs = [
        ("demo_nodes_cpp", "listener"),
        ("demo_nodes_cpp", "add_two_ints_server"),
        ("demo_nodes_cpp", "parameter_blackboard"),
        ("demo_nodes_py", "talker"),
        ("demo_nodes_py", "listener"),
    ];
    let mut stock: Vec<(String, Running)> = programs
        .iter()
        .filter_map(|(package, program)| {
            let running = ros2.start_program(&domain, package, program)?;
            Some((format!("{package} {program}"), running))
        })
        .collect();
    let running: Vec<Running> = ENDLESS.iter().map(|words| domain.start(words)).collect();
    domain.run_until("topic echo /chatter --once", |answer| {
        answer.code == Some(0)
    });
    for words in BESIDE_STOCK_NODES {
        let answer = domain.run(words);
        // `doctor` may find fault with the machine.
        assert!(
            answer.code == Some(0) || *words == "doctor",
            "{words}: {:?}\n{}{}",
            answer.code,
            answer.out,
            answer.err
        );
    }
    drop(running);
    let answer = ros2.run(
        &domain,
        &["topic", "list", "--no-daemon", "--spin-time", "3"],
    );
    assert_contains(&answer.out, "/chatter");
    let mut complaints = Vec::new();
    for (name, node) in &mut stock {
        node.signal("INT");
        let answer = node.wait();
        let text = answer.out + &answer.err;
        let lines = text.lines().filter(|line| !is_usual(line));
        complaints.extend(lines.map(|line| format!("{name}: {line}")));
    }
    complaints
}

/// An information line of ROS 2's logging, its second line in `add_two_ints_server`, or one
/// of a Python node that was interrupted.
fn is_usual(line: &str) -> bool {
    let known = ["[INFO]", "signal_handler(", "a: 0 b: 0"];
    line.is_empty() || known.iter().any(|part| line.contains(part))
}
