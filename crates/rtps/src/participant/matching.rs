//! Participants and endpoints added and removed, with the endpoint matching that
//! follows (RTPS 2.5 §8.5.2).

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::{EndpointData, ParticipantData};
use crate::discovery::sedp::SedpChange;
use crate::id::{Guid, GuidPrefix};
use crate::locator::{Locator, Route};
use crate::matching::{MatchOutcome, evaluate_match, is_unseen_refusal};
use crate::retransmission_window::RetransmissionWindow;
use crate::time::Instant;

use super::peer::Peer;
use super::unvalidated_participant::SourceCheck;
use super::{LostReason, Participant, ParticipantEvent, RemoteEndpoint};
use crate::stats::Tally;

/// The smallest message that announces an endpoint's locator: headers, its GUID, a
/// locator and two names.
const ENDPOINT_DATA_BYTES_MIN: usize = 96;

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
        let is_authenticated = self.is_authenticated(data.prefix);
        let at = &peer.metatraffic;
        if !self.is_awaiting_keys(data.prefix) {
            self.sedp.match_peer(now, &data, at, is_authenticated);
            self.wlp.match_peer(now, &data, at, is_authenticated);
        }
        if self.secured.is_none() {
            self.types.requests.match_peer(now, &data, at);
            self.types.replies.match_peer(now, &data, at);
        }
        let is_first_on_network = !peer.metatraffic.is_same_host()
            && self
                .peers
                .network_peers()
                .all(|(_, other)| other.metatraffic.is_same_host());
        self.charge_built_in_readers(data.prefix);
        self.peers.insert(now, peer);
        self.share_retransmission_window(data.prefix);
        self.paths.look_at(now);
        self.announcer.note_network_peer(now, is_first_on_network);
        // From here on its ACKNACKs keep the changes it needs.
        self.tombstones.remove(data.prefix);
        self.events
            .push_back(ParticipantEvent::ParticipantDiscovered(data));
    }

    /// Charges a new participant. One without memory is refused.
    fn has_memory_for(&mut self, data: &ParticipantData) -> bool {
        let is_charged = self.charge_announcement(data);
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

    /// Lets the built-in writers that are matched with a participant share its window.
    pub(super) fn share_retransmission_window(&mut self, prefix: GuidPrefix) {
        let window = self.retransmission_window(prefix);
        for topic in self.sedp.channels().chain(self.wlp.channels()) {
            topic.share_retransmission_window(prefix, &window);
        }
        for topic in self.secure_topics_of(prefix) {
            topic.share_retransmission_window(prefix, &window);
        }
        self.types.share_retransmission_window(prefix, &window);
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
        self.sedp.retain_disposed(!self.tombstones.is_empty());
        self.unmatch_builtin_endpoints(prefix);
        let removed: Vec<Guid> = self.remotes.of(prefix).map(|e| e.guid()).collect();
        for guid in &removed {
            self.unmatch_remote(*guid);
        }
        for guid in removed {
            self.remotes.remove(guid);
            self.events.push_back(ParticipantEvent::EndpointLost(guid));
        }
        self.refused_writers.remove_participant(prefix);
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
        let is_awaited = by_claim && self.secured.is_none() && !peer.is_same_host_peer;
        if is_awaited {
            let (now, limits) = (self.clock, &self.config.limits);
            let seemed_restarted = reason == LostReason::Restarted;
            let (data, route) = (peer.data, peer.metatraffic);
            self.unvalidated
                .await_return(now, limits, data, route, seemed_restarted);
        }
    }

    /// Unmatches all built-in endpoints from a participant.
    pub(super) fn unmatch_builtin_endpoints(&mut self, prefix: GuidPrefix) {
        for channel in self.sedp.channels().chain(self.wlp.channels()) {
            channel.unmatch_peer(prefix);
        }
        self.types.remove_peer(prefix);
        self.remove_from_security(prefix);
    }

    /// Chooses the routes to a participant again and reports the changed ones.
    pub(super) fn reroute(&mut self, prefix: GuidPrefix) {
        let network = &self.config.network;
        let Some((before, after)) = self.peers.reroute(prefix, network) else {
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
            // Always report an endpoint with own locators.
            if before.user != after.user || !remote.unicast.is_empty() {
                let route = after.route_to(&remote, network);
                let remote = Arc::new(remote);
                self.events
                    .push_back(ParticipantEvent::EndpointChanged { remote, route });
            }
        }
    }

    /// Reports the present routes to all endpoints of a participant.
    pub(super) fn report_routes(&mut self, prefix: GuidPrefix) {
        let Some(peer) = self.peers.find(prefix) else {
            return;
        };
        for remote in self.remotes.of(prefix).map(RemoteEndpoint::data) {
            let route = peer.route_to(&remote, &self.config.network);
            let remote = Arc::new(remote);
            self.events
                .push_back(ParticipantEvent::EndpointChanged { remote, route });
        }
    }

    /// Handles an SEDP change of a peer.
    pub(super) fn handle_sedp_change(&mut self, now: Instant, change: SedpChange) {
        match change {
            SedpChange::Endpoint(data, by) => {
                let known = self.remotes.find(data.guid);
                let known = known.is_none_or(|known| known.is_discovery_protected() == by.secured);
                if !known || data.is_discovery_protected() != by.secured {
                    self.stats.impersonation.tally();
                    return;
                }
                self.validate_locator_of(now, &data);
                self.sweeps.note_announced(data.guid);
                self.handle_endpoint(*data);
            }
            SedpChange::Removed(guid, by) => {
                let known = self.remotes.find(guid);
                if known.is_some_and(|known| known.is_discovery_protected() != by.secured) {
                    self.stats.impersonation.tally();
                    return;
                }
                self.refused_writers.remove(guid);
                self.remove_remote_endpoint(guid);
            }
            SedpChange::Malformed => self.stats.malformed.tally(),
            SedpChange::Impersonation => self.stats.impersonation.tally(),
        }
    }

    /// Probes an address that an endpoint announces, if it is not validated.
    fn validate_locator_of(&mut self, now: Instant, remote: &EndpointData) {
        let prefix = remote.guid.prefix;
        let Some(peer) = self.peers.find(prefix) else {
            return;
        };
        if let Some(at) = peer.locator_to_validate(remote, &self.config.network) {
            let names = remote.topic.len().saturating_add(remote.type_name.len());
            let bytes = ENDPOINT_DATA_BYTES_MIN.saturating_add(names);
            self.unvalidated_locators
                .note(now, &self.config.limits, prefix, at, bytes);
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

    /// Removes a remote endpoint.
    pub(super) fn remove_remote_endpoint(&mut self, guid: Guid) {
        self.refused_writers.remove(guid);
        if self.remotes.find(guid).is_some() {
            self.unmatch_remote(guid);
            self.remotes.remove(guid);
            self.events.push_back(ParticipantEvent::EndpointLost(guid));
        }
    }

    /// Adds or updates a remote endpoint. False if it is not stored.
    pub(super) fn handle_endpoint(&mut self, mut remote: EndpointData) -> bool {
        let guid = remote.guid;
        let Some(peer) = self.peers.find(guid.prefix) else {
            return false;
        };
        let route = peer.route_to(&remote, &self.config.network);
        let is_known = self.remotes.find(guid).is_some();
        if !is_known && !self.has_endpoint_place(guid.prefix) {
            self.note_unstored(&remote);
            return false;
        }
        let mut record = self.remotes.record(&mut remote);
        if self
            .remotes
            .find(guid)
            .is_some_and(|old| old.equals(&record))
        {
            return true;
        }
        let Some(charge) = self.charge_endpoint(&remote) else {
            if !is_known {
                self.note_unstored(&remote);
            }
            return false;
        };
        record.charge = charge;
        let old = self.remotes.find(guid);
        if old.is_some_and(|old| old.breaks_match(&remote)) {
            self.unmatch_remote(guid);
        }
        self.remotes.insert(guid.prefix, record);
        self.refused_writers.remove(guid);
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
            self.update_match(&local, &remote);
        }
        true
    }

    /// The local endpoints on a topic of the opposite kind.
    fn locals_opposite(&self, topic: &str, one: Guid) -> Vec<Arc<EndpointData>> {
        let found = self.locals.on_topic(topic, !one.entity.is_writer());
        found.cloned().collect()
    }

    /// Matches a local endpoint with all remote ones on its topic.
    pub(super) fn match_local(&mut self, local: &Arc<EndpointData>) {
        let writers = !local.guid.entity.is_writer();
        let found = self.remotes.on_topic(&local.topic, writers);
        let remotes: Vec<_> = found.map(|remote| Arc::new(remote.data())).collect();
        for remote in remotes {
            self.update_match(local, &remote);
        }
    }

    /// Reports the matches of a local endpoint with a participant's endpoints once more.
    /// For an owner that did not apply them when they were reported first.
    pub fn report_matches_again(&mut self, local: Guid, prefix: GuidPrefix) {
        let outcomes = self.matches.of_local(local);
        let matched = outcomes.filter(|(remote, outcome)| {
            remote.prefix == prefix && **outcome == MatchOutcome::Matched
        });
        let remotes = matched.filter_map(|(remote, _)| self.remotes.find(remote));
        let remotes: Vec<_> = remotes.map(|remote| Arc::new(remote.data())).collect();
        for remote in remotes {
            self.report_match(local, remote);
        }
    }

    fn report_match(&mut self, local: Guid, remote: Arc<EndpointData>) {
        let Some((route, vendor)) = self.route_to_remote(&remote) else {
            return;
        };
        // A path with user traffic is asked sooner.
        self.paths.look_at(Instant::ZERO);
        self.events.push_back(ParticipantEvent::Matched {
            local,
            remote,
            route,
            vendor,
        });
    }

    /// Evaluates a pair and reports a changed outcome.
    fn update_match(&mut self, local: &Arc<EndpointData>, remote: &Arc<EndpointData>) {
        let outcome = if local.guid.entity.is_writer() {
            evaluate_match(local, remote)
        } else {
            evaluate_match(remote, local)
        };
        let Some(before) = self.matches.record(local.guid, remote.guid, &outcome) else {
            return;
        };
        self.has_refused_writers |=
            remote.is_writer() && is_unseen_refusal(local, remote, &outcome);
        let (local, remote) = (local.guid, remote.clone());
        if before == Some(MatchOutcome::Matched) {
            self.events.push_back(ParticipantEvent::Unmatched {
                local,
                remote: remote.guid,
            });
        }
        let event = match outcome {
            MatchOutcome::Matched => return self.report_match(local, remote),
            MatchOutcome::IncompatibleQos(policies) => ParticipantEvent::IncompatibleQos {
                local,
                remote,
                policies,
            },
            MatchOutcome::InconsistentType => ParticipantEvent::InconsistentTopic { local, remote },
            MatchOutcome::NoCommonPartition | MatchOutcome::DifferentProtection => return,
        };
        self.events.push_back(event);
    }

    fn route_to_remote(&self, remote: &EndpointData) -> Option<(Route, crate::id::VendorId)> {
        let peer = self.peers.find(remote.guid.prefix)?;
        let route = peer.route_to(remote, &self.config.network);
        Some((route, peer.data.vendor))
    }

    /// Ends all matches of a local endpoint.
    pub(super) fn unmatch_local(&mut self, local: Guid) {
        for remote in self.matches.remove_local(local) {
            self.events
                .push_back(ParticipantEvent::Unmatched { local, remote });
        }
    }

    /// Ends all matches of a remote endpoint.
    fn unmatch_remote(&mut self, remote: Guid) {
        let Some(known) = self.remotes.find(remote) else {
            return;
        };
        for local in self.locals_opposite(known.topic(), remote) {
            if self.matches.remove(local.guid, remote) {
                self.events.push_back(ParticipantEvent::Unmatched {
                    local: local.guid,
                    remote,
                });
            }
        }
    }

    /// Reports the liveliness assertions of peers.
    pub(super) fn report_liveliness_assertions(&mut self) {
        while let Some((prefix, kind)) = self.wlp.poll_assertion() {
            self.events
                .push_back(ParticipantEvent::LivelinessAsserted { prefix, kind });
        }
    }
}
