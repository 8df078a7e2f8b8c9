//! Participants and endpoints added and removed, with the endpoint matching that
//! follows (RTPS 2.5 §8.5.2).

use alloc::sync::Arc;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::sedp::SedpChange;
use crate::id::{Guid, GuidPrefix};
use crate::locator::Locator;
use crate::retransmission_window::RetransmissionWindow;
use crate::time::Instant;

use super::endpoints::MatchReport;
use super::local_participant::LocalParticipant;
use super::peer::Peer;
use super::relayed_participants::RelayedParticipants;
use super::remote_participants::RemoteParticipants;
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant, ParticipantEvent, zones};
use crate::stats::Tally;

impl Participant {
    /// Reports the matches of a local endpoint with a participant's endpoints once more.
    /// For an owner that did not apply them when they were reported first.
    pub fn report_matches_again(&mut self, local: Guid, prefix: GuidPrefix) {
        let mut report = MatchReport {
            peers: &self.remote.peers,
            network: &self.local.config.network,
            paths: &mut self.remote.paths,
            events: &mut self.local.events,
        };
        self.local
            .endpoints
            .report_matches(local, prefix, &mut report);
    }

    /// The retransmission window of a discovered participant; of another one a fresh
    /// window, which is not kept.
    pub fn retransmission_window(&mut self, prefix: GuidPrefix) -> Arc<RetransmissionWindow> {
        self.remote.retransmission_window(prefix)
    }
}

impl RemoteParticipants {
    /// Adds a participant and matches its built-in endpoints.
    pub(super) fn add_participant(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        data: Arc<ParticipantData>,
        source_check: SourceCheck,
    ) {
        if !self.has_memory_for(local, &data) {
            return;
        }
        let peer = Peer::new(data.clone(), source_check, &local.config.network, false);
        local.builtin.match_peer(now, &data, &peer.metatraffic);
        if let Some(servers) = &mut local.builtin.servers {
            let unrelayed = servers.connect(now, &data, &peer.metatraffic, &local.config);
            let remote = &mut *self;
            RelayedParticipants { remote, local, now }.grant_leases(unrelayed);
        }
        let is_first_on_network = !peer.metatraffic.is_same_host()
            && self
                .peers
                .network_peers()
                .all(|(_, other)| other.metatraffic.is_same_host());
        self.peers.insert(now, peer);
        self.share_with_peer(local, data.prefix);
        self.paths.look_at(now);
        local
            .spdp
            .announcer
            .note_network_peer(now, is_first_on_network);
        // From here on its ACKNACKs keep the changes it needs.
        self.tombstones.remove(data.prefix);
        local
            .events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Charges a new participant. One without memory is refused.
    pub(super) fn has_memory_for(
        &mut self,
        local: &mut LocalParticipant,
        data: &ParticipantData,
    ) -> bool {
        let clock = local.clock;
        let is_charged =
            self.receive_memory
                .charge_announcement(clock, data, &self.peers, &mut local.events);
        if !is_charged {
            self.leases.revoke(data.prefix);
            local.stats.participants_refused.tally();
        }
        is_charged
    }

    /// The retransmission window of a discovered participant; of another one a fresh
    /// window, which is not kept.
    pub(super) fn retransmission_window(
        &mut self,
        prefix: GuidPrefix,
    ) -> Arc<RetransmissionWindow> {
        if self.peers.find(prefix).is_none() {
            return RetransmissionWindow::new();
        }
        self.retransmission_windows.open(prefix)
    }

    /// Lets the built-in topics share the retransmission window and the memory account of
    /// a participant that they were matched with.
    pub(super) fn share_with_peer(&mut self, local: &mut LocalParticipant, prefix: GuidPrefix) {
        let window = self.retransmission_window(prefix);
        let account = self.receive_memory.account(prefix);
        local.builtin.share(prefix, &window, &account);
    }

    pub(super) fn add_same_host_peer(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        data: Arc<ParticipantData>,
    ) {
        if !self.has_memory_for(local, &data) {
            return;
        }
        let peer = Peer::new(
            data.clone(),
            SourceCheck::Unknown,
            &local.config.network,
            true,
        );
        self.peers.insert(now, peer);
        self.tombstones.remove(data.prefix);
        local
            .events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Removes a participant with all its endpoints and matches.
    pub(super) fn remove_participant(
        &mut self,
        local: &mut LocalParticipant,
        prefix: GuidPrefix,
        reason: LostReason,
    ) {
        self.leases.revoke(prefix);
        self.unvalidated_locators.remove_participant(prefix);
        self.challenges.remove_participant(prefix);
        self.sweeps.remove_participant(prefix);
        let Some(peer) = self.peers.remove(prefix) else {
            return;
        };
        if reason != LostReason::LeaseExpired {
            self.tombstones.remove(prefix);
        }
        local
            .builtin
            .sedp
            .retain_disposed(!self.tombstones.is_empty());
        local.builtin.unmatch_peer(local.clock, prefix);
        local
            .endpoints
            .remove_participant(prefix, &mut local.events);
        self.receive_memory.close(prefix);
        self.retransmission_windows.close(prefix);
        local
            .events
            .push_back(ParticipantEvent::ParticipantLost { prefix, reason });
        self.await_return(local, peer, reason);
    }

    /// Probes a participant that was lost by a claim in its name: if it answers, the
    /// claim was false, or another process has its GUID.
    fn await_return(&mut self, local: &mut LocalParticipant, peer: Peer, reason: LostReason) {
        let by_claim = matches!(reason, LostReason::Disposed | LostReason::Restarted);
        let by_others = peer.is_same_host_peer || peer.is_relayed;
        let is_awaited = by_claim && local.builtin.secured.is_none() && !by_others;
        if is_awaited {
            let (now, limits) = (local.clock, &local.config.limits);
            let seemed_restarted = reason == LostReason::Restarted;
            let (data, route) = (peer.data, peer.metatraffic);
            self.unvalidated
                .await_return(now, limits, data, route, seemed_restarted);
        }
    }

    /// Chooses the routes to a participant again and reports the changed ones.
    pub(super) fn reroute(&mut self, local: &mut LocalParticipant, prefix: GuidPrefix) {
        let network = &local.config.network;
        let Some((before, after)) = self.peers.reroute(prefix, network) else {
            return;
        };
        if before.metatraffic != after.metatraffic {
            local.builtin.reroute(prefix, &after.metatraffic);
        }
        // Always report an endpoint with own locators.
        let is_all = before.user != after.user;
        local
            .endpoints
            .report_routes(after, is_all, network, &mut local.events);
    }

    /// Handles an SEDP change of a peer.
    pub(super) fn handle_sedp_change(
        &mut self,
        local: &mut LocalParticipant,
        now: Instant,
        change: SedpChange,
    ) {
        match change {
            SedpChange::Endpoint(data, by) => {
                let known = local.endpoints.remotes.find(data.guid);
                let known = known.is_none_or(|known| known.is_discovery_protected() == by.secured);
                if !known || data.is_discovery_protected() != by.secured {
                    local.stats.impersonation.tally();
                    return;
                }
                if let Some(peer) = self.peers.find(data.guid.prefix) {
                    self.unvalidated_locators
                        .note_endpoint(now, &local.config, peer, &data);
                }
                self.sweeps.note_announced(data.guid);
                self.handle_endpoint(local, *data);
            }
            SedpChange::Removed(guid, by) => {
                let known = local.endpoints.remotes.find(guid);
                if known.is_some_and(|known| known.is_discovery_protected() != by.secured) {
                    local.stats.impersonation.tally();
                    return;
                }
                local.endpoints.remove_remote(guid, &mut local.events);
            }
            SedpChange::Relayed { by, of, change } => {
                let remote = &mut *self;
                RelayedParticipants { remote, local, now }.handle_endpoint(by, of, *change);
            }
            SedpChange::Malformed => local.stats.malformed.tally(),
            SedpChange::Impersonation => local.stats.impersonation.tally(),
        }
    }

    /// Validates the source address of a message addressed to us, if it was probed.
    pub(super) fn note_locator_validated(
        &mut self,
        local: &mut LocalParticipant,
        from: Option<Locator>,
        prefix: GuidPrefix,
    ) {
        let from = from.filter(|_| !self.unvalidated_locators.is_empty());
        let Some((from, (ip, _))) = from.and_then(|from| Some((from, from.to_udp()?))) else {
            return;
        };
        if self
            .unvalidated_locators
            .note_validated(prefix, from.address)
            && let Some(peer) = self.peers.find_mut(prefix)
        {
            peer.note_validated(ip);
            self.reroute(local, prefix);
        }
    }

    /// Adds or updates a remote endpoint. False if it is not stored.
    pub(super) fn handle_endpoint(
        &mut self,
        local: &mut LocalParticipant,
        mut remote: EndpointData,
    ) -> bool {
        let guid = remote.guid;
        let Some(peer) = self.peers.find(guid.prefix) else {
            return false;
        };
        zones::add_to_endpoint(&mut remote, &peer.data, &local.config.network);
        let route = peer.route_to(&remote, &local.config.network);
        let is_known = local.endpoints.remotes.find(guid).is_some();
        if !is_known && !self.has_endpoint_place(local, guid.prefix) {
            local.endpoints.note_unstored(&remote);
            return false;
        }
        let mut record = local.endpoints.remotes.record(&mut remote);
        if local
            .endpoints
            .remotes
            .find(guid)
            .is_some_and(|old| old.equals(&record))
        {
            return true;
        }
        let (now, peers, events) = (local.clock, &self.peers, &mut local.events);
        let charge = self
            .receive_memory
            .charge_endpoint(now, &remote, peers, events);
        let Some(charge) = charge else {
            local.stats.endpoints_refused.tally();
            if !is_known {
                local.endpoints.note_unstored(&remote);
            }
            return false;
        };
        record.charge = charge;
        let old = local.endpoints.remotes.find(guid);
        if old.is_some_and(|old| old.breaks_match(&remote)) {
            local.endpoints.unmatch_remote(guid, &mut local.events);
        }
        local.endpoints.remotes.insert(guid.prefix, record);
        local.endpoints.refused_writers.remove(guid);
        let remote = Arc::new(remote);
        local.events.push_back(if is_known {
            ParticipantEvent::EndpointChanged {
                remote: remote.clone(),
                route,
            }
        } else {
            ParticipantEvent::EndpointDiscovered(remote.clone())
        });
        let mut report = MatchReport {
            peers: &self.peers,
            network: &local.config.network,
            paths: &mut self.paths,
            events: &mut local.events,
        };
        for own in local.endpoints.locals_opposite(&remote.topic, guid) {
            local.endpoints.update_match(&own, &remote, &mut report);
        }
        true
    }
}
