//! Two hosts on one machine: network namespaces joined by an emulated link with a
//! rate, loss and delay.
//!
//! A link with only a rate is a veth pair with the kernel's shaper at both ends
//! (`tc … tbf`), where the kernel has it. Otherwise a process relays frames between
//! two veth pairs ([`super::frame_relay`]).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

use super::frame_relay;

/// Names of the hosts, at `10.77.0.1` and `10.77.0.2`.
pub const NAMES: [&str; 2] = ["left", "right"];

/// Properties of the link, the same in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulatedLink {
    /// Bits per second with Ethernet headers. 0 is unlimited.
    pub bits_per_second: u64,
    /// Lost datagrams per thousand.
    pub loss_per_mille: u32,
    /// Whether segments of TCP are lost, too.
    pub loses_tcp: bool,
    /// One-way delay, in addition to the transmission time.
    pub delay_us: u32,
    /// Seed of the loss generator.
    pub seed: u64,
}

impl EmulatedLink {
    /// Fast Ethernet, as in Maruyama et al. 2016.
    pub const FAST_ETHERNET: Self = Self {
        bits_per_second: 100_000_000,
        loss_per_mille: 0,
        loses_tcp: false,
        delay_us: 0,
        seed: 0,
    };
}

/// Both hosts. Dropping them deletes the namespaces.
pub struct TwoHosts {
    relay: Option<Child>,
    about: String,
}

impl TwoHosts {
    /// Creates and joins the hosts. Needs a private network
    /// ([`pteros_peers::network::command`]) with private mounts, and only one pair exists
    /// at a time. The program must accept the word [`frame_relay::TASK`].
    ///
    /// # Errors
    /// The failed command and its output. Most often the permission to administer
    /// the network is missing.
    pub fn join(link: EmulatedLink) -> Result<Self> {
        private_run()?;
        let mut hosts = Self {
            relay: None,
            about: String::new(),
        };
        for name in NAMES {
            ip(&["netns", "add", name])?;
        }
        if link.loss_per_mille == 0 && link.delay_us == 0 && hosts.shape(link).is_ok() {
            hosts.about = match link.bits_per_second {
                0 => "a veth pair".into(),
                rate => format!("a veth pair, tc tbf {} Mbit/s", rate / 1_000_000),
            };
            return Ok(hosts);
        }
        hosts.delete_devices();
        hosts.relay(link)?;
        let rate = match link.bits_per_second {
            0 => String::new(),
            rate => format!(", {} Mbit/s", rate / 1_000_000),
        };
        let (loss, delay) = (link.loss_per_mille, link.delay_us);
        hosts.about = format!("a relay{rate}, {loss} ‰ lost, {delay} us");
        Ok(hosts)
    }

    /// A description of the link, for reports.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The command prefix that runs a program on one of the hosts.
    pub fn command_prefix(host: &str) -> [&str; 4] {
        ["ip", "netns", "exec", host]
    }

    /// The address of a host on the link.
    pub fn address(host: &str) -> String {
        let index = NAMES.iter().position(|name| *name == host);
        address(index.unwrap_or(0))
    }

    /// Creates one veth pair from host to host.
    fn shape(&self, link: EmulatedLink) -> Result<()> {
        let [left, right] = ["left0", "right0"];
        ip(&["link", "add", left, "type", "veth", "peer", "name", right])?;
        for (index, device) in [left, right].into_iter().enumerate() {
            attach_device(index, device)?;
            if link.bits_per_second > 0 {
                let name = NAMES[index];
                let rate = format!("{}bit", link.bits_per_second);
                // A burst of ten frames. More than sockets hold may be queued.
                let rest = ["tbf", "rate", &rate, "burst", "15kb", "latency", "400ms"];
                let words = ["-n", name, "qdisc", "add", "dev", device, "root"];
                tool("tc", &[&words[..], &rest[..]].concat())?;
            }
        }
        Ok(())
    }

    /// Creates a veth pair from each host to the relay.
    fn relay(&mut self, link: EmulatedLink) -> Result<()> {
        for (index, name) in NAMES.into_iter().enumerate() {
            let (inner, outer) = (format!("{name}0"), format!("{name}1"));
            ip(&[
                "link", "add", &inner, "type", "veth", "peer", "name", &outer,
            ])?;
            attach_device(index, &inner)?;
            ip(&["link", "set", &outer, "up"])?;
        }
        let own = std::env::current_exe().context("find this program's own path")?;
        // The relay must end with this process.
        let mut relay = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(own)
            .args([frame_relay::TASK, "left1", "right1"])
            .args([link.loss_per_mille, link.delay_us].map(|n| n.to_string()))
            .args([link.seed, link.bits_per_second].map(|n| n.to_string()))
            .args(link.loses_tcp.then_some(frame_relay::LOSE_TCP))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start the relay")?;
        let out = relay.stdout.take();
        self.relay = Some(relay);
        let mut line = String::new();
        BufReader::new(out.context("its output is piped")?).read_line(&mut line)?;
        if line.trim() != "ready" {
            bail!("the relay did not start");
        }
        Ok(())
    }

    /// Deletes every device at once. With the namespace it would take longer.
    fn delete_devices(&self) {
        for name in NAMES {
            let _ = ip(&["-n", name, "link", "delete", &format!("{name}0")]);
            let _ = ip(&["link", "delete", &format!("{name}0")]);
        }
    }
}

impl Drop for TwoHosts {
    fn drop(&mut self) {
        if let Some(relay) = &mut self.relay {
            let _ = relay.kill();
            let _ = relay.wait();
        }
        self.delete_devices();
        for name in NAMES {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn address(index: usize) -> String {
    format!("10.77.0.{}", index + 1)
}

/// Moves a device into a host and sets it up.
fn attach_device(index: usize, device: &str) -> Result<()> {
    let name = NAMES[index];
    let address = format!("{}/24", address(index));
    ip(&["link", "set", device, "netns", name])?;
    ip(&["-n", name, "link", "set", "lo", "up"])?;
    ip(&["-n", name, "address", "add", &address, "dev", device])?;
    // No segmentation offload, because larger frames do not fit the link.
    let up = [
        "link",
        "set",
        device,
        "up",
        "multicast",
        "on",
        "gso_max_segs",
        "1",
    ];
    ip(&[&["-n", name][..], &up[..]].concat())?;
    ip(&["-n", name, "route", "add", "224.0.0.0/4", "dev", device])
}

/// `ip netns` keeps names in /run, so that mount is private, too.
fn private_run() -> Result<()> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let mount = || tool("mount", &["-t", "tmpfs", "tmpfs", "/run"]).map_err(|e| format!("{e:#}"));
    DONE.get_or_init(mount)
        .clone()
        .map_err(|text| anyhow!(text))
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
