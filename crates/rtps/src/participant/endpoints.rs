//! Endpoints of a participant, local and remote, and their matches (RTPS 2.5 §8.5.4).
//!
//! [`LocalEndpoints`] and [`RemoteEndpoints`] hold the endpoints, [`MatchTable`] the
//! outcome of each pair on a topic. A changed outcome is reported as an event.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::{Guid, GuidPrefix};
use crate::locator::NetworkScope;
use crate::matching::{MatchOutcome, MatchTable, evaluate_match, is_unseen_refusal};
use crate::qos::Liveliness;
use crate::time::{Duration, Instant};

use super::local_endpoints::LocalEndpoints;
use super::path_evidence::Paths;
use super::peer::{Peer, Peers};
use super::refused_writer_table::RefusedWriters;
use super::remote_endpoints::{RemoteEndpoint, RemoteEndpoints};
use super::{ParticipantConfig, ParticipantEvent};

/// The endpoints that a participant knows, and their matches.
#[derive(Default)]
pub struct Endpoints {
    pub(super) locals: LocalEndpoints,
    pub(super) remotes: RemoteEndpoints,
    pub(super) matches: MatchTable,
    pub(super) refused_writers: RefusedWriters,
    pub(super) has_refused_writers: bool,
}

/// The peers that a new match needs, and the place of its report.
pub(super) struct MatchReport<'a> {
    pub(super) peers: &'a Peers,
    pub(super) network: &'a NetworkScope,
    pub(super) paths: &'a mut Paths,
    pub(super) events: &'a mut VecDeque<ParticipantEvent>,
}

impl MatchReport<'_> {
    fn matched(&mut self, local: Guid, remote: Arc<EndpointData>) {
        let Some(peer) = self.peers.find(remote.guid.prefix) else {
            return;
        };
        let route = peer.route_to(&remote, self.network);
        // A path with user traffic is asked sooner.
        self.paths.look_at(Instant::ZERO);
        self.events.push_back(ParticipantEvent::Matched {
            local,
            remote,
            route,
            vendor: peer.data.vendor,
        });
    }
}

impl Endpoints {
    /// The remote endpoints, matched or not.
    pub fn remotes(&self) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        self.remotes.iter()
    }

    /// The remote endpoints on a topic, given by its wire name, matched or not.
    pub fn remotes_on(&self, topic: &str) -> impl Iterator<Item = RemoteEndpoint<'_>> {
        [true, false]
            .into_iter()
            .flat_map(|writers| self.remotes.on_topic(topic, writers))
    }

    /// A discovered endpoint of another participant, matched or not; `None` if unknown.
    pub fn remote(&self, guid: Guid) -> Option<RemoteEndpoint<'_>> {
        self.remotes.find(guid)
    }

    /// An endpoint of this participant; `None` if it has none of this GUID.
    pub fn local(&self, guid: Guid) -> Option<&Arc<EndpointData>> {
        self.locals.find(guid)
    }

    /// The match outcome of a local endpoint with each remote one on its topic.
    pub fn match_outcomes(&self, local: Guid) -> impl Iterator<Item = (Guid, &MatchOutcome)> {
        self.matches.of_local(local)
    }

    /// Whether any writer was refused so that its stack may not see it. It stays true:
    /// before, [`Participant::refused_writer`](super::Participant::refused_writer) finds
    /// none.
    pub fn has_refused_writers(&self) -> bool {
        self.has_refused_writers
    }

    /// The local endpoints on a topic of the opposite kind.
    pub(super) fn locals_opposite(&self, topic: &str, one: Guid) -> Vec<Arc<EndpointData>> {
        let found = self.locals.on_topic(topic, !one.entity.is_writer());
        found.cloned().collect()
    }

    /// Matches a local endpoint with all remote ones on its topic.
    pub(super) fn match_local(&mut self, local: &Arc<EndpointData>, report: &mut MatchReport<'_>) {
        let writers = !local.guid.entity.is_writer();
        let found = self.remotes.on_topic(&local.topic, writers);
        let remotes: Vec<_> = found.map(|remote| Arc::new(remote.data())).collect();
        for remote in remotes {
            self.update_match(local, &remote, report);
        }
    }

    /// Reports the matches of a local endpoint with a participant's endpoints once more.
    pub(super) fn report_matches(
        &self,
        local: Guid,
        prefix: GuidPrefix,
        report: &mut MatchReport<'_>,
    ) {
        let outcomes = self.matches.of_local(local);
        let matched = outcomes.filter(|(remote, outcome)| {
            remote.prefix == prefix && **outcome == MatchOutcome::Matched
        });
        for remote in matched.filter_map(|(remote, _)| self.remotes.find(remote)) {
            report.matched(local, Arc::new(remote.data()));
        }
    }

    /// Evaluates a pair and reports a changed outcome.
    pub(super) fn update_match(
        &mut self,
        local: &Arc<EndpointData>,
        remote: &Arc<EndpointData>,
        report: &mut MatchReport<'_>,
    ) {
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
            report.events.push_back(ParticipantEvent::Unmatched {
                local,
                remote: remote.guid,
            });
        }
        let event = match outcome {
            MatchOutcome::Matched => return report.matched(local, remote),
            MatchOutcome::IncompatibleQos(policies) => ParticipantEvent::IncompatibleQos {
                local,
                remote,
                policies,
            },
            MatchOutcome::InconsistentType => ParticipantEvent::InconsistentTopic { local, remote },
            MatchOutcome::NoCommonPartition | MatchOutcome::DifferentProtection => return,
        };
        report.events.push_back(event);
    }

    /// Ends all matches of a local endpoint.
    pub(super) fn unmatch_local(&mut self, local: Guid, events: &mut VecDeque<ParticipantEvent>) {
        for remote in self.matches.remove_local(local) {
            events.push_back(ParticipantEvent::Unmatched { local, remote });
        }
    }

    /// Ends all matches of a remote endpoint.
    pub(super) fn unmatch_remote(&mut self, remote: Guid, events: &mut VecDeque<ParticipantEvent>) {
        let Some(known) = self.remotes.find(remote) else {
            return;
        };
        for local in self.locals_opposite(known.topic(), remote) {
            if self.matches.remove(local.guid, remote) {
                events.push_back(ParticipantEvent::Unmatched {
                    local: local.guid,
                    remote,
                });
            }
        }
    }

    /// Removes a remote endpoint.
    pub(super) fn remove_remote(&mut self, guid: Guid, events: &mut VecDeque<ParticipantEvent>) {
        self.refused_writers.remove(guid);
        if self.remotes.find(guid).is_some() {
            self.unmatch_remote(guid, events);
            self.remotes.remove(guid);
            events.push_back(ParticipantEvent::EndpointLost(guid));
        }
    }

    /// Removes the endpoints of a participant: first their matches, then themselves.
    pub(super) fn remove_participant(
        &mut self,
        prefix: GuidPrefix,
        events: &mut VecDeque<ParticipantEvent>,
    ) {
        let removed: Vec<Guid> = self.remotes.of(prefix).map(|e| e.guid()).collect();
        for guid in &removed {
            self.unmatch_remote(*guid, events);
        }
        for guid in removed {
            self.remotes.remove(guid);
            events.push_back(ParticipantEvent::EndpointLost(guid));
        }
        self.refused_writers.remove_participant(prefix);
    }

    /// Removes the endpoints of a participant that are not in `announced`.
    pub(super) fn retain(
        &mut self,
        prefix: GuidPrefix,
        announced: &[Guid],
        events: &mut VecDeque<ParticipantEvent>,
    ) {
        let known = self.remotes.of(prefix).map(RemoteEndpoint::guid);
        let removed: Vec<Guid> = known.filter(|guid| !announced.contains(guid)).collect();
        for guid in removed {
            self.remove_remote(guid, events);
        }
        self.refused_writers.retain(prefix, announced);
    }

    /// Reports the present routes to the endpoints of a participant: to all, or to those
    /// with own locators.
    pub(super) fn report_routes(
        &self,
        peer: &Peer,
        is_all: bool,
        network: &NetworkScope,
        events: &mut VecDeque<ParticipantEvent>,
    ) {
        for remote in self.remotes.of(peer.data.prefix).map(RemoteEndpoint::data) {
            if is_all || !remote.unicast.is_empty() {
                let route = peer.route_to(&remote, network);
                let remote = Arc::new(remote);
                events.push_back(ParticipantEvent::EndpointChanged { remote, route });
            }
        }
    }

    /// Whether a remote endpoint matches a local one.
    pub(super) fn is_matched(&self, remote: Guid) -> bool {
        let Some(endpoint) = self.remotes.find(remote) else {
            return false;
        };
        let locals = self
            .locals
            .on_topic(endpoint.topic(), !remote.entity.is_writer());
        locals
            .into_iter()
            .any(|local| self.matches.find(local.guid, remote) == Some(&MatchOutcome::Matched))
    }

    /// Whether a topic of users, not only the graph's, connects us with a participant.
    pub(super) fn has_user_match(&self, prefix: GuidPrefix, config: &ParticipantConfig) -> bool {
        let hidden = &config.topics_not_announced_on_host;
        let mut locals = self.locals.iter().filter(|e| !hidden.contains(&e.topic));
        locals.any(|local| {
            let mut matched = self.matches.of_local(local.guid);
            matched.any(|(remote, outcome)| {
                remote.prefix == prefix && *outcome == MatchOutcome::Matched
            })
        })
    }

    /// The shortest lease of the local writers with AUTOMATIC liveliness.
    pub(super) fn shortest_automatic_lease(&self) -> Option<Duration> {
        self.locals
            .iter()
            .filter(|e| e.guid.entity.is_writer())
            .filter(|e| e.qos.liveliness == Liveliness::Automatic)
            .map(|e| e.qos.lease_duration)
            .filter(|lease| !lease.is_infinite())
            .min()
    }
}
