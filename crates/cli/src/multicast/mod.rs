//! `pteros multicast`: one UDP multicast datagram, as a test of the network. Group,
//! port and payload are those of ros2multicast, so either side may be ros2.

mod receive;
mod send;

use crate::cli_context::CliContext;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use pteros_net::{Interface, interfaces};
use std::net::{IpAddr, SocketAddr};

/// Verbs of `multicast`.
#[derive(Debug, Subcommand)]
pub enum MulticastVerb {
    /// Send one datagram to a multicast group
    Send(send::Send),
    /// Wait for one datagram of a multicast group
    Receive(receive::Receive),
}

impl MulticastVerb {
    /// Runs the verb.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        match self {
            Self::Send(verb) => verb.run(cli),
            Self::Receive(verb) => verb.run(cli),
        }
    }
}

/// Group and port.
#[derive(Clone, Copy, Debug, Args)]
pub struct GroupFlags {
    /// Multicast group, 224.0.0.0 to 239.255.255.255 or ff00::/8
    #[arg(long, value_name = "ADDRESS", default_value = "225.0.0.1", value_parser = group)]
    group: IpAddr,
    /// UDP port
    #[arg(long, value_name = "PORT", default_value = "49150", value_parser = port)]
    port: u16,
}

impl GroupFlags {
    fn address(self) -> SocketAddr {
        SocketAddr::new(self.group, self.port)
    }
}

fn group(text: &str) -> Result<IpAddr, String> {
    match text.parse::<IpAddr>() {
        Ok(address) if address.is_multicast() => Ok(address),
        _ => Err(format!(
            "'{text}' is not a multicast address, such as 225.0.0.1 or ff02::1:5"
        )),
    }
}

fn port(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(format!("'{text}' is not a port from 1 to 65535")),
    }
}

/// The interfaces that carry multicast to a group, each once; the loopback interface only
/// if there is no other.
fn multicast_interfaces(group: IpAddr) -> Result<Vec<Interface>> {
    let mut all = interfaces().context("reading the network interfaces")?;
    all.retain(|interface| {
        interface.address.is_ipv6() == group.is_ipv6()
            && (interface.multicast || interface.loopback)
    });
    all.sort_by_key(|interface| interface.index);
    all.dedup_by_key(|interface| interface.index);
    if all.iter().any(|interface| !interface.loopback) {
        all.retain(|interface| !interface.loopback);
    }
    if all.is_empty() {
        bail!("no network interface is up; see: ip address");
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_ports_are_checked() {
        assert_eq!(group("225.0.0.1"), Ok([225, 0, 0, 1].into()));
        assert_eq!(
            group("ff02::1").map(|group| group.to_string()),
            Ok("ff02::1".into())
        );
        for text in ["10.0.0.1", "fd00::1", "localhost", ""] {
            assert!(group(text).unwrap_err().contains("225.0.0.1"), "{text}");
        }
        assert_eq!(port("49150"), Ok(49_150));
        for text in ["0", "65536", "-1", "http"] {
            assert!(port(text).unwrap_err().contains("1 to 65535"), "{text}");
        }
    }
}
