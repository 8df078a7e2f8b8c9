//! Revalidation and revocation: checks certificates and permissions again after
//! authentication.
//!
//! They may expire, be revoked or be replaced. The check runs every five seconds, and
//! when the first of them expires.
//!
//! DDS Security 1.1 has no message for changed permissions. A context with new
//! permissions disconnects from its peers and authenticates again, with a handshake
//! that carries the new ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::time::{Duration, Instant};
use pteros_security::certificate::Certificate;
use pteros_security::date::UnixTime;
use pteros_security::identity::CertificateAuthority;
use pteros_security::permissions::access_control::AccessControl;

use super::access_control::decide_endpoint;
use super::credentials::{check_join, to_unix_time};
use super::{EndpointPair, Security, SecurityState};
use crate::send::back_pressure::{BlockingBudget, GOODBYE_WAIT};

/// How long a revoked permission may stay in force.
const REVALIDATION_PERIOD: Duration = Duration::from_secs(5);

impl Security {
    /// Reloads changed files and removes peers that are no longer allowed; all of
    /// them if this context is not. Returns true if this context's permissions may
    /// have changed.
    pub(super) fn revalidate(&self, now: Instant, state: &mut SecurityState) -> bool {
        if now < state.next_check {
            return false;
        }
        state.next_check = now + REVALIDATION_PERIOD;
        let wall = to_unix_time(self.parts.platform.wall_clock());
        let files_changed = state.watch.has_changed();
        if files_changed {
            self.reload_files(now, wall, state);
        }
        let access = self.access();
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
            state.remove_peer(now, prefix, why);
            self.crypto_transform.remove_participant(prefix);
            self.parts.participant.lock().revoke_access(prefix);
        }
        files_changed
    }

    /// Reloads the files of this context after a change. If its certificate or
    /// permissions have changed, peers authenticate it again.
    fn reload_files(&self, now: Instant, wall: UnixTime, state: &mut SecurityState) {
        let renewal = match state.handshakes.reload(wall) {
            Ok(renewal) => renewal,
            Err(faults) => {
                for fault in faults {
                    tracing::warn!("a changed file is not used: {fault}");
                }
                // One of several files may be valid; the fault of the other was
                // just reported.
                let _ = state.handshakes.reload_revocations();
                return;
            }
        };
        for fault in &renewal.ignored_changes {
            tracing::warn!("a changed file is not used: {fault}");
        }
        let access = state
            .handshakes
            .local_identity()
            .enclave
            .access(self.parts.domain_id);
        let Ok(access) = access.map_err(|fault| state.report_own_revocation(fault.to_string()))
        else {
            return;
        };
        let access = Arc::new(access);
        *self.permissions.write() = access;
        if renewal.has_changed {
            tracing::info!("certificate or permissions have changed; authenticating peers again");
            self.disconnect_all(now, state);
        }
    }

    /// Disconnects all authenticated peers.
    fn disconnect_all(&self, now: Instant, state: &mut SecurityState) {
        let all: Vec<GuidPrefix> = state.peers.keys().copied().collect();
        for prefix in all {
            self.keep_goodbye(state, prefix);
        }
        let mut outbox = Outbox::new();
        self.parts
            .participant
            .lock()
            .announce_reset(now, &mut outbox);
        self.parts
            .send
            .send(&outbox, 0, &BlockingBudget::for_publish(GOODBYE_WAIT));
        for prefix in self.parts.participant.lock().reset(now) {
            self.crypto_transform.remove_participant(prefix);
            state.peers.remove(&prefix);
            state.handshakes.remove_peer(prefix);
        }
        state.reported.clear();
    }

    /// Checks local endpoints again. Returns those no longer allowed before and now,
    /// with the reason.
    pub(crate) fn recheck(
        &self,
        local: &[Arc<EndpointData>],
    ) -> (BTreeMap<Guid, String>, BTreeMap<Guid, String>) {
        let wall = to_unix_time(self.parts.platform.wall_clock());
        let access = self.access();
        let mut barred = BTreeMap::new();
        for own in local {
            let decision = decide_endpoint(&access, own, wall);
            if !decision.allowed {
                let (topic, why) = (&own.topic, decision.to_string());
                tracing::warn!(own = %own.guid, "topic \"{topic}\": all matches ended: {why}");
                barred.insert(own.guid, why);
            }
        }
        let before = std::mem::replace(&mut self.state.lock().revoked_endpoints, barred.clone());
        (before, barred)
    }

    /// Records that a local endpoint lost a match with its permission.
    pub(crate) fn note_revoked(&self, own: Guid, remote: Guid, why: &str) {
        let why = format!("{why} (permissions of this context)");
        self.state.lock().deny(EndpointPair { own, remote }, why);
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

    fn remove_peer(&mut self, now: Instant, prefix: GuidPrefix, why: String) {
        self.peers.remove(&prefix);
        self.handshakes.remove_peer(prefix);
        self.report(now, prefix, why);
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
