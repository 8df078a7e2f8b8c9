//! Networks of their own for programs that must neither meet nor disturb others.
//!
//! A command in one sees nothing but a loopback interface and cannot be heard
//! outside; runs in parallel do not meet. Shared memory is private too, since
//! some DDS stacks find each other there across network namespaces. Works as
//! root or, where the system lets users make namespaces, without.
//!
//! The program that asks is its own inner half: it runs itself with
//! [`INSIDE_TASK`] as first word, which then sets up the network.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

/// Set inside to `multicast` or `no-multicast`, for those who want to know.
pub const VARIABLE: &str = "PTEROS_PRIVATE_NETWORK";

/// The word that a program runs itself with, inside the new namespace.
pub const INSIDE_TASK: &str = "namespace-inside";

const USAGE: &str = "usage: namespace [--no-multicast] -- COMMAND [ARGUMENT...]";

/// Runs a task's command line; returns the command's status.
///
/// # Errors
/// A wrong command line, or why this machine cannot.
pub fn run(arguments: &[String]) -> Result<ExitStatus> {
    let (multicast, program, rest) = parse(arguments)?;
    command(multicast, program)?
        .args(rest)
        .status()
        .with_context(|| format!("run {program}"))
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
///
/// # Errors
/// Why not, with the way out.
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
///
/// # Errors
/// Always one: what failed.
pub fn run_inside(arguments: &[String]) -> Result<ExitStatus> {
    let (multicast, program, rest) = parse(arguments)?;
    let on = if multicast { "on" } else { "off" };
    ip(&["link", "set", "lo", "up", "multicast", on])?;
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
