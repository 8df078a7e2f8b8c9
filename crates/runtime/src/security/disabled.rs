//! Security of a build without feature `security`: no context is secured, and one
//! that requests it is refused.
//!
//! Has the names of `security`. Credentials, security state and crypto transform
//! have no value here, so the compiler removes the code that uses them.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;

use pteros_rtps::discovery::data::{EndpointData, ParticipantData};
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::outbox::Datagram;
use pteros_rtps::participant::{ParticipantEvent, SecurityConfig};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_rtps::writer::FragmentSize;
use pteros_shm::PeerAuthenticator;

use crate::back_pressure::BlockingBudget;
use crate::core::Core;
use crate::error::{EndpointError, OpenError};
use crate::platform::ReceivedDatagram;
use crate::security_settings::SecuritySettings;

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
             without feature `security` of crate pteros; build it with that feature, or unset \
             ROS_SECURITY_ENABLE"
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
        _data: &ParticipantData,
    ) -> Security {
        match self.never {}
    }
}

/// Security of one context. It has no value.
pub(crate) enum Security {}

impl Security {
    pub(crate) fn are_in_different_enclaves(&self, _one: GuidPrefix, _other: GuidPrefix) -> bool {
        match *self {}
    }

    pub(crate) fn set_unvalidated_count(&self, _count: usize) {
        match *self {}
    }
}

/// The protection of datagrams. It has no value.
pub(crate) enum CryptoTransform {}

impl CryptoTransform {
    pub(crate) fn allows_shared_memory(&self) -> bool {
        match *self {}
    }
}

pub(crate) fn peer_authenticator(
    crypto_transform: &Arc<CryptoTransform>,
) -> Arc<dyn PeerAuthenticator> {
    match **crypto_transform {}
}

/// A buffer for decoding datagrams; empty.
pub(crate) struct DecodeBuffer;

impl DecodeBuffer {
    pub(crate) fn new(_bytes_max: usize) -> Self {
        Self
    }

    pub(crate) fn open(
        &mut self,
        crypto_transform: &CryptoTransform,
        _datagram: &[u8],
    ) -> Option<&[u8]> {
        match *crypto_transform {}
    }
}

impl Core {
    pub(crate) fn check_endpoint_permission(
        &self,
        _data: &mut EndpointData,
    ) -> Result<(), EndpointError> {
        Ok(())
    }

    pub(crate) fn check_partition_permission(&self, _data: &EndpointData) -> Result<(), String> {
        Ok(())
    }

    pub(crate) fn is_revoked(&self, _own: Guid) -> bool {
        false
    }

    pub(crate) fn forget_endpoint(&self, _guid: Guid) {}

    pub(crate) fn is_match_ready(
        &self,
        _now: Instant,
        _own: Guid,
        _remote: &Arc<EndpointData>,
        _route: &Route,
        _vendor: VendorId,
    ) -> bool {
        true
    }

    pub(crate) fn remove_match(&self, _own: Guid, _remote: Guid) -> bool {
        true
    }

    /// Why the permissions forbid a match: they never do without security.
    pub fn why_denied(&self, _writer: &EndpointData, _reader: &EndpointData) -> Option<String> {
        None
    }

    /// Why a local and a remote endpoint that are compatible wait for each other: they
    /// never do without security.
    pub fn why_unmatched(&self, _own: Guid, _remote: Guid) -> Option<String> {
        None
    }

    pub(crate) fn handle_unauthenticated_event(&self, _now: Instant, _event: &ParticipantEvent) {}

    pub(crate) fn note_unprotected_datagram(
        &self,
        _now: Instant,
        _datagram: &[u8],
        _received: &ReceivedDatagram,
    ) {
    }

    pub(crate) fn poll_handshakes(&self, _now: Instant) {}

    /// Authenticated participants with the subjects of their certificates: none
    /// without security.
    pub fn authenticated(&self) -> Vec<(GuidPrefix, String)> {
        Vec::new()
    }

    pub(crate) fn shared_memory_denied(&self, _peer: GuidPrefix) -> Option<String> {
        None
    }

    pub(crate) fn fragment_size(&self) -> FragmentSize {
        FragmentSize {
            same_host: self.options.fragment_bytes_same_host,
            network: self.options.fragment_bytes_network,
        }
    }

    pub(crate) fn send_sealed(
        &self,
        crypto_transform: &CryptoTransform,
        _datagram: &Datagram<'_>,
        _code_point: u8,
        _budget: &BlockingBudget,
    ) {
        match *crypto_transform {}
    }
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
