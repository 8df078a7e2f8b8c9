//! The attacker's host of a flood: a network namespace with a cable (veth) to the
//! attacked one, so that the attacker has an address of its own.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The address of the attacked host on the cable.
pub const VICTIM: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The attacker's address.
pub const ATTACKER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// The namespace, kept by a sleeping process.
pub struct AttackingHost(Child);

impl AttackingHost {
    /// Creates the namespace and lays the cable. It ends with the value.
    pub fn attach() -> Result<Self> {
        let script = "ip link set lo up && echo ready && exec sleep 3600";
        let mut child = Command::new("unshare")
            .args(["--net", "--", "sh", "-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("run unshare")?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let attacking_host = Self(child);
        ensure!(
            line.trim() == "ready",
            "no network namespace for the attacker"
        );
        let id = attacking_host.0.id();
        ip(
            Command::new("ip"),
            &format!("link add v0 type veth peer name v1 netns {id}"),
        )?;
        ip(Command::new("ip"), &format!("addr add {VICTIM}/24 dev v0"))?;
        ip(Command::new("ip"), "link set v0 up")?;
        ip(
            attacking_host.command("ip"),
            &format!("addr add {ATTACKER}/24 dev v1"),
        )?;
        ip(attacking_host.command("ip"), "link set v1 up")?;
        ip(attacking_host.command("ip"), "route add 224.0.0.0/4 dev v1")?;
        Ok(attacking_host)
    }

    /// A command that runs there.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.0.id()));
        command.args(["--", program]);
        command
    }
}

impl Drop for AttackingHost {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(mut command: Command, words: &str) -> Result<()> {
    let status = command.args(words.split(' ')).status().context("run ip")?;
    if !status.success() {
        bail!("ip {words}: {status}");
    }
    Ok(())
}
