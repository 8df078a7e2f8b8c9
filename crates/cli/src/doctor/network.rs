//! Network checks: interfaces, multicast, ports, and send and receive buffers.

use super::finding::{Finding, Findings};
use super::host::read_kernel_file;
use super::zenoh;
use crate::session::Session;
use pteros::config::Config;
use pteros_net::{Interface, UdpSocket, interfaces};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Multicast group of SPDP (RTPS 2.5 §9.6.1.4.1).
const GROUP: IpAddr = IpAddr::V4(Ipv4Addr::new(239, 255, 0, 1));
/// The same with IPv6, of Cyclone DDS.
const GROUP_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1));
/// Largest transmission time within this host.
const WAIT_MAX: Duration = Duration::from_millis(200);

/// Checks the network of this host. The sockets of the session report their
/// buffers. Multicast, ports and buffers are RTPS's: Zenoh alone uses none of them.
pub fn check(session: Option<&Session>) -> Vec<Finding> {
    let mut found = Findings::new("network");
    let has_rtps = !session.is_some_and(zenoh::is_alone);
    let versions = Config::from_environment()
        .unwrap_or_default()
        .network
        .ip_versions;
    match interfaces().map(|list| versions.in_use(list)) {
        Ok(list) => {
            report_addresses(&list, &mut found);
            if session.is_some_and(|session| !session.context.discovery_servers().is_empty()) {
                found.note("multicast is not used: ROS_DISCOVERY_SERVER is set");
            } else if has_rtps {
                check_multicast(&list, &mut found);
            }
        }
        Err(error) => found.error(
            format!("the interfaces cannot be listed: {error}"),
            "list them with: ip address",
        ),
    }
    if !has_rtps {
        return found.into_list();
    }
    if let Ok(config) = Config::from_environment() {
        let range = read_kernel_file("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        check_ports(config.domain_id, &range, &mut found);
    }
    let advice = session.map_or(&[] as &[String], |session| {
        session.context.socket_buffer_warnings()
    });
    for advice in advice {
        let (what, fix) = advice
            .split_once("; ")
            .unwrap_or((advice, "see docs/reference/environment.md"));
        found.warn(what, fix);
    }
    if session.is_some() && advice.is_empty() {
        found.ok("socket send and receive buffers have the requested sizes");
    }
    found.into_list()
}

fn report_addresses(list: &[Interface], found: &mut Findings) {
    for interface in list {
        let of = format!(
            "{} {}/{}, MTU {}",
            interface.name, interface.address, interface.prefix_length, interface.mtu
        );
        if !interface.running {
            found.note_with(
                format!("{of}, without a carrier: peers are reached at other addresses"),
                format!(
                    "check cable or access point: ip link show {}",
                    interface.name
                ),
            )
        } else if interface.multicast || interface.loopback {
            found.ok(of)
        } else {
            found.note_with(
                format!("{of}, without multicast"),
                format!(
                    "sudo ip link set {} multicast on, or name the hosts behind it in ROS_STATIC_PEERS",
                    interface.name
                ),
            )
        }
    }
    if !list.iter().any(|interface| !interface.loopback) {
        found.note("this host has only the loopback interface");
    }
}

/// Checks that a datagram to the multicast group is received on the same interface.
/// The datagrams stay on this host (TTL 0).
fn check_multicast(list: &[Interface], found: &mut Findings) {
    if !list.iter().any(|i| i.multicast) {
        return found.note_with(
            "no interface supports multicast: peers on other hosts are not discovered automatically",
            "name them in ROS_STATIC_PEERS; processes of this host are discovered without it",
        );
    }
    for group in [GROUP, GROUP_V6] {
        let of_version = list
            .iter()
            .filter(|i| i.address.is_ipv6() == group.is_ipv6());
        let mut capable: Vec<&Interface> = of_version.filter(|i| i.multicast).collect();
        capable.dedup_by_key(|interface| interface.index);
        if !capable.is_empty() {
            check_group(group, capable, found);
        }
    }
}

fn check_group(group: IpAddr, capable: Vec<&Interface>, found: &mut Findings) {
    let receiver = match UdpSocket::bind_multicast(group, 0) {
        Ok(socket) => socket,
        Err(error) => return found.error(error.to_string(), advice_on_group_socket(&error)),
    };
    let to = SocketAddr::new(group, receiver.local_port());
    let with = if group.is_ipv6() { " with IPv6" } else { "" };
    let mut waiting: Vec<&Interface> = Vec::new();
    for interface in capable {
        let sent = receiver
            .join(group, interface)
            .and_then(|()| UdpSocket::bind_unicast(own_address(interface), 0))
            .and_then(|socket| {
                socket.set_multicast(0, true)?;
                socket.send_via(&[IoSlice::new(b"pteros doctor")], to, interface)
            });
        match sent {
            Ok(_) => waiting.push(interface),
            Err(error) => found.warn(
                format!("multicast on {}{with}: {error}", interface.name),
                format!(
                    "check route and firewall: ip route get {group} oif {}",
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
                // The sender of each interface is bound to its address.
                let is_it = match received.interface_index {
                    Some(index) => index == interface.index,
                    None => received.from.ip() == interface.address,
                };
                if is_it {
                    found.ok(format!("multicast on {}{with} is received", interface.name));
                }
                !is_it
            }),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    for interface in waiting {
        found.warn(
            format!("multicast on {}{with} is not received", interface.name),
            "allow it in the firewall: sudo ufw allow in proto udp to 224.0.0.0/4, and from 224.0.0.0/4; or name peers in ROS_STATIC_PEERS. Between hosts: pteros doctor hello",
        );
    }
}

/// The address that a sender on an interface is bound to. The interface's own IPv6 address
/// may be link-local, and is not needed: the kernel tells where a datagram arrived.
fn own_address(interface: &Interface) -> IpAddr {
    match interface.address {
        IpAddr::V4(_) => interface.address,
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The way out when no socket of a multicast group can be opened.
fn advice_on_group_socket(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "find the process that uses the port with: ss -ulpn",
        io::ErrorKind::PermissionDenied => {
            "allow socket and setsockopt in the seccomp or AppArmor profile of this container or service"
        }
        _ => {
            "the kernel or an emulator lacks what RTPS discovery needs: name peers in ROS_STATIC_PEERS with ROS_AUTOMATIC_DISCOVERY_RANGE=OFF"
        }
    }
}

/// Checks the port mapping: RTPS 2.5 §9.6.1.1 gives each domain 250 ports.
fn check_ports(domain_id: u32, ephemeral: &str, found: &mut Findings) {
    let first = 7_400 + 250 * domain_id;
    let last = (first + 249).min(65_535);
    let mut range = ephemeral
        .split_whitespace()
        .filter_map(|n| n.parse::<u32>().ok());
    match (range.next(), range.next()) {
        (Some(low), Some(high)) if first <= high && low <= last => found.warn(
            format!(
                "domain {domain_id} uses ports {first} to {last}, which overlap the kernel's ephemeral ports ({low} to {high})"
            ),
            format!(
                "choose a domain from 0 to {}, or sudo sysctl -w net.ipv4.ip_local_reserved_ports={first}-{last}",
                low.saturating_sub(7_650) / 250
            ),
        ),
        _ => found.ok(format!("domain {domain_id}: UDP ports {first} to {last}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::FindingSeverity;
    use super::*;

    #[test]
    fn only_a_taken_port_is_blamed_on_another_process() {
        for (kind, part) in [
            (io::ErrorKind::AddrInUse, "ss -ulpn"),
            (io::ErrorKind::PermissionDenied, "seccomp"),
            (io::ErrorKind::Unsupported, "ROS_STATIC_PEERS"),
            (io::ErrorKind::InvalidInput, "ROS_STATIC_PEERS"),
        ] {
            let advice = advice_on_group_socket(&kind.into());
            assert!(advice.contains(part), "{kind}: {advice}");
        }
    }

    #[test]
    fn domains_that_overlap_the_ephemeral_ports_are_reported() {
        let weight = |domain| {
            let mut found = Findings::new("network");
            check_ports(domain, "32768\t60999", &mut found);
            found.into_list()[0].clone()
        };
        assert_eq!(weight(0).severity, FindingSeverity::Ok);
        assert_eq!(weight(100).severity, FindingSeverity::Ok);
        assert_eq!(weight(215).severity, FindingSeverity::Ok);
        let found = weight(102);
        assert_eq!(found.severity, FindingSeverity::Warning);
        assert!(
            found
                .fix
                .unwrap()
                .starts_with("choose a domain from 0 to 100")
        );
    }
}
