//! Access control: which endpoints the permissions allow (DDS Security 1.1 §8.4).
//!
//! Checked when a local endpoint is created, and when a remote one matches.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::matching;
use pteros_rtps::time::Instant;
use pteros_security::attributes::SecurityInfo;
use pteros_security::date::UnixTime;
use pteros_security::permissions::access_control::{
    AccessControl, AccessDecision, EndpointRequest,
};

use super::credentials::to_unix_time;
use super::{EndpointPair, PendingMatch, ReadyMatch, Security, SecurityState};
use crate::error::EndpointError;

/// Whether these permissions allow this endpoint.
pub(super) fn decide_endpoint(
    access: &AccessControl,
    data: &EndpointData,
    now: UnixTime,
) -> AccessDecision {
    let partitions: Vec<&str> = data.qos.partition.iter().map(|name| &**name).collect();
    let endpoint = EndpointRequest {
        topic: &data.topic,
        partitions: &partitions,
        tags: &[],
    };
    if data.is_writer() {
        access.may_write(&endpoint, now)
    } else {
        access.may_read(&endpoint, now)
    }
}

impl Security {
    /// Checks the permissions for a local endpoint and sets the protection that the
    /// governance demands.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(crate) fn check_endpoint_permission(
        &self,
        data: &mut EndpointData,
    ) -> Result<(), EndpointError> {
        let access = self.access();
        let decision = decide_endpoint(
            &access,
            data,
            to_unix_time(self.parts.platform.wall_clock()),
        );
        let rule = access.domain_rule().topic(&data.topic);
        let Some(rule) = rule.filter(|_| decision.allowed) else {
            return Err(EndpointError::Denied(decision.to_string()));
        };
        let info = SecurityInfo::of_endpoint(rule);
        data.security_info = Some((info.attributes, info.plugin_attributes));
        self.crypto_transform
            .add_endpoint(data.guid.entity, info)
            .map_err(|error| EndpointError::Keys(error.to_string()))
    }

    /// Checks the permissions for other partitions of a local endpoint.
    ///
    /// # Errors
    /// The rule that denies it.
    pub(crate) fn check_partition_permission(&self, data: &EndpointData) -> Result<(), String> {
        let decision = decide_endpoint(
            &self.access(),
            data,
            to_unix_time(self.parts.platform.wall_clock()),
        );
        if decision.allowed {
            Ok(())
        } else {
            Err(decision.to_string())
        }
    }

    /// Whether a local endpoint may have no matches because its permission was
    /// revoked.
    pub(crate) fn is_revoked(&self, own: Guid) -> bool {
        self.state.lock().revoked_endpoints.contains_key(&own)
    }

    /// Removes a local endpoint.
    pub(crate) fn forget_endpoint(&self, guid: Guid) {
        self.crypto_transform.remove_endpoint(guid.entity);
        let mut state = self.state.lock();
        state.pending.retain(|pair, _| pair.own != guid);
        state.denied.retain(|pair, _| pair.own != guid);
        state.revoked_endpoints.remove(&guid);
    }

    /// Whether a match can be completed now. If not, it is kept until keys arrive,
    /// or recorded as denied.
    pub(crate) fn is_match_ready(
        &self,
        now: Instant,
        own: Guid,
        remote: &Arc<EndpointData>,
        route: &Route,
        vendor: VendorId,
    ) -> bool {
        let mut state = self.state.lock();
        let pair = EndpointPair {
            own,
            remote: remote.guid,
        };
        if let Err(why) = self.check_match(&state, own, remote) {
            if state.denied.get(&pair) != Some(&why) {
                tracing::warn!(
                    own = %own, peer = %remote.guid,
                    "topic \"{}\": a remote endpoint is not matched: {why}", remote.topic
                );
            }
            state.deny(pair, why);
            return false;
        }
        state.denied.remove(&pair);
        self.crypto_transform
            .match_endpoints(own.entity, remote.guid);
        self.send_endpoint_keys(now, own.entity, remote.guid);
        if self.crypto_transform.has_keys_for(own.entity, remote.guid) {
            return true;
        }
        let pending = PendingMatch {
            remote: remote.clone(),
            route: route.clone(),
            vendor,
        };
        state.pending.insert(pair, pending);
        false
    }

    fn check_match(
        &self,
        state: &SecurityState,
        own: Guid,
        remote: &EndpointData,
    ) -> Result<(), String> {
        if let Some(why) = state.revoked_endpoints.get(&own) {
            return Err(format!("{why} (permissions of this context)"));
        }
        let Some(peer) = state.peers.get(&remote.guid.prefix) else {
            return self.check_unauthenticated_match(own, remote);
        };
        let decision = decide_endpoint(
            &peer.access,
            remote,
            to_unix_time(self.parts.platform.wall_clock()),
        );
        if decision.allowed {
            Ok(())
        } else {
            Err(format!("{decision} (permissions of {})", peer.subject))
        }
    }

    /// A peer without an identity may match only endpoints that need neither permission
    /// nor keys.
    fn check_unauthenticated_match(&self, own: Guid, remote: &EndpointData) -> Result<(), String> {
        let access = self.access();
        let (controlled, flag) = match access.domain_rule().topic(&remote.topic) {
            None => return Err("denied: no topic_rule matches it".into()),
            Some(rule) if remote.is_writer() => {
                (rule.write_access_control, "enable_write_access_control")
            }
            Some(rule) => (rule.read_access_control, "enable_read_access_control"),
        };
        if controlled {
            return Err(format!(
                "denied: it has no identity, and the governance has {flag} true"
            ));
        }
        if self
            .crypto_transform
            .match_endpoints(own.entity, remote.guid)
        {
            Ok(())
        } else {
            Err("denied: it has no identity, and the topic is protected".into())
        }
    }

    /// Takes a match whose keys have arrived.
    pub(crate) fn take_ready_match(&self) -> Option<ReadyMatch> {
        let mut state = self.state.lock();
        let is_open = |pair: &EndpointPair| {
            self.crypto_transform
                .has_keys_for(pair.own.entity, pair.remote)
        };
        let pair = state.pending.keys().copied().find(is_open)?;
        let pending = state.pending.remove(&pair)?;
        Some(ReadyMatch {
            own: pair.own,
            remote: pending.remote,
            route: pending.route,
            vendor: pending.vendor,
        })
    }

    /// Removes a match. Returns true if it had been completed.
    pub(crate) fn remove_match(&self, own: Guid, remote: Guid) -> bool {
        let mut state = self.state.lock();
        let pair = EndpointPair { own, remote };
        let waited = state.pending.remove(&pair).is_some();
        let was_denied = state.denied.remove(&pair).is_some();
        !waited && !was_denied
    }

    /// Why a compatible writer and reader are not matched: the denying rule or
    /// different protection. As far as known here, if both are remote.
    pub(crate) fn why_denied(
        &self,
        writer: &EndpointData,
        reader: &EndpointData,
    ) -> Option<String> {
        if matching::evaluate_match(writer, reader) == matching::MatchOutcome::DifferentProtection {
            let why = "the two protect the topic differently; give both enclaves the same \
                       governance.p7s";
            return Some(why.into());
        }
        let now = to_unix_time(self.parts.platform.wall_clock());
        let own = self.access();
        let denied = |data: &EndpointData| {
            let state = self.state.lock();
            let prefix = data.guid.prefix;
            let (access, whose) = match state.peers.get(&prefix) {
                _ if prefix == self.prefix => (&*own, "this context"),
                Some(peer) => (&peer.access, peer.subject.as_str()),
                None => return None,
            };
            let decision = decide_endpoint(access, data, now);
            (!decision.allowed).then(|| format!("{decision} (permissions of {whose})"))
        };
        let denied = denied(writer).or_else(|| denied(reader));
        denied
            .or_else(|| self.why_unmatched(writer.guid, reader.guid))
            .or_else(|| self.why_unmatched(reader.guid, writer.guid))
    }

    /// Why a local and a remote endpoint are not matched although compatible: the
    /// denying rule, or missing keys.
    pub(crate) fn why_unmatched(&self, own: Guid, remote: Guid) -> Option<String> {
        let state = self.state.lock();
        let pair = EndpointPair { own, remote };
        if let Some(why) = state.denied.get(&pair) {
            return Some(why.clone());
        }
        let is_pending = state.pending.contains_key(&pair);
        is_pending.then(|| "its keys have not arrived yet".into())
    }
}

impl SecurityState {
    /// Records why a pair is not matched; bounded as pairs are.
    pub(super) fn deny(&mut self, pair: EndpointPair, why: String) {
        self.denied.insert(pair, why);
    }
}
