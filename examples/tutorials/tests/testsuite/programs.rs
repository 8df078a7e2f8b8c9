//! The tutorials' programs and commands, run as the book says, on this host only.
//!
//! The `pteros` command is the one beside the programs:
//! `cargo build -p pteros-cli && cargo test -p tutorials`. No test waits for a
//! fixed time: each waits for the line that the tutorial shows.
#![allow(clippy::disallowed_methods, reason = "starts programs")]

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A program in the background; killed when dropped.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = child.stdout.take().expect("its output is piped");
        Self {
            child,
            lines: BufReader::new(output).lines(),
        }
    }

    /// Reads on until a line holds `text`.
    #[track_caller]
    fn expect(&mut self, text: &str) {
        let found = self
            .lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains(text));
        assert!(found, "the program ended without a line with {text:?}");
    }

    /// Interrupts the program as Ctrl-C does, and expects exit code 0.
    #[track_caller]
    fn interrupt(mut self) {
        let sent = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        assert!(sent.is_ok_and(|status| status.success()));
        assert!(self.child.wait().expect("it ends").success());
    }

    /// Waits for the end of a program that ends by itself.
    #[track_caller]
    fn finish(mut self) {
        assert!(self.child.wait().expect("it ends").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Folder of the programs that Cargo builds: `target/debug`.
fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("the test has a path");
    let folder = test.parent().and_then(Path::parent);
    folder.expect("it lies in deps").to_owned()
}

fn pteros_path() -> PathBuf {
    let path = programs().join("pteros");
    assert!(
        path.is_file(),
        "{} is missing: cargo build -p pteros-cli",
        path.display()
    );
    path
}

/// Where the programs and commands of one test meet.
struct Graph {
    domain: u32,
    folder: PathBuf,
}

impl Graph {
    /// A domain and a folder of its own for each test of each run.
    fn new(test: u32) -> Self {
        let domain = 30 + (std::process::id() * 13 + test) % 70;
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("tutorial-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder for the test");
        Self { domain, folder }
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env("ROS_DOMAIN_ID", self.domain.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("ROS_LOG_DIR", self.folder.join("log"))
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY")
            .env_remove("ROS_SECURITY_ENABLE")
            .env_remove("PTEROS_TRACE")
            .env_remove("PTEROS_LAUNCH");
        command
    }

    /// One of this package's programs.
    fn start(&self, program: &str, arguments: &[&str]) -> Program {
        let mut command = self.command(programs().join(program));
        command.args(arguments);
        Program::start(command)
    }

    /// `pteros WORDS LAST`; the last word may hold spaces.
    fn pteros(&self, words: &str, last: &[&str]) -> Command {
        let mut command = self.command(pteros_path());
        command.args(words.split(' ')).args(last);
        command
    }

    fn output(&self, words: &str, last: &[&str]) -> Output {
        self.pteros(words, last).output().expect("pteros runs")
    }

    /// Standard output of a command that succeeds.
    #[track_caller]
    fn run_with(&self, words: &str, last: &[&str]) -> String {
        let output = self.output(words, last);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}: {text}{error}");
        text
    }

    #[track_caller]
    fn run(&self, words: &str) -> String {
        self.run_with(words, &[])
    }

    /// Repeats a command until its output holds all of `texts`, which a healthy
    /// graph shows at once.
    #[track_caller]
    fn run_until(&self, words: &str, texts: &[&str]) {
        let mut shown = String::new();
        for _ in 0..20 {
            let output = self.output(words, &[]);
            shown = String::from_utf8_lossy(&output.stdout).into_owned();
            if texts.iter().all(|text| shown.contains(text)) {
                return;
            }
        }
        panic!("{words}: no {texts:?} in:\n{shown}");
    }
}

fn package(path: &str) -> String {
    format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn publisher_and_subscription() {
    let graph = Graph::new(0);
    let mut listener = graph.start("listener", &[]);
    let mut talker = graph.start("talker", &[]);
    talker.expect("Publishing: 'Hello World: 2'");
    listener.expect("I heard: 'Hello World: ");
    graph.run_until("topic list -t", &["/chatter [std_msgs/msg/String]"]);
    graph.run_until("node list", &["/listener", "/talker"]);
    let echo = graph.run("topic echo /chatter --once --timeout 20");
    assert!(echo.starts_with("data: 'Hello World: ") || echo.starts_with("data: Hello World: "));
    graph.run_until("topic why /chatter", &["/talker -> /listener: ", "match"]);
    talker.interrupt();
    listener.interrupt();
}

#[test]
fn service() {
    let graph = Graph::new(1);
    let mut server = graph.start("add_server", &[]);
    server.expect("ready");
    let mut client = graph.start("add_client", &[]);
    client.expect("2 + 3 = 5");
    client.finish();
    server.expect("request: 2 + 3");
    let call = "service call --timeout 20 /add_two_ints example_interfaces/srv/AddTwoInts";
    let response = graph.run_with(call, &["{a: 40, b: 2}"]);
    assert!(response.contains("sum=42"), "{response}");
    graph.run_until(
        "service list -t",
        &["/add_two_ints [example_interfaces/srv/AddTwoInts]"],
    );
    server.interrupt();
}

#[test]
fn action() {
    let graph = Graph::new(2);
    let mut server = graph.start("fibonacci_server", &[]);
    server.expect("ready");
    let mut client = graph.start("fibonacci_client", &[]);
    client.expect("accepted");
    client.expect("feedback: [0, 1, 1, 2]");
    client.expect("succeeded: [0, 1, 1, 2, 3, 5]");
    client.finish();
    server.expect("goal: order 5");
    server.expect("goal: finished");
    let send = "action send_goal --feedback --timeout 30 /fibonacci \
                example_interfaces/action/Fibonacci";
    let shown = graph.run_with(send, &["{order: 3}"]);
    for text in [
        "Goal accepted with ID: ",
        "Feedback:",
        "Goal finished with status: SUCCEEDED",
    ] {
        assert!(shown.contains(text), "no {text:?} in:\n{shown}");
    }
    let rejected = graph.output(send, &["{order: 0}"]);
    assert_eq!(rejected.status.code(), Some(1));
    let shown = String::from_utf8_lossy(&rejected.stdout);
    assert!(shown.contains("Goal was rejected."), "{shown}");
    server.interrupt();
}

#[test]
fn parameters() {
    let graph = Graph::new(3);
    let file = package("launch/wheels.yaml");
    let mut wheels = graph.start("wheels", &["--ros-args", "--params-file", &file]);
    wheels.expect("start: 0.8 m/s");
    wheels.expect("driving at 0.8 m/s");
    let get = "param get --timeout 20 /wheels speed";
    assert_eq!(graph.run(get), "Double value is: 0.8\n");
    let set = "param set --timeout 20 /wheels speed";
    assert_eq!(graph.run_with(set, &["0.5"]), "Set parameter successful\n");
    wheels.expect("speed = 0.5");
    wheels.expect("driving at 0.5 m/s");
    let refused = graph.output(set, &["9.0"]);
    assert_eq!(refused.status.code(), Some(1));
    let described = graph.run("param describe --timeout 20 /wheels speed");
    assert!(described.contains("Max value: 2.0"), "{described}");
    let dumped = graph.run("param dump --timeout 20 /wheels");
    assert!(dumped.contains("speed: 0.5"), "{dumped}");
    wheels.interrupt();
}

#[test]
fn launch() {
    let graph = Graph::new(4);
    let file = package("launch/talk.launch.xml");
    graph.run_with("launch --check", &[&file]);
    let arguments = graph.run_with("launch --show-args", &[&file]);
    assert!(arguments.contains("namespace"), "{arguments}");
    let mut launch = Program::start(graph.pteros("launch", &[&file, "namespace:=tower"]));
    launch.expect("I heard: 'Hello World: ");
    graph.run_until("node list", &["/tower/listener", "/tower/talker"]);
    launch.interrupt();
}

#[test]
fn lifecycle() {
    let graph = Graph::new(5);
    let mut talker = graph.start("managed_talker", &[]);
    talker.expect("unconfigured");
    graph.run_until("lifecycle nodes", &["/talker"]);
    for (transition, line) in [("configure", "configured"), ("activate", "active")] {
        let words = format!("lifecycle set --timeout 20 /talker {transition}");
        assert_eq!(graph.run(&words), "Transitioning successful\n");
        talker.expect(line);
    }
    assert_eq!(
        graph.run("lifecycle get --timeout 20 /talker"),
        "active [3]\n"
    );
    graph.run("topic echo /chatter --once --timeout 20");
    graph.run("lifecycle supervise --down /talker");
    talker.expect("unconfigured");
    graph.run("lifecycle supervise --once /talker");
    talker.expect("active");
    talker.interrupt();
}

#[test]
fn transforms() {
    let graph = Graph::new(6);
    let mut broadcaster = graph.start("tf_broadcaster", &[]);
    broadcaster.expect("broadcasting");
    let mut listener = graph.start("tf_listener", &[]);
    listener.expect("laser at (");
    listener.expect("obstacle at (");
    listener.finish();
    let shown = graph.run("tf echo map laser --once --timeout 20");
    assert!(shown.contains("- Translation: ["), "{shown}");
    graph.run_until("tf tree", &["map", "base_link", "laser"]);
    broadcaster.interrupt();
}

#[test]
fn qos() {
    let graph = Graph::new(7);
    let mut scanner = graph.start("scanner", &[]);
    scanner.expect("scanning");
    let scan = graph.run("topic echo /scan --once --timeout 20 --field ranges");
    assert!(scan.contains("1.0"), "{scan}");
    let words = "topic echo /scan sensor_msgs/msg/LaserScan --qos-reliability reliable";
    let echo = Program::start(graph.pteros(words, &[]));
    scanner.expect("incompatible QoS: RELIABILITY");
    graph.run_until(
        "topic why /scan",
        &["RELIABILITY", "offered:", "requested:"],
    );
    drop(echo);
    scanner.interrupt();
}

#[test]
fn security() {
    let graph = Graph::new(8);
    let made = graph.run("security init");
    assert!(made.contains("ROS_SECURITY_ENABLE=true"), "{made}");
    graph.run("security check keystore");
    let secured = |program: &str| {
        let mut command = graph.command(programs().join(program));
        command
            .env("ROS_SECURITY_ENABLE", "true")
            .env("ROS_SECURITY_STRATEGY", "Enforce")
            .env("ROS_SECURITY_KEYSTORE", graph.folder.join("keystore"));
        Program::start(command)
    };
    let mut listener = secured("listener");
    let talker = secured("talker");
    listener.expect("I heard: 'Hello World: ");
    talker.interrupt();
    listener.interrupt();
}

#[test]
fn trace() {
    let graph = Graph::new(9);
    let pteros = pteros_path();
    let pteros = pteros.to_str().expect("a path in UTF-8");
    let file = package("../tour/launch/talker_listener.launch.xml");
    let last = [pteros, "launch", &file, "count:=3"];
    let recorded = graph.run_with("trace record -o run1 --", &last);
    assert!(recorded.contains("pteros trace show"), "{recorded}");
    let shown = graph.run("trace show run1");
    assert!(shown.contains("/tour/talk"), "{shown}");
    graph.run("trace export run1 --chrome -o run1.json");
}

#[test]
fn own_messages() {
    let graph = Graph::new(10);
    let mut battery = graph.start("battery", &[]);
    battery.expect("publishing /battery");
    // The type description comes from the node: no definition is at hand here.
    let echo = graph.run("topic echo /battery --once --timeout 20");
    for text in ["name: main", "charge: ", "cell_voltages:"] {
        assert!(echo.contains(text), "no {text:?} in:\n{echo}");
    }
    battery.interrupt();
}
