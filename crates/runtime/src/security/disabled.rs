//! Security of a build without the feature `security`: no context is secured, and a
//! context that requests security is refused.
//!
//! Same names as in `security`. Credentials, security state and crypto transform have no
//! values here, so the compiler removes the code that uses them.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::participant::{Participant, ParticipantEvent, SecurityConfig};
use pteros_rtps::time::{Instant, Timestamp};

use crate::error::{EndpointError, OpenError};
use crate::lock::{Mutex, rank};
use crate::platform::{Platform, ReceivedDatagram};
use crate::scheduler::Scheduler;
use crate::security_settings::SecuritySettings;
use crate::send::SendPath;
use crate::send::datagram_protection::CryptoTransform;

/// The identity of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityOptions {
    /// The folder of the enclave.
    pub enclave: PathBuf,
}

impl SecurityOptions {
    /// The security options that the environment requests for an enclave: none.
    ///
    /// # Errors
    /// [`OpenError::SecurityNotBuilt`], unless the strategy is `Permissive`, which is
    /// logged.
    pub fn from_environment(
        settings: &SecuritySettings,
        _enclave: &str,
    ) -> Result<Option<Self>, OpenError> {
        if settings.enforce {
            return Err(OpenError::SecurityNotBuilt);
        }
        tracing::warn!(
            "not secured, because ROS_SECURITY_STRATEGY is Permissive and this program was built \
             without feature `security` of crate pteros (feature `full` of pteros-cli); build it \
             with that feature, or unset ROS_SECURITY_ENABLE"
        );
        Ok(None)
    }
}

/// A loaded enclave. It has no value.
pub(crate) struct Credentials {
    pub(crate) prefix: GuidPrefix,
    never: Infallible,
}

impl Credentials {
    pub(crate) fn load(
        _options: &SecurityOptions,
        _domain: u32,
        _candidate: GuidPrefix,
        _wall: Timestamp,
    ) -> Result<Self, OpenError> {
        Err(OpenError::SecurityNotBuilt)
    }

    pub(crate) fn announced(&self, _user_data: Vec<u8>) -> SecurityConfig {
        match self.never {}
    }

    pub(crate) fn crypto_transform(&self) -> Result<Arc<CryptoTransform>, OpenError> {
        match self.never {}
    }

    pub(crate) fn into_security(
        self,
        _crypto_transform: Arc<CryptoTransform>,
        _parts: SecurityParts,
    ) -> Security {
        match self.never {}
    }
}

/// The parts of a context that security uses.
pub(crate) struct SecurityParts {
    pub(crate) domain_id: u32,
    pub(crate) platform: Arc<dyn Platform>,
    pub(crate) participant: Arc<Mutex<Participant, rank::Participant>>,
    pub(crate) scheduler: Arc<Scheduler>,
    pub(crate) send: Arc<SendPath>,
}

/// A match whose keys have arrived.
pub(crate) struct ReadyMatch {
    pub(crate) own: Guid,
    pub(crate) remote: Arc<EndpointData>,
    pub(crate) route: Route,
    pub(crate) vendor: VendorId,
}

/// Security of one context. It has no value.
pub(crate) enum Security {}

/// Methods of `security` on a value that does not exist.
macro_rules! impossible {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        impl Security {
            $(pub(crate) fn $name(&self, $(_: $argument),*) $(-> $result)? {
                match *self {}
            })*
        }
    };
}

impossible! {
    fn check_endpoint_permission(&mut EndpointData) -> Result<(), EndpointError>;
    fn check_partition_permission(&EndpointData) -> Result<(), String>;
    fn is_revoked(Guid) -> bool;
    fn forget_endpoint(Guid);
    fn is_match_ready(Instant, Guid, &Arc<EndpointData>, &Route, VendorId) -> bool;
    fn take_ready_match() -> Option<ReadyMatch>;
    fn remove_match(Guid, Guid) -> bool;
    fn handle_event(Instant, &ParticipantEvent);
    fn note_unprotected_datagram(Instant, &[u8], &ReceivedDatagram) -> bool;
    fn handle_timeout(Instant) -> bool;
    fn recheck(&[Arc<EndpointData>]) -> (BTreeMap<Guid, String>, BTreeMap<Guid, String>);
    fn note_revoked(Guid, Guid, &str);
    fn why_denied(&EndpointData, &EndpointData) -> Option<String>;
    fn why_unmatched(Guid, Guid) -> Option<String>;
    fn authenticated() -> Vec<(GuidPrefix, String)>;
    fn are_in_different_enclaves(GuidPrefix, GuidPrefix) -> bool;
    fn set_unvalidated_count(usize);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_that_requests_security_is_refused_by_name_of_the_feature() {
        let settings = |enforce| SecuritySettings {
            enforce,
            keystore: "ks".into(),
            enclave_override: None,
        };
        let refused = SecurityOptions::from_environment(&settings(true), "/").unwrap_err();
        assert!(matches!(refused, OpenError::SecurityNotBuilt));
        assert!(refused.to_string().contains("feature `security`"));
        let permissive = SecurityOptions::from_environment(&settings(false), "/");
        assert_eq!(permissive.unwrap(), None);
        // Options in code are refused too, whatever the environment says.
        let options = SecurityOptions {
            enclave: "ks/enclaves/talker".into(),
        };
        let (prefix, wall) = (GuidPrefix([1; 12]), Timestamp::from_nanos(0));
        let refused = Credentials::load(&options, 0, prefix, wall);
        assert!(matches!(refused, Err(OpenError::SecurityNotBuilt)));
    }
}
