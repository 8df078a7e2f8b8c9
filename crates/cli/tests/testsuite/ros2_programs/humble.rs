//! Humble nodes beside native nodes of Pteros. Humble parses some of what we send by
//! another layout: its gids have 24 bytes.
//!
//! PTEROS_ROS2_HUMBLE names the installation.

use super::ros2::{Program, Ros2};
use super::{LINE_MAX, OTHERS};
use crate::support::Domain;
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
    for rmw in OTHERS.into_iter().filter(|rmw| humble.has_middleware(rmw)) {
        ours_joins_humble(&humble, &lister, rmw);
        humble_joins_ours(&humble, &lister, rmw);
    }
    let _ = std::fs::remove_file(lister);
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
    let humble = Ros2::at(prefix);
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
    let program = std::env::temp_dir().join(format!("pteros_lister_{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2_nodes.c");
    let mut cc = Command::new("cc");
    cc.arg("-o").arg(&program).arg(source);
    // A package of Humble has a header named as one of libc.
    for folder in prefix.join("include").read_dir().unwrap() {
        cc.arg("-idirafter").arg(folder.unwrap().path());
    }
    cc.arg("-L").arg(prefix.join("lib"));
    cc.args(["-lrcl", "-lrcutils", "-Wl,--allow-shlib-undefined"]);
    assert!(cc.status().unwrap().success());
    program
}
