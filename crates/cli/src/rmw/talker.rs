//! A talker of demo_nodes_cpp or demo_nodes_py on the plug-in, heard by a node of this
//! process.

use crate::plug_in::{FILE, NAME};
use crate::ros2_installation::Ros2Installation;
use anyhow::{Context as _, Result, bail};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A domain that is rarely used, limited to this host. The topic's namespace has the
/// process id, so that two checks do not receive from each other.
const DOMAIN: u32 = 230;
/// The talker publishes once per second, and Python starts slowly on a busy host.
const WAIT_MAX: Duration = Duration::from_secs(20);
/// Lines of the talker that an error repeats.
const LINES_SHOWN: usize = 3;
/// Packages with a program `talker`.
const PACKAGES: [&str; 2] = ["demo_nodes_cpp", "demo_nodes_py"];
/// Variables of the user that would keep the talker out of the check's domain.
const REMOVED: [&str; 6] = [
    "ROS_LOCALHOST_ONLY",
    "ROS_STATIC_PEERS",
    "ROS_DISCOVERY_SERVER",
    "ROS_SECURITY_ENABLE",
    "ROS_SECURITY_ENCLAVE_OVERRIDE",
    "PTEROS_INTERFACES",
];

/// A talker whose messages arrived.
pub struct Heard {
    /// The talker.
    pub program: PathBuf,
    /// The plug-in that it has loaded.
    pub library: PathBuf,
    /// From the start to the first message.
    pub after: Duration,
}

impl Heard {
    pub fn text(&self) -> String {
        let seconds = self.after.as_secs_f64();
        let program = self.program.display();
        format!("{program} was heard after {seconds:.1} s")
    }

    pub fn json(&self) -> Value {
        json!({
            "program": self.program.display().to_string(),
            "library": self.library.display().to_string(),
            "seconds": self.after.as_secs_f64(),
        })
    }
}

/// The talker of an installation.
pub fn find(ros2: &Ros2Installation) -> Option<PathBuf> {
    let mut packages = PACKAGES.iter();
    packages.find_map(|package| ros2.program(package, "talker"))
}

/// Starts the talker with the setup files sourced, and waits for a message.
///
/// # Errors
/// It ended early, its messages did not arrive, or it has loaded no plug-in of Pteros.
pub fn hear(program: &Path, setup: &[PathBuf]) -> Result<Heard> {
    let begin = Instant::now();
    let context = Context::with_options(ContextOptions::local(DOMAIN))?;
    let id = std::process::id();
    let node = context.create_node(format!("_pteros_rmw_check_{id}"))?;
    let topic = format!("/_pteros_rmw_check_{id}/chatter");
    let subscription = node.create_polled_subscription::<Text>(&topic)?;
    let mut talker = Talker::start(program, setup, id)?;
    while begin.elapsed() < WAIT_MAX {
        if subscription
            .take_timeout(Duration::from_millis(100))
            .is_some()
        {
            return Ok(Heard {
                program: program.to_owned(),
                library: talker.library()?,
                after: begin.elapsed(),
            });
        }
        if let Some(status) = talker.child.try_wait().context("waiting for the talker")? {
            bail!(
                "{} ended early ({status}): {}",
                program.display(),
                talker.end()
            );
        }
    }
    bail!(
        "{} was not heard for {} s: {}",
        program.display(),
        WAIT_MAX.as_secs(),
        talker.end()
    )
}

/// A running talker, killed when dropped.
struct Talker {
    child: Child,
}

impl Talker {
    fn start(program: &Path, setup: &[PathBuf], id: u32) -> Result<Self> {
        // The setup files come first, and the program replaces the shell.
        let script = "for file in \"${@:2}\"; do . \"$file\" || exit 1; done; \
                      exec \"$1\" --ros-args -r \"__ns:=$0\"";
        let mut command = Command::new("bash");
        for variable in REMOVED {
            command.env_remove(variable);
        }
        let child = command
            .args(["-c", script])
            .arg(format!("/_pteros_rmw_check_{id}"))
            .arg(program)
            .args(setup)
            .env("RMW_IMPLEMENTATION", NAME)
            .env("ROS_DOMAIN_ID", DOMAIN.to_string())
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("starting bash, which sources the setup files")?;
        Ok(Self { child })
    }

    /// The plug-in among the files that the process has mapped.
    fn library(&self) -> Result<PathBuf> {
        let maps = format!("/proc/{}/maps", self.child.id());
        let text = std::fs::read_to_string(&maps).with_context(|| format!("reading {maps}"))?;
        let mut paths = text
            .lines()
            .filter_map(|line| line.find('/').map(|at| line.split_at(at).1));
        match paths.find(|path| path.ends_with(FILE)) {
            Some(path) => Ok(path.into()),
            None => bail!(
                "the talker was heard, but has not loaded {FILE}: this ROS 2 was built for one \
                 middleware only and ignores RMW_IMPLEMENTATION"
            ),
        }
    }

    /// Ends the talker and returns its last lines.
    fn end(&mut self) -> String {
        // It may have ended already.
        let _ = self.child.kill();
        let mut text = String::new();
        if let Some(output) = &mut self.child.stdout {
            // Part of the text is better than none.
            let _ = output.read_to_string(&mut text);
        }
        if let Some(output) = &mut self.child.stderr {
            let _ = output.read_to_string(&mut text);
        }
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = lines.len().saturating_sub(LINES_SHOWN);
        match lines.get(last..) {
            Some([]) | None => "it printed nothing".into(),
            Some(lines) => format!("it printed: {}", lines.join(" | ")),
        }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
