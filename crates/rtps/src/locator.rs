//! Locators (RTPS 2.5 §9.3.2), unicast and multicast, and the choice of a route to
//! a peer among its announced locators.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::id::GuidPrefix;

/// A transport address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Locator {
    /// [`Locator::KIND_UDP_V4`], [`Locator::KIND_UDP_V6`] or another vendor's.
    pub kind: i32,
    /// UDP port.
    pub port: u32,
    /// IPv6 address, or twelve zeros and an IPv4 address.
    pub address: [u8; 16],
}

impl Locator {
    /// UDP over IPv4.
    pub const KIND_UDP_V4: i32 = 1;
    /// UDP over IPv6 (parsed and kept, but not used for sending).
    pub const KIND_UDP_V6: i32 = 2;
    /// A shared-memory connection to a process of this host.
    ///
    /// The port is the number of the connection, the address the peer's GUID
    /// prefix. It has a meaning within this process only and is never announced. Of
    /// a peer's locators only UDPv4 ones are used.
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

    /// The IPv4 address and port, for a UDPv4 locator with a non-zero port. (A zero
    /// port caused a denial of service in another stack.)
    pub fn to_udp_v4(self) -> Option<([u8; 4], u16)> {
        let port = u16::try_from(self.port).ok().filter(|p| *p != 0)?;
        if self.kind != Self::KIND_UDP_V4 {
            return None;
        }
        let a = self.address;
        Some(([a[12], a[13], a[14], a[15]], port))
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

    /// Whether it is an IPv4 multicast group.
    pub fn is_multicast(self) -> bool {
        self.kind == Self::KIND_UDP_V4 && (224..240).contains(&self.address[12])
    }

    /// Whether it is an IPv4 address of one host: no multicast group, not the
    /// broadcast address, not 0.0.0.0 nor a reserved one.
    pub fn is_unicast(self) -> bool {
        self.kind == Self::KIND_UDP_V4 && (1..224).contains(&self.address[12])
    }

    /// Whether it is an IPv4 loopback address.
    pub fn is_loopback(self) -> bool {
        self.kind == Self::KIND_UDP_V4 && self.address[12] == 127
    }
}

impl fmt::Debug for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a = self.address;
        match self.kind {
            Self::KIND_UDP_V4 => write!(
                f,
                "udp/{}.{}.{}.{}:{}",
                a[12], a[13], a[14], a[15], self.port
            ),
            Self::KIND_SHARED_MEMORY => write!(f, "shared memory, connection {}", self.port),
            kind => write!(f, "locator kind {kind} port {} {a:02x?}", self.port),
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One of our own IPv4 interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddress {
    /// Our address.
    pub ip: [u8; 4],
    /// Length of the network prefix in bits, 0 to 32.
    pub prefix_length: u8,
}

impl OwnAddress {
    /// Whether a locator lies in its network.
    fn contains(&self, locator: &Locator) -> bool {
        let a = locator.address;
        let theirs = u32::from_be_bytes([a[12], a[13], a[14], a[15]]);
        let shift = 32_u32.saturating_sub(self.prefix_length.into());
        let ours = u32::from_be_bytes(self.ip);
        ours.checked_shr(shift).unwrap_or(0) == theirs.checked_shr(shift).unwrap_or(0)
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
                .filter(|l| l.to_udp_v4().is_some() && l.is_unicast() && !self.is_broadcast(l))
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

    /// Whether it is the broadcast address of an attached network. A peer that
    /// announces it would make every host answer.
    fn is_broadcast(&self, locator: &Locator) -> bool {
        let a = locator.address;
        let theirs = u32::from_be_bytes([a[12], a[13], a[14], a[15]]);
        // Networks of one or two addresses have no such address (RFC 3021).
        let mut networks = self.all().filter(|own| own.prefix_length < 31);
        networks.any(|own| {
            let host = u32::MAX
                .checked_shr(u32::from(own.prefix_length))
                .unwrap_or(0);
            theirs == u32::from_be_bytes(own.ip) | host
        })
    }

    fn all(&self) -> impl Iterator<Item = &OwnAddress> {
        self.addresses.iter().chain(&self.down)
    }

    /// Whether it is an address of this host, whatever its link does.
    pub(crate) fn has_address(&self, ip: [u8; 4]) -> bool {
        self.all().any(|own| own.ip == ip)
    }

    /// Whether it is at an address of this host.
    fn is_own(&self, locator: &Locator) -> bool {
        self.all().any(|own| locator.address[12..] == own.ip)
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
        locator.is_unicast()
            && !locator.is_loopback()
            && !self.is_own(locator)
            && !self.is_broadcast(locator)
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
                ip: [10, 0, 0, 5],
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

    const fn own(last: u8) -> OwnAddress {
        OwnAddress {
            ip: [10, 0, last, 5],
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
                ip: [10, 0, 0, 4],
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
        assert_eq!(at([1, 2, 3, 4]).to_udp_v4(), Some(([1, 2, 3, 4], 7411)));
        let without_port = Locator {
            port: 0,
            ..at([1, 2, 3, 4])
        };
        let too_high = Locator {
            port: 65_536,
            ..without_port
        };
        for locator in [without_port, too_high] {
            assert_eq!(locator.to_udp_v4(), None, "{locator}");
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
            assert!(!v6.is_unicast() && !v6.is_multicast() && !v6.is_loopback());
            assert_eq!(v6.to_udp_v4(), None);
        }
        let connection = Locator::shared_memory(9, GuidPrefix([3; 12]));
        assert_eq!(connection.to_connection(), Some(9));
        assert_eq!(at([1, 2, 3, 4]).to_connection(), None);
    }
}
