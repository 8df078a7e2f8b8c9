//! The processes of a graph, as far as DDS knows processes.

use pteros_rmw::graph::enclave_of;
use pteros_rmw::rtps::discovery::data::ProductVersion;
use pteros_rmw::rtps::id::{EntityId, Guid, VendorId};

use super::Graph;

/// A participant of another context: most often a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantInfo {
    /// Its identity.
    pub guid: Guid,
    /// Whose stack it is.
    pub vendor: VendorId,
    /// The version of that stack, where it tells: Pteros, Cyclone DDS, Fast DDS since
    /// 3.0 and RTI Connext do.
    pub version: Option<ProductVersion>,
    /// Its enclave, if it told.
    pub enclave: Option<String>,
}

impl Graph {
    /// The participants of other contexts, sorted by identity; they need not have
    /// nodes or endpoints.
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        let known = self.raw().participants();
        let mut known: Vec<ParticipantInfo> = known
            .iter()
            .map(|data| ParticipantInfo {
                guid: data.prefix.with(EntityId::PARTICIPANT),
                vendor: data.vendor,
                version: data.product,
                enclave: enclave_of(data),
            })
            .collect();
        known.sort_by_key(|one| one.guid);
        known
    }
}
