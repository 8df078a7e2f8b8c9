//! `pteros component`, as a user types it.

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

    /// What a command that works says.
    fn said(&self, words: &str) -> String {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What a command that fails says.
    fn refused(&self, words: &str) -> String {
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

struct Running {
    child: Child,
    err: BufReader<ChildStderr>,
}

impl Running {
    /// Reads on until a line has the words.
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

/// Where cargo puts the library that is built beside the tests.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().map(Path::to_owned).unwrap()
}

fn domain(test: u32) -> Domain {
    Domain(22 + (std::process::id() * 5 + test) % 78)
}

#[test]
fn types_are_listed_by_package() {
    let text = domain(0).said("component types pteros_components");
    assert!(
        text.lines()
            .any(|line| line == "pteros_components::ImageFilter"),
        "{text}"
    );
    let text = domain(0).said("component types --json");
    assert!(
        text.contains("\"class\": \"pteros_components::Talker\""),
        "{text}"
    );
    let said = domain(0).refused("component types pteros_component");
    assert!(said.contains("did you mean pteros_components?"), "{said}");
}

#[test]
fn components_are_loaded_listed_and_unloaded_as_with_ros2() {
    let domain = domain(1);
    let load = "component load /ComponentManager pteros_components pteros_components";
    let said = domain.refused(&format!("{load}::Talker"));
    assert!(
        said.contains("unable to find container node '/ComponentManager'"),
        "{said}"
    );
    let mut container = domain.start("component container --executor multi --threads 2");
    container.wait_for("ready");
    assert_eq!(
        domain.said(&format!(
            "{load}::Talker -n mouth --node-namespace /a -p rate:=50.0 -r chatter:=talk"
        )),
        "Loaded component 1 into '/ComponentManager' container node as '/a/mouth'\n"
    );
    assert_eq!(
        domain.said(&format!("{load}::Listener -q -r chatter:=/a/talk")),
        "2\n"
    );
    container.wait_for("[listener]: I heard: [Hello World: ");
    assert_eq!(
        domain.said("component list"),
        "/ComponentManager\n  1  /a/mouth\n  2  /listener\n"
    );
    assert_eq!(
        domain.said("component list --containers-only"),
        "/ComponentManager\n"
    );
    let said = domain.refused(&format!("{load}::Walker"));
    assert!(
        said.contains("Failed to load component 'pteros_components::Walker'"),
        "{said}"
    );
    let said = domain.refused(&format!("{load}::Talker -e own_thread:=2"));
    assert!(said.contains("\"own_thread\": must be a boolean"), "{said}");
    assert_eq!(
        domain.said("component unload /ComponentManager 1"),
        "Unloaded component 1 from '/ComponentManager' container node\n"
    );
    let said = domain.refused("component unload /ComponentManager 1");
    assert!(
        said.contains("No node found with unique_id: 1; loaded are: 2 /listener"),
        "{said}"
    );
    let json = domain.said("component list --json");
    assert!(json.contains("\"unique_id\": 2"), "{json}");
}

#[test]
fn a_component_runs_standalone_in_a_container_of_its_own() {
    let domain = domain(2);
    let words = "component standalone pteros_components pteros_components::Talker -p rate:=50.0";
    let mut alone = domain.start(words);
    alone.wait_for("Publishing: 'Hello World: 3'");
    let said = domain.refused("component standalone pteros_components pteros_components::Nobody");
    assert!(
        said.contains("has no component \"pteros_components::Nobody\""),
        "{said}"
    );
}

#[test]
fn a_container_says_what_is_wrong_with_its_flags() {
    let domain = domain(3);
    let said = domain.refused("component container --threads 3");
    assert!(said.contains("only --executor multi has so many"), "{said}");
    let said = domain.refused("component container --program /no/such/file");
    assert!(
        said.contains("container program /no/such/file is not there"),
        "{said}"
    );
}
