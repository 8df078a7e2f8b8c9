//! Implementations of the wire benchmark, and how they are started.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use pteros_testbed::implementation::CYCLONE_TUNED;

/// Every implementation, in the order of the table.
pub const NAMES: [&str; 4] = ["floor", "cyclone", "cyclone-tuned", "pteros"];

/// CPUs that the two processes may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pinning {
    /// Any CPU.
    None,
    /// Both on CPU 0.
    OneCpu,
    /// One on CPU 0, the other on CPU 1.
    TwoCpus,
}

impl fmt::Display for Pinning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "unpinned",
            Self::OneCpu => "both on one CPU",
            Self::TwoCpus => "one CPU each",
        })
    }
}

/// Environment variables that secure a Pteros process.
const SECURITY: [&str; 4] = [
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_STRATEGY",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
];

/// One program in one configuration. All of them implement `ping` and `pong` with
/// the options and output lines of interop/README.md.
pub struct WirePeer {
    pub name: &'static str,
    program: PathBuf,
    /// CYCLONEDDS_URI, if it is set.
    settings: Option<&'static str>,
    /// Arguments of the idle process whose footprint is measured.
    pub idle: Option<&'static [&'static str]>,
    /// Folder of a keystore's enclave `/`, for a secured configuration.
    pub enclave: Option<PathBuf>,
    /// Whether Pteros may use shared memory. Without it the wire is measured.
    pub shared_memory: bool,
}

/// Returns all implementations. `ours` holds the Pteros program, `peers` the
/// others.
pub fn all(peers: &Path, ours: &Path) -> Vec<WirePeer> {
    let cyclone = |name, settings| WirePeer {
        name,
        program: peers.join("cyclone-peer"),
        settings,
        idle: None,
        enclave: None,
        shared_memory: false,
    };
    vec![
        WirePeer {
            name: NAMES[0],
            program: peers.join("udp-ping"),
            ..cyclone("", None)
        },
        WirePeer {
            // A participant with one reader; Pteros has a second reader for the
            // graph.
            idle: Some(&["sub"]),
            ..cyclone(NAMES[1], None)
        },
        cyclone(NAMES[2], Some(CYCLONE_TUNED)),
        WirePeer {
            name: NAMES[3],
            program: ours.join("ping-pong"),
            idle: Some(&["idle"]),
            ..cyclone("", None)
        },
    ]
}

/// Returns each stack plain and secured with this enclave, Pteros over UDP and over
/// shared memory.
pub fn secured_and_plain(peers: &Path, ours: &Path, enclave: &Path) -> Vec<WirePeer> {
    let one = |name, program: PathBuf, secured: bool, shared_memory| WirePeer {
        name,
        program,
        settings: None,
        idle: None,
        enclave: secured.then(|| enclave.to_owned()),
        shared_memory,
    };
    let (own, cyclone) = (ours.join("ping-pong"), peers.join("cyclone-peer"));
    let fast = peers.join("fastdds-peer");
    vec![
        one("pteros", own.clone(), false, false),
        one("pteros-secured", own.clone(), true, false),
        one("memory", own.clone(), false, true),
        one("memory-secured", own, true, true),
        one("cyclone", cyclone.clone(), false, false),
        one("cyclone-secured", cyclone, true, false),
        one("fastdds", fast.clone(), false, false),
        one("fastdds-secured", fast, true, false),
    ]
}

impl WirePeer {
    /// Returns a command for the program on the selected CPU, without the
    /// capability to exceed the kernel's buffer limits.
    fn command(&self, cpu: Option<u32>) -> Command {
        let mut line: Vec<String> = Vec::new();
        line.extend(["setpriv", "--bounding-set", "-net_admin", "--"].map(str::to_owned));
        if let Some(cpu) = cpu {
            line.extend(["taskset".into(), "-c".into(), cpu.to_string()]);
        }
        let mut command = Command::new(&line[0]);
        let shared_memory = if self.shared_memory { "on" } else { "off" };
        command.env("PTEROS_SHARED_MEMORY", shared_memory);
        command.args(&line[1..]).arg(&self.program);
        for variable in SECURITY {
            command.env_remove(variable);
        }
        if let Some(keystore) = self.enclave.as_ref().and_then(|folder| folder.parent()) {
            command.env("ROS_SECURITY_KEYSTORE", keystore);
            command.env("ROS_SECURITY_ENABLE", "true");
            command.env("ROS_SECURITY_STRATEGY", "Enforce");
        }
        match self.settings {
            Some(settings) => command.env("CYCLONEDDS_URI", settings),
            None => command.env_remove("CYCLONEDDS_URI"),
        };
        for variable in ["ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS"] {
            command.env_remove(variable);
        }
        command
    }

    /// Arguments that pass the enclave to a peer of another stack. Pteros reads the
    /// environment, as ROS 2 nodes do.
    fn secured(&self) -> Vec<&std::ffi::OsStr> {
        let enclave = self.enclave.as_ref().filter(|_| !self.is_ours());
        enclave.map_or_else(Vec::new, |folder| {
            vec!["--security".as_ref(), folder.as_os_str()]
        })
    }

    fn is_ours(&self) -> bool {
        self.program.ends_with("ping-pong")
    }

    /// Starts one process and waits for its `ready` line.
    pub fn start(&self, arguments: &[&str], pinning: Pinning) -> Result<Running> {
        let mut running = self.spawn(arguments, pinning)?;
        running
            .wait_for("ready")
            .with_context(|| format!("{} {}", self.name, arguments.join(" ")))?;
        Ok(running)
    }

    /// Starts one process.
    pub fn spawn(&self, arguments: &[&str], pinning: Pinning) -> Result<Running> {
        let cpu = match pinning {
            Pinning::None => None,
            Pinning::OneCpu => Some(0),
            Pinning::TwoCpus => Some(1),
        };
        let mut child = self
            .command(cpu)
            .args(arguments)
            .args(self.secured())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        let output = child.stdout.take().context("its output is piped")?;
        Ok(Running {
            child,
            output: BufReader::new(output),
        })
    }

    /// Runs the measuring side to its end and returns its last `rtt` line.
    pub fn ping(&self, arguments: &[&str], pinning: Pinning) -> Result<String> {
        let cpu = (pinning != Pinning::None).then_some(0);
        let outcome = self
            .command(cpu)
            .arg("ping")
            .args(arguments)
            .args(self.secured())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .with_context(|| format!("start {}", self.program.display()))?;
        let said = String::from_utf8_lossy(&outcome.stdout);
        let line = said.lines().rfind(|line| line.starts_with("rtt "));
        line.map(str::to_owned).with_context(|| {
            let errors = String::from_utf8_lossy(&outcome.stderr);
            format!("{}: no result: {} {}", self.name, said, errors.trim())
        })
    }
}

/// An idle or responding process, killed on drop.
pub struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    /// Process id: setpriv and taskset become the program they start.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads output up to a line with this prefix.
    pub fn wait_for(&mut self, beginning: &str) -> Result<()> {
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the process ended before it printed '{beginning}'");
            }
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
