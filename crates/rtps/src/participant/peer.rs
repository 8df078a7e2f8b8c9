//! Discovered participants and the routes to them, and the suspects among them:
//! participants whose address another one took over.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::lease::Leases;
use crate::discovery::spdp::PeerCounts;
use crate::id::GuidPrefix;
use crate::locator::{IpAddress, Locator, NetworkScope, Route};
use crate::time::{Duration, Instant};

use super::event::ParticipantEvent;
use super::path_evidence::PeerPath;
use super::unvalidated_participant::{SourceCheck, is_of_this_host, route};

/// How long a suspect may stay silent, and the probe period. At 30 % loss twelve
/// probes fail together once in 3 000 times.
const SUSPECT_TIMEOUT: Duration = Duration::from_secs(3);
const PROBE_PERIOD: Duration = Duration::from_millis(250);

/// Further validated addresses of one participant; beyond that the oldest is
/// dropped.
const VALIDATED_MAX: usize = 8;

/// How often an event reports another source address of one participant.
const TELL_PERIOD: Duration = Duration::from_secs(60);

/// One discovered participant.
pub(super) struct Peer {
    pub(super) data: Arc<ParticipantData>,
    source_check: SourceCheck,
    /// Addresses that answered a probe.
    validated: Vec<IpAddress>,
    /// The address in use.
    pub(super) path: PeerPath,
    /// An announcement that gives up locators in use, although they answer, and since
    /// when. It counts when it is repeated for a lease, with no other one in between.
    pub(super) contradicting: Option<(Arc<ParticipantData>, Instant)>,
    /// The last address whose refusal was reported, and when.
    pub(super) refused_source: Option<(IpAddress, Instant)>,
    /// The route to its built-in endpoints.
    pub(super) metatraffic: Route,
    /// The route to its user endpoints without own locators.
    pub(super) user: Route,
    /// Discovered by on-host announcements: no built-in endpoint of ours matches
    /// it,
    pub(super) is_same_host_peer: bool,
    /// except those of the TypeLookup service, after a request.
    pub(super) type_lookup_matched: bool,
    /// Discovered by a discovery server, which announces its endpoints, too.
    pub(super) is_relayed: bool,
    /// The route to all its user endpoints, while there is a shared-memory
    /// connection.
    pub(super) shared_memory: Option<Route>,
    /// When it was discovered.
    pub(super) since: Instant,
    /// It has acknowledged our endpoints, or one of its own matched.
    pub(super) is_useful: bool,
}

impl Peer {
    pub(super) fn new(
        data: Arc<ParticipantData>,
        source_check: SourceCheck,
        network: &NetworkScope,
        is_same_host_peer: bool,
    ) -> Self {
        let mut peer = Self {
            is_same_host_peer,
            type_lookup_matched: false,
            is_relayed: false,
            path: PeerPath::at(source_check),
            metatraffic: route(network, &data.metatraffic_unicast, source_check),
            shared_memory: None,
            since: Instant::ZERO,
            is_useful: is_same_host_peer,
            user: network.choose_route(&[]),
            data,
            source_check,
            validated: Vec::new(),
            refused_source: None,
            contradicting: None,
        };
        peer.user = peer.route_among(&peer.data.default_unicast, network);
        peer
    }

    /// The source check with the address in use now.
    fn path_check(&self) -> SourceCheck {
        let in_use = self.path.in_use.map(SourceCheck::Address);
        in_use.unwrap_or(self.source_check)
    }

    /// Chooses the routes again.
    fn choose_routes(&mut self, network: &NetworkScope) {
        let announced = &self.data.metatraffic_unicast;
        self.metatraffic = route(network, announced, self.path_check());
        self.user = self.route_among(&self.data.default_unicast, network);
    }

    /// Whether a message addressed to us has come from there.
    pub(super) fn is_validated_ip(&self, ip: IpAddress) -> bool {
        self.source_check == SourceCheck::Address(ip) || self.validated.contains(&ip)
    }

    /// The route for user traffic to one of these addresses, if validated.
    fn route_among(&self, named: &[Locator], network: &NetworkScope) -> Route {
        let at = named
            .iter()
            .copied()
            .filter(|l| self.is_validated(*l, network));
        let at: Vec<Locator> = at.collect();
        route(network, &at, self.path_check())
    }

    fn is_validated(&self, locator: Locator, network: &NetworkScope) -> bool {
        let Some((ip, _)) = locator.to_udp() else {
            return false;
        };
        let shares_host = match self.source_check {
            SourceCheck::Unknown => return true,
            SourceCheck::Address(at) if at == ip => return true,
            SourceCheck::Address(at) => is_of_this_host(at, network),
            SourceCheck::SameHost => true,
            SourceCheck::Mismatch => false,
        };
        self.validated.contains(&ip) || (shares_host && is_of_this_host(ip, network))
    }

    /// The address to probe for an endpoint, if none of its addresses is validated.
    pub(super) fn locator_to_validate(
        &self,
        endpoint: &EndpointData,
        network: &NetworkScope,
    ) -> Option<Locator> {
        let named = if endpoint.unicast.is_empty() {
            &self.data.default_unicast
        } else {
            &endpoint.unicast
        };
        if !self.route_among(named, network).locators.is_empty() {
            return None;
        }
        network.choose_route(named).locators.first().copied()
    }

    /// Whether this address may be its source: it announces the address, the address
    /// answered a probe, or both it and the address are of this host.
    pub(super) fn has_proven(&self, ip: IpAddress, network: &NetworkScope) -> bool {
        let shares_host = match self.source_check {
            // The announcements did not come by datagrams.
            _ if self.is_same_host_peer => true,
            SourceCheck::Unknown if self.is_relayed => self.metatraffic.is_same_host(),
            SourceCheck::Unknown => return true,
            SourceCheck::SameHost => true,
            SourceCheck::Address(at) => is_of_this_host(at, network),
            SourceCheck::Mismatch => false,
        };
        let (own, users) = (&self.data.metatraffic_unicast, &self.data.default_unicast);
        let mut announced = own.iter().chain(users).filter_map(|l| l.to_udp());
        (shares_host && is_of_this_host(ip, network))
            || announced.any(|(of, _)| of.may_be(ip))
            || self.validated.contains(&ip)
    }

    /// Whether its changed announcement keeps none of its locators for discovery, or
    /// none of those for user traffic.
    pub(super) fn gives_up_routes(&self, data: &ParticipantData) -> bool {
        let keeps = |before: &[Locator], after: &[Locator]| {
            before.is_empty() || before.iter().any(|at| after.contains(at))
        };
        let known = &self.data;
        !keeps(&known.metatraffic_unicast, &data.metatraffic_unicast)
            || !keeps(&known.default_unicast, &data.default_unicast)
    }

    /// The result of the source check when it was discovered.
    pub(super) fn source_check(&self) -> SourceCheck {
        self.source_check
    }

    /// Notes an address that answered a probe.
    pub(super) fn note_validated(&mut self, ip: IpAddress) {
        if self.validated.contains(&ip) {
            return;
        }
        if self.validated.len() >= VALIDATED_MAX {
            self.validated.remove(0);
        }
        self.validated.push(ip);
    }

    /// The route to one of its endpoints. Shared with others at the same locators,
    /// since writers group readers by route.
    pub(super) fn route_to(&self, endpoint: &EndpointData, network: &NetworkScope) -> Route {
        if let Some(shared_memory) = &self.shared_memory {
            return shared_memory.clone();
        }
        if endpoint.unicast.is_empty() {
            return self.user.clone();
        }
        let own = self.route_among(&endpoint.unicast, network);
        if own == self.user || own.locators.is_empty() {
            return self.user.clone();
        }
        own
    }
}

/// A participant whose address another one uses now. It may share a socket with
/// that one, as several participants in a Cyclone DDS process do, or be dead.
struct Suspect {
    prefix: GuidPrefix,
    since: Instant,
    next_probe_at: Instant,
}

impl Suspect {
    fn has_answered(&self, leases: &Leases) -> bool {
        let last_heard = leases.last_heard(self.prefix);
        last_heard.is_some_and(|at| at > self.since)
    }

    fn is_overdue(&self, now: Instant) -> bool {
        self.since + SUSPECT_TIMEOUT <= now
    }
}

/// All discovered participants.
#[derive(Default)]
pub(super) struct Peers {
    peers: BTreeMap<GuidPrefix, Peer>,
    suspects: Vec<Suspect>,
}

impl Peers {
    /// Adds one; those at the same address become suspects.
    pub(super) fn insert(&mut self, now: Instant, mut peer: Peer) {
        peer.since = now;
        let prefix = peer.data.prefix;
        let sharing_address = self
            .peers
            .values()
            .filter(|other| other.data.prefix != prefix && !other.is_same_host_peer)
            .filter(|other| other.metatraffic.locators == peer.metatraffic.locators)
            .map(|other| other.data.prefix);
        for sharing in sharing_address {
            if self.suspects.iter().all(|s| s.prefix != sharing) {
                self.suspects.push(Suspect {
                    prefix: sharing,
                    since: now,
                    next_probe_at: now,
                });
            }
        }
        self.peers.insert(prefix, peer);
    }

    /// Updates the announcement of a known one.
    pub(super) fn update(
        &mut self,
        prefix: GuidPrefix,
        data: Arc<ParticipantData>,
        source_check: SourceCheck,
    ) {
        if let Some(peer) = self.peers.get_mut(&prefix) {
            peer.data = data;
            if let SourceCheck::Address(before) = peer.source_check {
                peer.note_validated(before);
            }
            peer.source_check = source_check;
            peer.path.validate_again();
        }
    }

    /// Chooses the routes of one again. Returns it before and after.
    pub(super) fn reroute(
        &mut self,
        prefix: GuidPrefix,
        network: &NetworkScope,
    ) -> Option<(Peer, &Peer)> {
        let peer = self.peers.get_mut(&prefix)?;
        let mut after = Peer::new(
            peer.data.clone(),
            peer.source_check,
            network,
            peer.is_same_host_peer,
        );
        after.type_lookup_matched = peer.type_lookup_matched;
        after.is_relayed = peer.is_relayed;
        after.shared_memory = peer.shared_memory.clone();
        after.since = peer.since;
        after.is_useful = peer.is_useful;
        after.validated.clone_from(&peer.validated);
        after.path = peer.path.clone();
        after.choose_routes(network);
        after.refused_source = peer.refused_source;
        after.contradicting.clone_from(&peer.contradicting);
        let before = core::mem::replace(peer, after);
        Some((before, peer))
    }

    /// Sets or removes its shared-memory route; false without a change.
    pub(super) fn set_shared_memory(
        &mut self,
        prefix: GuidPrefix,
        shared_memory: Option<Route>,
    ) -> bool {
        let Some(peer) = self
            .peers
            .get_mut(&prefix)
            .filter(|peer| peer.shared_memory != shared_memory)
        else {
            return false;
        };
        peer.shared_memory = shared_memory;
        true
    }

    pub(super) fn remove(&mut self, prefix: GuidPrefix) -> Option<Peer> {
        self.suspects.retain(|s| s.prefix != prefix);
        self.peers.remove(&prefix)
    }

    pub(super) fn find(&self, prefix: GuidPrefix) -> Option<&Peer> {
        self.peers.get(&prefix)
    }

    pub(super) fn find_mut(&mut self, prefix: GuidPrefix) -> Option<&mut Peer> {
        self.peers.get_mut(&prefix)
    }

    pub(super) fn contains(&self, prefix: GuidPrefix) -> bool {
        self.peers.contains_key(&prefix)
    }

    pub(super) fn data(&self, prefix: GuidPrefix) -> Option<&Arc<ParticipantData>> {
        self.peers.get(&prefix).map(|peer| &peer.data)
    }

    pub(super) fn same_host_peers(&self) -> impl Iterator<Item = &ParticipantData> {
        let same_host_peers = self.peers.values().filter(|peer| peer.is_same_host_peer);
        same_host_peers.map(|peer| &*peer.data)
    }

    /// Whether a participant is a same-host peer.
    pub(super) fn is_same_host_peer(&self, prefix: GuidPrefix) -> bool {
        self.find(prefix).is_some_and(|peer| peer.is_same_host_peer)
    }

    /// The source address of a datagram in the name of a discovered participant that
    /// has not proven this address.
    pub(super) fn foreign_source(
        &self,
        prefix: GuidPrefix,
        from: Option<Locator>,
        network: &NetworkScope,
    ) -> Option<IpAddress> {
        let (ip, _) = from.and_then(Locator::to_udp)?;
        let peer = self.find(prefix)?;
        (!peer.has_proven(ip, network)).then_some(ip)
    }

    /// Reports that a datagram in the name of a participant came from another address.
    pub(super) fn note_refused_source(
        &mut self,
        now: Instant,
        prefix: GuidPrefix,
        ip: IpAddress,
        events: &mut VecDeque<ParticipantEvent>,
    ) {
        let Some(peer) = self.find_mut(prefix) else {
            return;
        };
        let tells = peer
            .refused_source
            .is_none_or(|(told, at)| told != ip && now.since(at) >= TELL_PERIOD);
        if tells {
            peer.refused_source = Some((ip, now));
            events.push_back(ParticipantEvent::SourceRefused { prefix, from: ip });
        }
    }

    /// The address of a participant, if it is reached by UDP.
    pub(super) fn address_of(&self, prefix: GuidPrefix) -> Option<IpAddress> {
        let at = self.find(prefix)?.metatraffic.locators.first()?;
        at.to_udp().map(|(ip, _)| ip)
    }

    /// Whether a discovered peer uses a locator of this host. Others that share its
    /// port, as several participants in a Cyclone DDS process do, received the same
    /// datagrams.
    pub(super) fn has_peer_at(&self, at: &Locator) -> bool {
        let is_there = |peer: &Peer| {
            let route = &peer.metatraffic;
            route.is_same_host() && route.locators.iter().any(|l| l.port == at.port)
        };
        at.is_loopback() && self.network_peers().any(|(_, peer)| is_there(peer))
    }

    /// The number of same-host peers and network peers.
    pub(super) fn peer_counts(&self, has_unicast_targets: bool) -> PeerCounts {
        let same_host_peers = self.same_host_peers().count();
        PeerCounts {
            same_host: same_host_peers,
            network: self.network_peers().count(),
            has_unicast_targets,
        }
    }

    /// The network peers: all that announce themselves to us by SPDP.
    pub(super) fn network_peers(&self) -> impl Iterator<Item = (GuidPrefix, &Peer)> {
        self.remote_peers().filter(|(_, peer)| !peer.is_relayed)
    }

    /// All that are no same-host peers.
    pub(super) fn remote_peers(&self) -> impl Iterator<Item = (GuidPrefix, &Peer)> {
        let others = self
            .peers
            .iter()
            .filter(|(_, peer)| !peer.is_same_host_peer);
        others.map(|(prefix, peer)| (*prefix, peer))
    }

    /// Whether a same-host peer uses this port.
    pub(super) fn has_same_host_peer_at(&self, port: u32) -> bool {
        let mut locators = self
            .same_host_peers()
            .flat_map(|data| &data.metatraffic_unicast);
        locators.any(|at| at.port == port)
    }

    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        self.peers.values().map(|peer| &peer.data)
    }

    /// The peers that announcements to `targets` do not reach: they joined none of
    /// these groups, and their address is none of the initial peers.
    pub(super) fn not_listening_at(
        &self,
        targets: &[Locator],
    ) -> impl Iterator<Item = (GuidPrefix, &Route)> {
        let reached = |l: &Locator| targets.contains(l);
        self.network_peers()
            .filter(move |(_, peer)| {
                !peer.data.metatraffic_multicast.iter().any(reached)
                    && !peer.metatraffic.locators.iter().any(reached)
            })
            .map(|(prefix, peer)| (prefix, &peer.metatraffic))
    }

    /// The next suspect to probe.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<(GuidPrefix, Route)> {
        let suspect = self.suspects.iter_mut().find(|s| s.next_probe_at <= now)?;
        suspect.next_probe_at = now + PROBE_PERIOD;
        let prefix = suspect.prefix;
        let route = self.peers.get(&prefix)?.metatraffic.clone();
        Some((prefix, route))
    }

    /// Removes the suspects that answered, and returns the silent ones.
    pub(super) fn take_silent_suspects(
        &mut self,
        now: Instant,
        leases: &Leases,
    ) -> Vec<GuidPrefix> {
        let mut silent = Vec::new();
        self.suspects.retain(|s| {
            if s.is_overdue(now) && !s.has_answered(leases) {
                silent.push(s.prefix);
            }
            !s.has_answered(leases) && !s.is_overdue(now)
        });
        silent
    }

    /// Whether [`Self::take_silent_suspects`] would return one.
    pub(super) fn has_silent_suspect(&self, now: Instant, leases: &Leases) -> bool {
        let is_silent = |s: &Suspect| s.is_overdue(now) && !s.has_answered(leases);
        self.suspects.iter().any(is_silent)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.suspects
            .iter()
            .map(|s| s.next_probe_at.min(s.since + SUSPECT_TIMEOUT))
            .min()
    }
}
