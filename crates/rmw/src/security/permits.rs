//! Who may write and read what: asked when an endpoint of ours is made, and when
//! one of a peer matches.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::matching;
use pteros_rtps::time::Instant;
use pteros_security::attributes::SecurityInfo;
use pteros_security::date::UnixTime;
use pteros_security::permissions::access::{Access, Endpoint, Verdict};

use super::opening::unix;
use super::{Pending, Security, State};
use crate::core::Core;
use crate::error::EndpointError;

/// Whether one who has these permissions may have this endpoint.
pub(super) fn judge(access: &Access, data: &EndpointData, now: UnixTime) -> Verdict {
    let partitions: Vec<&str> = data.qos.partition.iter().map(|name| &**name).collect();
    let endpoint = Endpoint {
        topic: &data.topic,
        partitions: &partitions,
        tags: &[],
    };
    match data.is_writer() {
        true => access.may_write(&endpoint, now),
        false => access.may_read(&endpoint, now),
    }
}

impl Core {
    /// Lets an endpoint of ours be, as the governance has it protected; nothing
    /// to do where the context is not secured.
    ///
    /// # Errors
    /// The verdict, if the permissions do not let it be.
    pub(crate) fn permit(&self, data: &mut EndpointData) -> Result<(), EndpointError> {
        let Some(security) = &self.security else {
            return Ok(());
        };
        let access = security.access();
        let verdict = judge(&access, data, unix(self.env.wall()));
        let rule = access.domain_rule().topic(&data.topic);
        let Some(rule) = rule.filter(|_| verdict.allowed) else {
            return Err(EndpointError::Denied(verdict.to_string()));
        };
        let info = SecurityInfo::of_endpoint(rule);
        data.security_info = Some((info.attributes, info.plugin_attributes));
        security
            .shield
            .add_endpoint(data.guid.entity, info)
            .map_err(|error| EndpointError::Keys(error.to_string()))
    }

    /// Whether an endpoint of ours may have other partitions.
    ///
    /// # Errors
    /// The verdict, if not.
    pub(crate) fn permit_change(&self, data: &EndpointData) -> Result<(), String> {
        let Some(security) = &self.security else {
            return Ok(());
        };
        let verdict = judge(&security.access(), data, unix(self.env.wall()));
        match verdict.allowed {
            true => Ok(()),
            false => Err(verdict.to_string()),
        }
    }

    /// Whether an endpoint of ours may have no matches, since it is allowed no
    /// longer.
    pub(crate) fn is_barred(&self, own: Guid) -> bool {
        let security = self.security.as_ref();
        security.is_some_and(|security| security.state.lock().barred.contains_key(&own))
    }

    /// An endpoint of ours is gone.
    pub(crate) fn forget_endpoint(&self, guid: Guid) {
        if let Some(security) = &self.security {
            security.shield.remove_endpoint(guid.entity);
            let mut state = security.state.lock();
            state.pending.retain(|(own, _), _| *own != guid);
            state.denied.retain(|(own, _), _| *own != guid);
            state.barred.remove(&guid);
        }
    }

    /// Whether a match can be carried out now; if not it is kept until keys come,
    /// or for good if it is not allowed.
    pub(crate) fn is_open(
        &self,
        now: Instant,
        own: Guid,
        remote: &Arc<EndpointData>,
        (route, vendor): (&Route, VendorId),
    ) -> bool {
        let Some(security) = &self.security else {
            return true;
        };
        let mut state = security.state.lock();
        let pair = (own, remote.guid);
        if let Err(why) = self.may_match(&state, security, own, remote) {
            if state.denied.get(&pair) != Some(&why) {
                tracing::warn!(
                    own = %own, peer = %remote.guid,
                    "topic \"{}\": a peer's endpoint is not matched, {why}", remote.topic
                );
            }
            state.deny(pair, why);
            return false;
        }
        state.denied.remove(&pair);
        security.shield.pair(own.entity, remote.guid);
        self.give_keys(now, security, own.entity, remote.guid);
        if security.shield.is_open(own.entity, remote.guid) {
            return true;
        }
        let pending = Pending {
            remote: remote.clone(),
            route: route.clone(),
            vendor,
        };
        state.pending.insert(pair, pending);
        false
    }

    fn may_match(
        &self,
        state: &State,
        security: &Security,
        own: Guid,
        remote: &EndpointData,
    ) -> Result<(), String> {
        if let Some(why) = state.barred.get(&own) {
            return Err(format!("{why} (permissions of this context)"));
        }
        let Some(peer) = state.peers.get(&remote.guid.prefix) else {
            return self.may_match_unauthenticated(security, own, remote);
        };
        let verdict = judge(&peer.access, remote, unix(self.env.wall()));
        match verdict.allowed {
            true => Ok(()),
            false => Err(format!("{verdict} (permissions of {})", peer.subject)),
        }
    }

    /// One without an identity gets what needs no permission and no keys.
    fn may_match_unauthenticated(
        &self,
        security: &Security,
        own: Guid,
        remote: &EndpointData,
    ) -> Result<(), String> {
        let access = security.access();
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
        match security.shield.pair(own.entity, remote.guid) {
            true => Ok(()),
            false => Err("denied: it has no identity, and the topic is protected".into()),
        }
    }

    /// Carries out what waited for keys of a peer.
    pub(super) fn open_pending(&self, now: Instant, security: &Security) {
        loop {
            let mut state = security.state.lock();
            let is_open =
                |(own, remote): &(Guid, Guid)| security.shield.is_open(own.entity, *remote);
            let Some(pair) = state.pending.keys().copied().find(is_open) else {
                return;
            };
            let Some(pending) = state.pending.remove(&pair) else {
                return;
            };
            drop(state);
            let Pending {
                remote,
                route,
                vendor,
            } = pending;
            self.apply_match(now, pair.0, &remote, route, vendor);
        }
    }

    /// A match ends. True if it had been carried out.
    pub(crate) fn was_open(&self, own: Guid, remote: Guid) -> bool {
        let Some(security) = &self.security else {
            return true;
        };
        let mut state = security.state.lock();
        let pair = (own, remote);
        let waited = state.pending.remove(&pair).is_some();
        let was_denied = state.denied.remove(&pair).is_some();
        !waited && !was_denied
    }

    /// Why a writer and a reader that fit are not matched by those that have them:
    /// the rule that denies it, or other protection. As far as is known here,
    /// where both belong to others, too.
    pub fn why_denied(&self, writer: &EndpointData, reader: &EndpointData) -> Option<String> {
        let security = self.security.as_ref()?;
        if matching::judge(writer, reader) == matching::Verdict::OtherProtection {
            let why = "the two protect the topic in different ways; give both enclaves the same \
                       governance.p7s";
            return Some(why.into());
        }
        let now = unix(self.env.wall());
        let own = security.access();
        let denied = |data: &EndpointData| {
            let state = security.state.lock();
            let prefix = data.guid.prefix;
            let (access, whose) = match state.peers.get(&prefix) {
                _ if prefix == self.prefix => (&*own, "this context"),
                Some(peer) => (&peer.access, peer.subject.as_str()),
                None => return None,
            };
            let verdict = judge(access, data, now);
            (!verdict.allowed).then(|| format!("{verdict} (permissions of {whose})"))
        };
        let denied = denied(writer).or_else(|| denied(reader));
        denied
            .or_else(|| self.why_shut(writer.guid, reader.guid))
            .or_else(|| self.why_shut(reader.guid, writer.guid))
    }

    /// Why an endpoint of ours and a peer's are not matched although they fit:
    /// the rule that denies it, or that keys are missing.
    pub fn why_shut(&self, own: Guid, remote: Guid) -> Option<String> {
        let state = self.security.as_ref()?.state.lock();
        if let Some(why) = state.denied.get(&(own, remote)) {
            return Some(why.clone());
        }
        let waits = state.pending.contains_key(&(own, remote));
        waits.then(|| "its keys have not come yet".into())
    }
}

impl State {
    /// Remembers why a pair is not matched; bounded as pairs are.
    pub(super) fn deny(&mut self, pair: (Guid, Guid), why: String) {
        self.denied.insert(pair, why);
    }
}
