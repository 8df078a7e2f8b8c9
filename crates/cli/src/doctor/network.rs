//! Interfaces, multicast, ports and buffers.

use super::finding::{Finding, Findings};
use super::host::read;
use crate::session::Session;
use pteros::config::Config;
use pteros_net::{Interface, UdpSocket, interfaces};
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::{Duration, Instant};

/// Of SPDP (RTPS 2.5 §9.6.1.4.1).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);
/// How long a datagram may take within this host.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// Looks at this host's network; the session's sockets tell of buffers and groups.
pub fn check(session: Option<&Session>) -> Vec<Finding> {
    let mut found = Findings::new("network");
    match interfaces() {
        Ok(list) => {
            addresses(&list, &mut found);
            multicast(&list, &mut found);
        }
        Err(error) => found.error(
            format!("the interfaces cannot be listed: {error}"),
            "ip -4 address shows whether there are any",
        ),
    }
    if let Ok(config) = Config::from_environment() {
        let range = read("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        ports(config.domain_id, &range, &mut found);
    }
    let advice = session.map_or(&[] as &[String], |session| session.context.advice());
    for advice in advice {
        let (what, fix) = advice
            .split_once("; ")
            .unwrap_or((advice, "see docs/paths.md"));
        found.warn(what, fix);
    }
    if session.is_some() && advice.is_empty() {
        found.fine("sockets have the buffers that they ask for");
    }
    found.into_list()
}

fn addresses(list: &[Interface], found: &mut Findings) {
    for interface in list {
        let of = format!(
            "{} {}/{}, MTU {}",
            interface.name, interface.address, interface.prefix_length, interface.mtu
        );
        match interface.multicast || interface.loopback {
            true => found.fine(of),
            false => found.note_with(
                format!("{of}, without multicast"),
                format!(
                    "sudo ip link set {} multicast on, or name the hosts behind it in ROS_STATIC_PEERS",
                    interface.name
                ),
            ),
        }
    }
    if !list.iter().any(|interface| !interface.loopback) {
        found.note("this host has no network but itself");
    }
}

/// Whether what is sent to the group on an interface is received on it. The datagrams
/// stay on this host (TTL 0).
fn multicast(list: &[Interface], found: &mut Findings) {
    let mut capable: Vec<&Interface> = list.iter().filter(|i| i.multicast).collect();
    capable.dedup_by_key(|interface| interface.index);
    if capable.is_empty() {
        return found.note_with(
            "no interface carries multicast: peers of other hosts are not found by themselves",
            "name them in ROS_STATIC_PEERS; processes of this host find each other without",
        );
    }
    let receiver = match UdpSocket::bind_multicast(GROUP, 0) {
        Ok(socket) => socket,
        Err(error) => return found.error(error.to_string(), "see ss -ulpn for what has the port"),
    };
    let to = SocketAddrV4::new(GROUP, receiver.local_port());
    let mut waiting: Vec<&Interface> = Vec::new();
    for interface in capable {
        let sent = receiver
            .join(GROUP, interface)
            .and_then(|()| UdpSocket::bind_unicast(interface.address, 0))
            .and_then(|socket| {
                socket.set_multicast(0, true)?;
                socket.send_via(&[IoSlice::new(b"pteros doctor")], to, interface.index)
            });
        match sent {
            Ok(_) => waiting.push(interface),
            Err(error) => found.warn(
                format!("multicast on {}: {error}", interface.name),
                format!(
                    "ip route get {GROUP} oif {}: a route and a firewall may refuse it",
                    interface.name
                ),
            ),
        }
    }
    let end = Instant::now() + WAIT_MAX;
    let mut buffer = [0; 64];
    while !waiting.is_empty() && Instant::now() < end {
        match receiver.receive(&mut buffer) {
            Ok(received) => waiting.retain(|interface| {
                let is_it = received.interface_index == Some(interface.index);
                if is_it {
                    found.fine(format!("multicast on {} comes back", interface.name));
                }
                !is_it
            }),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    for interface in waiting {
        found.warn(
            format!("multicast on {} does not come back", interface.name),
            "let it through the firewall: sudo ufw allow in proto udp to 224.0.0.0/4, and from 224.0.0.0/4; or name peers in ROS_STATIC_PEERS. Between hosts: pteros doctor hello",
        );
    }
}

/// RTPS 2.5 §9.6.1.1: 250 ports for each domain.
fn ports(domain_id: u32, ephemeral: &str, found: &mut Findings) {
    let first = 7_400 + 250 * domain_id;
    let last = (first + 249).min(65_535);
    let mut range = ephemeral
        .split_whitespace()
        .filter_map(|n| n.parse::<u32>().ok());
    match (range.next(), range.next()) {
        (Some(low), Some(high)) if first <= high && low <= last => found.warn(
            format!(
                "domain {domain_id} has ports {first} to {last}, which the kernel gives to others as well ({low} to {high})"
            ),
            format!(
                "choose a domain from 0 to {}, or sudo sysctl -w net.ipv4.ip_local_reserved_ports={first}-{last}",
                low.saturating_sub(7_650) / 250
            ),
        ),
        _ => found.fine(format!("domain {domain_id}: UDP ports {first} to {last}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Weight;
    use super::*;

    #[test]
    fn domains_whose_ports_the_kernel_gives_away_are_warned_of() {
        let weight = |domain| {
            let mut found = Findings::new("network");
            ports(domain, "32768\t60999", &mut found);
            found.into_list()[0].clone()
        };
        assert_eq!(weight(0).weight, Weight::Fine);
        assert_eq!(weight(100).weight, Weight::Fine);
        assert_eq!(weight(215).weight, Weight::Fine);
        let found = weight(102);
        assert_eq!(found.weight, Weight::Warning);
        assert!(
            found
                .fix
                .unwrap()
                .starts_with("choose a domain from 0 to 100")
        );
    }
}
