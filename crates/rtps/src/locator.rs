//! Where datagrams go: locators (RTPS 2.5 §9.3.2), and the choice among the
//! several that a peer announces.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

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

/// Where to send for one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Destinations: every datagram goes to each of them.
    pub locators: Arc<[Locator]>,
    /// Whether the peer is on this host, so that large datagrams are safe.
    pub same_host: bool,
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
            Some((locator, same_host)) => Route {
                locators: Arc::from([locator].as_slice()),
                same_host,
            },
            None => Route {
                locators: Arc::from([].as_slice()),
                same_host: false,
            },
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
        assert_eq!((&*route.locators, route.same_host), (&[here][..], true));
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
