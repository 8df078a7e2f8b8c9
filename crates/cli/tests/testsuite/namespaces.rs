//! Hosts as network namespaces on bridges, and the processes that users run in them.
//! For tests of networks and of attackers on them. Where namespaces do not work, a test
//! is skipped with a sentence.
#![allow(dead_code, reason = "each test uses its part")]
#![allow(
    clippy::disallowed_methods,
    reason = "real processes: the clock limits how long they are awaited"
)]

use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The time limit of anything that should take less than a second.
pub const TIMEOUT: Duration = Duration::from_secs(15);
/// Messages that show a flow: more than a queue holds.
pub const FLOW: usize = 40;

/// A network namespace, kept by a sleeping process.
pub struct Namespace(Child);

impl Namespace {
    /// A namespace beside `outer`, or of its own.
    pub fn new(outer: Option<&Self>) -> Result<Self, String> {
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

    /// The process that keeps it. No namespace has process ids of its own.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// A command inside.
    pub fn command(&self, words: &[&str]) -> Command {
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
    pub fn ip(&self, words: &str) {
        let mut all = vec!["ip"];
        all.extend(words.split(' '));
        let outcome = self.command(&all).output().expect("nsenter");
        let said = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "ip {words}: {said}");
    }

    pub fn pteros(&self, words: &[&str]) -> Command {
        let mut command = self.command(&[env!("CARGO_BIN_EXE_pteros")]);
        for variable in [
            "ROS_DOMAIN_ID",
            "ROS_LOCALHOST_ONLY",
            "ROS_STATIC_PEERS",
            "ROS_DISCOVERY_SERVER",
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

/// One line of a program, and when it was read.
pub struct Line {
    pub at: Instant,
    pub text: String,
}

impl Line {
    /// Whether `topic echo` prints a message with it.
    fn is_message(&self) -> bool {
        self.text.starts_with("data:")
    }
}

/// A running command and its lines.
pub struct Program {
    child: Child,
    pub out: Receiver<Line>,
    err: Receiver<Line>,
    /// Its log so far.
    log: Vec<Line>,
}

impl Program {
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start");
        fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<Line> {
            let (send, receive) = channel();
            std::thread::spawn(move || {
                for text in BufReader::new(from).lines().map_while(Result::ok) {
                    let at = Instant::now();
                    let _ = send.send(Line { at, text });
                }
            });
            receive
        }
        Self {
            out: lines(child.stdout.take().expect("piped")),
            err: lines(child.stderr.take().expect("piped")),
            child,
            log: Vec::new(),
        }
    }

    /// Drops what was heard, then waits for that many messages.
    #[track_caller]
    pub fn hears(&mut self, count: usize) {
        while self.out.try_recv().is_ok() {}
        let end = Instant::now() + TIMEOUT;
        let mut heard = 0;
        while heard < count {
            let left = end.saturating_duration_since(Instant::now());
            match self.out.recv_timeout(left) {
                Ok(line) => heard += usize::from(line.is_message()),
                Err(_) => panic!(
                    "{heard} of {count} messages in {TIMEOUT:?}; log:\n{}",
                    self.log()
                ),
            }
        }
    }

    /// Listens until `end`. Returns the longest time without a message since `begin`.
    pub fn longest_gap(&mut self, begin: Instant, end: Instant) -> Duration {
        let (mut last, mut longest) = (begin, Duration::ZERO);
        while last < end {
            let left = end.saturating_duration_since(Instant::now());
            let at = match self.out.recv_timeout(left) {
                Ok(line) if line.is_message() => line.at,
                Ok(_) => continue,
                Err(_) => end,
            };
            longest = longest.max(at.saturating_duration_since(last));
            last = last.max(at);
        }
        longest
    }

    /// Waits for a line of the output that is wanted, and drops those before it.
    #[track_caller]
    pub fn wait_for_line(
        &mut self,
        within: Duration,
        mut is_wanted: impl FnMut(&str) -> bool,
    ) -> String {
        let end = Instant::now() + within;
        let mut last = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.out.recv_timeout(left) {
                Ok(line) if is_wanted(&line.text) => return line.text,
                Ok(line) => last = line.text,
                Err(_) => panic!(
                    "not the wanted line within {within:?}; the last one: {last:?}; log:\n{}",
                    self.log()
                ),
            }
        }
    }

    /// Waits for its end. Returns its exit code, and the output that nobody has read.
    #[track_caller]
    pub fn wait_for_end(&mut self, within: Duration) -> (Option<i32>, String) {
        let end = Instant::now() + within;
        let mut rest = String::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.out.recv_timeout(left) {
                Ok(line) => rest += &format!("{}\n", line.text),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no end within {within:?}: {rest}log:\n{}", self.log())
                }
            }
        }
        let code = self.child.wait().expect("its end").code();
        // Its last lines may be under way.
        while let Ok(line) = self.err.recv_timeout(TIMEOUT) {
            self.log.push(line);
        }
        (code, rest)
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its log so far.
    pub fn log(&mut self) -> String {
        self.log.extend(self.err.try_iter());
        let lines: Vec<&str> = self.log.iter().map(|line| &*line.text).collect();
        lines.join("\n")
    }

    /// Waits until it has logged a text. Returns when the first such line came.
    #[track_caller]
    pub fn logs(&mut self, text: &str) -> Instant {
        self.wait_for_log(TIMEOUT, text).at
    }

    /// Waits for the first line of its log with a text.
    #[track_caller]
    pub fn wait_for_log(&mut self, within: Duration, text: &str) -> &Line {
        let end = Instant::now() + within;
        self.log.extend(self.err.try_iter());
        loop {
            let found = self.log.iter().position(|line| line.text.contains(text));
            if let Some(at) = found {
                return &self.log[at];
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.err.recv_timeout(left) {
                Ok(line) => self.log.push(line),
                Err(_) => panic!("no {text:?} in:\n{}", self.log()),
            }
        }
    }

    /// Sends a signal by name, as `STOP`.
    #[track_caller]
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.expect("kill").success());
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().is_ok_and(|status| status.is_none())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Networks of a [`Lab`].
const NETWORKS: u8 = 5;

/// Hosts like `a` and `b`, attached to bridges, one a network, by links like `a1` (host a,
/// network 1), whose other end in the switch is `sa1`. Addresses are
/// 10.NETWORK.0.HOST.
pub struct Lab {
    pub switch: Namespace,
}

impl Lab {
    /// `None`, and a sentence, where that does not work.
    pub fn new() -> Option<Self> {
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
                for network in 1..=NETWORKS {
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

    pub fn host(&self) -> Namespace {
        Namespace::new(Some(&self.switch)).expect("a namespace")
    }

    pub fn attach(&self, host: &Namespace, name: char, network: u8, last: u8) {
        let outside = self.cable(host, name, network);
        host.ip(&format!(
            "addr add 10.{network}.0.{last}/24 dev {name}{network}"
        ));
        self.switch
            .ip(&format!("link set {outside} master br{network} up"));
    }

    /// Attaches a host without an IPv4 address. The kernel gives it a link-local one.
    pub fn attach_v6(&self, host: &Namespace, name: char, network: u8) {
        let outside = self.cable(host, name, network);
        self.switch
            .ip(&format!("link set {outside} master br{network} up"));
    }

    /// Attaches a host by a process that relays frames between its two arguments, the
    /// host's end first.
    pub fn attach_by(
        &self,
        relay: impl FnOnce(&Namespace, [&str; 2]) -> Program,
        (host, name): (&Namespace, char),
        network: u8,
        last: u8,
    ) -> Program {
        let outside = self.cable(host, name, network);
        host.ip(&format!(
            "addr add 10.{network}.0.{last}/24 dev {name}{network}"
        ));
        let (near, far) = (format!("n{name}{network}"), format!("f{name}{network}"));
        self.switch
            .ip(&format!("link add {near} type veth peer name {far}"));
        self.switch
            .ip(&format!("link set {far} master br{network} up"));
        for device in [&outside, &near] {
            self.switch.ip(&format!("link set {device} up"));
        }
        // No segmentation offload: larger frames do not fit the relay.
        self.switch.ip(&format!("link set {far} gso_max_segs 1"));
        host.ip(&format!("link set {name}{network} gso_max_segs 1"));
        relay(&self.switch, [&outside, &near])
    }

    /// A cable to a host. Returns its end in the switch.
    fn cable(&self, host: &Namespace, name: char, network: u8) -> String {
        let (inside, outside) = (format!("{name}{network}"), format!("s{name}{network}"));
        let pid = host.id();
        self.switch.ip(&format!(
            "link add {outside} type veth peer name {inside} netns {pid}"
        ));
        host.ip(&format!("link set {inside} up"));
        outside
    }
}

/// A command that publishes 50 messages a second. It logs moves of traffic in both
/// directions.
pub fn publisher(host: &Namespace, topic: &str, reliability: &str) -> Command {
    let words = ["topic", "pub", "-r", "50", "--qos-reliability", reliability];
    let mut command = host.pteros(&words);
    command.args([topic, "std_msgs/msg/String", "data: x"]);
    command.env("RUST_LOG", "info");
    command
}

pub fn publish(host: &Namespace, topic: &str, reliability: &str) -> Program {
    Program::start(publisher(host, topic, reliability))
}

/// A command that prints the messages of a topic.
pub fn subscriber(host: &Namespace, topic: &str, reliability: &str) -> Command {
    let mut command = host.pteros(&["topic", "echo", "--qos-reliability", reliability]);
    command.args([topic, "std_msgs/msg/String"]);
    command
}

pub fn echo(host: &Namespace, topic: &str, reliability: &str) -> Program {
    Program::start(subscriber(host, topic, reliability))
}

/// Two hosts with a flow in each direction, and two more on the third network, which
/// nobody touches.
pub struct Flows {
    pub publishers: [Program; 2],
    pub echoes: [Program; 2],
    pub hosts: [Namespace; 2],
    untouched: [Program; 2],
    _others: [Namespace; 2],
}

/// The longest times without a message: of the flows, and of the one that nobody
/// touched, which shows how busy the machine was.
#[derive(Debug)]
pub struct Gaps {
    pub flows: [Duration; 2],
    pub untouched: Duration,
}

impl Flows {
    /// Hosts 1 and 2 on these networks, in processes with more environment variables.
    #[track_caller]
    pub fn start(
        lab: &Lab,
        networks: &[u8],
        reliability: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let hosts = [lab.host(), lab.host()];
        for network in networks {
            lab.attach(&hosts[0], 'a', *network, 1);
            lab.attach(&hosts[1], 'b', *network, 2);
        }
        let others = [lab.host(), lab.host()];
        lab.attach(&others[0], 'c', 3, 1);
        lab.attach(&others[1], 'd', 3, 2);
        let topics = ["/from_a", "/from_b"];
        let start = |mut command: Command| {
            command.envs(variables.iter().copied());
            Program::start(command)
        };
        let publish = |host: usize| start(publisher(&hosts[host], topics[host], reliability));
        let echo = |host: usize| start(subscriber(&hosts[host], topics[1 - host], reliability));
        let mut flows = Self {
            publishers: [publish(0), publish(1)],
            echoes: [echo(0), echo(1)],
            hosts,
            untouched: [
                self::publish(&others[0], "/untouched", reliability),
                self::echo(&others[1], "/untouched", reliability),
            ],
            _others: others,
        };
        flows.go_on();
        flows.untouched[1].hears(FLOW);
        flows
    }

    /// Waits until each direction has carried more than a queue holds.
    #[track_caller]
    pub fn go_on(&mut self) {
        for echo in &mut self.echoes {
            echo.hears(FLOW);
        }
    }

    /// Listens for a span from now on, during which `change` is made.
    pub fn gaps_after(&mut self, span: Duration, change: impl FnOnce(&Self)) -> Gaps {
        let begin = Instant::now();
        change(self);
        self.gaps_since(begin, begin + span)
    }

    /// Listens until `end`.
    pub fn gaps_since(&mut self, begin: Instant, end: Instant) -> Gaps {
        Gaps {
            flows: [0, 1].map(|host| self.echoes[host].longest_gap(begin, end)),
            untouched: self.untouched[1].longest_gap(begin, end),
        }
    }

    /// The network, 1 or 2, into which each host sends most of its packets.
    pub fn networks_in_use(&self) -> [u8; 2] {
        let sent = |host: usize, network: u8| {
            let device = format!("{}{network}", ['a', 'b'][host]);
            let words = ["ip", "-s", "-j", "link", "show", "dev", &device];
            let shown = self.hosts[host].command(&words).output().expect("ip");
            let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
            let packets = &shown[0]["stats64"]["tx"]["packets"];
            packets.as_u64().expect("packets")
        };
        let all = || [0, 1].map(|host| [1, 2].map(|network| sent(host, network)));
        let before = all();
        let end = Instant::now() + TIMEOUT;
        let mut after = all();
        let moved = |after: &[[u64; 2]; 2]| {
            [0, 1].map(|host| {
                (0..2)
                    .map(|n| after[host][n] - before[host][n])
                    .sum::<u64>()
            })
        };
        while moved(&after).iter().any(|packets| *packets < 20) {
            assert!(Instant::now() < end, "no traffic");
            after = all();
        }
        [0, 1].map(|host| {
            let sent = [0, 1].map(|network| after[host][network] - before[host][network]);
            if sent[0] > sent[1] { 1 } else { 2 }
        })
    }
}

impl Gaps {
    pub fn longest(&self) -> Duration {
        self.flows[0].max(self.flows[1])
    }
}
