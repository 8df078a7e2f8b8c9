//! Nodes of rclpy of Jazzy and Kilted, as the Python index has them, on the plug-ins.
//!
//! `cargo xtask test --all` makes an environment of Python for each, beside the folder that
//! PTEROS_PEERS names (verify/interop/python). PTEROS_ROS2_KILTED names another one of
//! Kilted. Their rcl is linked with Fast DDS, so the plug-in is loaded before it
//! (LD_PRELOAD).

#![allow(
    clippy::disallowed_methods,
    reason = "the environment names the installation"
)]

use crate::ros2_programs::PLUG_IN;
use crate::ros2_programs::ros2::{Program, plug_in_folder, secured};
use crate::support::{self, Domain, assert_contains};
use std::path::{Path, PathBuf};
use std::process::Command;

const FAST_DDS: &str = "rmw_fastrtps_cpp";

/// The lines of a node that asks.
const ANSWERS: [&str; 9] = [
    "topic: from the server",
    "service: 42 there and back",
    "parameter: 42",
    "action: [0, 1, 2, 3, 4]",
    "info: 1 server std_msgs/msg/String",
    "latched: [0, 1, 1000, 100000, 8000000] True",
    "lifecycle: True inactive",
    "description: std_msgs/msg/String data",
    "all answered",
];

struct Rclpy {
    python: PathBuf,
    plug_in: PathBuf,
}

impl Rclpy {
    /// Those that are there; a sentence for each of the others.
    fn all() -> Vec<Self> {
        let named = |variable| std::env::var_os(variable).map(PathBuf::from);
        let peers = named("PTEROS_PEERS");
        let beside = |name| Some(peers.as_ref()?.with_file_name(name));
        let kilted = named("PTEROS_ROS2_KILTED").or_else(|| beside("venv-rclpy-kilted"));
        [
            ("Jazzy", beside("venv-rclpy-jazzy"), "librmw_pteros_cpp.so"),
            ("Kilted", kilted, "librmw_pteros_cpp_kilted.so"),
        ]
        .into_iter()
        .filter_map(|(name, folder, library)| {
            let found = Self::find(folder, library);
            if found.is_none() {
                println!("skipped {name}: no environment with its rclpy, or no plug-in is built");
            }
            found
        })
        .collect()
    }

    fn find(folder: Option<PathBuf>, library: &str) -> Option<Self> {
        let python = folder?.join("bin/python");
        let plug_in = plug_in_folder(library)?.join("librmw_pteros_cpp.so");
        python.exists().then_some(Self { python, plug_in })
    }

    fn start(&self, domain: &Domain, rmw: &str, role: &str) -> Program {
        self.start_with(domain, rmw, role, &[])
    }

    fn start_with(
        &self,
        domain: &Domain,
        rmw: &str,
        role: &str,
        variables: &[(&str, String)],
    ) -> Program {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2_node.py");
        let mut command = Command::new("bash");
        command
            .args(["-c", "exec \"$@\" 2>&1", "bash"])
            .arg(&self.python)
            .arg(script)
            .arg(role)
            .env("ROS_DOMAIN_ID", domain.id().to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env_remove("ROS_STATIC_PEERS")
            .env_remove("ROS_LOCALHOST_ONLY")
            .env("RMW_IMPLEMENTATION", rmw)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        if rmw == PLUG_IN {
            command.env("LD_PRELOAD", &self.plug_in);
        }
        Program::start(&mut command)
    }
}

/// Topics to 8 MB, a service, a parameter, an action, the graph, a managed node and a type
/// description, on the plug-in and beside Fast DDS, either way.
#[test]
fn nodes_serve_and_ask_on_the_plug_in_and_beside_fast_dds() {
    let pairs = [(PLUG_IN, PLUG_IN), (PLUG_IN, FAST_DDS), (FAST_DDS, PLUG_IN)];
    for rclpy in Rclpy::all() {
        let domain = Domain::new();
        for (server, asker) in pairs {
            let mut serving = rclpy.start(&domain, server, "serve");
            serving.expect("serving");
            let mut asking = rclpy.start(&domain, asker, "ask");
            for line in ANSWERS {
                asking.expect(line);
            }
            // Nothing is reported at the end of either.
            asking.finish();
            let text = serving.interrupt();
            assert!(!text.contains("Error"), "{text}");
        }
    }
}

/// The command hears a node on Fast DDS, and is heard.
#[test]
fn the_command_meets_nodes_on_fast_dds() {
    for rclpy in Rclpy::all() {
        let domain = Domain::new();
        let mut serving = rclpy.start(&domain, FAST_DDS, "serve");
        serving.expect("serving");
        for (line, expected) in [
            ("topic echo /words --once", "from the server"),
            ("param get /server number", "42"),
            ("lifecycle set /managed configure", "successful"),
            ("lifecycle get /managed", "inactive"),
            ("node list", "/managed"),
        ] {
            let done = support::finish(domain.command(line.split(' ')));
            assert_eq!(done.code, Some(0), "{line}: {}", done.err);
            assert_contains(&done.out, expected);
        }
        serving.interrupt();
    }
}

/// Nodes in enclaves meet, and a native one. Fast DDS of these packages has no security.
#[test]
fn secured_nodes_meet_on_the_plug_in() {
    for rclpy in Rclpy::all() {
        secured_nodes_meet(&rclpy);
    }
}

fn secured_nodes_meet(rclpy: &Rclpy) {
    let domain = Domain::new();
    let keystore = rclpy.plug_in.with_file_name("keystore");
    let words = format!("security init {} -e /one /other", keystore.display());
    let made = support::finish(domain.command(words.split(' ')));
    assert_eq!(made.code, Some(0), "{}", made.err);
    let start =
        |role, enclave| rclpy.start_with(&domain, PLUG_IN, role, &secured(&keystore, enclave));
    let mut serving = start("serve", "/one");
    serving.expect("serving");
    let mut asking = start("ask", "/other");
    for line in ANSWERS {
        asking.expect(line);
    }
    asking.finish();
    let mut command = domain.command("topic echo /words --once".split(' '));
    command.envs(secured(&keystore, "/other"));
    let heard = support::finish(command);
    assert_contains(&heard.out, "from the server");
    // rcl refuses an enclave that the keystore has not.
    assert!(!start("serve", "/absent").expect_or_end("serving"));
    serving.interrupt();
}

/// The same over Zenoh alone, and a native node, without a router.
#[cfg(feature = "zenoh")]
#[test]
fn nodes_meet_over_zenoh() {
    for rclpy in Rclpy::all() {
        nodes_meet_by_zenoh(&rclpy);
    }
}

#[cfg(feature = "zenoh")]
fn nodes_meet_by_zenoh(rclpy: &Rclpy) {
    let domain = Domain::new();
    let wire = [
        ("PTEROS_WIRE", "zenoh".to_owned()),
        ("PTEROS_SHARED_MEMORY", "off".to_owned()),
    ];
    let mut serving = rclpy.start_with(&domain, PLUG_IN, "serve", &wire);
    if !serving.expect_or_end("serving") {
        assert_contains(&serving.seen, "Zenoh, which is not in this rmw_pteros_cpp");
        println!("skipped: the plug-in is built without Zenoh");
        return;
    }
    let mut asking = rclpy.start_with(&domain, PLUG_IN, "ask", &wire);
    for line in ANSWERS {
        asking.expect(line);
    }
    asking.finish();
    let mut command = domain.command("topic echo /words --once".split(' '));
    command.envs(wire);
    assert_contains(&support::finish(command).out, "from the server");
    serving.interrupt();
}
