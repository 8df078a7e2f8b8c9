//! Security hooks of a context: decisions of security. Without security nothing is
//! denied.

use std::sync::Arc;

use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::{Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::Route;
use pteros_rtps::time::Instant;

use crate::error::EndpointError;
use crate::security::Security;

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
