//! Credentials of a secured context: loads an enclave from its keystore and checks
//! that it may join the domain.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64};

use bytes::Bytes;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::participant::SecurityConfig;
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::wire::pid;
use pteros_security::attributes::SecurityInfo;
use pteros_security::auth::{Handshakes, LocalIdentity, Token};
use pteros_security::crypto_transform::CryptoTransform;
use pteros_security::date::UnixTime;
use pteros_security::diagnostic::Diagnostic;
use pteros_security::enclave::{Enclave, is_missing};
use pteros_security::enclave_name::enclave_folder;
use pteros_security::enclave_watch::EnclaveWatch;
use pteros_security::permissions::access_control::{AccessControl, EndpointRequest};

use super::{Security, SecurityOptions, SecurityParts, SecurityState};
use crate::error::OpenError;
use crate::graph::DISCOVERY_TOPIC;
use crate::lock::{Mutex, RwLock};
use crate::log_limiter::LogLimiter;
use crate::security_settings::SecuritySettings;

impl SecurityOptions {
    /// The security options that the environment requests for an enclave.
    ///
    /// With strategy `Permissive` and no such enclave, the context is not secured,
    /// which is logged.
    ///
    /// # Errors
    /// The enclave does not exist.
    pub fn from_environment(
        settings: &SecuritySettings,
        enclave: &str,
    ) -> Result<Option<Self>, OpenError> {
        let enclave = settings.enclave_override.as_deref().unwrap_or(enclave);
        let folder = enclave_folder(&settings.keystore, enclave);
        let folder = folder.map_err(|fault| unusable(vec![fault]))?;
        if !settings.enforce && is_missing(&folder) {
            tracing::warn!(
                "not secured, because ROS_SECURITY_STRATEGY is Permissive and there is no {}; create it \
                 with `pteros security create_enclave`, or set ROS_SECURITY_STRATEGY to Enforce",
                folder.display()
            );
            return Ok(None);
        }
        Ok(Some(Self { enclave: folder }))
    }
}

/// A loaded enclave that may join its domain.
pub(crate) struct Credentials {
    watch: EnclaveWatch,
    enclave: Enclave,
    access: AccessControl,
    /// The GUID prefix derived from the certificate.
    pub(crate) prefix: GuidPrefix,
}

impl Credentials {
    /// Loads an enclave for a participant whose prefix would have been `candidate`.
    pub(crate) fn load(
        options: &SecurityOptions,
        domain: u32,
        candidate: GuidPrefix,
        wall: Timestamp,
    ) -> Result<Self, OpenError> {
        let now = to_unix_time(wall);
        let watch = EnclaveWatch::new(&options.enclave);
        let enclave = Enclave::load(&options.enclave, now).map_err(unusable)?;
        for warning in &enclave.warnings {
            tracing::warn!("{warning}");
        }
        let access = enclave.access(domain);
        let access = access.map_err(|fault| unusable(vec![fault]))?;
        check_join(&access, now).map_err(|rule| OpenError::JoinDenied {
            domain_id: domain,
            rule,
        })?;
        let prefix = LocalIdentity::prefix_for(&enclave, candidate);
        Ok(Self {
            watch,
            prefix: prefix.map_err(|refusal| OpenError::Identity(refusal.to_string()))?,
            enclave,
            access,
        })
    }

    /// The security data that the participant announces.
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
            allow_unauthenticated: rule.allow_unauthenticated_participants,
            unprotected_liveliness: rule.topics.iter().any(|topic| !topic.liveliness_protected),
            user_data,
        }
    }

    /// The crypto transform between protocol and sockets.
    pub(crate) fn crypto_transform(&self) -> Result<Arc<CryptoTransform>, OpenError> {
        let crypto_transform = CryptoTransform::new(self.prefix, self.access.domain_rule());
        let crypto_transform =
            crypto_transform.map_err(|error| OpenError::Identity(error.to_string()))?;
        Ok(Arc::new(crypto_transform))
    }

    /// The security of a context whose participant exists.
    pub(crate) fn into_security(
        self,
        crypto_transform: Arc<CryptoTransform>,
        parts: SecurityParts,
    ) -> Security {
        let participant_data = parts.participant.lock().data().to_signed();
        Security {
            prefix: self.prefix,
            parts,
            permissions: RwLock::new(Arc::new(self.access)),
            crypto_transform,
            messages: AtomicI64::new(1),
            has_unvalidated: AtomicBool::new(false),
            state: Mutex::new(SecurityState {
                handshakes: Handshakes::new(LocalIdentity {
                    enclave: self.enclave,
                    prefix: self.prefix,
                    participant_data,
                }),
                peers: BTreeMap::new(),
                reported: BTreeMap::new(),
                refusal_log: LogLimiter::new(),
                refused: BTreeMap::new(),
                goodbyes: BTreeMap::new(),
                next_check: Instant::ZERO,
                watch: self.watch,
                pending: BTreeMap::new(),
                denied: BTreeMap::new(),
                revoked_endpoints: BTreeMap::new(),
            }),
        }
    }
}

/// Whether a context may join its domain and announce its nodes there; otherwise
/// the rule that denies it.
pub(super) fn check_join(access: &AccessControl, now: UnixTime) -> Result<(), String> {
    let graph = EndpointRequest {
        topic: DISCOVERY_TOPIC,
        ..EndpointRequest::default()
    };
    let sign = "permissions.xml and sign it again (`pteros security sign`)";
    let join = access.may_join(now);
    if !join.allowed {
        return Err(format!(
            "{join}; add the domain to a rule of {sign}, or set ROS_DOMAIN_ID"
        ));
    }
    let (write, read) = (access.may_write(&graph, now), access.may_read(&graph, now));
    for (does, decision) in [("publish", write), ("subscribe to", read)] {
        if !decision.allowed {
            return Err(format!(
                "it may not {does} '{DISCOVERY_TOPIC}', the topic of node lists: {decision}; add \
                 that topic to a rule of {sign}"
            ));
        }
    }
    Ok(())
}

fn unusable(faults: Vec<Diagnostic>) -> OpenError {
    OpenError::Enclave(faults.iter().map(ToString::to_string).collect())
}

/// Wall-clock time as certificates and permissions state it.
pub(super) fn to_unix_time(wall: Timestamp) -> UnixTime {
    UnixTime(wall.as_nanos().div_euclid(1_000_000_000))
}
