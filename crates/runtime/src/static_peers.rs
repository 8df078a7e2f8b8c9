//! Static peers (ROS_STATIC_PEERS): addresses of hosts that get unicast announcements. And
//! discovery servers (ROS_DISCOVERY_SERVER), which are written in the same form.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use pteros_net::interfaces;
use pteros_rtps::locator::IpAddress;

/// The peers that a configuration names: as text, or resolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPeers<Peer = String, Server = String> {
    /// `ROS_STATIC_PEERS`: hosts that receive unicast announcements. Empty when the discovery
    /// range does not use them.
    pub static_peers: Vec<Peer>,
    /// `ROS_DISCOVERY_SERVER`: discovery servers of Fast DDS. With any, neither the multicast
    /// group nor the ports of this host receive announcements. Empty in the range `OFF`.
    pub discovery_servers: Vec<Server>,
    /// `ROS_SUPER_CLIENT`: whether those relay all participants and endpoints, not only those
    /// of the context's topics.
    pub is_super_client: bool,
}

impl<Peer, Server> Default for NamedPeers<Peer, Server> {
    fn default() -> Self {
        Self {
            static_peers: Vec::new(),
            discovery_servers: Vec::new(),
            is_super_client: false,
        }
    }
}

/// A static peer with its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticPeer {
    /// At least one.
    pub addresses: Vec<IpAddress>,
    /// Its only discovery port; `None`: the ports of the first participants of the domain.
    pub port: Option<u16>,
}

impl StaticPeer {
    /// Resolves `name`, `address`, `name:port`, `a.b.c.d:port`, `[v6]` or `[v6]:port`. A
    /// link-local address needs its interface: `fe80::1%eth0`. Blocks while the system's
    /// resolver works.
    ///
    /// # Errors
    /// A text for the end of a sentence that names the peer: the fault and the remedy.
    pub fn resolve(peer: &str) -> Result<Self, String> {
        let (host, port) = split_port(peer)?;
        let addresses = match address(host)? {
            Some(address) => vec![address],
            None => resolve_name(host, "ROS_STATIC_PEERS")?,
        };
        Ok(Self { addresses, port })
    }

    /// Whether only IPv6 reaches it.
    pub(crate) fn needs_v6(&self) -> bool {
        self.addresses.iter().all(|address| address.is_v6())
    }
}

/// A discovery server of Fast DDS with its addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscoveryServer {
    /// At least one.
    pub addresses: Vec<IpAddress>,
    /// Its discovery port.
    pub port: u16,
}

impl DiscoveryServer {
    /// The port of a server that names none.
    pub const PORT: u16 = 11811;

    /// Resolves one in the form of a static peer, or `UDPv4:[address]:port`. The address
    /// `0.0.0.0` is this host, as in Fast DDS. Blocks while the system's resolver works.
    ///
    /// # Errors
    /// A text for the end of a sentence that names the server: the fault and the remedy.
    pub fn resolve(server: &str) -> Result<Self, String> {
        let (host, port) = Self::parts(server)?;
        let host = match host {
            "0.0.0.0" => "127.0.0.1",
            "::" => "::1",
            host => host,
        };
        let addresses = match address(host)? {
            Some(address) => vec![address],
            None => resolve_name(host, "ROS_DISCOVERY_SERVER")?,
        };
        Ok(Self { addresses, port })
    }

    /// As [`Self::resolve`], without looking up a name.
    ///
    /// # Errors
    /// As those of [`Self::resolve`].
    pub(crate) fn check(server: &str) -> Result<(), String> {
        Self::parts(server).map(|_| ())
    }

    fn parts(server: &str) -> Result<(&str, u16), String> {
        let text = match server.split_once(":[") {
            None => server,
            Some(("UDPv4" | "UDPv6", _)) => &server["UDPv4:".len()..],
            Some((kind, _)) => {
                return Err(format!("{kind} is not supported; RTPS uses UDP"));
            }
        };
        if text
            .get(..3)
            .is_some_and(|kind| kind.eq_ignore_ascii_case("tcp"))
            && text.contains(':')
        {
            return Err("TCP is not supported; RTPS uses UDP".into());
        }
        let (host, port) = split_port(text)?;
        match host.is_empty() {
            true => Err("it has no address; write 127.0.0.1 for this host".into()),
            false => Ok((host, port.unwrap_or(Self::PORT))),
        }
    }

    /// Whether only IPv6 reaches it.
    pub(crate) fn needs_v6(&self) -> bool {
        self.addresses.iter().all(|address| address.is_v6())
    }
}

/// Splits a peer into host and port. An IPv6 address with a port is in brackets.
fn split_port(peer: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match peer.strip_prefix('[') {
        Some(rest) => {
            let parts = rest.split_once(']');
            let (host, rest) = parts.ok_or("its '[' is not closed; write [address]:port")?;
            (host, if rest.is_empty() { None } else { Some(rest) })
        }
        None => match peer.split_once(':') {
            Some((host, rest)) if !rest.contains(':') => {
                (host, Some(&peer[peer.len() - rest.len() - 1..]))
            }
            _ => (peer, None),
        },
    };
    let Some(port) = port else {
        return Ok((host, None));
    };
    let number = port.strip_prefix(':').and_then(|port| port.parse().ok());
    match number.filter(|port| *port != 0) {
        Some(port) => Ok((host, Some(port))),
        None => Err(format!("{port:?} is no port; write :7410, or nothing")),
    }
}

/// An IP address; `None` for a name.
fn address(host: &str) -> Result<Option<IpAddress>, String> {
    let (text, zone) = match host.split_once('%') {
        Some((text, zone)) => (text, Some(zone)),
        None => (host, None),
    };
    let Ok(ip) = text.parse::<IpAddr>() else {
        return match zone {
            Some(_) => Err(format!("{text:?} before '%' is no IPv6 address")),
            None => Ok(None),
        };
    };
    let is_link_local = matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local());
    let zone = match zone {
        Some(_) if !is_link_local => {
            return Err(
                "only a link-local address (fe80::…) has an interface; leave out '%…'".into(),
            );
        }
        Some(zone) => interface_index(zone)?,
        None if is_link_local => {
            return Err(format!(
                "a link-local address needs its interface; write {text}%eth0"
            ));
        }
        None => 0,
    };
    let address = IpAddress::new(ip, zone);
    if !address.is_unicast() {
        return Err("it is not the address of one host".into());
    }
    Ok(Some(address))
}

/// The index of an interface by its name or number.
fn interface_index(zone: &str) -> Result<u32, String> {
    let all = interfaces().map_err(|e| e.to_string())?;
    let number: Option<u32> = zone.parse().ok();
    let found = all
        .iter()
        .find(|i| i.name == zone || Some(i.index) == number);
    found.map(|i| i.index).ok_or_else(|| {
        let mut known: Vec<&str> = all.iter().map(|i| i.name.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        format!("no interface {zone:?} is up (up: {})", known.join(", "))
    })
}

fn resolve_name(name: &str, variable: &str) -> Result<Vec<IpAddress>, String> {
    let found = (name, 0).to_socket_addrs().map_err(|error| {
        format!(
            "{error}; use an address or a name that resolves to one, separated by ';' in {variable}"
        )
    })?;
    let address = |found: SocketAddr| match found {
        SocketAddr::V4(v4) => IpAddress::from(IpAddr::from(*v4.ip())),
        SocketAddr::V6(v6) => IpAddress::new(IpAddr::from(*v6.ip()), v6.scope_id()),
    };
    let mut addresses: Vec<IpAddress> = found.map(address).filter(|a| a.is_unicast()).collect();
    addresses.dedup();
    match addresses.is_empty() {
        true => Err("it has no usable address".into()),
        false => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    fn peer(text: &str) -> (IpAddress, Option<u16>) {
        let peer = StaticPeer::resolve(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(peer.addresses.len(), 1, "{text}");
        (peer.addresses[0], peer.port)
    }

    fn v6(text: &str, zone: u32) -> IpAddress {
        IpAddress::new(IpAddr::V6(text.parse::<Ipv6Addr>().unwrap()), zone)
    }

    #[test]
    fn a_peer_is_an_address_with_or_without_interface_and_port() {
        let lo = interfaces().unwrap().into_iter().find(|i| i.name == "lo");
        let lo = lo.expect("loopback").index;
        let v4 = IpAddress::from(IpAddr::from(Ipv4Addr::new(10, 1, 2, 3)));
        assert_eq!(peer("10.1.2.3"), (v4, None));
        assert_eq!(peer("10.1.2.3:7412"), (v4, Some(7412)));
        assert_eq!(peer("::ffff:10.1.2.3"), (v4, None), "mapped");
        assert_eq!(peer("fd12::7"), (v6("fd12::7", 0), None));
        assert_eq!(peer("[fd12::7]"), (v6("fd12::7", 0), None));
        assert_eq!(peer("[fd12::7]:9000"), (v6("fd12::7", 0), Some(9000)));
        assert_eq!(peer("fe80::7%lo"), (v6("fe80::7", lo), None));
        assert_eq!(peer("[fe80::7%lo]:7410"), (v6("fe80::7", lo), Some(7410)));
        assert_eq!(peer(&format!("fe80::7%{lo}")), (v6("fe80::7", lo), None));
        assert!(StaticPeer::resolve("fd12::7").unwrap().needs_v6());
        assert!(!StaticPeer::resolve("10.1.2.3").unwrap().needs_v6());
    }

    #[test]
    fn a_discovery_server_is_a_peer_with_a_port_of_its_own() {
        let v4 = |last| IpAddress::from(IpAddr::from(Ipv4Addr::new(10, 1, 2, last)));
        let local = IpAddress::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        for (text, address, port) in [
            ("10.1.2.3", v4(3), 11811),
            ("10.1.2.3:7412", v4(3), 7412),
            ("0.0.0.0:7412", local, 7412),
            ("UDPv4:[10.1.2.3]:7412", v4(3), 7412),
            ("UDPv4:[10.1.2.3]", v4(3), 11811),
            ("fd12::7", v6("fd12::7", 0), 11811),
            ("[fd12::7]:9000", v6("fd12::7", 0), 9000),
            ("UDPv6:[fd12::7]:9000", v6("fd12::7", 0), 9000),
            ("[::]", v6("::1", 0), 11811),
        ] {
            let server = DiscoveryServer::resolve(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            assert_eq!(
                (server.addresses, server.port),
                (vec![address], port),
                "{text}"
            );
        }
        assert!(
            !DiscoveryServer::resolve("localhost")
                .unwrap()
                .addresses
                .is_empty()
        );
        for (text, part) in [
            ("TCPv4:[10.1.2.3]:42100", "TCPv4 is not supported"),
            ("SHM:[0]:7412", "SHM is not supported"),
            ("tcp:10.1.2.3:42100", "TCP is not supported"),
            (":11811", "no address"),
            ("10.1.2.3:0", "no port"),
            ("10.1.2.3:dds", "no port"),
            ("[fd12::7", "not closed"),
            ("fe80::7", "needs its interface"),
            ("239.255.0.1", "not the address of one host"),
        ] {
            let error = DiscoveryServer::resolve(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_peer_is_named() {
        for (text, part) in [
            ("fe80::7", "write fe80::7%eth0"),
            ("[fe80::7]:7410", "needs its interface"),
            ("fe80::7%nowhere0", "no interface \"nowhere0\" is up (up: "),
            ("fd12::7%lo", "leave out"),
            ("10.1.2.3%lo", "leave out"),
            ("robot%lo", "\"robot\" before '%'"),
            ("[fd12::7", "not closed"),
            ("[fd12::7]:", "\":\" is no port"),
            ("[fd12::7]7410", "\"7410\" is no port"),
            ("[fd12::7]:70000", "\":70000\" is no port"),
            ("10.1.2.3:0", "\":0\" is no port"),
            ("10.1.2.3:dds", "\":dds\" is no port"),
            ("ff02::1", "not the address of one host"),
            ("239.255.0.1", "not the address of one host"),
            ("::", "not the address of one host"),
        ] {
            let error = StaticPeer::resolve(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
