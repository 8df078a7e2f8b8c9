//! The `pteros component` command.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};

const CONTAINER: &str = env!("CARGO_BIN_EXE_pteros-container");

struct Domain(u32);

impl Domain {
    fn command(&self, words: &str) -> Command {
        let folder = Path::new(CONTAINER).parent().unwrap();
        let program = folder.join("pteros");
        assert!(
            program.is_file(),
            "{} is not there; build it: cargo build -p pteros-cli",
            program.display()
        );
        let mut command = Command::new(program);
        command
            .env("ROS_DOMAIN_ID", self.0.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env("PTEROS_COMPONENT_PATH", libraries())
            .env("PTEROS_CONTAINER", CONTAINER)
            .env_remove("AMENT_PREFIX_PATH")
            .env_remove("RUST_LOG")
            .args(words.split(' '));
        command
    }

    fn run(&self, words: &str) -> Output {
        self.command(words).output().unwrap()
    }

    /// The output of a successful command.
    fn output(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The error output of a failed command.
    fn error_output(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(!output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn start(&self, words: &str) -> Running {
        let mut child = self.command(words).stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        Running { child, err }
    }
}

/// Fails with the whole text unless it contains the part.
#[track_caller]
fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "no {part:?} in:\n{text}");
}

struct Running {
    child: Child,
    err: BufReader<ChildStderr>,
}

impl Running {
    /// Reads lines until one contains the words.
    fn wait_for(&mut self, words: &str) {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let bytes = self.err.read_line(&mut line).unwrap();
            assert!(bytes > 0, "it ended without saying {words:?}");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder where cargo puts the library that is built beside the tests.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().map(Path::to_owned).unwrap()
}

fn domain(test: u32) -> Domain {
    Domain(22 + (std::process::id() * 5 + test) % 78)
}

#[test]
fn types_are_listed_by_package() {
    let text = domain(0).output("component types pteros_demo_components");
    assert!(
        text.lines()
            .any(|line| line == "pteros_demo_components::ImageFilter"),
        "{text}"
    );
    let text = domain(0).output("component types --json");
    assert_contains(&text, "\"class\": \"pteros_demo_components::Talker\"");
    let error = domain(0).error_output("component types pteros_demo_component");
    assert_contains(&error, "did you mean pteros_demo_components?");
}

#[test]
fn components_are_loaded_listed_and_unloaded_as_with_ros2() {
    let domain = domain(1);
    let load = "component load /ComponentManager pteros_demo_components pteros_demo_components";
    let error = domain.error_output(&format!("{load}::Talker"));
    assert_contains(&error, "unable to find container node '/ComponentManager'");
    let mut container = domain.start("component container --executor multi --threads 2");
    container.wait_for("ready");
    assert_eq!(
        domain.output(&format!(
            "{load}::Talker -n mouth --node-namespace /a -p rate:=50.0 -r chatter:=talk"
        )),
        "Loaded component 1 into '/ComponentManager' container node as '/a/mouth'\n"
    );
    assert_eq!(
        domain.output(&format!("{load}::Listener -q -r chatter:=/a/talk")),
        "2  /listener\n"
    );
    container.wait_for("[listener]: I heard: [Hello World: ");
    assert_eq!(
        domain.output("component list"),
        "/ComponentManager\n  1  /a/mouth\n  2  /listener\n"
    );
    assert_eq!(
        domain.output("component list --containers-only"),
        "/ComponentManager\n"
    );
    let error = domain.error_output(&format!("{load}::Walker"));
    assert_contains(
        &error,
        "Failed to load component 'pteros_demo_components::Walker'",
    );
    let error = domain.error_output(&format!("{load}::Talker -e own_thread:=2"));
    assert_contains(&error, "\"own_thread\": must be a boolean");
    assert_eq!(
        domain.output("component unload /ComponentManager 1"),
        "Unloaded component 1 from '/ComponentManager' container node\n"
    );
    let error = domain.error_output("component unload /ComponentManager 1");
    assert_contains(
        &error,
        "No node found with unique_id: 1; loaded are: 2 /listener",
    );
    let json = domain.output("component list --json");
    assert!(json.contains("\"unique_id\": 2"), "{json}");
}

#[test]
fn a_component_runs_standalone_in_a_container_of_its_own() {
    let domain = domain(2);
    let words =
        "component standalone pteros_demo_components pteros_demo_components::Talker -p rate:=50.0";
    let mut alone = domain.start(words);
    alone.wait_for("Publishing: 'Hello World: 3'");
    let error = domain
        .error_output("component standalone pteros_demo_components pteros_demo_components::Nobody");
    assert_contains(
        &error,
        "has no component \"pteros_demo_components::Nobody\"",
    );
}

#[test]
fn a_container_reports_invalid_flags() {
    let domain = domain(3);
    let error = domain.error_output("component container --threads 3");
    assert_contains(&error, "only --executor multi has a number of threads");
    let error = domain.error_output("component container --program /no/such/file");
    assert_contains(&error, "container program /no/such/file does not exist");
}
