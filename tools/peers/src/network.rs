//! Private networks: network namespaces for programs that must not communicate with
//! others.
//!
//! A command in a private network has a loopback interface and nothing else, so
//! parallel runs do not discover each other. Shared memory is private as well,
//! because some DDS stacks communicate through it across network namespaces. Works
//! as root, or without where the system allows user namespaces.
//!
//! The program runs itself with [`INSIDE_TASK`] as its first word inside the new
//! namespace, and sets the network up there.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

/// Set inside to `multicast` or `no-multicast`.
pub const VARIABLE: &str = "PTEROS_PRIVATE_NETWORK";

/// First word of the command inside the new namespace.
pub const INSIDE_TASK: &str = "namespace-inside";

const USAGE: &str = "usage: namespace [--no-multicast] -- COMMAND [ARGUMENT...]";

/// A command that runs `program` in a new private network.
///
/// # Errors
/// Why this machine has no private networks, and the way out.
pub fn command(multicast: bool, program: &str) -> Result<Command> {
    available().map_err(|why| anyhow!("no private network namespace: {why}"))?;
    let mut command = unshare();
    command.arg(std::env::current_exe().context("find this program's own path")?);
    command.arg(INSIDE_TASK);
    if !multicast {
        command.arg("--no-multicast");
    }
    command.args(["--", program]);
    Ok(command)
}

/// Whether private networks work. Tries once and keeps the result.
///
/// # Errors
/// Why not, and the way out.
pub fn available() -> Result<(), String> {
    static ANSWER: OnceLock<Result<(), String>> = OnceLock::new();
    ANSWER.get_or_init(probe).clone()
}

fn probe() -> Result<(), String> {
    let outcome = unshare()
        .args(["ip", "link", "set", "lo", "up"])
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("unshare: {e}; install the packages util-linux and iproute2"))?;
    if outcome.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&outcome.stderr);
    Err(format!(
        "{}; install iproute2 if ip is missing, else run as root or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)",
        said.trim()
    ))
}

/// `unshare` without the inner program.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]);
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.arg("--");
    command
}

/// Whether this process is root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Sets up loopback inside the namespace, then executes the command. Returns only
/// on failure.
///
/// # Errors
/// What failed.
pub fn run_inside(arguments: &[String]) -> Result<ExitStatus> {
    let (multicast, program, rest) = parse(arguments)?;
    let on = if multicast { "on" } else { "off" };
    ip(&["link", "set", "lo", "up", "multicast", on])?;
    if multicast {
        ip(&["route", "add", "224.0.0.0/4", "dev", "lo"])?;
    }
    // Optional. Without it stacks that use /dev/shm may communicate there.
    let _ = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs", "/dev/shm"])
        .status();
    let mode = if multicast {
        "multicast"
    } else {
        "no-multicast"
    };
    let error = Command::new(program).args(rest).env(VARIABLE, mode).exec();
    Err(error).with_context(|| format!("run {program}"))
}

fn parse(arguments: &[String]) -> Result<(bool, &str, &[String])> {
    let (multicast, rest) = match arguments {
        [first, rest @ ..] if first == "--no-multicast" => (false, rest),
        all => (true, all),
    };
    match rest {
        [dashes, program, rest @ ..] if dashes == "--" => Ok((multicast, program, rest)),
        _ => bail!(USAGE),
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let status = Command::new("ip")
        .args(arguments)
        .status()
        .context("run ip")?;
    if !status.success() {
        bail!("ip {}: {status}", arguments.join(" "));
    }
    Ok(())
}
