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

/// One program in one configuration. All of them know `ping` and `pong` with
/// the options and lines of interop/README.md.
pub struct Contestant {
    pub name: &'static str,
    program: PathBuf,
    /// CYCLONEDDS_URI, where it is set.
    settings: Option<&'static str>,
    /// What it is started with to rest and be looked at.
    pub idle: Option<&'static [&'static str]>,
}

/// All of them; ours is in `ours`, the others' programs are in `peers`.
pub fn all(peers: &Path, ours: &Path) -> Vec<Contestant> {
    let cyclone = |name, settings| Contestant {
        name,
        program: peers.join("cyclone-peer"),
        settings,
        idle: None,
    };
    vec![
        Contestant {
            name: NAMES[0],
            program: peers.join("udp-ping"),
            settings: None,
            idle: None,
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
            settings: None,
            idle: Some(&["idle"]),
        },
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
        // What is measured here is the wire.
        command.env("PTEROS_SHARED_MEMORY", "off");
        command.args(&line[1..]).arg(&self.program);
        match self.settings {
            Some(settings) => command.env("CYCLONEDDS_URI", settings),
            None => command.env_remove("CYCLONEDDS_URI"),
        };
        for variable in ["ROS_DOMAIN_ID", "ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS"] {
            command.env_remove(variable);
        }
        command
    }

    /// Starts one process and waits until it says `ready`.
    pub fn start(&self, arguments: &[&str], pinning: Pinning) -> Result<Running> {
        let cpu = match pinning {
            Pinning::None => None,
            Pinning::OneCpu => Some(0),
            Pinning::TwoCpus => Some(1),
        };
        let mut child = self
            .command(cpu)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {}", self.program.display()))?;
        let output = child.stdout.take().context("its output is piped")?;
        let mut running = Running {
            child,
            output: BufReader::new(output),
        };
        let mut line = String::new();
        while line.trim() != "ready" {
            line.clear();
            if running.output.read_line(&mut line)? == 0 {
                bail!("{} {}: ended at once", self.name, arguments.join(" "));
            }
        }
        Ok(running)
    }

    /// Runs the measuring side to its end; returns its last `rtt` line.
    pub fn ping(&self, arguments: &[&str], pinning: Pinning) -> Result<String> {
        let cpu = (pinning != Pinning::None).then_some(0);
        let outcome = self
            .command(cpu)
            .arg("ping")
            .args(arguments)
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
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
