//! From the files of an enclave to a context that can prove who it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};

use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use pteros_rtps::discovery::data::ParticipantData;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::participant::SecurityConfig;
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::wire::pid;
use pteros_security::attributes::SecurityInfo;
use pteros_security::auth::{Handshakes, Own, Token};
use pteros_security::date::UnixTime;
use pteros_security::enclave::{Enclave, is_missing};
use pteros_security::permissions::access::{Access, Endpoint};
use pteros_security::settings::Settings;
use pteros_security::shield::Shield;
use pteros_security::watch::Watch;

use super::{Security, SecurityOptions, State};
use crate::error::OpenError;
use crate::graph::DISCOVERY_TOPIC;

impl SecurityOptions {
    /// What the environment asks of a context that names this enclave. Where it
    /// is `Permissive` and there is no such enclave, the context is not secured,
    /// and says so.
    ///
    /// # Errors
    /// The enclave's name leads nowhere.
    pub fn of_environment(settings: &Settings, enclave: &str) -> Result<Option<Self>, OpenError> {
        let folder = settings.folder(enclave);
        let folder = folder.map_err(|fault| OpenError::Enclave(vec![fault]))?;
        if !settings.enforce && is_missing(&folder) {
            tracing::warn!(
                "not secured, as ROS_SECURITY_STRATEGY is Permissive and there is no {}; make it \
                 with `pteros security create_enclave`, or set ROS_SECURITY_STRATEGY to Enforce",
                folder.display()
            );
            return Ok(None);
        }
        Ok(Some(Self { enclave: folder }))
    }
}

/// An enclave that has been read, and lets a context be in its domain.
pub(crate) struct Credentials {
    watch: Watch,
    enclave: Enclave,
    access: Access,
    /// The prefix that belongs to the certificate.
    pub(crate) prefix: GuidPrefix,
}

impl Credentials {
    /// Reads an enclave for a participant that would have had `candidate`.
    pub(crate) fn load(
        options: &SecurityOptions,
        domain: u32,
        candidate: GuidPrefix,
        wall: Timestamp,
    ) -> Result<Self, OpenError> {
        let now = unix(wall);
        let watch = Watch::new(&options.enclave);
        let enclave = Enclave::load(&options.enclave, now).map_err(OpenError::Enclave)?;
        for warning in &enclave.warnings {
            tracing::warn!("{warning}");
        }
        let access = enclave.access(domain);
        let access = access.map_err(|fault| OpenError::Enclave(vec![fault]))?;
        may_be(&access, now).map_err(|verdict| OpenError::MayNotJoin {
            domain_id: domain,
            verdict,
        })?;
        let prefix = Own::prefix_for(&enclave, candidate);
        Ok(Self {
            watch,
            prefix: prefix.map_err(|refusal| OpenError::Identity(refusal.to_string()))?,
            enclave,
            access,
        })
    }

    /// What the participant announces.
    pub(crate) fn announced(&self, user_data: Vec<u8>) -> SecurityConfig {
        let rule = self.access.domain_rule();
        let token = |token: Token| Bytes::from(token.to_parameter(false));
        let info = SecurityInfo::of_participant(rule).to_bytes(false);
        SecurityConfig {
            tokens: vec![
                (pid::IDENTITY_TOKEN, token(Token::identity())),
                (pid::PERMISSIONS_TOKEN, token(Token::permissions())),
                (
                    pid::PARTICIPANT_SECURITY_INFO,
                    Bytes::copy_from_slice(&info),
                ),
            ],
            admits_unauthenticated: rule.allow_unauthenticated_participants,
            open_liveliness: rule.topics.iter().any(|topic| !topic.liveliness_protected),
            user_data,
        }
    }

    /// What stands between its protocol and its sockets.
    pub(crate) fn shield(&self) -> Result<Arc<Shield>, OpenError> {
        let shield = Shield::new(self.prefix, self.access.domain_rule());
        let shield = shield.map_err(|error| OpenError::Identity(error.to_string()))?;
        Ok(Arc::new(shield))
    }

    /// What a context is that announces this.
    pub(crate) fn into_security(self, shield: Arc<Shield>, data: &ParticipantData) -> Security {
        Security {
            access: RwLock::new(Arc::new(self.access)),
            shield,
            messages: AtomicI64::new(1),
            has_candidates: AtomicBool::new(false),
            state: Mutex::new(State {
                handshakes: Handshakes::new(Own {
                    enclave: self.enclave,
                    prefix: self.prefix,
                    participant_data: data.to_signed(),
                }),
                peers: BTreeMap::new(),
                told: BTreeMap::new(),
                refused: BTreeMap::new(),
                last_words: BTreeMap::new(),
                next_check: Instant::ZERO,
                watch: self.watch,
                pending: BTreeMap::new(),
                denied: BTreeMap::new(),
                barred: BTreeMap::new(),
            }),
        }
    }
}

/// Whether a context may be in its domain, and tell of its nodes there; the
/// verdict if not.
pub(super) fn may_be(access: &Access, now: UnixTime) -> Result<(), String> {
    let graph = Endpoint {
        topic: DISCOVERY_TOPIC,
        ..Endpoint::default()
    };
    let sign = "permissions.xml and sign it anew (`pteros security sign`)";
    let join = access.may_join(now);
    if !join.allowed {
        return Err(format!(
            "{join}; add the domain to a rule of {sign}, or set ROS_DOMAIN_ID"
        ));
    }
    let (write, read) = (access.may_write(&graph, now), access.may_read(&graph, now));
    for (does, verdict) in [("publish", write), ("subscribe to", read)] {
        if !verdict.allowed {
            return Err(format!(
                "it may not {does} '{DISCOVERY_TOPIC}', by which nodes are told: {verdict}; add \
                 that topic to a rule of {sign}"
            ));
        }
    }
    Ok(())
}

/// Wall-clock time as files state it.
pub(super) fn unix(wall: Timestamp) -> UnixTime {
    UnixTime(wall.as_nanos().div_euclid(1_000_000_000))
}
