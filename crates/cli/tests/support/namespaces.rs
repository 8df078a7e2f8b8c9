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
pub struct Program {
    child: Child,
    pub out: Receiver<String>,
    err: Receiver<String>,
    /// Its log so far.
    log: String,
}

impl Program {
    pub fn start(mut command: Command) -> Self {
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
    pub fn hears(&mut self, count: usize) {
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

    pub fn log(&mut self) -> &str {
        for line in self.err.try_iter() {
            self.log += &line;
            self.log.push('\n');
        }
        &self.log
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
                Ok(line) if is_wanted(&line) => return line,
                Ok(line) => last = line,
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
                Ok(line) => rest += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no end within {within:?}: {rest}log:\n{}", self.log())
                }
            }
        }
        let code = self.child.wait().expect("its end").code();
        // Its last lines may be under way.
        while let Ok(line) = self.err.recv_timeout(TIMEOUT) {
            self.log += &format!("{line}\n");
        }
        (code, rest)
    }

    /// The id of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has logged a text.
    #[track_caller]
    pub fn logs(&mut self, text: &str) {
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

    pub fn host(&self) -> Namespace {
        Namespace::new(Some(&self.switch)).expect("a namespace")
    }

    pub fn attach(&self, host: &Namespace, name: char, network: u8, last: u8) {
        let outside = self.cable(host, name, network, last);
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
        let outside = self.cable(host, name, network, last);
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
    fn cable(&self, host: &Namespace, name: char, network: u8, last: u8) -> String {
        let (inside, outside) = (format!("{name}{network}"), format!("s{name}{network}"));
        let pid = host.0.id();
        // The pid is the same inside: no pid namespace.
        self.switch.ip(&format!(
            "link add {outside} type veth peer name {inside} netns {pid}"
        ));
        host.ip(&format!("addr add 10.{network}.0.{last}/24 dev {inside}"));
        host.ip(&format!("link set {inside} up"));
        outside
    }
}

pub fn publish(host: &Namespace, topic: &str, reliability: &str) -> Program {
    let words = ["topic", "pub", "-r", "50", "--qos-reliability", reliability];
    let mut command = host.pteros(&words);
    command.args([topic, "std_msgs/msg/String", "data: x"]);
    Program::start(command)
}

pub fn echo(host: &Namespace, topic: &str, reliability: &str) -> Program {
    let mut command = host.pteros(&["topic", "echo", "--qos-reliability", reliability]);
    command.args([topic, "std_msgs/msg/String"]);
    Program::start(command)
}
