//! Participants of the graph: usually one per process.

use pteros_runtime::graph::enclave_of;
use pteros_runtime::rtps::discovery::data::ProductVersion;
use pteros_runtime::rtps::id::{EntityId, Guid, VendorId};

use super::Graph;

/// A participant of another context, usually a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParticipantInfo {
    /// Its prefix is that of all endpoints of the context.
    pub guid: Guid,
    /// The vendor id of its DDS implementation.
    pub vendor: VendorId,
    /// The version of its DDS implementation, if announced.
    ///
    /// Pteros, Cyclone DDS, Fast DDS since 3.0 and RTI Connext announce it.
    pub version: Option<ProductVersion>,
    /// Its enclave, if announced.
    pub enclave: Option<String>,
}

impl Graph {
    /// The participants of other contexts, sorted by GUID; they may have no nodes
    /// or endpoints.
    pub fn participants(&self) -> Vec<ParticipantInfo> {
        let known = self.runtime_graph().participants();
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
