//! Network interfaces of a context: selects interfaces and announced locators, and
//! follows changes of interfaces, addresses and links.
//!
//! `UdpSockets` (`udp.rs`) owns an [`InterfaceFollower`], and the driver calls it after
//! each notice of the kernel (`net/interface_watch.rs`). It joins the SPDP multicast
//! group on new interfaces and leaves it on removed ones.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use pteros_net::{Interface, InterfaceWatch, UdpSocket, interfaces};
use pteros_rtps::locator::{IpAddress, Locator, OwnAddress};
use pteros_rtps::participant::LocalLinks;

use crate::error::OpenError;
use crate::ip_versions::{IpVersions, discovery_groups};
use crate::lock::{RwLock, rank};

/// A change of the host's network interfaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceChange {
    /// The new addresses and links.
    pub links: LocalLinks,
    /// Lost interfaces and addresses, one line each for the operator.
    pub lost: Vec<String>,
    /// New or restored interfaces and addresses, one line each.
    pub gained: Vec<String>,
}

/// Selected interfaces of a context, and their use.
pub(crate) struct InterfaceSettings {
    pub(crate) domain_id: u32,
    /// Names or addresses of the only ones to use; empty means all.
    pub(crate) names: Vec<String>,
    pub(crate) local_only: bool,
    /// Whether to join the discovery groups.
    pub(crate) multicast: bool,
    /// The port of the discovery groups.
    pub(crate) group_port: u16,
    /// The versions of IP.
    pub(crate) versions: OpenVersions,
    /// The port of the unicast sockets, for the announced locators.
    pub(crate) unicast_port: u16,
}

impl IpVersions {
    /// The addresses among `usable` that a context of these versions uses.
    pub fn in_use(self, mut usable: Vec<Interface>) -> Vec<Interface> {
        OpenVersions::choose(self, &usable, false).retain(&mut usable);
        usable
    }
}

/// The versions of IP that a context has sockets for: at least one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct OpenVersions {
    v4: bool,
    v6: bool,
}

impl OpenVersions {
    /// The versions for the interfaces that are there now.
    pub(crate) fn choose(wanted: IpVersions, usable: &[Interface], local_only: bool) -> Self {
        let any = |is_v6: bool, outside: bool| {
            let mut of_version = usable.iter().filter(|i| i.address.is_ipv6() == is_v6);
            of_version.any(|i| !(outside && i.loopback))
        };
        let (v4, v6) = match wanted {
            IpVersions::V4 => (true, false),
            IpVersions::V6 => (false, true),
            IpVersions::Both => (true, true),
            // An address on the host itself reaches no other host.
            IpVersions::Automatic if any(false, true) || !any(true, !local_only) => (true, false),
            IpVersions::Automatic => (any(false, false), !(local_only && any(false, false))),
        };
        Self { v4, v6 }
    }

    /// Whether each version is IPv6.
    pub(crate) fn all(self) -> impl Iterator<Item = bool> {
        let versions = [self.v4.then_some(false), self.v6.then_some(true)];
        versions.into_iter().flatten()
    }

    /// The address that stands for this host, or for all its addresses.
    pub(crate) fn own_address(is_v6: bool, local_only: bool) -> IpAddr {
        match (is_v6, local_only) {
            (false, true) => Ipv4Addr::LOCALHOST.into(),
            (false, false) => Ipv4Addr::UNSPECIFIED.into(),
            (true, true) => Ipv6Addr::LOCALHOST.into(),
            (true, false) => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// Drops addresses of other versions.
    pub(crate) fn retain(self, list: &mut Vec<Interface>) {
        list.retain(|i| {
            if i.address.is_ipv6() {
                self.v6
            } else {
                self.v4
            }
        });
    }
}

/// The usable interfaces now.
pub(crate) fn usable_interfaces(names: &[String]) -> Result<Vec<Interface>, OpenError> {
    let up = interfaces().map_err(OpenError::Interfaces)?;
    for name in names {
        if !up.iter().any(|i| is_named(i, name)) {
            let mut known: Vec<&str> = up.iter().map(|i| i.name.as_str()).collect();
            known.dedup();
            return Err(OpenError::NoSuchInterface {
                name: name.clone(),
                usable: known.join(", "),
            });
        }
    }
    if up.is_empty() {
        return Err(OpenError::NoInterface);
    }
    Ok(chosen(up, names))
}

/// The selected interfaces, in the order in which they are named.
fn chosen(mut all: Vec<Interface>, names: &[String]) -> Vec<Interface> {
    let position = |i: &Interface| names.iter().position(|name| is_named(i, name));
    all.retain(|i| names.is_empty() || i.loopback || position(i).is_some());
    all.sort_by_key(|i| (i.loopback, position(i)));
    all
}

/// Whether `name` is the interface's name or one of its addresses.
fn is_named(interface: &Interface, name: &str) -> bool {
    interface.name == name || interface.address.to_string() == name
}

/// Follows the interfaces of a context. Thread-safe.
pub(crate) struct InterfaceFollower {
    settings: InterfaceSettings,
    /// The sockets of the discovery groups, one for each version of IP.
    groups: Vec<GroupSocket>,
    watch: Option<InterfaceWatch>,
    changed: AtomicBool,
    state: RwLock<FollowerState, rank::Interfaces>,
}

/// The socket that receives from the discovery groups of one version of IP.
struct GroupSocket {
    socket: UdpSocket,
    is_v6: bool,
}

#[derive(Default)]
struct FollowerState {
    list: Vec<Interface>,
    /// One entry per interface and version of IP that joined the groups.
    joined: Vec<Interface>,
    /// Interfaces that can send multicast.
    multicast: Vec<Interface>,
    /// Links known to the participant.
    told: LocalLinks,
}

impl InterfaceFollower {
    /// Opens the socket of the group and joins it on `usable` interfaces. An interface
    /// that cannot join is reported; the others are used.
    pub(crate) fn open(
        settings: InterfaceSettings,
        usable: Vec<Interface>,
        advice: &mut Vec<String>,
    ) -> Result<Self, OpenError> {
        let is_local = settings.local_only;
        let mut groups = Vec::new();
        if settings.multicast && !is_local {
            for is_v6 in settings.versions.all() {
                groups.extend(open_group(&settings, is_v6, &usable)?);
            }
        }
        let watch = if is_local {
            None
        } else {
            InterfaceWatch::new(settings.versions.v6)
                .map_err(|e| {
                    advice.push(format!(
                        "changes of network interfaces are not noticed: {e}"
                    ));
                })
                .ok()
        };
        let follower = Self {
            settings,
            groups,
            watch,
            // Covers changes before the watch started, and links that are down.
            changed: AtomicBool::new(!is_local),
            state: RwLock::default(),
        };
        let mut state = FollowerState::default();
        follower.join_all(&mut state, &usable, advice);
        state.told = follower.links_of(&usable, &state);
        state.told.down.clear();
        state.list = usable;
        *follower.state.write() = state;
        Ok(follower)
    }

    /// Our addresses and locators as last listed.
    pub(crate) fn links(&self) -> LocalLinks {
        self.state.read().told.clone()
    }

    /// The locators of the groups that an interface has joined.
    pub(crate) fn group_locators(&self) -> Vec<Locator> {
        self.state.read().told.multicast.clone()
    }

    /// The socket of the groups of one version of IP.
    pub(crate) fn group(&self, is_v6: bool) -> Option<&UdpSocket> {
        let mut groups = self.groups.iter();
        groups.find(|g| g.is_v6 == is_v6).map(|g| &g.socket)
    }

    pub(crate) fn watch(&self) -> Option<&InterfaceWatch> {
        self.watch.as_ref()
    }

    /// Notes that the watch is readable.
    pub(crate) fn note_changed(&self) {
        if self.watch.as_ref().is_some_and(InterfaceWatch::drain) {
            // Relaxed: only the thread that drives sets and clears it.
            self.changed.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn take_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed) && self.changed.swap(false, Ordering::Relaxed)
    }

    /// Calls `send` with each interface that sends multicast of one version of IP.
    pub(crate) fn for_each_multicast(&self, is_v6: bool, send: impl FnMut(&Interface)) {
        let state = self.state.read();
        let interfaces = state.multicast.iter();
        interfaces
            .filter(|i| i.address.is_ipv6() == is_v6)
            .for_each(send);
    }

    /// Lists the interfaces again. `None` without a relevant change.
    pub(crate) fn follow(&self) -> Option<InterfaceChange> {
        let mut list = chosen(interfaces().ok()?, &self.settings.names);
        self.settings.versions.retain(&mut list);
        let mut state = self.state.write();
        let mut change = InterfaceChange::default();
        note_differences(&state.list, &list, &mut change);
        self.leave_gone(&mut state, &list);
        self.join_all(&mut state, &list, &mut change.lost);
        change.links = self.links_of(&list, &state);
        state.list = list;
        if change.links == state.told {
            return None;
        }
        state.told = change.links.clone();
        Some(change)
    }

    /// Leaves the groups on interfaces that were removed or lost an address. The kernel
    /// may have dropped the membership, but still counts it.
    fn leave_gone(&self, state: &mut FollowerState, list: &[Interface]) {
        let before = std::mem::take(&mut state.list);
        let is_kept = |joined: &Interface| {
            let mut former = before.iter().filter(|i| is_same_link(i, joined));
            former.any(|was| {
                list.iter()
                    .any(|i| i.index == was.index && i.address == was.address)
            })
        };
        state.joined.retain(|interface| {
            let kept = is_kept(interface);
            let is_v6 = interface.address.is_ipv6();
            if let Some(socket) = self.group(is_v6).filter(|_| !kept) {
                for group in discovery_groups(is_v6) {
                    let _ = socket.leave(*group, interface);
                }
            }
            kept
        });
    }

    /// Joins the groups on interfaces without membership.
    fn join_all(&self, state: &mut FollowerState, list: &[Interface], advice: &mut Vec<String>) {
        for interface in list.iter().filter(|i| i.multicast) {
            let is_v6 = interface.address.is_ipv6();
            let Some(socket) = self.group(is_v6) else {
                continue;
            };
            if state.joined.iter().any(|i| is_same_link(i, interface)) {
                continue;
            }
            let mut groups = discovery_groups(is_v6).iter();
            match groups.try_for_each(|group| socket.join(*group, interface)) {
                Ok(()) => state.joined.push(interface.clone()),
                Err(e) => advice.push(format!(
                    "interface {}: cannot join the discovery group ({e}); peers behind it are found only through ROS_STATIC_PEERS",
                    interface.name
                )),
            }
        }
        let runs = |joined: &&Interface| list.iter().any(|i| i.index == joined.index && i.running);
        state.multicast = state.joined.iter().filter(runs).cloned().collect();
    }

    fn links_of(&self, list: &[Interface], state: &FollowerState) -> LocalLinks {
        let addresses = |running: bool| {
            let of_kind = list.iter().filter(move |i| i.running == running);
            of_kind.map(|i| OwnAddress {
                ip: ip_address(i),
                prefix_length: i.prefix_length,
            })
        };
        let group_port = self.settings.group_port;
        let has_joined = |is_v6: &bool| state.joined.iter().any(|i| i.address.is_ipv6() == *is_v6);
        let joined = self.settings.versions.all().filter(has_joined);
        let groups = joined.flat_map(discovery_groups);
        LocalLinks {
            addresses: addresses(true).collect(),
            down: addresses(false).collect(),
            unicast: self.announced(list),
            multicast: groups
                .map(|group| Locator::udp(IpAddress::from(*group), group_port))
                .collect(),
        }
    }

    /// The announced locators: the addresses on links that carry packets, else those
    /// on links that do not, else loopback.
    fn announced(&self, list: &[Interface]) -> Vec<Locator> {
        let port = self.settings.unicast_port;
        let locators = |keep: &dyn Fn(&Interface) -> bool| -> Vec<Locator> {
            let kept = list.iter().filter(|i| !i.loopback && keep(i));
            let locators = kept.map(|i| Locator::udp(ip_address(i), port));
            locators.collect()
        };
        let working = locators(&|i| i.running);
        let outside = if working.is_empty() {
            locators(&|_| true)
        } else {
            working
        };
        if self.settings.local_only || outside.is_empty() {
            let loopback = |is_v6| OpenVersions::own_address(is_v6, true).into();
            let versions = self.settings.versions.all();
            return versions
                .map(|is_v6| Locator::udp(loopback(is_v6), port))
                .collect();
        }
        outside
    }
}

/// The address of an interface, with it as the zone.
fn ip_address(interface: &Interface) -> IpAddress {
    IpAddress::new(interface.address, interface.index)
}

/// Whether both are addresses of one version of IP on one interface.
fn is_same_link(one: &Interface, other: &Interface) -> bool {
    one.index == other.index && one.address.is_ipv6() == other.address.is_ipv6()
}

/// The socket of the multicast groups of one version of IP. It is opened even if no
/// interface can join yet.
fn open_group(
    settings: &InterfaceSettings,
    is_v6: bool,
    usable: &[Interface],
) -> Result<Option<GroupSocket>, OpenError> {
    let (group, port) = (discovery_groups(is_v6)[0], settings.group_port);
    match UdpSocket::bind_multicast(group, port) {
        Ok(socket) => Ok(Some(GroupSocket { socket, is_v6 })),
        Err(_) if !usable.iter().any(|i| i.multicast) => Ok(None),
        Err(source) if source.kind() == io::ErrorKind::AddrInUse => {
            Err(OpenError::DiscoveryPortTaken {
                domain_id: settings.domain_id,
                port,
            })
        }
        Err(source) => Err(OpenError::Socket {
            what: format!("discovery group {}", SocketAddr::new(group, port)),
            source,
        }),
    }
}

/// Describes the changes, one line per address.
fn note_differences(before: &[Interface], now: &[Interface], change: &mut InterfaceChange) {
    let in_list = |list: &[Interface], one: &Interface| {
        let mut list = list.iter();
        let same = list.find(|i| i.index == one.index && i.address == one.address);
        same.map(|i| i.running)
    };
    let is_known = |list: &[Interface], one: &Interface| in_list(list, one).is_some();
    // DHCP often gives another address.
    let mut replaced: Vec<&Interface> = Vec::new();
    for interface in before.iter().filter(|i| !is_known(now, i)) {
        let mut new = now.iter().filter(|i| i.index == interface.index);
        if let Some(new) = new.find(|i| !is_known(before, i) && !replaced.contains(i)) {
            replaced.extend([interface, new]);
            change.gained.push(format!(
                "network interface {} has the address {} instead of {}",
                new.name, new.address, interface.address
            ));
        }
    }
    let is_told = |interface: &&Interface| !replaced.contains(interface);
    for interface in before.iter().filter(is_told) {
        let what = format!(
            "network interface {} ({})",
            interface.name, interface.address
        );
        match in_list(now, interface) {
            None => change.lost.push(format!("{what} is gone")),
            Some(false) if interface.running => change.lost.push(format!(
                "{what} has no carrier; peers with other addresses are reached there"
            )),
            Some(true) if !interface.running => {
                change.gained.push(format!("{what} has a carrier again"));
            }
            Some(_) => {}
        }
    }
    for interface in now.iter().filter(is_told) {
        if !is_known(before, interface) {
            change.gained.push(format!(
                "network interface {} ({}) is new",
                interface.name, interface.address
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, index: u32, address: [u8; 4], running: bool) -> Interface {
        Interface {
            name: name.into(),
            index,
            address: Ipv4Addr::from(address).into(),
            prefix_length: 24,
            loopback: address[0] == 127,
            multicast: true,
            up: true,
            running,
            mtu: 1500,
        }
    }

    fn follower() -> InterfaceFollower {
        InterfaceFollower {
            settings: InterfaceSettings {
                domain_id: 0,
                names: Vec::new(),
                local_only: false,
                multicast: true,
                group_port: 7400,
                versions: OpenVersions {
                    v4: true,
                    v6: false,
                },
                unicast_port: 7410,
            },
            groups: Vec::new(),
            watch: None,
            changed: AtomicBool::new(false),
            state: RwLock::default(),
        }
    }

    fn announced(list: &[Interface]) -> Vec<IpAddress> {
        let locators = follower().announced(list);
        locators
            .iter()
            .filter_map(|l| Some(l.to_udp()?.0))
            .collect()
    }

    #[test]
    fn an_address_without_a_carrier_is_announced_only_if_there_is_no_better_one() {
        let lo = interface("lo", 1, [127, 0, 0, 1], true);
        let wired = |running| interface("eth0", 2, [10, 0, 0, 5], running);
        let wireless = |running| interface("wlan0", 3, [10, 0, 1, 5], running);
        let both = announced(&[wired(true), wireless(true), lo.clone()]);
        assert_eq!(both, [[10, 0, 0, 5], [10, 0, 1, 5]].map(IpAddress::from));
        let one = announced(&[wired(false), wireless(true), lo.clone()]);
        assert_eq!(one, [[10, 0, 1, 5].into()]);
        // A cable that is unplugged for a second changes nothing for the only interface.
        assert_eq!(
            announced(&[wired(false), lo.clone()]),
            [[10, 0, 0, 5].into()]
        );
        assert_eq!(announced(&[lo]), [[127, 0, 0, 1].into()]);
    }

    #[test]
    fn a_context_of_this_host_alone_announces_loopback() {
        let mut follower = follower();
        let list = [interface("eth0", 2, [10, 0, 0, 5], true)];
        let wired = Locator::udp_v4([10, 0, 0, 5], 7410);
        assert_eq!(follower.announced(&list), [wired]);
        follower.settings.local_only = true;
        assert_eq!(
            follower.announced(&list),
            [Locator::udp_v4([127, 0, 0, 1], 7410)]
        );
    }

    #[test]
    fn each_change_is_described_once() {
        let before = [
            interface("eth0", 2, [10, 0, 0, 5], true),
            interface("wlan0", 3, [10, 0, 1, 5], false),
            interface("tun0", 4, [10, 8, 0, 2], true),
            interface("eth1", 6, [10, 0, 2, 5], true),
        ];
        let now = [
            interface("eth0", 2, [10, 0, 0, 5], false),
            interface("wlan0", 3, [10, 0, 1, 5], true),
            interface("usb0", 5, [192, 168, 42, 7], true),
            interface("eth1", 6, [10, 0, 2, 6], true),
        ];
        let mut change = InterfaceChange::default();
        note_differences(&before, &now, &mut change);
        assert_eq!(
            change.lost,
            [
                "network interface eth0 (10.0.0.5) has no carrier; peers with other addresses are reached there",
                "network interface tun0 (10.8.0.2) is gone",
            ]
        );
        assert_eq!(
            change.gained,
            [
                "network interface eth1 has the address 10.0.2.6 instead of 10.0.2.5",
                "network interface wlan0 (10.0.1.5) has a carrier again",
                "network interface usb0 (192.168.42.7) is new",
            ]
        );
        let mut change = InterfaceChange::default();
        note_differences(&now, &now, &mut change);
        assert_eq!(change, InterfaceChange::default());
    }

    #[test]
    fn named_interfaces_come_in_the_order_of_their_names() {
        let all = vec![
            interface("eth0", 2, [10, 0, 0, 5], true),
            interface("wlan0", 3, [10, 0, 1, 5], true),
            interface("tun0", 4, [10, 8, 0, 2], true),
            interface("lo", 1, [127, 0, 0, 1], true),
        ];
        let names = ["wlan0".to_owned(), "10.0.0.5".to_owned()];
        let chosen = chosen(all, &names);
        let names: Vec<&str> = chosen.iter().map(|i| i.name.as_str()).collect();
        assert_eq!(names, ["wlan0", "eth0", "lo"]);
    }
    fn v6(name: &str, index: u32, address: &str) -> Interface {
        let address: Ipv6Addr = address.parse().unwrap();
        Interface {
            address: address.into(),
            prefix_length: 64,
            loopback: address.is_loopback(),
            ..interface(name, index, [0; 4], true)
        }
    }

    #[test]
    fn ipv6_is_used_without_being_asked_only_where_ipv4_reaches_nobody() {
        let lo = [interface("lo", 1, [127, 0, 0, 1], true), v6("lo", 1, "::1")];
        let wired = interface("eth0", 2, [10, 0, 0, 5], true);
        let link_local = v6("eth0", 2, "fe80::5");
        let versions = |wanted: IpVersions, list: &[Interface], local_only: bool| {
            let open = OpenVersions::choose(wanted, list, local_only);
            (open.v4, open.v6)
        };
        let chosen = |list: &[Interface]| versions(IpVersions::Automatic, list, false);
        let [lo_v4, lo_v6] = lo;
        let all = [wired, link_local.clone(), lo_v4.clone(), lo_v6.clone()];
        assert_eq!(chosen(&all), (true, false));
        assert_eq!(chosen(&all[2..]), (true, false), "a host without a network");
        assert_eq!(chosen(&all[1..]), (true, true), "IPv4 may come later");
        assert_eq!(chosen(&[link_local, lo_v6.clone()]), (false, true));
        let here = |list: &[Interface]| versions(IpVersions::Automatic, list, true);
        assert_eq!(here(&all[1..]), (true, false), "127.0.0.1 is enough");
        assert_eq!(here(&[lo_v6]), (false, true));
        for (wanted, expected) in [
            (IpVersions::V4, (true, false)),
            (IpVersions::V6, (false, true)),
            (IpVersions::Both, (true, true)),
        ] {
            assert_eq!(versions(wanted, &all, false), expected);
        }
        assert_eq!(IpVersions::V6.in_use(all.to_vec()).len(), 2);
        assert_eq!(IpVersions::Automatic.in_use(vec![lo_v4]).len(), 1);
    }

    #[test]
    fn a_link_local_address_is_announced_with_its_interface_and_as_loopback_if_alone() {
        let mut follower = follower();
        follower.settings.versions = OpenVersions {
            v4: false,
            v6: true,
        };
        let list = [v6("eth0", 2, "fe80::5"), v6("lo", 1, "::1")];
        let announced = follower.announced(&list);
        assert_eq!(announced.len(), 1);
        assert_eq!(announced[0].to_string(), "udp/[fe80::5%2]:7410");
        let announced = follower.announced(&list[1..]);
        assert_eq!(announced[0].to_string(), "udp/[::1]:7410");
        let links = follower.links_of(&list, &FollowerState::default());
        assert_eq!(links.addresses[0].ip.zone(), 2);
        assert!(links.multicast.is_empty(), "no interface has joined");
    }
}
