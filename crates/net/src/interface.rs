//! Network interfaces that a participant may announce and receive on.
//!
//! A snapshot of the kernel's IPv4 addresses. [`InterfaceWatch`](crate::InterfaceWatch)
//! says when to list them again.

use std::io;
use std::net::Ipv4Addr;

use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::{InterfaceFlags, if_nametoindex};

use crate::sys;

/// One IPv4 address of one interface that is up.
///
/// An interface with several addresses gives several entries with the same
/// `index`; join multicast groups once per index, not per entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Kernel name, such as `eth0`; an alias label (`eth0:1`) is kept as is.
    pub name: String,
    /// Kernel index, never 0; the key for joining groups and for sending.
    pub index: u32,
    /// One IPv4 address of it; an interface with several has an entry for each.
    pub address: Ipv4Addr,
    /// Leading one bits of the netmask, 0 to 32.
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
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let mask = u32::MAX
            .checked_shl(32 - u32::from(self.prefix_length.min(32)))
            .unwrap_or(0);
        u32::from(self.address) & mask == u32::from(address) & mask
    }
}

/// Lists the IPv4 addresses of all interfaces that are up, one entry each.
///
/// Allocates, makes a few system calls per interface; not for the hot path.
/// An interface that disappears while being asked is left out. Order: loopback
/// last, else as the kernel lists them.
///
/// # Errors
/// The operating system's error when the list cannot be read at all.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = getifaddrs()
        .map_err(|e| {
            io::Error::new(
                io::Error::from(e).kind(),
                format!("list network interfaces: {e}"),
            )
        })?
        .filter_map(entry)
        .collect();
    found.sort_by_key(|interface| interface.loopback);
    Ok(found)
}

fn entry(raw: InterfaceAddress) -> Option<Interface> {
    if !raw.flags.contains(InterfaceFlags::IFF_UP) {
        return None;
    }
    let address = raw.address.as_ref()?.as_sockaddr_in()?.ip();
    let netmask = raw
        .netmask
        .as_ref()
        .and_then(|mask| mask.as_sockaddr_in().map(|mask| mask.ip()))
        .unwrap_or(Ipv4Addr::BROADCAST);
    let index = if_nametoindex(raw.interface_name.as_str()).ok()?;
    let mtu = sys::interface_mtu(&raw.interface_name).ok()?;
    Some(Interface {
        index,
        address,
        prefix_length: u32::from(netmask).leading_ones() as u8,
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
        assert!(lo.contains(Ipv4Addr::new(127, 3, 2, 1)));
        assert!(!lo.contains(Ipv4Addr::new(128, 0, 0, 1)));
        assert!(
            all.last().expect("not empty").loopback,
            "loopback comes last"
        );
    }

    #[test]
    fn subnet_test_survives_the_extreme_prefixes() {
        let mut interface = interfaces().expect("interfaces").remove(0);
        interface.address = Ipv4Addr::new(10, 0, 0, 1);
        interface.prefix_length = 0;
        assert!(interface.contains(Ipv4Addr::new(203, 0, 113, 9)));
        interface.prefix_length = 32;
        assert!(!interface.contains(Ipv4Addr::new(10, 0, 0, 2)));
    }
}
