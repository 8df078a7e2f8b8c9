//! `cargo xtask namespace [--no-multicast] -- COMMAND...`: a network of its own.
//!
//! The command sees nothing but a loopback interface and cannot be heard
//! outside; runs in parallel do not meet. Shared memory is private too, since
//! some DDS stacks find each other there across network namespaces. Works as
//! root or, where the system lets users make namespaces, without.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

/// Set inside to `multicast` or `no-multicast`, for those who want to know.
pub const VARIABLE: &str = "PTEROS_PRIVATE_NETWORK";

/// The task that the program runs itself as, inside the new namespace.
pub const INSIDE_TASK: &str = "namespace-inside";

const USAGE: &str = "usage: cargo xtask namespace [--no-multicast] -- COMMAND [ARGUMENT...]";

/// Runs the command line of the task; returns the command's status.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    let (multicast, line) = parse(arguments)?;
    let mut command = command(multicast, &line[0])?;
    command
        .args(&line[1..])
        .status()
        .with_context(|| format!("run {}", line[0]))
}

/// A command that will run `program` in a new private network.
///
/// # Errors
/// Says why this machine cannot, with the way out.
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

/// Whether private networks work here; asked once, by making one.
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

/// `unshare` up to the point where the inner program is named.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]);
    if !is_root() {
        command.arg("--map-root-user");
    }
    command.arg("--");
    command
}

/// Whether this process may administer the machine.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// The inner half: sets loopback up, then becomes the command. Only returns
/// when that fails.
pub fn run_inside(arguments: &[String]) -> Result<ExitStatus> {
    let (multicast, line) = parse(arguments)?;
    ip(&[
        "link",
        "set",
        "lo",
        "up",
        "multicast",
        if multicast { "on" } else { "off" },
    ])?;
    if multicast {
        ip(&["route", "add", "224.0.0.0/4", "dev", "lo"])?;
    }
    // Only a nicety: without it stacks that use /dev/shm may meet there.
    let _ = Command::new("mount")
        .args(["-t", "tmpfs", "tmpfs", "/dev/shm"])
        .status();
    let mode = if multicast {
        "multicast"
    } else {
        "no-multicast"
    };
    let error = Command::new(&line[0])
        .args(&line[1..])
        .env(VARIABLE, mode)
        .exec();
    Err(error).with_context(|| format!("run {}", line[0]))
}

fn parse(arguments: &[String]) -> Result<(bool, &[String])> {
    let (multicast, rest) = match arguments {
        [first, rest @ ..] if first == "--no-multicast" => (false, rest),
        all => (true, all),
    };
    match rest {
        [dashes, line @ ..] if dashes == "--" && !line.is_empty() => Ok((multicast, line)),
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
