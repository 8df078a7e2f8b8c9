//! Locators (RTPS 2.5 §9.3.2), unicast and multicast, and the choice of a route to
//! a peer among its announced locators.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::id::GuidPrefix;
pub use crate::ip_address::IpAddress;
use crate::ip_address::with_zone;

/// A transport address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// [`Locator::KIND_UDP_V4`], [`Locator::KIND_UDP_V6`] or another vendor's.
    pub kind: i32,
    /// UDP port.
    pub port: u32,
    /// IPv6 address, a link-local one with its zone (see [`IpAddress`]), or twelve zeros
    /// and an IPv4 address.
    pub address: [u8; 16],
}

impl Locator {
    /// UDP over IPv4.
    pub const KIND_UDP_V4: i32 = 1;
    /// UDP over IPv6.
    pub const KIND_UDP_V6: i32 = 2;
    /// A shared-memory connection to a process of this host.
    ///
    /// The port is the number of the connection, the address the peer's GUID
    /// prefix. It has a meaning within this process only and is never announced. Of
    /// a peer's locators only those of UDP are used.
    pub const KIND_SHARED_MEMORY: i32 = -0x5054;

    /// A UDPv4 locator.
    pub const fn udp_v4(ip: [u8; 4], port: u16) -> Self {
        let mut address = [0; 16];
        address[12] = ip[0];
        address[13] = ip[1];
        address[14] = ip[2];
        address[15] = ip[3];
        Self {
            kind: Self::KIND_UDP_V4,
            port: port as u32,
            address,
        }
    }

    /// A UDP locator.
    pub fn udp(ip: IpAddress, port: u16) -> Self {
        Self {
            kind: if ip.is_v6() {
                Self::KIND_UDP_V6
            } else {
                Self::KIND_UDP_V4
            },
            port: port.into(),
            address: ip.bits().to_be_bytes(),
        }
    }

    /// The address and port, for a UDP locator with a non-zero port. (A zero port caused a
    /// denial of service in another stack.) A UDPv6 locator with an IPv4 address has none.
    pub fn to_udp(self) -> Option<(IpAddress, u16)> {
        let port = u16::try_from(self.port).ok().filter(|p| *p != 0)?;
        Some((self.ip()?, port))
    }

    /// The address of a UDP locator.
    pub(crate) fn ip(self) -> Option<IpAddress> {
        let [.., a, b, c, d] = self.address;
        match self.kind {
            Self::KIND_UDP_V4 => Some([a, b, c, d].into()),
            Self::KIND_UDP_V6 => {
                Some(IpAddress::from_octets_with_zone(self.address)).filter(|ip| ip.is_v6())
            }
            _ => None,
        }
    }

    /// The address as messages hold it: without the zone, which has a meaning on this host
    /// only.
    pub fn wire_address(self) -> [u8; 16] {
        match self.kind {
            Self::KIND_UDP_V6 => with_zone(self.address.into(), 0).octets(),
            _ => self.address,
        }
    }

    /// The locator of a peer's link-local address behind the interface `zone`. Any other
    /// one as it is.
    #[must_use]
    pub fn in_zone(self, zone: u32) -> Self {
        match self.kind {
            Self::KIND_UDP_V6 => Self {
                address: with_zone(self.address.into(), zone).octets(),
                ..self
            },
            _ => self,
        }
    }

    /// The connection with this number, to this peer.
    pub const fn shared_memory(connection: u32, peer: GuidPrefix) -> Self {
        let mut address = [0; 16];
        let (prefix, _) = address.split_at_mut(12);
        prefix.copy_from_slice(&peer.0);
        Self {
            kind: Self::KIND_SHARED_MEMORY,
            port: connection,
            address,
        }
    }

    /// The number of the connection, for a shared-memory locator.
    pub const fn to_connection(self) -> Option<u32> {
        match self.kind {
            Self::KIND_SHARED_MEMORY => Some(self.port),
            _ => None,
        }
    }

    /// Whether it is a multicast group.
    pub fn is_multicast(self) -> bool {
        self.ip().is_some_and(IpAddress::is_multicast)
    }

    /// Whether it is the address of one host, see [`IpAddress::is_unicast`].
    pub fn is_unicast(self) -> bool {
        self.ip().is_some_and(IpAddress::is_unicast)
    }

    /// Whether it is at this address, whatever the zones are.
    pub(crate) fn is_at_unzoned(self, ip: IpAddress) -> bool {
        self.ip().is_some_and(|own| own.ip() == ip.ip())
    }

    /// Whether it is a loopback address.
    pub fn is_loopback(self) -> bool {
        self.ip().is_some_and(IpAddress::is_loopback)
    }

    /// Whether it is a link-local IPv6 address.
    pub fn is_link_local_v6(self) -> bool {
        self.ip().is_some_and(IpAddress::is_link_local_v6)
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a = self.address;
        match (self.kind, self.ip()) {
            (_, Some(ip)) if ip.is_v6() => write!(f, "udp/[{ip}]:{}", self.port),
            (_, Some(ip)) => write!(f, "udp/{ip}:{}", self.port),
            (Self::KIND_SHARED_MEMORY, _) => {
                write!(f, "shared memory, connection {}", self.port)
            }
            (kind, _) => write!(f, "locator kind {kind} port {} {a:02x?}", self.port),
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One of our own addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddress {
    /// Our address.
    pub ip: IpAddress,
    /// Length of the network prefix in bits, 0 to 32 or 128.
    pub prefix_length: u8,
}

impl OwnAddress {
    /// Whether a locator lies in its network. The network of a link-local address is
    /// that of its zone.
    fn contains(&self, locator: &Locator) -> bool {
        let network = |ip: IpAddress| ip.bits().checked_shr(self.host_bits()).unwrap_or(0);
        locator
            .ip()
            .is_some_and(|ip| ip.is_v6() == self.ip.is_v6() && network(ip) == network(self.ip))
    }

    /// Whether its network is one of one or two addresses: a tunnel, or a cloud's.
    pub(crate) fn is_point_to_point(&self) -> bool {
        self.host_bits() < 2 && !self.ip.is_loopback()
    }

    /// The broadcast address of its network (IPv4). Networks of one or two addresses have
    /// none (RFC 3021).
    fn broadcast(&self) -> Option<u128> {
        let hosts = u128::from(u32::MAX.checked_shr(self.prefix_length.into()).unwrap_or(0));
        (!self.ip.is_v6() && self.host_bits() > 1).then_some(self.ip.bits() | hosts)
    }

    fn host_bits(&self) -> u32 {
        self.ip.width().saturating_sub(self.prefix_length.into())
    }
}

/// Our addresses and the permitted range of communication.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkScope {
    /// Our addresses.
    pub addresses: Vec<OwnAddress>,
    /// Our addresses on links that carry no packets now.
    pub down: Vec<OwnAddress>,
    /// Only this host may be reached (ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST).
    pub local_only: bool,
}

/// The transport of a route; it decides the size of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteKind {
    /// A shared-memory connection: samples of any size go whole, and only a
    /// descriptor of their chunk is sent.
    SharedMemory,
    /// UDP within this host, where large datagrams are safe.
    SameHost,
    /// UDP across a network.
    Network,
}

/// Where to send for one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destinations: every datagram goes to each of them.
    pub locators: Arc<[Locator]>,
    /// The transport to the peer.
    pub kind: RouteKind,
}

impl Route {
    /// A route by UDP: to a peer of this host, or across a network.
    pub fn by_socket(locators: &[Locator], same_host: bool) -> Self {
        Self {
            locators: Arc::from(locators),
            kind: if same_host {
                RouteKind::SameHost
            } else {
                RouteKind::Network
            },
        }
    }

    /// A route by the connection with this locator.
    pub fn by_shared_memory(connection: Locator) -> Self {
        Self {
            locators: Arc::from([connection].as_slice()),
            kind: RouteKind::SharedMemory,
        }
    }

    /// Whether the peer is on this host.
    pub fn is_same_host(&self) -> bool {
        self.kind != RouteKind::Network
    }

    /// Whether it is a shared-memory connection.
    pub fn is_shared_memory(&self) -> bool {
        self.kind == RouteKind::SharedMemory
    }
}

impl NetworkScope {
    /// Picks one unicast locator of a peer's list.
    ///
    /// In this order: an address of this host, one on an attached network, a
    /// routable one, one on a network whose link is down, loopback. An empty route
    /// means that the peer cannot be reached.
    pub fn choose_route(&self, announced: &[Locator]) -> Route {
        let usable = || {
            announced
                .iter()
                .copied()
                .filter(|l| l.to_udp().is_some() && self.is_usable(l))
        };
        let own = |l: &Locator| self.is_own(l);
        let pick = usable()
            .find(own)
            .map(|l| (l, true))
            .or_else(|| usable().find(|l| self.is_on_link(l)).map(|l| (l, false)))
            .or_else(|| {
                let mut usable = usable().filter(|l| !l.is_loopback());
                let first = usable.clone().next();
                let up = usable.find(|l| !self.is_on_down_link(l));
                up.or(first).map(|l| (l, false))
            })
            .or_else(|| usable().find(|l| l.is_loopback()).map(|l| (l, true)))
            .filter(|(_, same_host)| *same_host || !self.local_only);
        match pick {
            Some((locator, same_host)) => Route::by_socket(&[locator], same_host),
            None => Route::by_socket(&[], false),
        }
    }

    /// Whether it is the address of one host, of a kind that this host has, and not the
    /// broadcast address of an attached network. A peer that announces that would make
    /// every host answer.
    fn is_usable(&self, locator: &Locator) -> bool {
        let Some(ip) = locator.ip().filter(|ip| ip.is_unicast()) else {
            return false;
        };
        // A host without IPv6 reaches none, and one with IPv6 alone still has 127.0.0.1.
        let has_v6 = self.all().any(|own| own.ip.is_v6());
        let is_reached = match ip.is_v6() {
            true => has_v6,
            false if ip.is_loopback() || !has_v6 => true,
            false => self
                .all()
                .any(|own| !own.ip.is_v6() && !own.ip.is_loopback()),
        };
        let mut broadcasts = self.all().filter_map(OwnAddress::broadcast);
        is_reached && (ip.is_v6() || !broadcasts.any(|address| address == ip.bits()))
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &OwnAddress> {
        self.addresses.iter().chain(&self.down)
    }

    /// Whether it is an address of this host, whatever its link does.
    pub(crate) fn has_address(&self, ip: IpAddress) -> bool {
        self.all().any(|own| own.ip == ip)
    }

    /// Whether it is at an address of this host.
    fn is_own(&self, locator: &Locator) -> bool {
        locator.ip().is_some_and(|ip| self.has_address(ip))
    }

    /// Whether it lies in an attached network whose link works.
    pub(crate) fn is_on_link(&self, locator: &Locator) -> bool {
        self.addresses.iter().any(|own| own.contains(locator))
    }

    /// Whether it lies in a network whose only link is down.
    pub(crate) fn is_on_down_link(&self, locator: &Locator) -> bool {
        !self.is_on_link(locator) && self.down.iter().any(|own| own.contains(locator))
    }

    /// Whether both are in one attached network whose link works.
    pub(crate) fn is_same_link(&self, one: &Locator, other: &Locator) -> bool {
        let mut networks = self.addresses.iter();
        networks.any(|own| own.contains(one) && own.contains(other))
    }

    /// Whether it may be an address of another host that we can reach.
    pub(crate) fn may_reach(&self, locator: &Locator) -> bool {
        self.is_usable(locator)
            && !locator.is_loopback()
            && !self.is_own(locator)
            && !self.is_on_down_link(locator)
            && !self.local_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_this_host_is_reached_by_our_own_address() {
        let network = NetworkScope {
            addresses: alloc::vec![OwnAddress {
                ip: [10, 0, 0, 5].into(),
                prefix_length: 24
            }],
            ..NetworkScope::default()
        };
        let here = Locator::udp_v4([10, 0, 0, 5], 7411);
        let on_link = Locator::udp_v4([10, 0, 0, 9], 7411);
        let far = Locator::udp_v4([192, 168, 7, 1], 7411);
        let route = network.choose_route(&[far, on_link, here]);
        assert_eq!(route, Route::by_socket(&[here], true));
        assert_eq!(&*network.choose_route(&[far, on_link]).locators, &[on_link]);
        assert_eq!(&*network.choose_route(&[far]).locators, &[far]);
        assert!(
            network
                .choose_route(&[Locator { port: 0, ..far }])
                .locators
                .is_empty()
        );
    }

    fn own(last: u8) -> OwnAddress {
        OwnAddress {
            ip: [10, 0, last, 5].into(),
            prefix_length: 24,
        }
    }

    fn at(ip: [u8; 4]) -> Locator {
        Locator::udp_v4(ip, 7411)
    }

    /// 10.0.0.0/24 works, 10.0.1.0/24 is down.
    fn two_networks() -> NetworkScope {
        NetworkScope {
            addresses: alloc::vec![own(0)],
            down: alloc::vec![own(1)],
            local_only: false,
        }
    }

    #[test]
    fn only_addresses_of_other_hosts_on_working_links_are_paths() {
        let network = two_networks();
        for (ip, may_reach) in [
            ([10, 0, 0, 9], true),
            ([192, 168, 7, 1], true),
            ([10, 0, 0, 5], false),
            ([10, 0, 1, 5], false),
            ([10, 0, 1, 9], false),
            ([10, 0, 0, 255], false),
            ([127, 0, 0, 1], false),
            ([239, 255, 0, 1], false),
            ([0, 0, 0, 0], false),
        ] {
            assert_eq!(network.may_reach(&at(ip)), may_reach, "{ip:?}");
        }
        let local_only = NetworkScope {
            local_only: true,
            ..network
        };
        assert!(!local_only.may_reach(&at([10, 0, 0, 9])));
    }

    #[test]
    fn addresses_share_a_link_only_in_one_network_that_works() {
        let mut network = two_networks();
        network.addresses.push(own(2));
        let is_same = |one: [u8; 4], other: [u8; 4]| network.is_same_link(&at(one), &at(other));
        assert!(is_same([10, 0, 0, 5], [10, 0, 0, 9]));
        assert!(is_same([10, 0, 2, 1], [10, 0, 2, 9]));
        assert!(!is_same([10, 0, 0, 5], [10, 0, 2, 9]));
        assert!(!is_same([10, 0, 1, 5], [10, 0, 1, 9]));
        assert!(!is_same([10, 0, 0, 5], [192, 168, 7, 1]));
        assert!(network.is_on_down_link(&at([10, 0, 1, 9])));
        network.addresses.push(own(1));
        assert!(!network.is_on_down_link(&at([10, 0, 1, 9])));
    }

    #[test]
    fn a_route_avoids_links_that_are_down_while_another_address_is_announced() {
        let network = two_networks();
        let (down, far) = (at([10, 0, 1, 9]), at([192, 168, 7, 1]));
        assert_eq!(&*network.choose_route(&[down, far]).locators, &[far]);
        assert_eq!(&*network.choose_route(&[down]).locators, &[down]);
        let loopback = at([127, 0, 0, 1]);
        assert_eq!(
            network.choose_route(&[loopback]),
            Route::by_socket(&[loopback], true)
        );
        assert_eq!(&*network.choose_route(&[loopback, far]).locators, &[far]);
        for unusable in [at([10, 0, 0, 255]), at([239, 255, 0, 1]), at([0, 0, 0, 0])] {
            assert!(network.choose_route(&[unusable]).locators.is_empty());
        }
        let local_only = NetworkScope {
            local_only: true,
            ..network
        };
        assert!(local_only.choose_route(&[far]).locators.is_empty());
        let here = at([10, 0, 0, 5]);
        assert_eq!(&*local_only.choose_route(&[far, here]).locators, &[here]);
    }

    #[test]
    fn a_network_of_two_addresses_has_no_broadcast_address() {
        let network = |prefix_length| NetworkScope {
            addresses: alloc::vec![OwnAddress {
                ip: [10, 0, 0, 4].into(),
                prefix_length,
            }],
            ..NetworkScope::default()
        };
        assert!(network(31).may_reach(&at([10, 0, 0, 5])));
        assert!(network(30).may_reach(&at([10, 0, 0, 5])));
        assert!(!network(30).may_reach(&at([10, 0, 0, 7])));
        // A network of all addresses: the broadcast address is of no host.
        assert!(!network(0).may_reach(&at([255, 255, 255, 255])));
    }

    #[test]
    fn locators_tell_their_kind_by_address_and_port() {
        assert_eq!(at([1, 2, 3, 4]).to_udp(), Some(([1, 2, 3, 4].into(), 7411)));
        let without_port = Locator {
            port: 0,
            ..at([1, 2, 3, 4])
        };
        let too_high = Locator {
            port: 65_536,
            ..without_port
        };
        for locator in [without_port, too_high] {
            assert_eq!(locator.to_udp(), None, "{locator}");
        }
        for (first, unicast, multicast) in [
            (0, false, false),
            (1, true, false),
            (223, true, false),
            (224, false, true),
            (239, false, true),
            (240, false, false),
        ] {
            let locator = at([first, 1, 1, 1]);
            assert_eq!(locator.is_unicast(), unicast, "{locator}");
            assert_eq!(locator.is_multicast(), multicast, "{locator}");
            let v6 = Locator {
                kind: Locator::KIND_UDP_V6,
                ..locator
            };
            assert!(!v6.is_multicast() && !v6.is_loopback(), "{v6}");
            assert_ne!(v6.to_udp(), locator.to_udp());
        }
        let connection = Locator::shared_memory(9, GuidPrefix([3; 12]));
        assert_eq!(connection.to_connection(), Some(9));
        assert_eq!(at([1, 2, 3, 4]).to_connection(), None);
    }
    fn v6(text: &str, zone: u32) -> Locator {
        let ip: core::net::IpAddr = text.parse().unwrap();
        Locator::udp(IpAddress::new(ip, zone), 7411)
    }

    fn own_v6(text: &str, zone: u32) -> OwnAddress {
        OwnAddress {
            ip: v6(text, zone).to_udp().unwrap().0,
            prefix_length: 64,
        }
    }

    #[test]
    fn a_locator_names_its_address_and_the_wire_no_zone() {
        let here = v6("fe80::5", 3);
        assert_eq!(alloc::format!("{here}"), "udp/[fe80::5%3]:7411");
        assert_eq!(alloc::format!("{}", v6("fd00::1", 3)), "udp/[fd00::1]:7411");
        assert_eq!(here.wire_address(), v6("fe80::5", 0).address);
        let (ip, port) = here.to_udp().unwrap();
        assert_eq!((ip.zone(), port), (3, 7411));
        assert!(!here.in_zone(0).is_unicast(), "on which link?");
        assert!(v6("ff02::1", 0).is_multicast() && v6("::1", 0).is_loopback());
        // A UDPv6 locator with an IPv4 address would be a second name for a UDPv4 one.
        let mapped: core::net::Ipv6Addr = "::ffff:10.0.0.5".parse().unwrap();
        let mapped = Locator {
            address: mapped.octets(),
            ..here
        };
        assert!(mapped.to_udp().is_none() && !mapped.is_unicast());
    }

    #[test]
    fn ipv6_addresses_are_used_only_by_a_host_that_has_some() {
        let (v4, far) = (at([10, 0, 0, 9]), v6("2001:db8::9", 0));
        let mut network = two_networks();
        assert_eq!(&*network.choose_route(&[far, v4]).locators, &[v4]);
        assert!(network.choose_route(&[far]).locators.is_empty());
        assert!(!network.may_reach(&far));
        network.addresses.push(own_v6("fd00::5", 0));
        let near = v6("fd00::9", 0);
        assert_eq!(&*network.choose_route(&[far, near]).locators, &[near]);
        assert_eq!(&*network.choose_route(&[far]).locators, &[far]);
        // One without IPv4 does not try what only IPv4 reaches.
        network.addresses = alloc::vec![own_v6("fd00::5", 0)];
        network.down.clear();
        assert!(network.choose_route(&[v4]).locators.is_empty());
        assert_eq!(&*network.choose_route(&[v4, far]).locators, &[far]);
    }

    #[test]
    fn the_same_link_local_address_on_two_links_is_two_hosts() {
        let network = NetworkScope {
            addresses: alloc::vec![own_v6("fe80::5", 2), own_v6("fe80::5", 3)],
            ..NetworkScope::default()
        };
        let (here, there) = (v6("fe80::9", 2), v6("fe80::9", 3));
        assert_ne!(here, there);
        assert!(network.is_on_link(&here) && network.is_on_link(&there));
        assert!(!network.is_same_link(&here, &there));
        assert!(!network.is_on_link(&v6("fe80::9", 4)));
        assert!(network.choose_route(&[v6("fe80::5", 3)]).is_same_host());
        assert!(!network.choose_route(&[v6("fe80::5", 4)]).is_same_host());
    }
}
