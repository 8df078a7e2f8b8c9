//! `pteros multicast send`.

use super::{GroupFlags, multicast_interfaces};
use crate::cli_context::CliContext;
use anyhow::{Result, bail};
use clap::Args;
use pteros_net::UdpSocket;
use serde_json::json;
use std::io::IoSlice;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The payload of ros2multicast.
const PAYLOAD: &[u8] = b"Hello World!";

/// Arguments of `multicast send`.
#[derive(Debug, Args)]
pub struct Send {
    #[command(flatten)]
    group: GroupFlags,
    /// TTL: largest number of routers that the datagram passes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    ttl: u8,
}

impl Send {
    /// Sends one datagram on every interface with multicast.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        if !cli.console.json {
            cli.console.line("Sending one UDP multicast datagram...")?;
        }
        let to = self.group.address();
        let own: IpAddr = match to.is_ipv6() {
            true => Ipv6Addr::UNSPECIFIED.into(),
            false => Ipv4Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind_unicast(own, 0)?;
        socket.set_multicast(self.ttl, true)?;
        let (mut sent_on, mut errors) = (Vec::new(), Vec::new());
        for interface in multicast_interfaces(to.ip())? {
            match socket.send_via(&[IoSlice::new(PAYLOAD)], to, &interface) {
                Ok(_) => sent_on.push(interface.name),
                Err(error) => errors.push(format!("{}: {error}", interface.name)),
            }
        }
        if sent_on.is_empty() {
            bail!(
                "nothing was sent to {to} ({}); check the interfaces and routes with: ip address; ip route",
                errors.join(", ")
            );
        }
        for error in errors {
            cli.console.note(format!("WARNING: {error}"));
        }
        if cli.console.json {
            cli.console
                .json(&json!({ "to": to.to_string(), "interfaces": sent_on }))?;
        }
        Ok(())
    }
}
