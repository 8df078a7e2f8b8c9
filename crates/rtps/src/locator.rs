//! Where datagrams go: locators (RTPS 2.5 §9.3.2), and the choice among the
//! several that a peer announces.

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
    /// UDP over IPv6 (read, kept, not sent to).
    pub const KIND_UDP_V6: i32 = 2;
    /// A link through shared memory to a process of this host: the number of
    /// the link for port, the peer's GUID prefix for address. It means something
    /// within this process alone: it is never announced, and of a peer's locators
    /// only UDPv4 ones are used.
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

    /// The IPv4 address and port, if that is what it is and the port is a
    /// usable one (a zero port was a denial of service elsewhere).
    pub fn to_udp_v4(self) -> Option<([u8; 4], u16)> {
        let port = u16::try_from(self.port).ok().filter(|p| *p != 0)?;
        if self.kind != Self::KIND_UDP_V4 {
            return None;
        }
        let a = self.address;
        Some(([a[12], a[13], a[14], a[15]], port))
    }

    /// The link with this number, to this peer.
    pub const fn shared_memory(link: u32, peer: GuidPrefix) -> Self {
        let mut address = [0; 16];
        let (prefix, _) = address.split_at_mut(12);
        prefix.copy_from_slice(&peer.0);
        Self {
            kind: Self::KIND_SHARED_MEMORY,
            port: link,
            address,
        }
    }

    /// The number of the link, if it is one.
    pub const fn to_link(self) -> Option<u32> {
        match self.kind {
            Self::KIND_SHARED_MEMORY => Some(self.port),
            _ => None,
        }
    }

    /// Whether it is an IPv4 multicast group.
    pub fn is_multicast(self) -> bool {
        self.kind == Self::KIND_UDP_V4 && (224..240).contains(&self.address[12])
    }

    /// Whether it is an IPv4 address of one host: not a group, not the
    /// broadcast address, not 0.0.0.0 nor any of the reserved ones.
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
            Self::KIND_SHARED_MEMORY => write!(f, "shared memory, link {}", self.port),
            kind => write!(f, "locator kind {kind} port {} {a:02x?}", self.port),
        }
    }
}

impl fmt::Display for Locator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// One of our own IPv4 interfaces, as far as choosing locators needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OwnAddress {
    /// Our address.
    pub ip: [u8; 4],
    /// Length of the network prefix in bits, 0 to 32.
    pub prefix_length: u8,
}

/// Which addresses are ours and how far we may talk.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach {
    /// Our addresses, loopback left out.
    pub own: Vec<OwnAddress>,
    /// Only this host may be reached (ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST).
    pub local_only: bool,
}

/// What carries datagrams to a peer; decides how large they may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RouteKind {
    /// A link through shared memory: samples go whole, of any size, and only
    /// their place is told.
    SharedMemory,
    /// Sockets of this host, where large datagrams are safe.
    SameHost,
    /// A network.
    Network,
}

/// Where to send for one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destinations: every datagram goes to each of them.
    pub locators: Arc<[Locator]>,
    /// What is between us and the peer.
    pub kind: RouteKind,
}

impl Route {
    /// By sockets: to a peer of this host, or across a network.
    pub fn by_socket(locators: &[Locator], same_host: bool) -> Self {
        Self {
            locators: Arc::from(locators),
            kind: match same_host {
                true => RouteKind::SameHost,
                false => RouteKind::Network,
            },
        }
    }

    /// By the link with this locator.
    pub fn by_link(link: Locator) -> Self {
        Self {
            locators: Arc::from([link].as_slice()),
            kind: RouteKind::SharedMemory,
        }
    }

    /// Whether the peer is on this host.
    pub fn is_same_host(&self) -> bool {
        self.kind != RouteKind::Network
    }

    /// Whether it is a link through shared memory.
    pub fn is_shared_memory(&self) -> bool {
        self.kind == RouteKind::SharedMemory
    }
}

impl Reach {
    /// Picks one unicast locator out of a peer's list: an address of this
    /// host first, then one on a network we are attached to, then any that is
    /// routable, then loopback. An empty route means the peer can't be
    /// reached.
    pub fn choose(&self, announced: &[Locator]) -> Route {
        let usable = || {
            announced
                .iter()
                .copied()
                .filter(|l| l.to_udp_v4().is_some() && l.is_unicast() && !self.is_broadcast(l))
        };
        let own = |l: &Locator| self.own.iter().any(|o| l.address[12..] == o.ip);
        let pick = usable()
            .find(own)
            .map(|l| (l, true))
            .or_else(|| usable().find(|l| self.on_link(l)).map(|l| (l, false)))
            .or_else(|| usable().find(|l| !l.is_loopback()).map(|l| (l, false)))
            .or_else(|| usable().find(|l| l.is_loopback()).map(|l| (l, true)))
            .filter(|(_, same_host)| *same_host || !self.local_only);
        match pick {
            Some((locator, same_host)) => Route::by_socket(&[locator], same_host),
            None => Route::by_socket(&[], false),
        }
    }

    /// Whether it is the broadcast address of one of our networks: whoever
    /// claims to live there would have everybody answered.
    fn is_broadcast(&self, locator: &Locator) -> bool {
        let a = locator.address;
        let theirs = u32::from_be_bytes([a[12], a[13], a[14], a[15]]);
        // Networks of one or two addresses have no such address (RFC 3021).
        let mut networks = self.own.iter().filter(|own| own.prefix_length < 31);
        networks.any(|own| {
            let host = u32::MAX
                .checked_shr(u32::from(own.prefix_length))
                .unwrap_or(0);
            theirs == u32::from_be_bytes(own.ip) | host
        })
    }

    fn on_link(&self, locator: &Locator) -> bool {
        let a = locator.address;
        let theirs = u32::from_be_bytes([a[12], a[13], a[14], a[15]]);
        self.own.iter().any(|own| {
            let shift = 32_u32.saturating_sub(own.prefix_length.into());
            let ours = u32::from_be_bytes(own.ip);
            ours.checked_shr(shift).unwrap_or(0) == theirs.checked_shr(shift).unwrap_or(0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_of_this_host_is_reached_by_our_own_address() {
        let reach = Reach {
            own: alloc::vec![OwnAddress {
                ip: [10, 0, 0, 5],
                prefix_length: 24
            }],
            local_only: false,
        };
        let here = Locator::udp_v4([10, 0, 0, 5], 7411);
        let link = Locator::udp_v4([10, 0, 0, 9], 7411);
        let far = Locator::udp_v4([192, 168, 7, 1], 7411);
        let route = reach.choose(&[far, link, here]);
        assert_eq!(route, Route::by_socket(&[here], true));
        assert_eq!(&*reach.choose(&[far, link]).locators, &[link]);
        assert_eq!(&*reach.choose(&[far]).locators, &[far]);
        assert!(
            reach
                .choose(&[Locator { port: 0, ..far }])
                .locators
                .is_empty()
        );
    }
}
