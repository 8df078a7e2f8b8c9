//! Two hosts on one machine: network namespaces joined by a cable, which has a rate,
//! loses and delays as asked for.
//!
//! A cable that only has a rate is a veth pair with the kernel's own shaper at both
//! ends (`tc … tbf`), where the kernel has it. Any other is a process of ours that
//! carries frames between two pairs ([`crate::relay`]).

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};

use crate::relay;

/// The names of the two hosts; `10.77.0.1` and `10.77.0.2`.
pub const NAMES: [&str; 2] = ["left", "right"];

/// What the cable does to packets, in each direction alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Bits per second, Ethernet headers counted; 0 is as fast as the machine.
    pub bits_per_second: u64,
    /// Datagrams that are lost, in thousandths.
    pub loss_per_mille: u32,
    /// One way, beside what the rate takes.
    pub delay_us: u32,
    /// Which ones are lost.
    pub seed: u64,
}

impl Link {
    /// Fast Ethernet, as in Maruyama et al. 2016.
    pub const FAST_ETHERNET: Self = Self {
        bits_per_second: 100_000_000,
        loss_per_mille: 0,
        delay_us: 0,
        seed: 0,
    };
}

/// Both hosts; they are gone when dropped.
pub struct TwoHosts {
    relay: Option<Child>,
    about: String,
}

impl TwoHosts {
    /// Makes and joins them. Must run in a private network ([`crate::network::command`]),
    /// whose mounts are private, too; there is one pair at a time. The program must know the
    /// word [`relay::TASK`].
    ///
    /// # Errors
    /// Which command failed, and what it said: most often that the right to administer the
    /// network is missing.
    pub fn join(link: Link) -> Result<Self> {
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
        hosts.unplug();
        hosts.relay(link)?;
        let rate = match link.bits_per_second {
            0 => String::new(),
            rate => format!(", {} Mbit/s", rate / 1_000_000),
        };
        let (loss, delay) = (link.loss_per_mille, link.delay_us);
        hosts.about = format!("a relay{rate}, {loss} ‰ lost, {delay} us");
        Ok(hosts)
    }

    /// What joins them, for reports.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// The words that put a program onto one of the hosts, before its own.
    pub fn words(host: &str) -> [&str; 4] {
        ["ip", "netns", "exec", host]
    }

    /// The address of a host on the cable.
    pub fn address(host: &str) -> String {
        let index = NAMES.iter().position(|name| *name == host);
        address(index.unwrap_or(0))
    }

    /// Puts a program onto one of the hosts.
    pub fn on(&self, host: &str, command: &Command) -> Command {
        let [program, words @ ..] = Self::words(host);
        let mut moved = Command::new(program);
        moved.args(words).arg(command.get_program());
        moved.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => moved.env(name, value),
                None => moved.env_remove(name),
            };
        }
        moved
    }

    /// One pair from host to host.
    fn shape(&self, link: Link) -> Result<()> {
        let [left, right] = ["left0", "right0"];
        ip(&["link", "add", left, "type", "veth", "peer", "name", right])?;
        for (index, device) in [left, right].into_iter().enumerate() {
            plug(index, device)?;
            if link.bits_per_second > 0 {
                let name = NAMES[index];
                let rate = format!("{}bit", link.bits_per_second);
                // Ten frames at once; more than sockets keep may wait.
                let rest = ["tbf", "rate", &rate, "burst", "15kb", "latency", "400ms"];
                let words = ["-n", name, "qdisc", "add", "dev", device, "root"];
                tool("tc", &[&words[..], &rest[..]].concat())?;
            }
        }
        Ok(())
    }

    /// A pair from each host to where the relay is.
    fn relay(&mut self, link: Link) -> Result<()> {
        for (index, name) in NAMES.into_iter().enumerate() {
            let (inner, outer) = (format!("{name}0"), format!("{name}1"));
            ip(&[
                "link", "add", &inner, "type", "veth", "peer", "name", &outer,
            ])?;
            plug(index, &inner)?;
            ip(&["link", "set", &outer, "up"])?;
        }
        let own = std::env::current_exe().context("find this program's own path")?;
        // It must not outlive us.
        let mut relay = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .arg(own)
            .args([relay::TASK, "left1", "right1"])
            .args([link.loss_per_mille, link.delay_us].map(|n| n.to_string()))
            .args([link.seed, link.bits_per_second].map(|n| n.to_string()))
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

    /// Takes every device away, at once; with their namespace it would be later.
    fn unplug(&self) {
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
        self.unplug();
        for name in NAMES {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn address(index: usize) -> String {
    format!("10.77.0.{}", index + 1)
}

/// Puts a device into a host and sets it up.
fn plug(index: usize, device: &str) -> Result<()> {
    let name = NAMES[index];
    let address = format!("{}/24", address(index));
    ip(&["link", "set", device, "netns", name])?;
    ip(&["-n", name, "link", "set", "lo", "up"])?;
    ip(&["-n", name, "address", "add", &address, "dev", device])?;
    // What is more than a frame would not fit the cable: no offloading to it.
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

/// `ip netns` keeps its names in /run; the mount is private, too.
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
