//! Revalidation and revocation: certificates and permissions are checked again
//! after authentication.
//!
//! They expire, are revoked or replaced. The check runs every five seconds, and
//! when the first of them expires.
//!
//! DDS Security 1.1 has no message for changed permissions. A context with new
//! permissions disconnects from its peers and authenticates again, with a handshake
//! that carries the new ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::matching::{self, MatchOutcome};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::time::{Duration, Instant};
use pteros_security::certificate::Certificate;
use pteros_security::date::UnixTime;
use pteros_security::identity::CertificateAuthority;
use pteros_security::permissions::access_control::AccessControl;

use super::access_control::decide_endpoint;
use super::credentials::{check_join, to_unix_time};
use super::{EndpointPair, Security, SecurityState};
use crate::back_pressure::BlockingBudget;
use crate::core::{Core, GOODBYE_WAIT};

/// How long a revoked permission may stay in force.
const REVALIDATION_PERIOD: Duration = Duration::from_secs(5);

impl Core {
    /// Reloads changed files and removes peers that are no longer allowed; all of
    /// them if this context is not. Returns true if this context's permissions have
    /// changed.
    pub(super) fn revalidate(
        &self,
        now: Instant,
        security: &Security,
        state: &mut SecurityState,
    ) -> bool {
        if now < state.next_check {
            return false;
        }
        state.next_check = now + REVALIDATION_PERIOD;
        let wall = to_unix_time(self.platform.wall_clock());
        let permissions_changed =
            state.watch.has_changed() && self.reload_files(now, wall, security, state);
        let access = security.access();
        let enclave = &state.handshakes.local_identity().enclave;
        let authority = &enclave.identity_authority;
        let own = check_still_valid(authority, &enclave.identity.chain, &access, wall)
            .and_then(|()| check_join(&access, wall));
        let mut over = Vec::new();
        for (prefix, peer) in &state.peers {
            let theirs = || check_still_valid(authority, &peer.chain, &peer.access, wall);
            if let Err(why) = own.clone().and_then(|()| theirs()) {
                over.push((*prefix, why));
            }
        }
        if let Some(end) = state.earliest_expiry(&access, wall) {
            let seconds = end.0.saturating_sub(wall.0).saturating_add(1);
            let soon = now + Duration::from_secs(seconds.max(0));
            state.next_check = state.next_check.min(soon);
        }
        if let Err(why) = own {
            state.report_own_revocation(why);
        }
        for (prefix, why) in over {
            state.remove_peer(prefix, why);
            security.crypto_transform.remove_participant(prefix);
            self.participant.lock().revoke_access(prefix);
        }
        permissions_changed
    }

    /// Reloads the files of this context after a change. Returns true if peers must
    /// authenticate this context again.
    fn reload_files(
        &self,
        now: Instant,
        wall: UnixTime,
        security: &Security,
        state: &mut SecurityState,
    ) -> bool {
        let renewal = match state.handshakes.reload(wall) {
            Ok(renewal) => renewal,
            Err(faults) => {
                for fault in faults {
                    tracing::warn!("a changed file is not used: {fault}");
                }
                // One of several files may be valid; the fault of the other was
                // just reported.
                let _ = state.handshakes.reload_revocations();
                return false;
            }
        };
        for fault in &renewal.ignored_changes {
            tracing::warn!("a changed file is not used: {fault}");
        }
        let access = state
            .handshakes
            .local_identity()
            .enclave
            .access(self.options.domain_id);
        let Ok(access) = access.map_err(|fault| state.report_own_revocation(fault.to_string()))
        else {
            return false;
        };
        let access = Arc::new(access);
        *security.permissions.write() = access;
        if renewal.has_changed {
            tracing::info!("certificate or permissions have changed; authenticating peers again");
            self.disconnect_all(now, security, state);
        }
        renewal.has_changed
    }

    /// Disconnects all authenticated peers.
    fn disconnect_all(&self, now: Instant, security: &Security, state: &mut SecurityState) {
        let all: Vec<GuidPrefix> = state.peers.keys().copied().collect();
        for prefix in all {
            self.keep_goodbye(security, state, prefix);
        }
        let mut outbox = Outbox::new();
        self.participant.lock().announce_reset(now, &mut outbox);
        self.send(&outbox, 0, &BlockingBudget::for_publish(GOODBYE_WAIT));
        for prefix in self.participant.lock().reset(now) {
            security.crypto_transform.remove_participant(prefix);
            state.peers.remove(&prefix);
            state.handshakes.remove_peer(prefix);
        }
        state.reported.clear();
    }

    /// Checks local endpoints again. Those no longer allowed lose their matches,
    /// local ones too; those allowed again get them back.
    pub(super) fn recheck_local_endpoints(&self, now: Instant, security: &Security) {
        let order = self.match_order.lock();
        let (writers, readers): (Vec<_>, Vec<_>) = {
            let table = self.endpoints.read();
            let writers = table.writers.values().cloned().collect();
            (writers, table.readers.values().cloned().collect())
        };
        let (access, wall) = (security.access(), to_unix_time(self.platform.wall_clock()));
        let all = writers.iter().map(|writer| writer.announced());
        let all = all.chain(readers.iter().map(|reader| reader.announced()));
        let all: Vec<_> = all.collect();
        let mut barred = BTreeMap::new();
        for own in &all {
            let decision = decide_endpoint(&access, own, wall);
            if !decision.allowed {
                let (topic, why) = (&own.topic, decision.to_string());
                tracing::warn!(own = %own.guid, "topic \"{topic}\": all matches ended: {why}");
                barred.insert(own.guid, why);
            }
        }
        let before =
            std::mem::replace(&mut security.state.lock().revoked_endpoints, barred.clone());
        let was = |guid: Guid| before.contains_key(&guid);
        let is = |guid: Guid| barred.contains_key(&guid);
        for own in all {
            match (was(own.guid), barred.get(&own.guid)) {
                (false, Some(why)) => self.end_matches(now, security, own.guid, why),
                (true, None) => {
                    // A peer that knows it receives it as a new endpoint.
                    let mut participant = self.participant.lock();
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
                        self.unmatch_local(now, writer, reader)
                    }
                    (true, false) => self.apply_local_match(now, writer, reader, decision),
                    _ => {}
                }
            }
        }
        drop(order);
        self.wake_waiters_now();
    }

    /// Ends the matches of a local endpoint with authenticated peers. It stays
    /// announced, so that they can report the reason, too.
    fn end_matches(&self, now: Instant, security: &Security, own: Guid, why: &str) {
        let matched: Vec<Guid> = {
            let participant = self.participant.lock();
            let decisions = participant.match_outcomes(own);
            let matched = decisions.filter(|(_, decision)| **decision == MatchOutcome::Matched);
            matched.map(|(remote, _)| remote).collect()
        };
        for remote in matched {
            if self.remove_match(own, remote) {
                self.apply_unmatch(now, own, remote);
            }
            let why = format!("{why} (permissions of this context)");
            security
                .state
                .lock()
                .deny(EndpointPair { own, remote }, why);
        }
    }
}

impl SecurityState {
    /// When the first of the present certificates and grants expires.
    fn earliest_expiry(&self, access: &AccessControl, wall: UnixTime) -> Option<UnixTime> {
        let own = &self.handshakes.local_identity().enclave.identity.chain;
        let peers = self.peers.values();
        let peers = peers.map(|peer| (peer.chain.as_slice(), &peer.access));
        let all = peers.chain([(own.as_slice(), access)]);
        let ends = all.flat_map(|(chain, access)| {
            let chain = chain.iter().map(|one| one.validity().not_after);
            chain.chain([access.expires()])
        });
        ends.filter(|end| *end >= wall).min()
    }

    fn remove_peer(&mut self, prefix: GuidPrefix, why: String) {
        self.peers.remove(&prefix);
        self.handshakes.remove_peer(prefix);
        self.report(prefix, why);
    }

    fn report_own_revocation(&mut self, why: String) {
        let own = self.handshakes.local_identity().prefix;
        if self.reported.get(&own) != Some(&why) {
            tracing::error!("this context: {why}");
            self.reported.insert(own, why);
        }
    }
}

fn check_still_valid(
    authority: &CertificateAuthority,
    chain: &[Certificate],
    access: &AccessControl,
    wall: UnixTime,
) -> Result<(), String> {
    authority
        .admit(chain, wall)
        .map_err(|refusal| refusal.to_string())?;
    let end = access.expires();
    if wall <= end {
        Ok(())
    } else {
        Err(format!("its permissions expired at {end}"))
    }
}
