//! Security hooks of a context: without security nothing is denied. Results of security
//! change matches.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::matching::{self, MatchOutcome};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::Instant;

use crate::core::Core;
use crate::error::EndpointError;
use crate::platform::ReceivedDatagram;
use crate::security::{ReadyMatch, Security};

/// The security of a context, if it is secured. Thread-safe.
pub struct SecurityHooks(pub(crate) Option<Box<Security>>);

impl SecurityHooks {
    /// Checks the permissions for a local endpoint and sets the protection that the
    /// governance demands. Does nothing without security.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(crate) fn check_endpoint_permission(
        &self,
        data: &mut EndpointData,
    ) -> Result<(), EndpointError> {
        let security = self.0.as_ref();
        security.map_or(Ok(()), |security| security.check_endpoint_permission(data))
    }

    /// Checks the permissions for other partitions of a local endpoint.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(crate) fn check_partition_permission(&self, data: &EndpointData) -> Result<(), String> {
        let security = self.0.as_ref();
        security.map_or(Ok(()), |security| security.check_partition_permission(data))
    }

    /// Whether a local endpoint may have no matches because its permission was
    /// revoked.
    pub(crate) fn is_revoked(&self, own: Guid) -> bool {
        let security = self.0.as_ref();
        security.is_some_and(|security| security.is_revoked(own))
    }

    /// Removes a local endpoint.
    pub(crate) fn forget_endpoint(&self, guid: Guid) {
        if let Some(security) = &self.0 {
            security.forget_endpoint(guid);
        }
    }

    /// Whether a match can be completed now. If not, it is kept until keys arrive, or
    /// recorded as denied.
    pub(crate) fn is_match_ready(
        &self,
        now: Instant,
        own: Guid,
        remote: &Arc<EndpointData>,
        route: &Route,
        vendor: VendorId,
    ) -> bool {
        let security = self.0.as_ref();
        security.is_none_or(|security| security.is_match_ready(now, own, remote, route, vendor))
    }

    /// Removes a match. Returns true if it had been completed.
    pub(crate) fn remove_match(&self, own: Guid, remote: Guid) -> bool {
        let security = self.0.as_ref();
        security.is_none_or(|security| security.remove_match(own, remote))
    }

    /// Why a compatible writer and reader are not matched: the denying rule or
    /// different protection. As far as known here, if both are remote.
    pub fn why_denied(&self, writer: &EndpointData, reader: &EndpointData) -> Option<String> {
        self.0.as_ref()?.why_denied(writer, reader)
    }

    /// Why a local and a remote endpoint are not matched although compatible: the
    /// denying rule, or missing keys.
    pub fn why_unmatched(&self, own: Guid, remote: Guid) -> Option<String> {
        self.0.as_ref()?.why_unmatched(own, remote)
    }

    /// Authenticated participants with the subjects of their certificates; none
    /// without security.
    pub fn authenticated(&self) -> Vec<(GuidPrefix, String)> {
        let security = self.0.as_ref();
        security.map_or_else(Vec::new, |security| security.authenticated())
    }
}

impl Core {
    /// Handles discovery events of unauthenticated participants.
    pub(crate) fn handle_unauthenticated_event(&self, now: Instant, event: &ParticipantEvent) {
        let Some(security) = &self.security.0 else {
            return;
        };
        security.handle_event(now, event);
        if !matches!(event, ParticipantEvent::KeyExchangeMessage { .. }) {
            return;
        }
        while let Some(ready) = security.take_ready_match() {
            let ReadyMatch {
                own,
                remote,
                route,
                vendor,
            } = ready;
            self.apply_match(now, own, &remote, route, vendor);
        }
    }

    /// Handles a datagram before the crypto transform.
    pub(crate) fn note_unprotected_datagram(
        &self,
        now: Instant,
        datagram: &[u8],
        received: &ReceivedDatagram,
    ) {
        if let Some(security) = &self.security.0
            && security.note_unprotected_datagram(now, datagram, received)
        {
            self.serve_participant(now);
        }
    }

    /// Handles timeouts of the handshakes.
    pub(crate) fn poll_handshakes(&self, now: Instant) {
        if let Some(security) = &self.security.0
            && security.handle_timeout(now)
        {
            self.recheck_local_endpoints(now, security);
        }
        self.serve_participant(now);
    }

    /// Checks local endpoints again. Endpoints that are no longer allowed lose their
    /// matches, also local ones. Endpoints that are allowed again get them back.
    fn recheck_local_endpoints(&self, now: Instant, security: &Security) {
        let order = self.endpoints.begin_match();
        let (writers, readers) = (self.endpoints.writers(), self.endpoints.readers());
        let all = writers.iter().map(|writer| writer.announced());
        let all = all.chain(readers.iter().map(|reader| reader.announced()));
        let all: Vec<_> = all.collect();
        let (before, barred) = security.recheck(&all);
        let was = |guid: Guid| before.contains_key(&guid);
        let is = |guid: Guid| barred.contains_key(&guid);
        for own in all {
            match (was(own.guid), barred.get(&own.guid)) {
                (false, Some(why)) => self.end_matches(now, security, own.guid, why),
                (true, None) => {
                    // A peer that knows the endpoint receives it as a new one.
                    let mut participant = self.participant().lock();
                    participant.remove_endpoint(now, own.guid);
                    if own.is_writer() {
                        participant.add_writer(now, own)
                    } else {
                        participant.add_reader(now, own)
                    }
                }
                _ => {}
            }
        }
        for writer in &writers {
            for reader in readers
                .iter()
                .filter(|reader| writer.may_match_locally(reader))
            {
                let pair = [writer.guid(), reader.data.guid];
                let decision = matching::evaluate_match(&writer.announced(), &reader.announced());
                match (pair.into_iter().any(was), pair.into_iter().any(is)) {
                    (false, true) if decision == MatchOutcome::Matched => {
                        self.publishing.intra_process.end_match(now, writer, reader)
                    }
                    (true, false) => self.apply_local_match(now, writer, reader, decision),
                    _ => {}
                }
            }
        }
        drop(order);
        self.scheduler.wake_waiters();
    }

    /// Ends the matches of a local endpoint with authenticated peers. It remains
    /// announced, so that peers can report the reason as well.
    fn end_matches(&self, now: Instant, security: &Security, own: Guid, why: &str) {
        let matched: Vec<Guid> = {
            let participant = self.participant().lock();
            let decisions = participant.endpoints().match_outcomes(own);
            let matched = decisions.filter(|(_, decision)| **decision == MatchOutcome::Matched);
            matched.map(|(remote, _)| remote).collect()
        };
        for remote in matched {
            if self.security.remove_match(own, remote) {
                self.apply_unmatch(now, own, remote);
            }
            security.note_revoked(own, remote, why);
        }
    }
}
