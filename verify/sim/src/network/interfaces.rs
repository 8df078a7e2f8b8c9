//! Hosts with several addresses on several networks: interfaces that come late, lose
//! their carrier or change their address, and networks that die unseen.
//!
//! A host without an entry has one address on one network that never changes. The
//! transport lists the interfaces of the others through the engine's seam
//! (`DatagramSockets::interfaces_changed`, `DatagramSockets::follow_interfaces`), as the real one
//! does after a notice of the kernel (netlink).

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use pteros_rtps::locator::{Locator, OwnAddress};
use pteros_rtps::participant::LocalLinks;
use pteros_runtime::platform::{DISCOVERY_GROUP, InterfaceChange};

use super::{Network, Socket};

/// Addresses of one network share these bits.
const PREFIX_LENGTH: u8 = 16;

/// The address of the loopback interface.
const LOOPBACK: [u8; 4] = [127, 0, 0, 1];

/// A network interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its index, which a former interface of the host never had.
    pub index: u32,
    /// The network it is attached to.
    pub network: u8,
    /// Its address.
    pub ip: [u8; 4],
    /// Whether its link carries packets, as the kernel reports it.
    pub has_carrier: bool,
}

/// The interfaces of all hosts, and the networks that deliver nothing.
#[derive(Debug, Default)]
pub struct Topology {
    /// By host. An absent host has one address that never changes.
    hosts: BTreeMap<u8, Vec<Interface>>,
    /// Directions that deliver nothing although all carriers are up: network, sending
    /// and receiving host.
    silent: BTreeSet<(u8, u8, u8)>,
    indices: u32,
}

/// A socket's knowledge of the interfaces of its host.
#[derive(Clone, Debug, Default)]
pub struct SocketInterfaces {
    /// As last listed.
    list: Vec<Interface>,
    /// Indices of the interfaces on which it joined the discovery group.
    joined: Vec<u32>,
    /// Indices of those on which it sends to the group.
    multicast: Vec<u32>,
    /// The links that the participant was told of.
    told: LocalLinks,
    /// The kernel has a notice for it.
    pub changed: bool,
}

/// The way of a datagram from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives, from this address.
    From([u8; 4]),
    /// It is lost from there: no carrier, or a network that died.
    Lost([u8; 4]),
}

impl Topology {
    /// Whether a host has interfaces that may change.
    pub fn is_multihomed(&self, host: u8) -> bool {
        self.hosts.contains_key(&host)
    }

    /// The interfaces of a host.
    pub fn interfaces(&self, host: u8) -> &[Interface] {
        self.hosts.get(&host).map_or(&[], Vec::as_slice)
    }

    /// The interfaces of a host, to change them.
    pub fn interfaces_mut(&mut self, host: u8) -> &mut Vec<Interface> {
        self.hosts.entry(host).or_default()
    }

    /// Attaches a host to a network by a new interface.
    pub fn attach(&mut self, host: u8, network: u8, ip: [u8; 4]) {
        self.indices += 1;
        let index = self.indices;
        self.interfaces_mut(host).push(Interface {
            index,
            network,
            ip,
            has_carrier: true,
        });
    }

    /// Lets a network deliver nothing from one host to another, or ends that.
    pub fn set_silent(&mut self, network: u8, from: u8, to: u8, silent: bool) {
        if silent {
            self.silent.insert((network, from, to));
        } else {
            self.silent.remove(&(network, from, to));
        }
    }

    /// Ends what [`Topology::set_silent`] began, for one network.
    pub fn revive(&mut self, network: u8) {
        self.silent.retain(|(dead, ..)| *dead != network);
    }

    /// Whether a network carries packets between two hosts in both directions.
    pub fn connects(&self, network: u8, one: u8, other: u8) -> bool {
        let is_attached = |host: u8| {
            let mut own = self.interfaces(host).iter();
            own.any(|i| i.network == network && i.has_carrier)
        };
        let is_silent = |from, to| self.silent.contains(&(network, from, to));
        is_attached(one) && is_attached(other) && !is_silent(one, other) && !is_silent(other, one)
    }

    /// The host with an address, if any.
    pub fn host_at(&self, ip: [u8; 4]) -> Option<u8> {
        let mut hosts = self.hosts.iter();
        let has = |own: &[Interface]| own.iter().any(|i| i.ip == ip);
        hosts.find(|(_, own)| has(own)).map(|(host, _)| *host)
    }

    /// How a datagram of a host goes to an address, as the kernel routes it. `None`:
    /// the host is attached to no such network.
    fn unicast(&self, from: u8, to: [u8; 4]) -> Option<(u8, Passage)> {
        let target = self.host_at(to);
        if target == Some(from) {
            return Some((from, Passage::From(to)));
        }
        let there = target.and_then(|host| self.interfaces(host).iter().find(|i| i.ip == to));
        let is_attached = |i: &&Interface| i.ip[..2] == to[..2];
        let own = self.interfaces(from).iter().find(is_attached)?;
        let (target, there) = (target?, there?);
        Some((target, self.passage(from, own, target, there)))
    }

    fn passage(&self, from: u8, own: &Interface, to: u8, there: &Interface) -> Passage {
        let is_silent = self.silent.contains(&(own.network, from, to));
        let carries = own.network == there.network && own.has_carrier && there.has_carrier;
        if carries && !is_silent {
            Passage::From(own.ip)
        } else {
            Passage::Lost(own.ip)
        }
    }
}

impl Network {
    /// Where a unicast datagram of a socket goes: a socket and its way there. `None`: no
    /// socket has the address.
    pub(super) fn find_target(&self, number: usize, to: &Locator) -> Option<(usize, Passage)> {
        let own = self.sockets[number].address;
        let home = |host: u8| Locator::udp_v4([10, 0, 0, host], 0).address;
        let (address, passage) = if !self.topology.is_multihomed(own.address[15]) {
            let loopback = to.is_loopback();
            let address = if loopback { own.address } else { to.address };
            let [.., a, b, c, d] = own.address;
            (address, Passage::From([a, b, c, d]))
        } else if to.is_loopback() {
            (own.address, Passage::From(LOOPBACK))
        } else {
            let ip = v4_of(to)?;
            let (host, passage) = self.topology.unicast(own.address[15], ip)?;
            (home(host), passage)
        };
        let target = self.by_address.get(&Locator { address, ..*to })?;
        Some((*target, passage))
    }

    /// The copies of a multicast datagram that reach a socket: one per network that
    /// both are attached to.
    pub(super) fn group_passages(&self, number: usize, target: usize) -> Vec<Passage> {
        let (own, there) = (&self.sockets[number], &self.sockets[target]);
        let (from, to) = (own.address.address[15], there.address.address[15]);
        if !self.topology.is_multihomed(from) {
            let [.., a, b, c, d] = own.address.address;
            return vec![Passage::From([a, b, c, d])];
        }
        let mut passages = Vec::new();
        for own_interface in self.topology.interfaces(from) {
            if !own.interfaces.multicast.contains(&own_interface.index) {
                continue;
            }
            if from == to {
                passages.push(Passage::From(own_interface.ip));
                continue;
            }
            let listening = self.topology.interfaces(to).iter();
            let listening = listening.filter(|i| i.network == own_interface.network);
            for interface in listening.filter(|i| there.interfaces.joined.contains(&i.index)) {
                passages.push(self.topology.passage(from, own_interface, to, interface));
            }
        }
        passages
    }

    /// The process at an address now.
    pub(super) fn process_at(&self, from: &Locator) -> Option<usize> {
        let known = self.by_address.get(from).copied().or_else(|| {
            let host = self.topology.host_at(v4_of(from)?)?;
            let home = Locator::udp_v4([10, 0, 0, host], u16::try_from(from.port).ok()?);
            self.by_address.get(&home).copied()
        });
        known.map(|number| self.sockets[number].process)
    }

    /// Gives the sockets of a host the kernel's notice that its interfaces changed.
    pub fn note_interfaces_changed(&mut self, host: u8) {
        let of_host = |socket: &&mut Socket| socket.open && socket.address.address[15] == host;
        for socket in self.sockets.iter_mut().filter(of_host) {
            socket.interfaces.changed = true;
        }
    }

    /// Lists the interfaces of a socket's host again. `None` if nothing that matters
    /// has changed.
    pub fn follow_interfaces(&mut self, number: usize) -> Option<InterfaceChange> {
        let socket = &mut self.sockets[number];
        let list = self
            .topology
            .interfaces(socket.address.address[15])
            .to_vec();
        let known = &mut socket.interfaces;
        let mut change = InterfaceChange::default();
        let same = |list: &[Interface], one: &Interface| {
            let mut list = list.iter();
            let same = list.find(|i| i.index == one.index && i.ip == one.ip);
            same.map(|i| i.has_carrier)
        };
        for was in &known.list {
            if was.has_carrier && same(&list, was) != Some(true) {
                change.lost.push(format!("interface {} is lost", was.index));
            }
        }
        for is in &list {
            if is.has_carrier && same(&known.list, is) != Some(true) {
                change.gained.push(format!("interface {} works", is.index));
            }
        }
        known.joined = match socket.in_group {
            true => list.iter().map(|i| i.index).collect(),
            false => Vec::new(),
        };
        let running = list.iter().filter(|i| i.has_carrier);
        known.multicast = running
            .filter(|i| known.joined.contains(&i.index))
            .map(|i| i.index)
            .collect();
        let (port, group) = (socket.address.port, &known.joined);
        change.links = links_of(&list, port, socket.group_port, !group.is_empty());
        known.list = list;
        if change.links == known.told {
            return None;
        }
        known.told = change.links.clone();
        Some(change)
    }
}

/// The links that a participant is told of: the addresses on links with and without a carrier, and
/// the locators to announce.
fn links_of(list: &[Interface], port: u32, group_port: u16, has_group: bool) -> LocalLinks {
    let own = |i: &Interface| OwnAddress {
        ip: i.ip.into(),
        prefix_length: PREFIX_LENGTH,
    };
    let running = |wanted: bool| list.iter().filter(move |i| i.has_carrier == wanted);
    let port = u16::try_from(port).unwrap_or(0);
    let locator = |i: &Interface| Locator::udp_v4(i.ip, port);
    let mut unicast: Vec<Locator> = running(true).map(locator).collect();
    if unicast.is_empty() {
        unicast = list.iter().map(locator).collect();
    }
    if unicast.is_empty() {
        unicast.push(Locator::udp_v4(LOOPBACK, port));
    }
    let loopback = OwnAddress {
        ip: LOOPBACK.into(),
        prefix_length: 8,
    };
    let group = Locator::udp_v4(DISCOVERY_GROUP.octets(), group_port);
    LocalLinks {
        addresses: running(true).map(own).chain([loopback]).collect(),
        down: running(false).map(own).collect(),
        unicast,
        multicast: has_group.then_some(group).into_iter().collect(),
    }
}

/// The simulated networks have IPv4 alone.
fn v4_of(locator: &Locator) -> Option<[u8; 4]> {
    match locator.to_udp()?.0.ip() {
        IpAddr::V4(v4) => Some(v4.octets()),
        IpAddr::V6(_) => None,
    }
}

impl SocketInterfaces {
    /// The links that the participant knows.
    pub fn told(&self) -> &LocalLinks {
        &self.told
    }
}
