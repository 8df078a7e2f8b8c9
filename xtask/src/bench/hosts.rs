//! Two hosts on one machine: network namespaces whose cables end at a relay.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::relay;

/// The names of the two hosts.
pub const NAMES: [&str; 2] = ["left", "right"];

/// A relay between both hosts; the cable is cut when dropped.
pub struct Cable(Child);

/// Makes both hosts, `10.77.0.1` and `10.77.0.2`. Must run in a private
/// network of its own, once.
pub fn make() -> Result<()> {
    // `ip netns` keeps its names there; the mount is private, too.
    tool("mount", &["-t", "tmpfs", "tmpfs", "/run"])?;
    for (index, name) in NAMES.iter().enumerate() {
        let inner = format!("{name}0");
        let outer = format!("{name}1");
        let address = format!("10.77.0.{}/24", index + 1);
        ip(&["netns", "add", name])?;
        ip(&[
            "link", "add", &inner, "type", "veth", "peer", "name", &outer,
        ])?;
        ip(&["link", "set", &inner, "netns", name])?;
        ip(&["link", "set", &outer, "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        ip(&["-n", name, "address", "add", &address, "dev", &inner])?;
        ip(&["-n", name, "link", "set", &inner, "up", "multicast", "on"])?;
        ip(&["-n", name, "route", "add", "224.0.0.0/4", "dev", &inner])?;
    }
    Ok(())
}

/// Puts a program on one of the hosts.
pub fn on(host: &str, command: &Command) -> Command {
    let mut moved = Command::new("ip");
    moved
        .args(["netns", "exec", host])
        .arg(command.get_program());
    moved.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => moved.env(name, value),
            None => moved.env_remove(name),
        };
    }
    moved
}

impl Cable {
    /// Lays it: `loss` in thousandths of the datagrams of each direction,
    /// `delay` one way.
    pub fn lay(loss: u32, delay_us: u32, seed: u64) -> Result<Self> {
        let mut relay = Command::new(std::env::current_exe()?)
            .args([relay::TASK, "left1", "right1"])
            .args([loss.to_string(), delay_us.to_string(), seed.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .context("start the relay")?;
        let out = relay.stdout.take().context("its output is piped")?;
        let cable = Self(relay);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("the relay did not start");
        }
        Ok(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    tool("ip", arguments)
}

fn tool(name: &str, arguments: &[&str]) -> Result<()> {
    let line = || format!("{name} {}", arguments.join(" "));
    let outcome = Command::new(name)
        .args(arguments)
        .output()
        .with_context(line)?;
    if !outcome.status.success() {
        bail!(
            "{}: {}",
            line(),
            String::from_utf8_lossy(&outcome.stderr).trim()
        );
    }
    Ok(())
}
