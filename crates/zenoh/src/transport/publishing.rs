//! Publishing: which local writers are wanted, and the requests that wait for replies.

use std::collections::{BTreeMap, BTreeSet};

use pteros_rtps::id::Guid;
use pteros_runtime::transport::TransportEvent;
use zenoh::query::Query;

use crate::local::Local;
use crate::peers::Peers;
use crate::requests::OpenRequests;

/// Local writers and servers, as their remote readers and clients see them.
pub struct Publishing {
    pub requests: OpenRequests<Query>,
    wanted: Vec<TransportEvent>,
    /// By local writer: whether a subscriber of another session has its key.
    has_readers: BTreeMap<Guid, bool>,
    /// Local writers that only such subscribers need.
    wanted_for_readers: BTreeSet<Guid>,
    /// Either of the two may have changed.
    are_readers_stale: bool,
}

impl Publishing {
    pub fn new() -> Self {
        Self {
            requests: OpenRequests::new(),
            wanted: Vec::new(),
            has_readers: BTreeMap::new(),
            wanted_for_readers: BTreeSet::new(),
            are_readers_stale: false,
        }
    }

    /// The remote readers may have changed.
    pub fn note_readers(&mut self) {
        self.are_readers_stale = true;
    }

    /// Reports that a local writer is wanted whoever reads it.
    pub fn want(&mut self, writer: Guid) {
        self.wanted.push(TransportEvent::WriterWanted {
            writer,
            is_wanted: true,
        });
    }

    /// Whether [`Self::update`] or [`Self::take_events`] has work.
    pub fn is_due(&self) -> bool {
        self.are_readers_stale || !self.wanted.is_empty()
    }

    pub fn take_events(&mut self, events: &mut Vec<TransportEvent>) {
        events.append(&mut self.wanted);
    }

    pub fn remove_local(&mut self, endpoint: Guid) {
        self.requests.remove_server(endpoint);
        self.has_readers.remove(&endpoint);
        self.wanted_for_readers.remove(&endpoint);
    }

    /// Notes which local writers have subscribers now, and which no longer.
    pub fn note_matching(&mut self, matching: BTreeMap<Guid, bool>) {
        self.are_readers_stale |= !matching.is_empty();
        self.has_readers.extend(matching);
    }

    /// Updates which local writers have subscribers without a token. Zenoh reports only
    /// whether some subscriber has the key. A suppressed session's subscriber of that key
    /// accounts for it, and gets its samples by RTPS.
    pub fn update(&mut self, local: &Local, peers: &Peers) {
        self.are_readers_stale = false;
        for (writer, has_readers) in &self.has_readers {
            let link = local.link(*writer);
            let is_wanted =
                *has_readers && link.is_some_and(|link| !peers.is_read_by_suppressed(link.key()));
            let has_changed = if is_wanted {
                self.wanted_for_readers.insert(*writer)
            } else {
                self.wanted_for_readers.remove(writer)
            };
            if has_changed {
                let writer = *writer;
                self.wanted
                    .push(TransportEvent::WriterWanted { writer, is_wanted });
            }
        }
    }

    /// Whether [`Self::update`] has work.
    pub fn are_readers_stale(&self) -> bool {
        self.are_readers_stale
    }
}
