//! A launch file with a container and components, in real processes:
//! `pteros launch` starts them, `pteros component list` shows them, and Ctrl-C ends
//! them.

use pteros_test_support::folder::Folder;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

const CONTAINER: &str = env!("CARGO_BIN_EXE_pteros-container");

const FILE: &str = r#"<launch>
  <group>
    <push_ros_namespace namespace="robot"/>
    <set_parameter name="rate" value="50.0"/>
    <node_container pkg="rclcpp_components" exec="component_container_isolated" name="box" output="screen" respawn="true">
      <composable_node pkg="pteros_demo_components" plugin="pteros_demo_components::Talker" name="mouth" namespace="head">
        <remap from="chatter" to="/talk"/>
      </composable_node>
      <composable_node pkg="pteros_demo_components" plugin="pteros_demo_components::Listener" name="ear">
        <remap from="chatter" to="/talk"/>
      </composable_node>
    </node_container>
  </group>
</launch>"#;

struct Launch {
    folder: Folder,
    domain: u32,
    child: Child,
    out: BufReader<ChildStdout>,
    output: String,
}

fn pteros(folder: &Path, domain: u32, words: &str) -> Command {
    let program = Path::new(CONTAINER).with_file_name("pteros");
    assert!(
        program.is_file(),
        "{} is not there; build it: cargo build -p pteros-cli",
        program.display()
    );
    let own = std::env::current_exe().unwrap();
    let mut command = Command::new(program);
    command
        .env("ROS_DOMAIN_ID", domain.to_string())
        .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        .env("ROS_LOG_DIR", folder.join("log"))
        .env("PTEROS_COMPONENT_PATH", own.parent().unwrap())
        .env("PTEROS_CONTAINER", CONTAINER)
        .env_remove("AMENT_PREFIX_PATH")
        .env_remove("OVERRIDE_LAUNCH_PROCESS_OUTPUT")
        .env_remove("PTEROS_LAUNCH")
        .env_remove("RUST_LOG")
        .current_dir(folder)
        .args(words.split(' '));
    command
}

impl Launch {
    fn start(domain: u32, file: &str) -> Self {
        let folder = Folder::new(&format!("launched-{domain}"));
        std::fs::write(folder.join("a.launch.xml"), file).unwrap();
        let mut command = pteros(&folder, domain, "launch a.launch.xml");
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self {
            folder,
            domain,
            child,
            out,
            output: String::new(),
        }
    }

    /// Reads lines until one contains these words.
    fn line_with(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let bytes = self.out.read_line(&mut line).unwrap();
            assert!(bytes > 0, "it ended without {words:?}:\n{}", self.output);
            self.output += &line;
            if line.contains(words) {
                return line;
            }
        }
    }

    /// The loaded components that the container reports.
    fn listed(&self) -> String {
        let output = pteros(&self.folder, self.domain, "component list").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Sends Ctrl-C. Returns the remaining output and the exit code.
    fn interrupt(&mut self) -> (String, Option<i32>) {
        signal("INT", self.child.id());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap().code())
    }

    /// Started processes that have not ended.
    fn remaining_processes(&self) -> Vec<String> {
        let latest = self.folder.join("log/latest").read_link().unwrap();
        let mark = latest.file_name().unwrap().to_string_lossy().into_owned();
        let entries = std::fs::read_dir("/proc").unwrap();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names
            .filter(|name| {
                let environment = std::fs::read(format!("/proc/{name}/environ"));
                let environment = environment.unwrap_or_default();
                String::from_utf8_lossy(&environment).contains(&format!("PTEROS_LAUNCH={mark}"))
            })
            .collect()
    }
}

impl Drop for Launch {
    fn drop(&mut self) {
        // The watchdog ends the processes.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(name: &str, process: u32) {
    let mut command = Command::new("kill");
    let status = command.args([format!("-{name}"), process.to_string()]);
    assert!(status.status().unwrap().success());
}

/// The process id in `process started with pid [N]`.
fn pid(line: &str) -> u32 {
    let number = line.rsplit('[').next().unwrap().trim_end();
    number.trim_end_matches(']').parse().unwrap()
}

fn domain(test: u32) -> u32 {
    22 + (std::process::id() * 5 + 10 + test) % 78
}

const LISTED: &str = "/robot/box\n  1  /robot/head/mouth\n  2  /robot/ear\n";

#[test]
fn a_launched_container_loads_components_again_after_a_respawn_and_ends_with_ctrl_c() {
    let mut launch = Launch::start(domain(0), FILE);
    let started = launch.line_with("process started with pid");
    assert!(
        started.contains("[component_container_isolated-1]"),
        "{started}"
    );
    let loaded = |node: &str| format!("Loaded node '/robot/{node}' in container '/robot/box'");
    launch.line_with(&loaded("head/mouth"));
    launch.line_with(&loaded("ear"));
    launch.line_with("[robot.ear]: I heard: [Hello World: ");
    assert_eq!(launch.listed(), LISTED);

    signal("KILL", pid(&started));
    launch.line_with("process will be respawned");
    launch.line_with(&loaded("head/mouth"));
    launch.line_with(&loaded("ear"));
    launch.line_with("[robot.ear]: I heard: [Hello World: ");
    assert_eq!(launch.listed(), LISTED);

    let (rest, code) = launch.interrupt();
    assert_eq!(code, Some(0), "{}{rest}", launch.output);
    assert_eq!(launch.remaining_processes(), Vec::<String>::new());
}

#[test]
fn a_component_that_cannot_be_loaded_is_reported_and_the_launch_fails() {
    // The index lists the class. Its constructor returns an error.
    let file = FILE.replace(r#"value="50.0""#, r#"value="-1.0""#);
    let mut launch = Launch::start(domain(1), &file);
    let line = launch.line_with("'pteros_demo_components::Talker' is not loaded");
    assert!(line.contains("a.launch.xml:6:"), "{line}");
    assert!(line.contains("rate"), "{line}");
    launch.line_with("Loaded node '/robot/ear'");
    let (rest, code) = launch.interrupt();
    assert_eq!(code, Some(1), "{}{rest}", launch.output);
    assert_eq!(launch.remaining_processes(), Vec::<String>::new());
}
