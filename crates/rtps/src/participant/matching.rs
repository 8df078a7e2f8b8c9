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
use super::peer::Peer;
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant, ParticipantEvent};
use crate::stats::Tally;

impl Participant {
    /// Adds a participant and matches its built-in endpoints.
    pub(super) fn add_participant(
        &mut self,
        now: Instant,
        data: Arc<ParticipantData>,
        source_check: SourceCheck,
    ) {
        if !self.has_memory_for(&data) {
            return;
        }
        let peer = Peer::new(data.clone(), source_check, &self.config.network, false);
        self.builtin.match_peer(now, &data, &peer.metatraffic);
        let is_first_on_network = !peer.metatraffic.is_same_host()
            && self
                .peers
                .network_peers()
                .all(|(_, other)| other.metatraffic.is_same_host());
        self.peers.insert(now, peer);
        self.share_with_peer(data.prefix);
        self.paths.look_at(now);
        self.spdp
            .announcer
            .note_network_peer(now, is_first_on_network);
        // From here on its ACKNACKs keep the changes it needs.
        self.tombstones.remove(data.prefix);
        self.events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Charges a new participant. One without memory is refused.
    fn has_memory_for(&mut self, data: &ParticipantData) -> bool {
        let clock = self.clock;
        let is_charged =
            self.receive_memory
                .charge_announcement(clock, data, &self.peers, &mut self.events);
        if !is_charged {
            self.leases.revoke(data.prefix);
            self.stats.participants_refused.tally();
        }
        is_charged
    }

    /// The retransmission window of a discovered participant; of another one a fresh
    /// window, which is not kept.
    pub fn retransmission_window(&mut self, prefix: GuidPrefix) -> Arc<RetransmissionWindow> {
        if self.peers.find(prefix).is_none() {
            return RetransmissionWindow::new();
        }
        self.retransmission_windows.open(prefix)
    }

    /// Lets the built-in topics share the retransmission window and the memory account of
    /// a participant that they were matched with.
    pub(super) fn share_with_peer(&mut self, prefix: GuidPrefix) {
        let window = self.retransmission_window(prefix);
        let account = self.receive_memory.account(prefix);
        self.builtin.share(prefix, &window, &account);
    }

    pub(super) fn add_same_host_peer(&mut self, now: Instant, data: Arc<ParticipantData>) {
        if !self.has_memory_for(&data) {
            return;
        }
        let peer = Peer::new(
            data.clone(),
            SourceCheck::Unknown,
            &self.config.network,
            true,
        );
        self.peers.insert(now, peer);
        self.tombstones.remove(data.prefix);
        self.events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Removes a participant with all its endpoints and matches.
    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix, reason: LostReason) {
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
        self.builtin
            .sedp
            .retain_disposed(!self.tombstones.is_empty());
        self.builtin.unmatch_peer(prefix);
        self.endpoints.remove_participant(prefix, &mut self.events);
        self.receive_memory.close(prefix);
        self.retransmission_windows.close(prefix);
        self.events
            .push_back(ParticipantEvent::ParticipantLost { prefix, reason });
        self.await_return(peer, reason);
    }

    /// Probes a participant that was lost by a claim in its name: if it answers, the
    /// claim was false, or another process has its GUID.
    fn await_return(&mut self, peer: Peer, reason: LostReason) {
        let by_claim = matches!(reason, LostReason::Disposed | LostReason::Restarted);
        let is_awaited = by_claim && self.builtin.secured.is_none() && !peer.is_same_host_peer;
        if is_awaited {
            let (now, limits) = (self.clock, &self.config.limits);
            let seemed_restarted = reason == LostReason::Restarted;
            let (data, route) = (peer.data, peer.metatraffic);
            self.unvalidated
                .await_return(now, limits, data, route, seemed_restarted);
        }
    }

    /// Chooses the routes to a participant again and reports the changed ones.
    pub(super) fn reroute(&mut self, prefix: GuidPrefix) {
        let network = &self.config.network;
        let Some((before, after)) = self.peers.reroute(prefix, network) else {
            return;
        };
        if before.metatraffic != after.metatraffic {
            self.builtin.reroute(prefix, &after.metatraffic);
        }
        // Always report an endpoint with own locators.
        let is_all = before.user != after.user;
        self.endpoints
            .report_routes(after, is_all, network, &mut self.events);
    }

    /// Handles an SEDP change of a peer.
    pub(super) fn handle_sedp_change(&mut self, now: Instant, change: SedpChange) {
        match change {
            SedpChange::Endpoint(data, by) => {
                let known = self.endpoints.remotes.find(data.guid);
                let known = known.is_none_or(|known| known.is_discovery_protected() == by.secured);
                if !known || data.is_discovery_protected() != by.secured {
                    self.stats.impersonation.tally();
                    return;
                }
                if let Some(peer) = self.peers.find(data.guid.prefix) {
                    self.unvalidated_locators
                        .note_endpoint(now, &self.config, peer, &data);
                }
                self.sweeps.note_announced(data.guid);
                self.handle_endpoint(*data);
            }
            SedpChange::Removed(guid, by) => {
                let known = self.endpoints.remotes.find(guid);
                if known.is_some_and(|known| known.is_discovery_protected() != by.secured) {
                    self.stats.impersonation.tally();
                    return;
                }
                self.endpoints.remove_remote(guid, &mut self.events);
            }
            SedpChange::Malformed => self.stats.malformed.tally(),
            SedpChange::Impersonation => self.stats.impersonation.tally(),
        }
    }

    /// Validates the source address of a message addressed to us, if it was probed.
    pub(super) fn note_locator_validated(&mut self, from: Option<Locator>, prefix: GuidPrefix) {
        let from = from.filter(|_| !self.unvalidated_locators.is_empty());
        let Some((from, (ip, _))) = from.and_then(|from| Some((from, from.to_udp_v4()?))) else {
            return;
        };
        if self
            .unvalidated_locators
            .note_validated(prefix, from.address)
            && let Some(peer) = self.peers.find_mut(prefix)
        {
            peer.note_validated(ip);
            self.reroute(prefix);
        }
    }

    /// Adds or updates a remote endpoint. False if it is not stored.
    pub(super) fn handle_endpoint(&mut self, mut remote: EndpointData) -> bool {
        let guid = remote.guid;
        let Some(peer) = self.peers.find(guid.prefix) else {
            return false;
        };
        let route = peer.route_to(&remote, &self.config.network);
        let is_known = self.endpoints.remotes.find(guid).is_some();
        if !is_known && !self.has_endpoint_place(guid.prefix) {
            self.endpoints.note_unstored(&remote);
            return false;
        }
        let mut record = self.endpoints.remotes.record(&mut remote);
        if self
            .endpoints
            .remotes
            .find(guid)
            .is_some_and(|old| old.equals(&record))
        {
            return true;
        }
        let (now, peers, events) = (self.clock, &self.peers, &mut self.events);
        let charge = self
            .receive_memory
            .charge_endpoint(now, &remote, peers, events);
        let Some(charge) = charge else {
            self.stats.endpoints_refused.tally();
            if !is_known {
                self.endpoints.note_unstored(&remote);
            }
            return false;
        };
        record.charge = charge;
        let old = self.endpoints.remotes.find(guid);
        if old.is_some_and(|old| old.breaks_match(&remote)) {
            self.endpoints.unmatch_remote(guid, &mut self.events);
        }
        self.endpoints.remotes.insert(guid.prefix, record);
        self.endpoints.refused_writers.remove(guid);
        let remote = Arc::new(remote);
        self.events.push_back(if is_known {
            ParticipantEvent::EndpointChanged {
                remote: remote.clone(),
                route,
            }
        } else {
            ParticipantEvent::EndpointDiscovered(remote.clone())
        });
        let mut report = MatchReport {
            peers: &self.peers,
            network: &self.config.network,
            paths: &mut self.paths,
            events: &mut self.events,
        };
        for local in self.endpoints.locals_opposite(&remote.topic, guid) {
            self.endpoints.update_match(&local, &remote, &mut report);
        }
        true
    }

    /// Reports the matches of a local endpoint with a participant's endpoints once more.
    /// For an owner that did not apply them when they were reported first.
    pub fn report_matches_again(&mut self, local: Guid, prefix: GuidPrefix) {
        let mut report = MatchReport {
            peers: &self.peers,
            network: &self.config.network,
            paths: &mut self.paths,
            events: &mut self.events,
        };
        self.endpoints.report_matches(local, prefix, &mut report);
    }
}
