//! Discovery servers of a client, as those of Fast DDS: their addresses and the client's
//! role. [`discovery_client`](super::discovery_client) talks to them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::locator::Locator;

/// The most servers of one client.
pub const DISCOVERY_SERVERS_MAX: usize = 32;

/// The property that names the role of a participant.
pub(super) const PARTICIPANT_TYPE: &str = "PARTICIPANT_TYPE";

/// The discovery servers of a client.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiscoveryServers {
    /// The addresses of each server, all with its port. At most
    /// [`DISCOVERY_SERVERS_MAX`] servers.
    pub servers: Vec<Vec<Locator>>,
    /// Whether servers relay all participants and endpoints. Otherwise they relay those
    /// whose topics match ours.
    pub is_super_client: bool,
}

impl DiscoveryServers {
    /// The properties of a client's announcement.
    pub(super) fn properties(&self) -> [(String, String); 2] {
        let role = match self.is_super_client {
            true => "SUPER_CLIENT",
            false => "CLIENT",
        };
        [
            (PARTICIPANT_TYPE.into(), role.into()),
            ("DS_VERSION".into(), "2.0".into()),
        ]
    }

    /// Whether a server has this address.
    pub(super) fn has_address(&self, at: &Locator) -> bool {
        let mut all = self.servers.iter().flatten();
        all.any(|server| server.kind == at.kind && server.address == at.address)
    }
}
