//! Clients of Fast DDS's discovery server, as hosts in network namespaces without multicast:
//! nodes of Pteros and of Fast DDS, with the server of the same ROS 2.
//!
//! PTEROS_ROS2 names a Jazzy (Fast DDS 2.14), PTEROS_ROS2_KILTED a Python environment of
//! Kilted (Fast DDS 3.2). A test runs with each that is there.

#![allow(
    clippy::disallowed_methods,
    reason = "other processes take real time, and the environment names the installations"
)]

use crate::namespaces::{
    FLOW, Lab, Namespace, Program, TIMEOUT, echo, publish, publisher, subscriber,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A ROS 2 with Fast DDS: what comes before each of its programs, and its programs.
struct Stack {
    name: &'static str,
    /// A script that sets up its environment and runs its arguments.
    setup: String,
    /// The server and its first arguments.
    server: Vec<String>,
    python: PathBuf,
}

impl Stack {
    /// Those that are there; a sentence for each of the others.
    fn all() -> Vec<Self> {
        let named = |variable: &str| {
            let prefix = std::env::var_os(variable).filter(|value| !value.is_empty());
            prefix.map(PathBuf::from)
        };
        let jazzy = named("PTEROS_ROS2").and_then(Self::jazzy);
        let kilted = named("PTEROS_ROS2_KILTED").and_then(Self::kilted);
        for (name, stack, variable) in [
            ("Jazzy", &jazzy, "PTEROS_ROS2"),
            ("Kilted", &kilted, "PTEROS_ROS2_KILTED"),
        ] {
            if stack.is_none() {
                println!("skipped {name}: {variable} names no discovery server of Fast DDS");
            }
        }
        jazzy.into_iter().chain(kilted).collect()
    }

    fn jazzy(prefix: PathBuf) -> Option<Self> {
        let server = prefix.join("bin/fast-discovery-server");
        let rmw = prefix.join("lib/librmw_fastrtps_cpp.so");
        let setup = prefix.join("setup.bash");
        (server.exists() && rmw.exists()).then(|| Self {
            name: "Jazzy",
            setup: format!(". {} && exec \"$@\"", setup.display()),
            server: vec![server.display().to_string()],
            python: "/usr/bin/python3".into(),
        })
    }

    /// Its server takes the number of a command first; `fastdds discovery` gives it.
    fn kilted(environment: PathBuf) -> Option<Self> {
        let server = environment.join("bin/fast-discovery-server");
        let python = environment.join("bin/python");
        let packages = std::fs::read_dir(environment.join("lib")).ok()?.flatten();
        let packages = packages.map(|entry| entry.path().join("site-packages"));
        let libraries = packages
            .map(|packages| packages.join("ros_fastdds.libs"))
            .find(|libraries| libraries.exists())?;
        let own = environment.join("lib");
        (server.exists() && python.exists()).then(|| Self {
            name: "Kilted",
            setup: format!(
                "export LD_LIBRARY_PATH={}:{}; exec \"$@\"",
                own.display(),
                libraries.display()
            ),
            server: vec![server.display().to_string(), "42".into()],
            python,
        })
    }

    fn command(&self, host: &Namespace, words: &[&str]) -> Command {
        let mut command = host.command(&["bash", "-c", &self.setup, "bash"]);
        command
            .args(words)
            .env_remove("ROS_DOMAIN_ID")
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY")
            .env_remove("ROS_DISCOVERY_SERVER")
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET")
            .env("FASTDDS_BUILTIN_TRANSPORTS", "UDPv4")
            .env("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp");
        command
    }

    /// The server `id` on a host with this address.
    fn serve(&self, host: &Namespace, id: u8, address: &str) -> Program {
        let mut words: Vec<&str> = self.server.iter().map(String::as_str).collect();
        let id = id.to_string();
        words.extend(["-i", &id, "-l", address, "-p", "11811"]);
        Program::start(self.command(host, &words))
    }

    /// A node of rclpy on Fast DDS, a client of the servers.
    fn node(&self, host: &Namespace, servers: &str, role: &str) -> Program {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/discovery_node.py");
        let words = [
            self.python.to_str().expect("text"),
            script.to_str().expect("text"),
            role,
        ];
        let mut command = self.command(host, &words);
        command.env("ROS_DISCOVERY_SERVER", servers);
        Program::start(command)
    }
}

/// Hosts on one network without multicast, and the address of each.
struct Fleet {
    _lab: Lab,
    hosts: Vec<Namespace>,
}

impl Fleet {
    fn of(count: u8) -> Option<Self> {
        let lab = Lab::new()?;
        let hosts = (1..=count).map(|last| {
            let host = lab.host();
            let name = char::from(b'a' + last - 1);
            lab.attach(&host, name, 1, last);
            host.ip(&format!("link set {name}1 multicast off"));
            host
        });
        Some(Self {
            hosts: hosts.collect(),
            _lab: lab,
        })
    }
}

const SERVER: &str = "10.1.0.1:11811";

fn with_servers(mut command: Command, servers: &str) -> Command {
    command.env("ROS_DISCOVERY_SERVER", servers);
    command
}

fn listen(host: &Namespace, topic: &str, servers: &str) -> Program {
    Program::start(with_servers(subscriber(host, topic, "reliable"), servers))
}

fn talk(host: &Namespace, topic: &str, servers: &str) -> Program {
    Program::start(with_servers(publisher(host, topic, "reliable"), servers))
}

fn output(host: &Namespace, servers: &str, words: &[&str]) -> String {
    let mut command = with_servers(host.pteros(words), servers);
    let output = command.output().expect("start");
    [output.stdout, output.stderr]
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .concat()
}

/// Runs a command until its output has all parts.
#[track_caller]
fn shows(host: &Namespace, servers: &str, words: &[&str], parts: &[&str]) -> String {
    let end = Instant::now() + 2 * TIMEOUT;
    loop {
        let shown = output(host, servers, words);
        if parts.iter().all(|part| shown.contains(part)) {
            return shown;
        }
        assert!(
            Instant::now() < end,
            "{words:?}: not all of {parts:?} in:\n{shown}"
        );
    }
}

#[test]
fn nodes_of_fast_dds_and_ours_meet_by_a_server_without_multicast() {
    let stacks = Stack::all();
    let Some(fleet) = Fleet::of(3).filter(|_| !stacks.is_empty()) else {
        return;
    };
    let [server, here, there] = fleet.hosts.as_slice() else {
        unreachable!("three hosts")
    };
    for stack in &stacks {
        println!("{}", stack.name);
        let mut serving = stack.serve(server, 0, "10.1.0.1");
        let mut theirs = stack.node(there, SERVER, "serve");
        theirs.wait_for_line(2 * TIMEOUT, |line| line == "serving");
        // Their messages, their service and their node.
        listen(here, "/words", SERVER).hears(10);
        let get = ["param", "get", "/discovery_node", "number"];
        shows(here, SERVER, &get, &["42"]);
        shows(here, SERVER, &["node", "list"], &["/discovery_node"]);
        shows(
            here,
            SERVER,
            &["topic", "info", "/words"],
            &["Publisher count: 1"],
        );
        shows(
            here,
            SERVER,
            &["node", "info", "/discovery_node"],
            &["/words", "/answers"],
        );
        // Our messages, in a process that starts first, and a second client of ours.
        let _ours = talk(here, "/answers", SERVER);
        theirs.wait_for_line(TIMEOUT, |line| line == "heard x");
        listen(server, "/answers", SERVER).hears(FLOW);
        let doctor = shows(
            here,
            SERVER,
            &["doctor"],
            &[
                "discovery server 10.1.0.1:11811 answers and relays",
                "multicast is not used: ROS_DISCOVERY_SERVER is set",
            ],
        );
        assert!(!doctor.contains("never answers"), "{doctor}");
        // A participant that is no client is not discovered.
        let none = output(here, "", &["node", "list"]);
        assert!(!none.contains("discovery_node"), "{none}");
        assert!(serving.is_running() && theirs.is_running());
    }
}

#[test]
fn a_server_starts_late_is_killed_and_comes_back() {
    let stacks = Stack::all();
    let Some(fleet) = Fleet::of(3).filter(|_| !stacks.is_empty()) else {
        return;
    };
    let [server, here, there] = fleet.hosts.as_slice() else {
        unreachable!("three hosts")
    };
    for stack in &stacks {
        println!("{}", stack.name);
        let _ours = talk(here, "/answers", SERVER);
        let mut theirs = stack.node(there, SERVER, "serve");
        let mut words = listen(here, "/words", SERVER);
        let mut answers = listen(there, "/answers", SERVER);
        answers.wait_for_log(
            TIMEOUT,
            "no answer from the discovery server 10.1.0.1:11811;",
        );
        let serving = stack.serve(server, 0, "10.1.0.1");
        words.hears(10);
        answers.hears(FLOW);
        theirs.wait_for_line(TIMEOUT, |line| line == "heard x");
        drop(serving);
        // Endpoints that were found go on, and the loss is shown.
        words.hears(10);
        answers.hears(FLOW);
        let silent = "no answer from discovery server 10.1.0.1:11811 since";
        let why = output(here, SERVER, &["topic", "why", "/words"]);
        assert!(why.contains(silent), "{why}");
        let doctor = output(here, SERVER, &["doctor"]);
        assert!(doctor.contains(silent), "{doctor}");
        let _serving = stack.serve(server, 0, "10.1.0.1");
        // New nodes find those from before.
        listen(there, "/answers", SERVER).hears(FLOW);
        let mut second = stack.node(server, SERVER, "ask");
        second.wait_for_line(2 * TIMEOUT, |line| line == "heard x");
        words.hears(10);
        answers.hears(FLOW);
    }
}

#[test]
fn one_of_two_servers_may_go_and_a_killed_node_is_noticed() {
    let stacks = Stack::all();
    let Some(fleet) = Fleet::of(3).filter(|_| !stacks.is_empty()) else {
        return;
    };
    let [server, here, there] = fleet.hosts.as_slice() else {
        unreachable!("three hosts")
    };
    let servers = "10.1.0.1:11811;10.1.0.2:11811";
    for stack in &stacks {
        println!("{}", stack.name);
        let first = stack.serve(server, 0, "10.1.0.1");
        let _second = stack.serve(here, 1, "10.1.0.2");
        let theirs = stack.node(there, servers, "serve");
        let mut words = listen(here, "/words", servers);
        words.hears(10);
        drop(first);
        words.hears(10);
        let listening = listen(there, "/words", servers);
        shows(
            here,
            servers,
            &["topic", "info", "/words"],
            &["Subscription count: 2"],
        );
        // Leases of 20 s, of Fast DDS and ours.
        drop((theirs, listening));
        let end = Instant::now() + Duration::from_secs(45);
        loop {
            let shown = output(here, servers, &["topic", "info", "/words"]);
            if shown.contains("Publisher count: 0") && shown.contains("Subscription count: 1") {
                break;
            }
            assert!(Instant::now() < end, "{shown}");
        }
    }
}

#[test]
fn wrong_servers_and_absent_ones_are_named() {
    let Some(fleet) = Fleet::of(1) else { return };
    let host = &fleet.hosts[0];
    for (servers, part) in [
        (
            "TCPv4:[10.1.0.1]:42100",
            "TCPv4 is not supported; RTPS uses UDP",
        ),
        ("tcp:10.1.0.1:42100", "TCP is not supported"),
        ("10.1.0.1:none", "\":none\" is no port"),
        (":11811", "write 127.0.0.1 for this host"),
        ("robot,10.1.0.1", "not allowed in a host name"),
        ("fe80::7", "needs its interface"),
        ("239.255.0.1", "not the address of one host"),
        (
            "no.such.host.invalid",
            "\"no.such.host.invalid\" (ROS_DISCOVERY_SERVER) cannot be used",
        ),
    ] {
        let shown = output(host, servers, &["topic", "list"]);
        assert!(shown.contains(part), "{servers}: {shown}");
        assert!(shown.contains("ROS_DISCOVERY_SERVER"), "{servers}: {shown}");
    }
    let mut command = with_servers(host.pteros(&["topic", "list"]), ";10.1.0.1;");
    command.env("ROS_SUPER_CLIENT", "maybe");
    let output_of_super = command.output().expect("start");
    let shown = String::from_utf8_lossy(&output_of_super.stderr).into_owned();
    assert!(shown.contains("neither TRUE nor FALSE"), "{shown}");
    let doctor = output(host, ";10.1.0.1;", &["doctor"]);
    for part in [
        "no answer from discovery server 10.1.0.1:11811 since",
        "fastdds discovery -i 0 -l 10.1.0.1 -p 11811",
        "ROS_AUTOMATIC_DISCOVERY_RANGE, ROS_DISCOVERY_SERVER",
    ] {
        assert!(doctor.contains(part), "no {part:?} in:\n{doctor}");
    }
    // Processes of one host with the same servers need none of them.
    let _ours = talk(host, "/answers", "10.1.0.9");
    listen(host, "/answers", "10.1.0.9").hears(FLOW);
    // Without the variable all is as ever.
    let _plain = publish(host, "/plain", "reliable");
    echo(host, "/plain", "reliable").hears(FLOW);
}
