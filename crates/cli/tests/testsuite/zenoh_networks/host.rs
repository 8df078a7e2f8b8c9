//! Hosts with the wire of their processes, and what users do there.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::namespaces::{Lab, Namespace, Program};
use crate::zenoh_networks::parts::{self, LATCHED_DEPTH};

/// How long anything may take on a loaded machine.
pub const SOON: Duration = Duration::from_secs(60);
/// Numbers that show a flow.
const FLOW: usize = 10;

/// A host.
pub struct Host {
    pub namespace: Namespace,
    /// Variables of its processes.
    variables: Vec<(&'static str, String)>,
}

impl Host {
    /// A host whose nodes speak Zenoh, with settings in the form of
    /// `ZENOH_CONFIG_OVERRIDE`.
    pub fn on_zenoh(lab: &Lab, settings: &str) -> Self {
        let mut host = Self::on_rtps(lab);
        host.variables = vec![("RMW_IMPLEMENTATION", "rmw_zenoh_cpp".into())];
        if !settings.is_empty() {
            host.variables
                .push(("ZENOH_CONFIG_OVERRIDE", settings.into()));
        }
        host
    }

    /// A host whose nodes have the usual wire.
    pub fn on_rtps(lab: &Lab) -> Self {
        Self {
            namespace: lab.host(),
            variables: Vec::new(),
        }
    }

    /// The host with one more variable of its processes.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    fn with_variables(&self, mut command: Command) -> Command {
        // A program that nobody configured.
        for (name, _) in std::env::vars() {
            if name.starts_with("ZENOH_") || name == "RMW_IMPLEMENTATION" {
                command.env_remove(name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The command, with words that are separated by spaces.
    pub fn pteros(&self, words: &str) -> Command {
        let words: Vec<&str> = words.split(' ').collect();
        self.with_variables(self.namespace.pteros(&words))
    }

    /// Starts a router with settings, and waits until it listens.
    #[track_caller]
    pub fn router(&self, settings: &str) -> Program {
        let mut command = self.pteros("router");
        command.env_remove("ZENOH_CONFIG_OVERRIDE");
        if !settings.is_empty() {
            command.env("ZENOH_CONFIG_OVERRIDE", settings);
        }
        let mut router = Program::start(command);
        router.wait_for_line(SOON, |line| line.starts_with("Zenoh router "));
        router
    }

    /// Starts a part of this program and waits until it has begun.
    #[track_caller]
    pub fn start_part(&self, part: &str) -> Program {
        parts::start(self.part(part))
    }

    /// Starts a part of this program.
    pub fn begin_part(&self, part: &str) -> Program {
        Program::start(self.part(part))
    }

    fn part(&self, part: &str) -> Command {
        let mut command = parts::command(&self.namespace, part);
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET");
        self.with_variables(command)
    }

    /// Prints the numbers of a topic, one a line.
    pub fn echo(&self, topic: &str, qos: &str) -> Program {
        let words = format!("topic echo --csv {qos} {topic} std_msgs/msg/Int64");
        Program::start(self.pteros(&words))
    }

    /// Prints those of a latched topic, also those before.
    pub fn echo_latched(&self, topic: &str) -> Program {
        let qos = format!(
            "--qos-reliability reliable --qos-durability transient_local \
             --qos-history keep_last --qos-depth {LATCHED_DEPTH}"
        );
        self.echo(topic, &qos)
    }

    /// Hears some numbers of a topic.
    #[track_caller]
    pub fn hears(&self, topic: &str) {
        go_on(&mut self.echo(topic, "--qos-reliability reliable"));
    }

    /// Calls a service that adds.
    #[track_caller]
    pub fn calls(&self, service: &str) {
        let (code, out, log) = self.run_to_end(self.call(service, "--timeout 60"));
        let is_answered = code == Some(0) && out.contains(r#""sum":3"#);
        assert!(is_answered, "{service}: {out}\n{log}");
    }

    /// The command that calls it.
    pub fn call(&self, service: &str, flags: &str) -> Command {
        let ty = "example_interfaces/srv/AddTwoInts";
        let mut command = self.pteros(&format!("--json service call {flags} {service} {ty}"));
        command.arg("{a: 1, b: 2}");
        command
    }

    /// Sends a goal to an action that counts, and gets its result.
    #[track_caller]
    pub fn reaches_goal(&self, action: &str) {
        let ty = "example_interfaces/action/Fibonacci";
        let words = format!("action send_goal --feedback --timeout 60 {action} {ty}");
        let mut command = self.pteros(&words);
        command.arg("{order: 3}");
        let (code, out, log) = self.run_to_end(command);
        let has_result = code == Some(0) && out.contains("SUCCEEDED");
        assert!(has_result, "{action}: {out}\n{log}");
    }

    /// Waits until `topic info` says so of a topic, such as `Publisher count: 1`.
    #[track_caller]
    pub fn wait_for_info(&self, topic: &str, wanted: &str) {
        let end = Instant::now() + SOON;
        loop {
            let info = self.pteros(&format!("topic info {topic}"));
            let (_, out, log) = self.run_to_end(info);
            if out.contains(wanted) {
                return;
            }
            assert!(Instant::now() < end, "no {wanted:?} in: {out}{log}");
        }
    }

    /// Runs a command. Returns its exit code, output and log.
    #[track_caller]
    pub fn run_to_end(&self, command: Command) -> (Option<i32>, String, String) {
        let mut program = Program::start(command);
        // Beyond the limit of the command itself.
        let (code, out) = program.wait_for_end(SOON * 2);
        (code, out, program.log())
    }
}

/// Settings of a session that reaches others through one router alone.
pub fn client_of(router: &str) -> String {
    format!("mode=\"client\";connect/endpoints=[\"tcp/{router}:7447\"]")
}

/// Settings of a router that connects to another one.
pub fn connected_to(router: &str) -> String {
    format!("connect/endpoints=[\"tcp/{router}:7447\"]")
}

/// Waits until an echo has printed some more numbers.
#[track_caller]
pub fn go_on(echo: &mut Program) {
    while echo.out.try_recv().is_ok() {}
    let mut left = FLOW;
    echo.wait_for_line(SOON, |line| {
        left -= usize::from(line.parse::<i64>().is_ok());
        left == 0
    });
}

/// Topics, services and actions between two hosts, both ways.
#[track_caller]
pub fn exchange(a: &Host, b: &Host) {
    let _running = [
        a.start_part("server /a"),
        b.start_part("server /b"),
        a.start_part("volatile /from_a"),
        b.start_part("volatile /from_b"),
    ];
    for (here, there) in [(a, "b"), (b, "a")] {
        here.hears(&format!("/from_{there}"));
        here.calls(&format!("/{there}/add"));
        here.reaches_goal(&format!("/{there}/count"));
    }
}
