//! IP addresses of hosts, link-local ones with their zone, as locators, routes and judgements of
//! sources compare them.

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The IP address of a host, with its zone if it is link-local (RFC 4007 §6).
///
/// A link-local IPv6 address names a host only together with the interface behind which
/// that host is: two links may have the same one. The zone is the index of the interface,
/// and lies within the address, in bits that are zero on the wire (RFC 4291 §2.5.6). So
/// addresses of two links are never equal, nor in one network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpAddress(IpAddr);

impl IpAddress {
    /// No address: `0.0.0.0`.
    pub const UNSPECIFIED: Self = Self::v4([0; 4]);

    /// An IPv4 address.
    pub const fn v4([a, b, c, d]: [u8; 4]) -> Self {
        Self(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
    }

    /// An address behind the interface `zone`, which counts for link-local addresses only;
    /// 0 is unknown.
    pub fn new(ip: IpAddr, zone: u32) -> Self {
        let IpAddr::V6(v6) = ip.to_canonical() else {
            return Self(ip.to_canonical());
        };
        Self(IpAddr::V6(with_zone(v6, zone)))
    }

    /// An IPv6 address that holds its zone.
    pub(crate) fn from_octets_with_zone(octets: [u8; 16]) -> Self {
        Self(IpAddr::V6(octets.into()).to_canonical())
    }

    /// The address without its zone.
    pub fn ip(self) -> IpAddr {
        match self.0 {
            IpAddr::V6(v6) => IpAddr::V6(with_zone(v6, 0)),
            v4 @ IpAddr::V4(_) => v4,
        }
    }

    /// The index of the interface behind which a link-local address is; 0 for others, or
    /// if it is unknown.
    pub fn zone(self) -> u32 {
        match self.0 {
            IpAddr::V6(v6) if v6.is_unicast_link_local() => {
                let [_, _, _, _, a, b, c, d, ..] = v6.octets();
                u32::from_be_bytes([a, b, c, d])
            }
            _ => 0,
        }
    }

    /// Whether a host that announces this address may be heard from that one: the same, or
    /// the same behind an interface that is not known yet.
    pub fn may_be(self, heard: Self) -> bool {
        self == heard || (self.zone() == 0 && self.ip() == heard.ip())
    }

    /// Whether it is an IPv6 address.
    pub fn is_v6(self) -> bool {
        self.0.is_ipv6()
    }

    /// Whether it is an IPv6 address that is valid on one link only.
    pub fn is_link_local_v6(self) -> bool {
        matches!(self.0, IpAddr::V6(v6) if v6.is_unicast_link_local())
    }

    /// Whether it is a loopback address.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }

    /// Whether it is a multicast group.
    pub fn is_multicast(self) -> bool {
        self.0.is_multicast()
    }

    /// Whether it is the address of one host, which datagrams can be sent to: no group,
    /// not the broadcast address, no reserved one, and no link-local one without a zone.
    pub fn is_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(v4) => (1..224).contains(&v4.octets()[0]),
            IpAddr::V6(v6) => {
                let has_no_zone = self.is_link_local_v6() && self.zone() == 0;
                !v6.is_multicast() && !v6.is_unspecified() && !has_no_zone
            }
        }
    }

    /// Whether datagrams from it were sent by this host: loopback, or the unspecified
    /// address, from which multicast on loopback may come. The kernel accepts neither from
    /// a network.
    pub fn is_of_any_host(self) -> bool {
        let is_this_network = matches!(self.0, IpAddr::V4(v4) if v4.octets()[0] == 0);
        is_this_network || self.0.is_loopback() || self.0.is_unspecified()
    }

    /// The number of bits of an address of its kind.
    pub(crate) fn width(self) -> u32 {
        if self.is_v6() { 128 } else { 32 }
    }

    /// The address as a number, with its zone.
    pub(crate) fn bits(self) -> u128 {
        match self.0 {
            IpAddr::V4(v4) => v4.to_bits().into(),
            IpAddr::V6(v6) => v6.to_bits(),
        }
    }
}

/// A link-local address in another zone; any other one as it is.
pub(crate) fn with_zone(ip: Ipv6Addr, zone: u32) -> Ipv6Addr {
    if !ip.is_unicast_link_local() {
        return ip;
    }
    let [a, b, c, d, _, _, _, _, rest @ ..] = ip.octets();
    let [e, f, g, h] = zone.to_be_bytes();
    let mut octets = [a, b, c, d, e, f, g, h, 0, 0, 0, 0, 0, 0, 0, 0];
    let (_, interface_id) = octets.split_at_mut(8);
    interface_id.copy_from_slice(&rest);
    octets.into()
}

impl Default for IpAddress {
    fn default() -> Self {
        Self::UNSPECIFIED
    }
}

impl From<[u8; 4]> for IpAddress {
    fn from(octets: [u8; 4]) -> Self {
        Self::v4(octets)
    }
}

impl From<IpAddr> for IpAddress {
    /// Without a zone.
    fn from(ip: IpAddr) -> Self {
        Self::new(ip, 0)
    }
}

impl fmt::Display for IpAddress {
    /// As `ip address` and `ping` write it, with the index of the interface: `fe80::1%2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.zone() {
            0 => self.ip().fmt(f),
            zone => write!(f, "{}%{zone}", self.ip()),
        }
    }
}

impl fmt::Debug for IpAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn v6(text: &str, zone: u32) -> IpAddress {
        IpAddress::new(text.parse().unwrap(), zone)
    }

    #[test]
    fn a_zone_belongs_to_link_local_addresses_only() {
        let (one, other) = (v6("fe80::a:1", 3), v6("fe80::a:1", 4));
        assert_ne!(one, other, "two links may have the same address");
        assert_eq!((one.zone(), other.zone()), (3, 4));
        assert_eq!(one.ip(), other.ip());
        assert!(one.may_be(one) && v6("fe80::a:1", 0).may_be(one));
        assert!(!one.may_be(other) && !v6("fe80::a:2", 0).may_be(one));
        assert!(!v6("fd00::1", 0).may_be(v6("fd00::2", 0)));
        assert_eq!(one.to_string(), "fe80::a:1%3");
        for text in ["fd00::1", "2001:db8::7", "::1", "ff02::1"] {
            let address = v6(text, 9);
            assert_eq!(address, v6(text, 0), "{text}");
            assert_eq!((address.zone(), address.to_string()), (0, text.into()));
        }
        assert_eq!(v6("fe80::a:1", u32::MAX).zone(), u32::MAX);
    }

    #[test]
    fn a_mapped_address_is_the_ipv4_address_that_it_maps() {
        let mapped = v6("::ffff:10.0.0.9", 2);
        assert_eq!(mapped, IpAddress::from([10, 0, 0, 9]));
        assert!(!mapped.is_v6());
        assert_eq!(mapped.to_string(), "10.0.0.9");
    }

    #[test]
    fn only_addresses_of_one_host_are_unicast() {
        for text in ["fd00::1", "2001:db8::7", "::1"] {
            assert!(v6(text, 0).is_unicast(), "{text}");
        }
        for text in ["::", "ff02::1", "ff1e::1", "fe80::1"] {
            assert!(!v6(text, 0).is_unicast(), "{text}");
        }
        assert!(v6("fe80::1", 1).is_unicast());
        assert!(v6("::1", 0).is_of_any_host() && v6("::", 0).is_of_any_host());
        assert!(!v6("fe80::1", 1).is_of_any_host() && !v6("fd00::1", 0).is_of_any_host());
    }
}
