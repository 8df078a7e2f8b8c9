//! Endpoint matcher: matching for transports that only report which endpoints exist.
//!
//! It holds a transport's local and remote endpoints, and turns their changes into the
//! events of [`TransportEvent::Discovery`](super::TransportEvent), each change of a pair once.
//! The rules are those of RTPS ([`evaluate_match`]), unless the transport brings its own
//! ([`EndpointMatcher::with_rule`]). Sans-IO; the transport locks it.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::Arc;

use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::locator::Route;
use pteros_rtps::matching::{MatchOutcome, evaluate_match};
use pteros_rtps::participant::{LostReason, ParticipantEvent};

use crate::limits::Limits;

/// Decides whether endpoints of one topic match.
pub type MatchRule = fn(writer: &EndpointData, reader: &EndpointData) -> MatchOutcome;

/// See the module documentation.
pub struct EndpointMatcher {
    limits: Limits,
    rule: MatchRule,
    locals: BTreeMap<Guid, Arc<EndpointData>>,
    participants: BTreeMap<GuidPrefix, Arc<ParticipantData>>,
    remotes: BTreeMap<Guid, Arc<EndpointData>>,
    /// By local and remote endpoint.
    outcomes: BTreeMap<(Guid, Guid), MatchOutcome>,
    events: VecDeque<ParticipantEvent>,
    refused: u64,
}

impl EndpointMatcher {
    /// An empty matcher. `limits.remote_participants` and `limits.endpoints` are the
    /// sizes of its tables.
    pub fn new(limits: Limits) -> Self {
        Self::with_rule(limits, evaluate_match)
    }

    /// The same with another rule for two endpoints of one topic name.
    pub fn with_rule(limits: Limits, rule: MatchRule) -> Self {
        Self {
            limits,
            rule,
            locals: BTreeMap::new(),
            participants: BTreeMap::new(),
            remotes: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            events: VecDeque::new(),
            refused: 0,
        }
    }

    /// Adds a local endpoint, or replaces its data.
    pub fn add_local(&mut self, endpoint: &Arc<EndpointData>) {
        self.locals.insert(endpoint.guid, endpoint.clone());
        let remotes: Vec<_> = self.remotes.values().cloned().collect();
        for remote in remotes {
            self.evaluate(endpoint, &remote);
        }
    }

    /// Removes a local endpoint and ends its matches.
    pub fn remove_local(&mut self, local: Guid) {
        if self.locals.remove(&local).is_some() {
            self.end_pairs(|(own, _)| *own == local);
        }
    }

    /// Adds a remote participant, or replaces its data. Returns false when the table
    /// is full.
    pub fn add_participant(&mut self, data: ParticipantData) -> bool {
        let is_known = self.participants.contains_key(&data.prefix);
        if !is_known && self.participants.len() >= self.limits.remote_participants {
            self.refused += 1;
            return false;
        }
        let data = Arc::new(data);
        let before = self.participants.insert(data.prefix, data.clone());
        if before.as_ref() != Some(&data) {
            self.events.push_back(match before {
                None => ParticipantEvent::ParticipantDiscovered(data),
                Some(_) => ParticipantEvent::ParticipantChanged(data),
            });
        }
        true
    }

    /// Removes a remote participant with its endpoints.
    pub fn remove_participant(&mut self, prefix: GuidPrefix, reason: LostReason) {
        if self.participants.remove(&prefix).is_none() {
            return;
        }
        self.end_pairs(|(_, remote)| remote.prefix == prefix);
        let of_it = |guid: &Guid| guid.prefix == prefix;
        let gone: Vec<Guid> = self.remotes.keys().copied().filter(of_it).collect();
        for guid in gone {
            self.remotes.remove(&guid);
            self.events.push_back(ParticipantEvent::EndpointLost(guid));
        }
        self.events
            .push_back(ParticipantEvent::ParticipantLost { prefix, reason });
    }

    /// Adds an endpoint of a known participant, or replaces its data. Returns false
    /// when the participant is unknown or the table is full.
    pub fn add_remote(&mut self, endpoint: EndpointData) -> bool {
        let is_known = self.remotes.contains_key(&endpoint.guid);
        let is_full = !is_known && self.remotes.len() >= self.limits.endpoints;
        if is_full || !self.participants.contains_key(&endpoint.guid.prefix) {
            self.refused += 1;
            return false;
        }
        let remote = Arc::new(endpoint);
        let before = self.remotes.insert(remote.guid, remote.clone());
        if before.as_ref() == Some(&remote) {
            return true;
        }
        self.events.push_back(match before {
            None => ParticipantEvent::EndpointDiscovered(remote.clone()),
            Some(_) => ParticipantEvent::EndpointChanged {
                remote: remote.clone(),
                route: no_route(),
            },
        });
        let locals: Vec<_> = self.locals.values().cloned().collect();
        for local in locals {
            self.evaluate(&local, &remote);
        }
        true
    }

    /// Removes a remote endpoint and ends its matches.
    pub fn remove_remote(&mut self, remote: Guid) {
        if self.remotes.remove(&remote).is_some() {
            self.end_pairs(|(_, theirs)| *theirs == remote);
            self.events
                .push_back(ParticipantEvent::EndpointLost(remote));
        }
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ParticipantEvent> {
        self.events.pop_front()
    }

    /// Whether [`EndpointMatcher::poll_event`] has one.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Remote endpoints, ordered by GUID.
    pub fn remotes(&self) -> impl Iterator<Item = &EndpointData> {
        self.remotes.values().map(|remote| &**remote)
    }

    /// Data of a remote endpoint; `None` if it is unknown.
    pub fn remote(&self, guid: Guid) -> Option<&EndpointData> {
        self.remotes.get(&guid).map(|remote| &**remote)
    }

    /// Participants and endpoints refused because a table was full, or because the
    /// participant of an endpoint is unknown.
    pub fn refused_count(&self) -> u64 {
        self.refused
    }

    /// The table that has outgrown its limit: name, count and limit.
    pub fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        let Limits {
            remote_participants,
            endpoints,
            ..
        } = self.limits;
        [
            ("participants", self.participants.len(), remote_participants),
            ("endpoints", self.remotes.len(), endpoints),
        ]
        .into_iter()
        .find(|(_, held, max)| held > max)
    }

    fn evaluate(&mut self, local: &Arc<EndpointData>, remote: &Arc<EndpointData>) {
        let pair = (local.guid, remote.guid);
        let are_opposite = local.is_writer() != remote.is_writer();
        if local.topic != remote.topic || !are_opposite {
            return;
        }
        let outcome = if local.is_writer() {
            (self.rule)(local, remote)
        } else {
            (self.rule)(remote, local)
        };
        let before = self.outcomes.insert(pair, outcome.clone());
        if before.as_ref() == Some(&outcome) {
            return;
        }
        let (local, remote) = (local.guid, remote.clone());
        if before == Some(MatchOutcome::Matched) {
            let remote = remote.guid;
            self.events
                .push_back(ParticipantEvent::Unmatched { local, remote });
        }
        self.events.push_back(match outcome {
            MatchOutcome::Matched => ParticipantEvent::Matched {
                local,
                vendor: self.vendor_of(remote.guid.prefix),
                remote,
                route: no_route(),
            },
            MatchOutcome::IncompatibleQos(policies) => ParticipantEvent::IncompatibleQos {
                local,
                remote,
                policies,
            },
            MatchOutcome::InconsistentType => ParticipantEvent::InconsistentTopic { local, remote },
            MatchOutcome::NoCommonPartition | MatchOutcome::DifferentProtection => return,
        });
    }

    fn vendor_of(&self, prefix: GuidPrefix) -> pteros_rtps::id::VendorId {
        let participant = self.participants.get(&prefix);
        participant.map(|data| data.vendor).unwrap_or_default()
    }

    fn end_pairs(&mut self, ends: impl Fn(&(Guid, Guid)) -> bool) {
        let events = &mut self.events;
        self.outcomes.retain(|pair, outcome| {
            let stays = !ends(pair);
            if !stays && *outcome == MatchOutcome::Matched {
                let (local, remote) = *pair;
                events.push_back(ParticipantEvent::Unmatched { local, remote });
            }
            stays
        });
    }
}

/// A further transport knows no locators.
fn no_route() -> Route {
    Route::by_socket(&[], false)
}

#[cfg(test)]
mod tests {
    use pteros_rtps::id::EntityId;
    use pteros_rtps::qos::EndpointQos;

    use super::*;

    fn endpoint(prefix: u8, entity: EntityId) -> EndpointData {
        let guid = GuidPrefix([prefix; 12]).with(entity);
        EndpointData::new(guid, "rt/scan", "test::Bytes", EndpointQos::default())
    }

    fn reader(prefix: u8, number: u8) -> EndpointData {
        endpoint(prefix, EntityId::from_bytes([0, 0, number, 0x04]))
    }

    #[test]
    fn an_endpoint_is_taken_again_and_refused_without_participant_or_space() {
        let mut matcher = EndpointMatcher::new(Limits {
            endpoints: 1,
            ..Limits::default()
        });
        assert!(
            !matcher.add_remote(reader(1, 1)),
            "its participant is unknown"
        );
        assert!(matcher.add_participant(ParticipantData::new(GuidPrefix([1; 12]))));
        assert!(matcher.add_remote(reader(1, 1)));
        while matcher.poll_event().is_some() {}
        // A repeated announcement has no effect.
        assert!(matcher.add_remote(reader(1, 1)));
        assert!(!matcher.has_events());
        // With other data it is replaced, although the table is full.
        let renamed = EndpointData {
            topic: "rt/map".into(),
            ..reader(1, 1)
        };
        assert!(matcher.add_remote(renamed));
        let event = matcher.poll_event();
        assert!(
            matches!(&event, Some(ParticipantEvent::EndpointChanged { remote, .. }) if remote.topic == "rt/map"),
            "{event:?}"
        );
        assert!(!matcher.add_remote(reader(1, 2)), "the table is full");
        assert_eq!(matcher.refused_count(), 2);
        assert_eq!(matcher.remotes().count(), 1);
    }

    #[test]
    fn participants_are_known_once_and_refused_when_the_table_is_full() {
        let mut matcher = EndpointMatcher::new(Limits {
            remote_participants: 1,
            ..Limits::default()
        });
        let [first, second] = [1, 2].map(|number| ParticipantData::new(GuidPrefix([number; 12])));
        assert!(matcher.add_participant(first.clone()));
        assert!(matcher.poll_event().is_some());
        assert!(matcher.add_participant(first));
        assert!(!matcher.has_events());
        assert!(!matcher.add_participant(second));
        assert_eq!(matcher.refused_count(), 1);
        assert_eq!(matcher.exceeded_limit(), None);
    }

    #[test]
    fn a_lost_participant_ends_its_matches_before_its_endpoints() {
        let mut matcher = EndpointMatcher::new(Limits::default());
        let writer = Arc::new(endpoint(9, EntityId::from_bytes([0, 0, 1, 0x03])));
        matcher.add_local(&writer);
        for number in [1, 2] {
            matcher.add_participant(ParticipantData::new(GuidPrefix([number; 12])));
            assert!(matcher.add_remote(reader(number, 1)));
        }
        while matcher.poll_event().is_some() {}
        matcher.remove_participant(GuidPrefix([1; 12]), LostReason::Disposed);
        let events: Vec<_> = std::iter::from_fn(|| matcher.poll_event()).collect();
        let gone = reader(1, 1).guid;
        assert!(
            matches!(
                &events[..],
                [
                    ParticipantEvent::Unmatched { remote, .. },
                    ParticipantEvent::EndpointLost(lost),
                    ParticipantEvent::ParticipantLost { .. },
                ] if *remote == gone && *lost == gone
            ),
            "{events:?}"
        );
        assert!(matcher.remote(gone).is_none());
        assert_eq!(matcher.remotes().count(), 1, "the other one stays");
    }
}
