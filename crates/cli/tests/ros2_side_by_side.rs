//! `ros2` and `pteros` on one graph print the same text. Needs a ROS 2: `ros2` on PATH,
//! or PTEROS_ROS2 with an installation prefix (`/opt/ros/kilted`). Elsewhere the test
//! is skipped with a sentence.

#![allow(
    clippy::disallowed_methods,
    reason = "finds an installation of ROS 2 by the environment"
)]

mod support;

use std::path::PathBuf;
use std::process::Command;
use support::{Answer, Domain, finish};

/// How `ros2` is started.
enum Ros2 {
    OnPath,
    Prefix(PathBuf),
}

impl Ros2 {
    fn find() -> Option<Self> {
        if let Some(prefix) = std::env::var_os("PTEROS_ROS2").map(PathBuf::from) {
            assert!(
                prefix.join("setup.bash").is_file(),
                "PTEROS_ROS2={}: this has no setup.bash; name an installation prefix",
                prefix.display()
            );
            return Some(Self::Prefix(prefix));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).any(|folder| folder.join("ros2").is_file());
        found.then_some(Self::OnPath)
    }

    /// Runs `ros2` in a domain, on this host only.
    fn run(&self, domain: &Domain, words: &[&str]) -> Answer {
        let mut command = match self {
            Self::OnPath => {
                let mut command = Command::new("ros2");
                command.args(words);
                command
            }
            Self::Prefix(prefix) => {
                let mut command = Command::new("bash");
                let script = r#"source "$0/setup.bash" && exec ros2 "$@""#;
                command.arg("-c").arg(script).arg(prefix).args(words);
                command
            }
        };
        command
            .env("ROS_DOMAIN_ID", domain.id().to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env_remove("ROS_LOCALHOST_ONLY")
            .env_remove("ROS_STATIC_PEERS");
        finish(command)
    }
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
        if (theirs.code, &theirs.out) != (ours.code, &ours.out) {
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
