//! Discovery: remote nodes and endpoints by their liveliness tokens.

use pteros_runtime::transport::TransportEvent;

use super::ARRIVALS_PER_POLL;
use crate::peers::Peers;
use crate::undeclared_publishers::UndeclaredPublishers;

/// What tokens announce.
pub struct Discovery {
    pub peers: Peers,
    pub undeclared: UndeclaredPublishers,
    /// Arrivals since node lists were built.
    since_lists: usize,
}

impl Discovery {
    pub fn new(peers: Peers) -> Self {
        Self {
            peers,
            undeclared: UndeclaredPublishers::default(),
            since_lists: 0,
        }
    }

    /// Appends changed node lists: at once if no arrivals are left, else once for many
    /// arrivals. Call it before each arrival, after the discovery events.
    pub fn take_node_lists(&mut self, is_drained: bool, events: &mut Vec<TransportEvent>) {
        if is_drained || self.since_lists >= ARRIVALS_PER_POLL {
            self.since_lists = 0;
            self.peers.take_node_lists(events);
        }
        self.since_lists += 1;
    }
}
