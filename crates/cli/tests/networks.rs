//! Two hosts on two networks, as network namespaces on two bridges: links that lose
//! their carrier, networks that die unseen, interfaces and addresses that come late or
//! change. The processes are those that users run, in both directions.
//!
//! How fast traffic moves is checked on fake time (`rtps/tests/paths.rs`). Where
//! namespaces do not work, each test is skipped with a sentence.
#![allow(
    clippy::disallowed_methods,
    reason = "real processes: the clock limits how long they are awaited"
)]

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit of anything that should take less than a second.
const TIMEOUT: Duration = Duration::from_secs(15);
/// Messages that show a flow: more than a queue holds.
const FLOW: usize = 40;

/// A network namespace, kept by a sleeping process.
struct Namespace(Child);

impl Namespace {
    /// A namespace beside `outer`, or of its own.
    fn new(outer: Option<&Self>) -> Result<Self, String> {
        let mut words = vec!["unshare", "--net", "--mount"];
        if outer.is_none() && !is_root() {
            words.push("--map-root-user");
        }
        let script =
            "ip link set lo up && mount -t tmpfs tmpfs /dev/shm && echo ready && exec sleep 600";
        words.extend(["--", "sh", "-c", script]);
        let mut command = match outer {
            Some(outer) => outer.command(&words),
            None => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]);
                command
            }
        };
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| format!("unshare: {e}"))?;
        let mut line = String::new();
        let out = child.stdout.take().expect("piped");
        let _ = BufReader::new(out).read_line(&mut line);
        if line.trim() == "ready" {
            return Ok(Self(child));
        }
        let failed = child.wait_with_output().map_err(|e| e.to_string())?;
        Err(String::from_utf8_lossy(&failed.stderr).trim().into())
    }

    /// A command inside.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string()]);
        if !is_root() {
            command.args(["--user", "--preserve-credentials"]);
        }
        command.args(["--net", "--mount", "--"]).args(words);
        command
    }

    /// Runs `ip` inside.
    #[track_caller]
    fn ip(&self, words: &str) {
        let mut all = vec!["ip"];
        all.extend(words.split(' '));
        let outcome = self.command(&all).output().expect("nsenter");
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "ip {words}: {said}");
    }

    fn pteros(&self, words: &[&str]) -> Command {
        let mut command = self.command(&[env!("CARGO_BIN_EXE_pteros")]);
        for variable in [
            "ROS_DOMAIN_ID",
            "ROS_LOCALHOST_ONLY",
            "ROS_STATIC_PEERS",
            "RUST_LOG",
        ] {
            command.env_remove(variable);
        }
        command.env("ROS_AUTOMATIC_DISCOVERY_RANGE", "SUBNET");
        command.args(words);
        command
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// A running command and its lines.
struct Program {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
    /// Its log so far.
    log: String,
}

impl Program {
    fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
            let (send, receive) = channel();
            std::thread::spawn(move || {
                for line in BufReader::new(from).lines().map_while(Result::ok) {
                    let _ = send.send(line);
                }
            });
            receive
        }
        Self {
            out: lines(child.stdout.take().expect("piped")),
            err: lines(child.stderr.take().expect("piped")),
            child,
            log: String::new(),
        }
    }

    /// Drops what was heard, then waits for that many messages.
    #[track_caller]
    fn hears(&mut self, count: usize) {
        while self.out.try_recv().is_ok() {}
        let end = Instant::now() + TIMEOUT;
        let mut heard = 0;
        while heard < count {
            let left = end.saturating_duration_since(Instant::now());
            match self.out.recv_timeout(left) {
                Ok(line) => heard += usize::from(line.starts_with("data:")),
                Err(_) => panic!(
                    "{heard} of {count} messages in {TIMEOUT:?}; log:\n{}",
                    self.log()
                ),
            }
        }
    }

    fn log(&mut self) -> &str {
        for line in self.err.try_iter() {
            self.log += &line;
            self.log.push('\n');
        }
        &self.log
    }

    /// Waits until it has logged a text.
    #[track_caller]
    fn logs(&mut self, text: &str) {
        let end = Instant::now() + TIMEOUT;
        while !self.log().contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.err.recv_timeout(left) {
                Ok(line) => self.log += &format!("{line}\n"),
                Err(_) => panic!("no {text:?} in:\n{}", self.log),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hosts `a` and `b`, attached to bridges by links like `a1` (host a, network 1), whose
/// other end in the switch is `sa1`. Addresses are 10.NETWORK.0.HOST.
struct Lab {
    switch: Namespace,
}

impl Lab {
    /// `None`, and a sentence, where that does not work.
    fn new() -> Option<Self> {
        let switch = Namespace::new(None).and_then(|switch| {
            let probe = switch
                .command(&["ip", "link", "add", "probe0", "type", "veth"])
                .output();
            match probe {
                Ok(probe) if probe.status.success() => Ok(switch),
                Ok(probe) => Err(String::from_utf8_lossy(&probe.stderr).trim().into()),
                Err(e) => Err(e.to_string()),
            }
        });
        match switch {
            Ok(switch) => {
                for network in [1, 2] {
                    switch.ip(&format!(
                        "link add br{network} type bridge mcast_snooping 0"
                    ));
                    switch.ip(&format!("link set br{network} up"));
                }
                Some(Self { switch })
            }
            Err(why) => {
                let _ = writeln!(
                    std::io::stdout(),
                    "\nskipped: no network namespaces here: {why}"
                );
                None
            }
        }
    }

    fn host(&self) -> Namespace {
        Namespace::new(Some(&self.switch)).expect("a namespace")
    }

    fn attach(&self, host: &Namespace, name: char, network: u8, last: u8) {
        let (inside, outside) = (format!("{name}{network}"), format!("s{name}{network}"));
        let pid = host.0.id();
        // The pid is the same inside: no pid namespace.
        self.switch.ip(&format!(
            "link add {outside} type veth peer name {inside} netns {pid}"
        ));
        self.switch
            .ip(&format!("link set {outside} master br{network} up"));
        host.ip(&format!("addr add 10.{network}.0.{last}/24 dev {inside}"));
        host.ip(&format!("link set {inside} up"));
    }

    /// Hosts on both networks, with a flow in each direction.
    fn with_flows(&self, reliability: &str) -> Flows {
        let hosts = [self.host(), self.host()];
        for network in [1, 2] {
            self.attach(&hosts[0], 'a', network, 1);
            self.attach(&hosts[1], 'b', network, 2);
        }
        let topics = ["/from_a", "/from_b"];
        let publish = |host: usize| publish(&hosts[host], topics[host], reliability);
        let echo = |host: usize| echo(&hosts[host], topics[1 - host], reliability);
        let mut flows = Flows {
            publishers: [publish(0), publish(1)],
            echoes: [echo(0), echo(1)],
            hosts,
        };
        flows.go_on();
        flows
    }
}

struct Flows {
    publishers: [Program; 2],
    echoes: [Program; 2],
    hosts: [Namespace; 2],
}

impl Flows {
    #[track_caller]
    fn go_on(&mut self) {
        for echo in &mut self.echoes {
            echo.hears(FLOW);
        }
    }
}

fn publish(host: &Namespace, topic: &str, reliability: &str) -> Program {
    let words = ["topic", "pub", "-r", "50", "--qos-reliability", reliability];
    let mut command = host.pteros(&words);
    command.args([topic, "std_msgs/msg/String", "data: x"]);
    Program::start(command)
}

fn echo(host: &Namespace, topic: &str, reliability: &str) -> Program {
    let mut command = host.pteros(&["topic", "echo", "--qos-reliability", reliability]);
    command.args([topic, "std_msgs/msg/String"]);
    Program::start(command)
}

#[test]
fn a_lost_carrier_moves_both_directions_to_the_other_network_and_back() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = lab.with_flows("reliable");
    lab.switch.ip("link set sa1 down");
    flows.go_on();
    flows.echoes[0].logs("network interface a1 (10.1.0.1) has no carrier");
    flows.publishers[0].logs("traffic to 10.1.0.2 goes to 10.2.0.2");
    flows.publishers[1].logs("traffic to 10.1.0.1 goes to 10.2.0.1");

    let mut info = flows.hosts[0].pteros(&["topic", "info", "-v", "/from_a"]);
    let shown = String::from_utf8(info.output().expect("info").stdout).expect("text");
    assert!(
        shown.contains("10.2.0.2 is in use; 10.1.0.2 is behind a link of this host that is down"),
        "{shown}"
    );
    let mut doctor = flows.hosts[0].pteros(&["doctor"]);
    let shown = String::from_utf8(doctor.output().expect("doctor").stdout).expect("text");
    assert!(
        shown.contains("a1 10.1.0.1/24, MTU 1500, without a carrier"),
        "{shown}"
    );
    assert!(shown.contains("10.1.0.2 of "), "{shown}");

    lab.switch.ip("link set sa1 up");
    flows.go_on();
    // Whichever network is in use now, the other one carries on without it.
    lab.switch.ip("link set sb2 down");
    flows.go_on();
    let told = flows.publishers[0].log().matches("has no carrier").count();
    assert_eq!(told, 1, "told once per change");
}

#[test]
fn best_effort_traffic_leaves_a_network_that_dies_unseen() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = lab.with_flows("best_effort");
    // Both links keep their carrier.
    lab.switch.ip("link set sa1 nomaster");
    flows.go_on();
    flows.publishers[0].logs("10.1.0.2 does not answer");
    lab.switch.ip("link set sa1 master br1");
    lab.switch.ip("link set sb2 nomaster");
    flows.go_on();
}

#[test]
fn a_network_that_fails_in_one_direction_is_left() {
    let Some(lab) = Lab::new() else { return };
    let mut flows = lab.with_flows("reliable");
    // Unicast of the first host to the second one there goes to a station that is
    // gone. Its multicast still arrives.
    flows.hosts[0].ip("neigh replace 10.1.0.2 lladdr 02:00:00:00:00:99 nud permanent dev a1");
    flows.publishers[0].logs("traffic to 10.1.0.2 goes to 10.2.0.2");
    flows.publishers[1].logs("traffic to 10.1.0.1 goes to 10.2.0.1");
    flows.go_on();
}

#[test]
fn an_interface_that_comes_late_is_used() {
    let Some(lab) = Lab::new() else { return };
    let (here, late) = (lab.host(), lab.host());
    lab.attach(&here, 'a', 1, 1);
    let _publisher = publish(&here, "/news", "reliable");
    let mut late_echo = echo(&late, "/news", "reliable");
    // Another listener, on the first host, shows that the publisher runs.
    echo(&here, "/news", "reliable").hears(1);
    lab.attach(&late, 'b', 1, 2);
    late_echo.hears(FLOW);
}

#[test]
fn a_changed_address_is_announced_to_newcomers_and_old_peers() {
    let Some(lab) = Lab::new() else { return };
    let (here, there) = (lab.host(), lab.host());
    lab.attach(&here, 'a', 1, 1);
    lab.attach(&there, 'b', 1, 2);
    let mut publisher = publish(&here, "/news", "reliable");
    let mut old = echo(&there, "/news", "reliable");
    old.hears(FLOW);
    here.ip("addr del 10.1.0.1/24 dev a1");
    here.ip("addr add 10.1.0.77/24 dev a1");
    old.hears(FLOW);
    let newcomer = lab.host();
    lab.attach(&newcomer, 'c', 1, 3);
    echo(&newcomer, "/news", "reliable").hears(FLOW);
    // A USB tether that is plugged in again: another interface, another address.
    there.ip("link del b1");
    lab.attach(&there, 'b', 1, 55);
    old.hears(FLOW);
    publisher.logs("goes to 10.1.0.55");
}
