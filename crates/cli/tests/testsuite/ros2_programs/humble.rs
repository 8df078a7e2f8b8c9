//! Humble nodes beside native nodes of Pteros, and on the plug-in for Humble. Humble parses
//! some of what we send by another layout: its gids have 24 bytes.
//!
//! PTEROS_ROS2_HUMBLE names the installation.

use super::graphs::{Side, run_alone, run_both_ways};
use super::native::secured_programs_meet;
use super::ros2::{Program, Ros2};
use super::{LINE_MAX, OTHERS, PLUG_IN};
use crate::support::{Domain, assert_contains};
use pteros::config::DiscoveryRange;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How often a native node joins. One in five joins made a node hang once.
const JOINS: usize = 8;
const VARIABLE: &str = "PTEROS_ROS2_HUMBLE";

/// Nodes of Humble on each of its middlewares, and a native node that joins them, or
/// that they join. All hear each other, go on and list the same nodes.
#[test]
#[ignore = "half a minute, and needs PTEROS_ROS2_HUMBLE; cargo xtask test --all"]
fn humble_nodes_and_ours_hear_and_list_each_other_in_both_orders() {
    let Some(humble) = find() else { return };
    let lister = compile_lister(&humble.prefix);
    for rmw in humble.middlewares() {
        ours_joins_humble(&humble, &lister, rmw);
        humble_joins_ours(&humble, &lister, rmw);
    }
    let _ = std::fs::remove_file(lister);
}

/// The demos on the plug-in: alone, with Humble's other middlewares and, if there is a
/// Jazzy, with its plug-in.
#[test]
#[ignore = "two minutes, and needs PTEROS_ROS2_HUMBLE; cargo xtask test --all"]
fn humble_programs_run_on_the_plug_in_alone_and_with_others() {
    let Some(humble) = find() else { return };
    let domain = Domain::new();
    let side = |rmw| Side { ros2: &humble, rmw };
    assert!(run_alone(&domain, side(PLUG_IN)) > 5);
    for rmw in OTHERS.into_iter().filter(|rmw| humble.has_middleware(rmw)) {
        assert!(run_both_ways(&domain, side(PLUG_IN), side(rmw)) > 5);
    }
    if let Some(jazzy) = Ros2::find().map(Ros2::on_subnet) {
        let rmw = PLUG_IN;
        let jazzy = Side { ros2: &jazzy, rmw };
        assert!(run_both_ways(&domain, side(PLUG_IN), jazzy) > 5);
    }
}

/// Enclaves on the plug-in alone and with those of Humble's other middlewares that were
/// built with DDS Security.
#[test]
#[ignore = "half a minute, and needs PTEROS_ROS2_HUMBLE; cargo xtask test --all"]
fn secured_programs_of_humble_meet_on_the_plug_in_and_with_others() {
    let Some(humble) = find() else { return };
    secured_programs_meet(&humble, humble.middlewares());
}

/// Topics and services over Zenoh alone, without a router, if the plug-in is built with it.
#[test]
#[ignore = "seconds, and needs PTEROS_ROS2_HUMBLE; cargo xtask test --all"]
fn humble_programs_meet_over_zenoh() {
    let Some(humble) = find() else { return };
    let domain = Domain::new();
    let wire = [("PTEROS_WIRE", "zenoh"), ("PTEROS_SHARED_MEMORY", "off")];
    let humble = humble.with(&wire.map(|(name, value)| (name, value.to_owned())));
    let start = |name: &str| humble.start(&domain, PLUG_IN, &format!("demo_nodes_cpp/{name}"));
    let mut talker = start("talker");
    if !talker.expect_or_end("Publishing: ") {
        assert_contains(&talker.seen, "Zenoh, which is not in this rmw_pteros_cpp");
        let _ = skip("the plug-in for Humble is built without Zenoh");
        return;
    }
    let mut listener = start("listener");
    listener.expect("I heard: [Hello World");
    let server = start("add_two_ints_server");
    start("add_two_ints_client").expect("Result of add_two_ints: 5");
    for program in [talker, listener, server] {
        program.interrupt();
    }
}

/// An action with feedback, and the states of a managed node.
#[test]
#[ignore = "a minute with its C++ compiler, and needs PTEROS_ROS2_HUMBLE; cargo xtask test --all"]
fn humble_actions_and_managed_nodes_work_on_the_plug_in_and_with_others() {
    let Some(humble) = find() else { return };
    let Some(node) = compile_node(&humble.prefix) else {
        skip("no C++ compiler");
        return;
    };
    let domain = Domain::new();
    let start = |rmw: &str, role| humble.start_path(&domain, rmw, &node, [role].into_iter());
    for other in humble.middlewares() {
        for (server, asker) in [(PLUG_IN, other), (other, PLUG_IN)] {
            let mut serving = start(server, "serve");
            serving.expect("serving");
            let mut asking = start(asker, "ask");
            for line in [
                "action: 5 numbers",
                "feedback: heard",
                "transition 1: done",
                "transition 3: done",
                "state: active",
                "all answered",
            ] {
                asking.expect(line);
            }
            asking.finish();
            serving.interrupt();
        }
    }
    let _ = std::fs::remove_file(node);
}

fn ours_joins_humble(humble: &Ros2, lister: &Path, rmw: &str) {
    let domain = Domain::new();
    let mut theirs = Theirs::start(humble, &domain, lister, rmw);
    theirs.lister.expect("nodes /listener /lister /talker\n");
    for join in 1..=JOINS {
        let ours = Ours::start(&domain, join);
        theirs.meet(&ours);
        drop(ours);
        theirs.lister.seen.clear();
        theirs.lister.expect("nodes /listener /lister /talker\n");
    }
    theirs.end();
}

fn humble_joins_ours(humble: &Ros2, lister: &Path, rmw: &str) {
    let domain = Domain::new();
    let ours = Ours::start(&domain, 1);
    for _ in 0..JOINS.div_ceil(4) {
        let mut theirs = Theirs::start(humble, &domain, lister, rmw);
        theirs.meet(&ours);
        theirs.end();
        ours.expect_nodes(&["/native_1"]);
    }
}

/// Humble's talker, listener and list of nodes.
struct Theirs {
    talker: Program,
    listener: Program,
    lister: Program,
}

impl Theirs {
    fn start(humble: &Ros2, domain: &Domain, lister: &Path, rmw: &str) -> Self {
        let start = |line: &str| humble.start(domain, rmw, line);
        Self {
            talker: start("demo_nodes_cpp/talker"),
            listener: start("demo_nodes_cpp/listener"),
            lister: humble.start_path(domain, rmw, lister, std::iter::empty()),
        }
    }

    /// Both sides hear each other and list all nodes.
    fn meet(&mut self, ours: &Ours) {
        let name = &ours.name;
        self.lister
            .expect(&format!("nodes /listener /lister {name} /talker\n"));
        ours.expect_nodes(&["/listener", "/lister", name, "/talker"]);
        self.listener.seen.clear();
        self.listener.expect(&format!("I heard: [{name}]"));
        while ours.heard.take().is_some() {}
        let sample = ours.heard.take_timeout(LINE_MAX);
        assert!(sample.is_some(), "{name} hears nothing");
        // The talker goes on.
        self.talker.seen.clear();
        self.talker.expect("Publishing");
    }

    fn end(self) {
        for program in [self.talker, self.listener, self.lister] {
            program.interrupt();
        }
    }
}

/// A native node that talks to Humble's listener and hears its talker.
struct Ours {
    name: String,
    context: Context,
    heard: Subscription<Text>,
    _timer: Timer,
}

impl Ours {
    fn start(domain: &Domain, join: usize) -> Self {
        let context = Context::with_options(ContextOptions {
            domain_id: Some(domain.id()),
            discovery_range: Some(DiscoveryRange::Subnet),
            ..ContextOptions::default()
        });
        let context = context.unwrap();
        let node = context.create_node(format!("native_{join}")).unwrap();
        let name = format!("/native_{join}");
        let publisher = node.create_publisher::<Text>("/chatter").unwrap();
        let heard = node.create_polled_subscription("/chatter").unwrap();
        let data = name.clone();
        let timer = node.create_timer(std::time::Duration::from_millis(100), move || {
            // The listener tells of a message that is missing.
            let _ = publisher.publish(&Text { data: data.clone() });
        });
        std::thread::spawn(move || node.spin());
        Self {
            name,
            context,
            heard,
            _timer: timer.unwrap(),
        }
    }

    fn expect_nodes(&self, expected: &[&str]) {
        let graph = self.context.graph();
        let names = || {
            let nodes = graph.nodes().into_iter();
            let mut names: Vec<String> = nodes.map(|node| node.fully_qualified_name()).collect();
            names.sort();
            names
        };
        let listed = graph.wait_until(LINE_MAX, || names() == expected);
        assert!(listed, "{:?} instead of {expected:?}", names());
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.context.shutdown();
    }
}

/// The installation, or none with a sentence: also where its libraries lack another.
fn find() -> Option<Ros2> {
    let prefix = std::env::var_os(VARIABLE).filter(|value| !value.is_empty());
    let Some(prefix) = prefix.map(PathBuf::from) else {
        return skip(&format!("{VARIABLE} names no ROS 2"));
    };
    if std::env::var_os("PTEROS_PRIVATE_NETWORK").is_none() {
        return skip("not in a private network, which Humble needs; run cargo xtask test --all");
    }
    let Some(humble) = Ros2::humble(prefix) else {
        return skip("no plug-in for Humble is built");
    };
    let domain = Domain::new();
    for rmw in OTHERS.into_iter().filter(|rmw| humble.has_middleware(rmw)) {
        let mut talker = humble.start(&domain, rmw, "demo_nodes_cpp/talker");
        if !talker.expect_or_end("Publishing") {
            let why = talker.seen.lines().find(|line| !line.is_empty());
            let why = why.unwrap_or("it ends without a word");
            return skip(&format!("Humble does not run on {rmw}: {why}"));
        }
    }
    Some(humble)
}

/// Not `println!`, whose output is captured when a test passes.
fn skip(why: &str) -> Option<Ros2> {
    let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
    None
}

/// Humble has no `ros2` command here: a program on its rcl lists the nodes.
fn compile_lister(prefix: &Path) -> PathBuf {
    let libraries = ["rcl", "rcutils"];
    compile("cc", "ros2_nodes.c", prefix, &libraries).expect("a C compiler")
}

/// Nor has it programs with actions or managed nodes.
fn compile_node(prefix: &Path) -> Option<PathBuf> {
    let libraries = [
        "rclcpp",
        "rclcpp_action",
        "rclcpp_lifecycle",
        "rcl",
        "rcl_action",
        "rcutils",
        "rosidl_typesupport_cpp",
        "lifecycle_msgs__rosidl_typesupport_cpp",
        "example_interfaces__rosidl_typesupport_cpp",
        "action_msgs__rosidl_typesupport_cpp",
    ];
    compile("c++", "ros2_node.cpp", prefix, &libraries)
}

/// Compiles a source of this crate's tests. None: there is no such compiler.
fn compile(compiler: &str, source: &str, prefix: &Path, libraries: &[&str]) -> Option<PathBuf> {
    let program = format!("pteros_{}_{source}.program", std::process::id());
    let program = std::env::temp_dir().join(program);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(source);
    let mut command = Command::new(compiler);
    command.arg("-w").arg("-o").arg(&program).arg(source);
    // A package of Humble has a header named as one of libc.
    for folder in prefix.join("include").read_dir().unwrap() {
        command.arg("-idirafter").arg(folder.unwrap().path());
    }
    command.arg("-L").arg(prefix.join("lib"));
    command.args(libraries.iter().map(|name| format!("-l{name}")));
    command.arg("-Wl,--allow-shlib-undefined");
    let compiled = command.status().ok()?;
    assert!(compiled.success());
    Some(program)
}
