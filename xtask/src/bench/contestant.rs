//! The programs that are compared, and how they are started.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use pteros_testbed::contestant::CYCLONE_TUNED;

/// Every contestant, in the order of the table.
pub const NAMES: [&str; 4] = ["floor", "cyclone", "cyclone-tuned", "pteros"];

/// Which CPUs the two processes may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pinning {
    /// As the scheduler likes.
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
            Self::TwoCpus => "each on a CPU of its own",
        })
    }
}

/// What secures a process of ours.
const SECURITY: [&str; 4] = [
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_STRATEGY",
    "ROS_SECURITY_KEYSTORE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
];

/// One program in one configuration. All of them know `ping` and `pong` with
/// the options and lines of interop/README.md.
pub struct Contestant {
    pub name: &'static str,
    program: PathBuf,
    /// CYCLONEDDS_URI, where it is set.
    settings: Option<&'static str>,
    /// What it is started with to rest and be looked at.
    pub idle: Option<&'static [&'static str]>,
    /// The folder of a keystore's enclave `/`, where it is secured.
    pub enclave: Option<PathBuf>,
    /// Whether ours may use shared memory. Elsewhere what is measured is the wire.
    pub shared_memory: bool,
}

/// All of them; ours is in `ours`, the others' programs are in `peers`.
pub fn all(peers: &Path, ours: &Path) -> Vec<Contestant> {
    let cyclone = |name, settings| Contestant {
        name,
        program: peers.join("cyclone-peer"),
        settings,
        idle: None,
        enclave: None,
        shared_memory: false,
    };
    vec![
        Contestant {
            name: NAMES[0],
            program: peers.join("udp-ping"),
            ..cyclone("", None)
        },
        Contestant {
            // A participant with one reader: ours has one for the graph, too.
            idle: Some(&["sub"]),
            ..cyclone(NAMES[1], None)
        },
        cyclone(NAMES[2], Some(CYCLONE_TUNED)),
        Contestant {
            name: NAMES[3],
            program: ours.join("ping-pong"),
            idle: Some(&["idle"]),
            ..cyclone("", None)
        },
    ]
}

/// Each stack plain and with this enclave of a keystore, ours by UDP and by
/// shared memory.
pub fn secured_and_plain(peers: &Path, ours: &Path, enclave: &Path) -> Vec<Contestant> {
    let one = |name, program: PathBuf, secured: bool, shared_memory| Contestant {
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

impl Contestant {
    /// A command for the program, on the CPU it shall have, without the right
    /// to exceed the kernel's limits of buffers.
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

    /// How a peer of another stack is told of its enclave; ours reads the
    /// environment, as ROS 2's nodes do.
    fn secured(&self) -> Vec<&std::ffi::OsStr> {
        let enclave = self.enclave.as_ref().filter(|_| !self.is_ours());
        enclave.map_or_else(Vec::new, |folder| {
            vec!["--security".as_ref(), folder.as_os_str()]
        })
    }

    fn is_ours(&self) -> bool {
        self.program.ends_with("ping-pong")
    }

    /// Starts one process and waits until it says `ready`.
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

    /// Runs the measuring side to its end; returns its last `rtt` line.
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

/// A process that rests or answers. Ended when dropped.
pub struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    /// Its process id: setpriv and taskset become the program they start.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads what it says up to a line that begins so.
    pub fn wait_for(&mut self, beginning: &str) -> Result<()> {
        let mut line = String::new();
        while !line.starts_with(beginning) {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                bail!("ended before it said '{beginning}'");
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
