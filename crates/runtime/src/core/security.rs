//! Results of security change matches.

use pteros_rtps::id::Guid;
use pteros_rtps::matching::{self, MatchOutcome};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::time::Instant;

use crate::core::discovery::Discovery;
use crate::platform::ReceivedDatagram;
use crate::security::{ReadyMatch, Security};

impl Discovery {
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
