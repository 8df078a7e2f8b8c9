//! The participants that are spoken to, where they are reached, and doubts
//! about those whose address somebody else has taken.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::lease::Leases;
use crate::discovery::spdp::Company;
use crate::id::GuidPrefix;
use crate::locator::{Locator, Reach, Route};
use crate::time::{Duration, Instant};

use super::candidate::{Proof, is_of_this_host, route};

/// How long one whose address was taken may stay silent, and the pause between
/// our questions. Twelve questions fail together once in 3 000 times at 30 % loss.
const PATIENCE: Duration = Duration::from_secs(3);
const QUESTION_PAUSE: Duration = Duration::from_millis(250);

/// Further addresses of one participant that are remembered; beyond that the
/// oldest has to be shown again.
const SHOWN_MAX: usize = 8;

/// One participant.
pub(super) struct Peer {
    pub(super) data: Arc<ParticipantData>,
    proof: Proof,
    /// Further addresses from which it was heard, when asked there.
    shown: Vec<[u8; 4]>,
    /// To its built-in endpoints.
    pub(super) metatraffic: Route,
    /// To its user endpoints that name no address of their own.
    pub(super) user: Route,
    /// Known by its notices; no built-in endpoint of ours speaks with it,
    pub(super) is_neighbour: bool,
    /// except those of the TypeLookup service, once asked.
    pub(super) is_met_for_types: bool,
    /// To all its user endpoints, while there is a link.
    pub(super) link: Option<Route>,
}

impl Peer {
    pub(super) fn new(
        data: Arc<ParticipantData>,
        proof: Proof,
        reach: &Reach,
        is_neighbour: bool,
    ) -> Self {
        let mut peer = Self {
            is_neighbour,
            is_met_for_types: false,
            metatraffic: route(reach, &data.metatraffic_unicast, proof),
            link: None,
            user: reach.choose(&[]),
            data,
            proof,
            shown: Vec::new(),
        };
        peer.user = peer.way_among(&peer.data.default_unicast, reach);
        peer
    }

    /// The route for users' traffic to one of these addresses, where the
    /// participant has shown to be.
    fn way_among(&self, named: &[Locator], reach: &Reach) -> Route {
        let at = named.iter().copied().filter(|l| self.is_at(*l, reach));
        let at: Vec<Locator> = at.collect();
        route(reach, &at, self.proof)
    }

    fn is_at(&self, locator: Locator, reach: &Reach) -> bool {
        let Some((ip, _)) = locator.to_udp_v4() else {
            return false;
        };
        let shares_host = match self.proof {
            Proof::Untold => return true,
            Proof::Address(at) if at == ip => return true,
            Proof::Address(at) => is_of_this_host(at, reach),
            Proof::Plausible => true,
            Proof::None => false,
        };
        self.shown.contains(&ip) || (shares_host && is_of_this_host(ip, reach))
    }

    /// The address that an endpoint could be reached at, if all that it names
    /// have yet to be shown.
    pub(super) fn claim_of(&self, endpoint: &EndpointData, reach: &Reach) -> Option<Locator> {
        let named = match endpoint.unicast.is_empty() {
            true => &self.data.default_unicast,
            false => &endpoint.unicast,
        };
        if !self.way_among(named, reach).locators.is_empty() {
            return None;
        }
        reach.choose(named).locators.first().copied()
    }

    /// What its source address said when it was met.
    pub(super) fn proof(&self) -> Proof {
        self.proof
    }

    /// It was heard from an address at which it was asked.
    pub(super) fn note_shown(&mut self, ip: [u8; 4]) {
        if self.shown.len() >= SHOWN_MAX {
            self.shown.remove(0);
        }
        self.shown.push(ip);
    }

    /// Where one of its endpoints is reached. Shared with the others whenever
    /// it is the same place, since writers group readers by route.
    pub(super) fn route_to(&self, endpoint: &EndpointData, reach: &Reach) -> Route {
        if let Some(link) = &self.link {
            return link.clone();
        }
        if endpoint.unicast.is_empty() {
            return self.user.clone();
        }
        let own = self.way_among(&endpoint.unicast, reach);
        if own == self.user || own.locators.is_empty() {
            return self.user.clone();
        }
        own
    }
}

/// A participant whose address another one uses now. It may share a socket with
/// that one (several participants in a Cyclone process do), or be dead.
struct Suspect {
    prefix: GuidPrefix,
    since: Instant,
    next_question: Instant,
}

/// All participants that are spoken to.
#[derive(Default)]
pub(super) struct Peers {
    peers: BTreeMap<GuidPrefix, Peer>,
    suspects: Vec<Suspect>,
}

impl Peers {
    /// Adds one; those at the same address become suspects.
    pub(super) fn insert(&mut self, now: Instant, peer: Peer) {
        let prefix = peer.data.prefix;
        let namesakes = self
            .peers
            .values()
            .filter(|other| other.data.prefix != prefix && !other.is_neighbour)
            .filter(|other| other.metatraffic.locators == peer.metatraffic.locators)
            .map(|other| other.data.prefix);
        for namesake in namesakes {
            if self.suspects.iter().all(|s| s.prefix != namesake) {
                self.suspects.push(Suspect {
                    prefix: namesake,
                    since: now,
                    next_question: now,
                });
            }
        }
        self.peers.insert(prefix, peer);
    }

    /// Takes new data of one that is known.
    pub(super) fn update(&mut self, prefix: GuidPrefix, data: Arc<ParticipantData>, proof: Proof) {
        if let Some(peer) = self.peers.get_mut(&prefix) {
            peer.data = data;
            peer.proof = proof;
        }
    }

    /// Chooses the routes of one anew; it before and after.
    pub(super) fn reroute(&mut self, prefix: GuidPrefix, reach: &Reach) -> Option<(Peer, &Peer)> {
        let peer = self.peers.get_mut(&prefix)?;
        let mut after = Peer::new(peer.data.clone(), peer.proof, reach, peer.is_neighbour);
        after.is_met_for_types = peer.is_met_for_types;
        after.link = peer.link.clone();
        after.shown.clone_from(&peer.shown);
        after.user = after.way_among(&after.data.default_unicast, reach);
        let before = core::mem::replace(peer, after);
        Some((before, peer))
    }

    /// Reaches one by a link from now on, or no longer; false when nothing
    /// changes.
    pub(super) fn set_link(&mut self, prefix: GuidPrefix, link: Option<Route>) -> bool {
        let Some(peer) = self.peers.get_mut(&prefix).filter(|peer| peer.link != link) else {
            return false;
        };
        peer.link = link;
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

    pub(super) fn neighbours(&self) -> impl Iterator<Item = &ParticipantData> {
        let neighbours = self.peers.values().filter(|peer| peer.is_neighbour);
        neighbours.map(|peer| &*peer.data)
    }

    /// How many are neighbours, and how many are not.
    pub(super) fn company(&self, calls_afar: bool) -> Company {
        let neighbours = self.neighbours().count();
        Company {
            neighbours,
            others: self.peers.len().saturating_sub(neighbours),
            calls_afar,
        }
    }

    /// Those who are not neighbours.
    pub(super) fn others(&self) -> impl Iterator<Item = (GuidPrefix, &Peer)> {
        let others = self.peers.iter().filter(|(_, peer)| !peer.is_neighbour);
        others.map(|(prefix, peer)| (*prefix, peer))
    }

    /// Whether a neighbour has this port, which is on this host then.
    pub(super) fn has_neighbour_at(&self, port: u32) -> bool {
        let mut places = self.neighbours().flat_map(|data| &data.metatraffic_unicast);
        places.any(|at| at.port == port)
    }

    pub(super) fn len(&self) -> usize {
        self.peers.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ParticipantData>> {
        self.peers.values().map(|peer| &peer.data)
    }

    /// Those that announcements sent to `targets` do not reach: they listen on
    /// none of our groups and their address is none of our initial peers.
    pub(super) fn not_listening_at(
        &self,
        targets: &[Locator],
    ) -> impl Iterator<Item = (GuidPrefix, &Route)> {
        let reached = |l: &Locator| targets.contains(l);
        self.others()
            .filter(move |(_, peer)| {
                !peer.data.metatraffic_multicast.iter().any(reached)
                    && !peer.metatraffic.locators.iter().any(reached)
            })
            .map(|(prefix, peer)| (prefix, &peer.metatraffic))
    }

    /// The next suspect to be asked whether it lives.
    pub(super) fn next_probe(&mut self, now: Instant) -> Option<(GuidPrefix, Route)> {
        let suspect = self.suspects.iter_mut().find(|s| s.next_question <= now)?;
        suspect.next_question = now + QUESTION_PAUSE;
        let prefix = suspect.prefix;
        let route = self.peers.get(&prefix)?.metatraffic.clone();
        Some((prefix, route))
    }

    /// Clears the suspects that were heard, and returns those that were not.
    pub(super) fn take_silent_suspects(
        &mut self,
        now: Instant,
        leases: &Leases,
    ) -> Vec<GuidPrefix> {
        let mut silent = Vec::new();
        self.suspects.retain(|s| {
            let heard = leases.heard(s.prefix).is_some_and(|at| at > s.since);
            let overdue = s.since + PATIENCE <= now;
            if overdue && !heard {
                silent.push(s.prefix);
            }
            !heard && !overdue
        });
        silent
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.suspects
            .iter()
            .map(|s| s.next_question.min(s.since + PATIENCE))
            .min()
    }
}
