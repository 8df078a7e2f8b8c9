//! Versions of IP, and the SPDP multicast groups of each.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The versions of IP that a participant uses (PTEROS_IP_VERSIONS).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum IpVersions {
    /// IPv4, as in other stacks. IPv6, too, on a host whose interfaces have no IPv4
    /// address, or if a static peer has only IPv6 addresses.
    #[default]
    Automatic,
    /// IPv4 alone.
    V4,
    /// IPv6 alone.
    V6,
    /// Both.
    Both,
}

/// The SPDP multicast address (RTPS 2.5 §9.6.1.4).
pub const DISCOVERY_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 0, 1);

/// The SPDP multicast groups of a version of IP. RTPS names none for IPv6: Cyclone DDS uses
/// the first of those, `ff02::ffff:239.255.0.1`, and Fast DDS the second one. Other Pteros
/// participants hear both.
pub(crate) fn discovery_groups(is_v6: bool) -> &'static [IpAddr] {
    const V4: [IpAddr; 1] = [IpAddr::V4(DISCOVERY_GROUP)];
    const V6: [IpAddr; 2] = [
        IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0xffff, 0xefff, 1)),
        IpAddr::V6(Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0xffff, 0xefff, 1)),
    ];
    if is_v6 { &V6 } else { &V4 }
}
