//! Meeting and losing participants, endpoints and pairs of endpoints.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::sedp::News;
use crate::id::{Guid, GuidPrefix};
use crate::locator::{Locator, Route};
use crate::matching::{Verdict, judge};
use crate::time::Instant;

use super::candidate::Proof;
use super::peer::Peer;
use super::{LostReason, Participant, ParticipantEvent, RemoteEndpoint};
use crate::stats::Tally;

/// The least bytes that say where an endpoint is: headers, its GUID, a locator
/// and two names.
const NAMING_BYTES: usize = 96;

impl Participant {
    /// Starts speaking to a participant.
    pub(super) fn meet(&mut self, now: Instant, data: Arc<ParticipantData>, proof: Proof) {
        let peer = Peer::new(data.clone(), proof, &self.config.reach, false);
        let is_in = self.is_authenticated(data.prefix);
        let at = &peer.metatraffic;
        if !self.is_entering(data.prefix) {
            self.sedp.meet(now, &data, at, is_in);
            self.wlp.meet(now, &data, at, is_in);
        }
        if self.secured.is_none() {
            self.types.requests.meet(now, &data, at);
            self.types.replies.meet(now, &data, at);
        }
        let is_first_afar = !peer.metatraffic.is_same_host()
            && self
                .peers
                .others()
                .all(|(_, other)| other.metatraffic.is_same_host());
        self.peers.insert(now, peer);
        self.announcer.note_other(now, is_first_afar);
        // From here on its reader's acknowledgements keep what it has to hear.
        self.tombstones.lower(data.prefix);
        self.events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Starts to heed what a neighbour posts.
    pub(super) fn meet_neighbour(&mut self, now: Instant, data: Arc<ParticipantData>) {
        let peer = Peer::new(data.clone(), Proof::Untold, &self.config.reach, true);
        self.peers.insert(now, peer);
        self.tombstones.lower(data.prefix);
        self.events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Forgets a participant and all that was its.
    pub(super) fn lose(&mut self, prefix: GuidPrefix, reason: LostReason) {
        self.leases.revoke(prefix);
        self.claims.forget(prefix);
        if self.peers.remove(prefix).is_none() {
            return;
        }
        if reason != LostReason::LeaseExpired {
            self.tombstones.lower(prefix);
        }
        self.sedp.hold_endings(!self.tombstones.is_empty());
        self.part(prefix);
        let gone: Vec<Guid> = self.remotes.of(prefix).map(|e| e.guid()).collect();
        for guid in &gone {
            self.unpair_remote(*guid);
        }
        for guid in gone {
            self.remotes.remove(guid);
            self.events.push_back(ParticipantEvent::EndpointLost(guid));
        }
        self.events
            .push_back(ParticipantEvent::ParticipantLost { prefix, reason });
    }

    /// No built-in endpoint speaks with it any more.
    pub(super) fn part(&mut self, prefix: GuidPrefix) {
        for channel in self.sedp.channels().chain(self.wlp.channels()) {
            channel.part(prefix);
        }
        self.types.part(prefix);
        self.part_secured(prefix);
    }

    /// Chooses the routes to a participant anew and tells whose changed.
    pub(super) fn reroute(&mut self, prefix: GuidPrefix) {
        let reach = &self.config.reach;
        let Some((before, after)) = self.peers.reroute(prefix, reach) else {
            return;
        };
        if before.metatraffic != after.metatraffic {
            let types = [&mut self.types.requests, &mut self.types.replies];
            let channels = self.sedp.channels().chain(self.wlp.channels());
            for channel in channels.chain(types) {
                channel.reroute(prefix, &after.metatraffic);
            }
            if let Some(secured) = &mut self.secured {
                secured.reroute(prefix, &after.metatraffic);
            }
        }
        for remote in self.remotes.of(prefix).map(RemoteEndpoint::data) {
            // One with addresses of its own is told in any case.
            if before.user != after.user || !remote.unicast.is_empty() {
                let route = after.route_to(&remote, reach);
                let remote = Arc::new(remote);
                self.events
                    .push_back(ParticipantEvent::EndpointChanged { remote, route });
            }
        }
    }

    /// Tells the present routes to all endpoints of a participant.
    pub(super) fn tell_routes(&mut self, prefix: GuidPrefix) {
        let Some(peer) = self.peers.find(prefix) else {
            return;
        };
        for remote in self.remotes.of(prefix).map(RemoteEndpoint::data) {
            let route = peer.route_to(&remote, &self.config.reach);
            let remote = Arc::new(remote);
            self.events
                .push_back(ParticipantEvent::EndpointChanged { remote, route });
        }
    }

    /// A change of a peer's SEDP arrived.
    pub(super) fn handle_news(&mut self, now: Instant, news: News) {
        match news {
            News::Endpoint(data, by) => {
                let known = self.remotes.find(data.guid);
                let known = known.is_none_or(|known| known.is_discovery_protected() == by.secured);
                if !known || data.is_discovery_protected() != by.secured {
                    self.stats.impersonation.tally();
                    return;
                }
                self.claim_for(now, &data);
                self.handle_endpoint(*data);
            }
            News::Gone(guid, by) => {
                let known = self.remotes.find(guid);
                if known.is_some_and(|known| known.is_discovery_protected() != by.secured) {
                    self.stats.impersonation.tally();
                    return;
                }
                self.end_endpoint(guid);
            }
            News::Malformed => self.stats.malformed.tally(),
            News::Impersonation => self.stats.impersonation.tally(),
        }
    }

    /// Lets an address be asked that an endpoint names and nobody has shown to
    /// be at.
    fn claim_for(&mut self, now: Instant, remote: &EndpointData) {
        let prefix = remote.guid.prefix;
        let Some(peer) = self.peers.find(prefix) else {
            return;
        };
        if let Some(at) = peer.claim_of(remote, &self.config.reach) {
            let names = remote.topic.len().saturating_add(remote.type_name.len());
            let bytes = NAMING_BYTES.saturating_add(names);
            self.claims
                .note(now, &self.config.limits, prefix, at, bytes);
        }
    }

    /// A message addressed to us: where it comes from, its sender can be sent
    /// to.
    pub(super) fn note_shown(&mut self, from: Option<Locator>, prefix: GuidPrefix) {
        let from = from.filter(|_| !self.claims.is_empty());
        let Some((from, (ip, _))) = from.and_then(|from| Some((from, from.to_udp_v4()?))) else {
            return;
        };
        if self.claims.settle(prefix, from.address)
            && let Some(peer) = self.peers.find_mut(prefix)
        {
            peer.note_shown(ip);
            self.reroute(prefix);
        }
    }

    /// A remote endpoint is gone.
    pub(super) fn end_endpoint(&mut self, guid: Guid) {
        if self.remotes.find(guid).is_some() {
            self.unpair_remote(guid);
            self.remotes.remove(guid);
            self.events.push_back(ParticipantEvent::EndpointLost(guid));
        }
    }

    /// A remote endpoint exists, or changed. False if it is not kept.
    pub(super) fn handle_endpoint(&mut self, mut remote: EndpointData) -> bool {
        let guid = remote.guid;
        let Some(peer) = self.peers.find(guid.prefix) else {
            return false;
        };
        let route = peer.route_to(&remote, &self.config.reach);
        let limits = &self.config.limits;
        let is_known = self.remotes.find(guid).is_some();
        if !is_known
            && (self.remotes.len() >= limits.endpoints
                || self.remotes.count_of(guid.prefix) >= limits.endpoints_per_participant)
        {
            self.stats.endpoints_refused.tally();
            return false;
        }
        let record = self.remotes.record(&mut remote);
        let old = self.remotes.find(guid);
        if old.is_some_and(|old| old.says(&record)) {
            return true;
        }
        if old.is_some_and(|old| old.breaks_off(&remote)) {
            self.unpair_remote(guid);
        }
        self.remotes.insert(guid.prefix, record);
        let remote = Arc::new(remote);
        self.events.push_back(if is_known {
            ParticipantEvent::EndpointChanged {
                remote: remote.clone(),
                route,
            }
        } else {
            ParticipantEvent::EndpointDiscovered(remote.clone())
        });
        for local in self.locals_opposite(&remote.topic, guid) {
            self.pair(&local, &remote);
        }
        true
    }

    /// Those of ours on a topic at the other end of an endpoint.
    fn locals_opposite(&self, topic: &str, one: Guid) -> Vec<Arc<EndpointData>> {
        let found = self.locals.on_topic(topic, !one.entity.is_writer());
        found.cloned().collect()
    }

    /// Matches a local endpoint with all remote ones on its topic.
    pub(super) fn pair_local(&mut self, local: &Arc<EndpointData>) {
        let writers = !local.guid.entity.is_writer();
        let found = self.remotes.on_topic(&local.topic, writers);
        let remotes: Vec<_> = found.map(|remote| Arc::new(remote.data())).collect();
        for remote in remotes {
            self.pair(local, &remote);
        }
    }

    /// Judges a pair and tells what changed.
    fn pair(&mut self, local: &Arc<EndpointData>, remote: &Arc<EndpointData>) {
        let verdict = if local.guid.entity.is_writer() {
            judge(local, remote)
        } else {
            judge(remote, local)
        };
        let Some(before) = self.pairs.note(local.guid, remote.guid, &verdict) else {
            return;
        };
        let (local, remote) = (local.guid, remote.clone());
        if before == Some(Verdict::Matched) {
            self.events.push_back(ParticipantEvent::Unmatched {
                local,
                remote: remote.guid,
            });
        }
        let event = match verdict {
            Verdict::Matched => {
                let Some((route, vendor)) = self.way_to(&remote) else {
                    return;
                };
                ParticipantEvent::Matched {
                    local,
                    remote,
                    route,
                    vendor,
                }
            }
            Verdict::Incompatible(policies) => ParticipantEvent::IncompatibleQos {
                local,
                remote,
                policies,
            },
            Verdict::InconsistentType => ParticipantEvent::InconsistentTopic { local, remote },
            Verdict::OtherPartition | Verdict::OtherProtection => return,
        };
        self.events.push_back(event);
    }

    fn way_to(&self, remote: &EndpointData) -> Option<(Route, crate::id::VendorId)> {
        let peer = self.peers.find(remote.guid.prefix)?;
        let route = peer.route_to(remote, &self.config.reach);
        Some((route, peer.data.vendor))
    }

    /// Ends all pairs of a local endpoint.
    pub(super) fn unpair_local(&mut self, local: Guid) {
        for remote in self.pairs.forget_local(local) {
            self.events
                .push_back(ParticipantEvent::Unmatched { local, remote });
        }
    }

    /// Ends all pairs of a remote endpoint.
    fn unpair_remote(&mut self, remote: Guid) {
        let Some(known) = self.remotes.find(remote) else {
            return;
        };
        for local in self.locals_opposite(known.topic(), remote) {
            if self.pairs.forget(local.guid, remote) && !fault!("end-of-match-not-told") {
                self.events.push_back(ParticipantEvent::Unmatched {
                    local: local.guid,
                    remote,
                });
            }
        }
    }

    /// Hands on what peers assert about their liveliness.
    pub(super) fn tell_assertions(&mut self) {
        while let Some((prefix, kind)) = self.wlp.poll_assertion() {
            self.events
                .push_back(ParticipantEvent::LivelinessAsserted { prefix, kind });
        }
    }
}
