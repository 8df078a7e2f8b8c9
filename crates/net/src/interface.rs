//! Network interfaces that a participant may announce and receive on.
//!
//! A snapshot of the kernel's addresses. [`InterfaceWatch`](crate::InterfaceWatch)
//! says when to list them again.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

use crate::sys;

/// One address of one interface that is up.
///
/// An interface with several addresses gives several entries with the same
/// `index`; join multicast groups once per index, not per entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Kernel name, such as `eth0`; an alias label (`eth0:1`) is kept as is.
    pub name: String,
    /// Kernel index, never 0; the key for joining groups and for sending.
    pub index: u32,
    /// One address of it; an interface with several has an entry for each.
    pub address: IpAddr,
    /// Leading one bits of the netmask, 0 to 32 or 128.
    pub prefix_length: u8,
    /// Whether packets sent here never leave the host.
    pub loopback: bool,
    /// Whether the interface carries multicast. Loopback usually does not.
    pub multicast: bool,
    /// Whether it is administratively up; always true in [`interfaces`].
    pub up: bool,
    /// Whether it can carry packets (IFF_RUNNING, RFC 2863 operational status): false
    /// without a carrier, or for Wi-Fi without an access point.
    pub running: bool,
    /// Largest IP packet in bytes before fragmentation (65536 on loopback).
    pub mtu: u32,
}

impl Interface {
    /// Whether `address` lies in the subnet of this entry. Allocates nothing.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, theirs, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(theirs)) => {
                (own.to_bits().into(), theirs.to_bits().into(), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(theirs)) => (own.to_bits(), theirs.to_bits(), 128_u32),
            _ => return false,
        };
        let host_bits = width.saturating_sub(self.prefix_length.into());
        let network = |bits: u128| bits.checked_shr(host_bits).unwrap_or(0);
        network(own) == network(theirs)
    }
}

/// Lists the addresses of all interfaces that are up, one entry each. An IPv6 address
/// that is not usable (yet), because the kernel looks for a duplicate, is left out.
///
/// Allocates, makes a few system calls per interface; not for the hot path.
/// An interface that disappears while being asked is left out. Order: loopback
/// last, IPv4 before IPv6 and its link-local addresses, else as the kernel lists them.
///
/// # Errors
/// The operating system's error when the list cannot be read at all.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let unusable = unusable_v6();
    let mut found: Vec<Interface> = getifaddrs()
        .map_err(|e| {
            io::Error::new(
                io::Error::from(e).kind(),
                format!("list network interfaces: {e}"),
            )
        })?
        .filter_map(entry)
        .filter(|found| !unusable.contains(&found.address))
        .collect();
    let rank = |address: &IpAddr| match address {
        IpAddr::V4(_) => 0,
        IpAddr::V6(v6) => 1 + u8::from(v6.is_unicast_link_local()),
    };
    found.sort_by_key(|interface| (interface.loopback, rank(&interface.address)));
    Ok(found)
}

/// IPv6 addresses that cannot be used: tentative ones, duplicates, and temporary ones,
/// which change every day (RFC 8981) while a stable one is beside them.
fn unusable_v6() -> Vec<IpAddr> {
    // Address, index, prefix length, scope, flags and name, in hexadecimal digits.
    let list = std::fs::read_to_string("/proc/thread-self/net/if_inet6").unwrap_or_default();
    let unusable = list.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        (flags & IFA_UNUSABLE != 0).then_some(Ipv6Addr::from_bits(address).into())
    });
    unusable.collect()
}

/// IFA_F_TEMPORARY, IFA_F_DADFAILED and IFA_F_TENTATIVE of `linux/if_addr.h`.
const IFA_UNUSABLE: u32 = 0x01 | 0x08 | 0x40;

fn entry(raw: InterfaceAddress) -> Option<Interface> {
    if !raw.flags.contains(InterfaceFlags::IFF_UP) {
        return None;
    }
    let ip = |of: &SockaddrStorage| -> Option<IpAddr> {
        let v4 = of.as_sockaddr_in().map(|v4| v4.ip().into());
        v4.or_else(|| Some(of.as_sockaddr_in6()?.ip().into()))
    };
    let address = ip(raw.address.as_ref()?)?;
    let prefix_length = match raw.netmask.as_ref().and_then(ip) {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        None if address.is_ipv4() => 32,
        None => 128,
    };
    let index = if_nametoindex(raw.interface_name.as_str()).ok()?;
    let mtu = sys::interface_mtu(&raw.interface_name).ok()?;
    Some(Interface {
        index,
        address,
        prefix_length: prefix_length as u8,
        loopback: raw.flags.contains(InterfaceFlags::IFF_LOOPBACK),
        multicast: raw.flags.contains(InterfaceFlags::IFF_MULTICAST),
        up: true,
        running: raw.flags.contains(InterfaceFlags::IFF_RUNNING),
        mtu,
        name: raw.interface_name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn loopback_is_listed_with_its_subnet_and_mtu() {
        let all = interfaces().expect("interfaces");
        let lo = all
            .iter()
            .find(|i| i.address == Ipv4Addr::LOCALHOST)
            .expect("127.0.0.1 is up where these tests run");
        assert!(lo.loopback && lo.up && lo.running && lo.index > 0);
        assert_eq!(lo.prefix_length, 8);
        assert!(lo.mtu >= 1280, "mtu {}", lo.mtu);
        assert!(lo.contains(Ipv4Addr::new(127, 3, 2, 1).into()));
        assert!(!lo.contains(Ipv4Addr::new(128, 0, 0, 1).into()));
        assert!(
            all.last().expect("not empty").loopback,
            "loopback comes last"
        );
    }

    #[test]
    fn subnet_test_survives_the_extreme_prefixes() {
        let mut interface = interfaces().expect("interfaces").remove(0);
        interface.address = Ipv4Addr::new(10, 0, 0, 1).into();
        interface.prefix_length = 0;
        assert!(interface.contains(Ipv4Addr::new(203, 0, 113, 9).into()));
        interface.prefix_length = 32;
        assert!(!interface.contains(Ipv4Addr::new(10, 0, 0, 2).into()));
    }
    #[test]
    fn a_subnet_holds_addresses_of_its_kind_only() {
        let mut interface = interfaces().expect("interfaces").remove(0);
        interface.address = "fd00:7::1".parse().expect("address");
        interface.prefix_length = 64;
        assert!(interface.contains("fd00:7::ffff".parse().expect("address")));
        assert!(!interface.contains("fd00:7:0:1::1".parse().expect("address")));
        interface.prefix_length = 0;
        assert!(interface.contains("2001:db8::1".parse().expect("address")));
        assert!(!interface.contains(Ipv4Addr::LOCALHOST.into()));
    }
}
