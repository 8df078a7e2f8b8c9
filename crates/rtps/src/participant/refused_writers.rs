//! Refused writers: remote writers whose stack may take a local reader for matched,
//! although this participant refused the match (RTPS 2.5 §8.4.7, StatefulWriter).
//!
//! A reliable writer waits for the acknowledgements of its matched readers, with all
//! its other readers. So the reader acknowledges what it refuses
//! ([`Reader::acknowledge_refused`](crate::reader::Reader::acknowledge_refused)): the
//! samples are dropped, and nothing counts as a match. There are two causes: a rule
//! that other stacks do not apply ([`MatchOutcome::is_rule_of_ours`]), and a record that
//! discovery did not store because a table or the receive memory was full.
//!
//! Writers of participants that are not discovered are not answered.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::{EntityId, Guid, GuidPrefix};
use crate::locator::Route;
use crate::matching::MatchOutcome;
use crate::qos::Reliability;

use super::Participant;
use super::remote_endpoints::short_hash;

/// Writers without a record that are remembered. Further ones are not answered.
const UNSTORED_MAX: usize = 4_096;

/// The reliable writers that discovery announced and did not store, with the hash of
/// their topic.
#[derive(Default)]
pub(super) struct UnstoredWriters {
    topics: BTreeMap<Guid, u32>,
}

impl UnstoredWriters {
    pub(super) fn note(&mut self, guid: Guid, topic: &str) {
        if self.topics.len() < UNSTORED_MAX {
            self.topics.insert(guid, short_hash(topic));
        }
    }

    pub(super) fn remove(&mut self, guid: Guid) {
        self.topics.remove(&guid);
    }

    pub(super) fn remove_participant(&mut self, prefix: GuidPrefix) {
        self.topics.retain(|writer, _| writer.prefix != prefix);
    }
}

/// Which local readers refused a writer, and where its acknowledgements go.
#[derive(Debug)]
pub struct RefusedWriter {
    /// The readers.
    pub readers: Vec<EntityId>,
    /// The route to the writer.
    pub route: Route,
}

impl Participant {
    /// Whether any writer was refused so that its stack may not see it. It stays true:
    /// until then nobody needs to ask [`Self::refused_writer`].
    pub fn has_refused_writers(&self) -> bool {
        self.has_refused_writers
    }

    /// A remote writer that local readers refused, although its stack may take them for
    /// matched. `None` for any other writer. Allocates only for a refused one.
    pub fn refused_writer(&self, writer: Guid) -> Option<RefusedWriter> {
        let peer = self.peers.find(writer.prefix)?;
        let (readers, route) = if let Some(known) = self.remotes.find(writer) {
            let on_topic = self.locals.on_topic(known.topic(), false);
            let refuses = |reader: &EndpointData| {
                let outcome = self.matches.find(reader.guid, writer);
                outcome.is_some_and(MatchOutcome::is_rule_of_ours)
            };
            let readers = ids_of(on_topic.map(|reader| &**reader).filter(|r| refuses(r)));
            if readers.is_empty() {
                return None;
            }
            let route = peer.route_to(&known.data(), &self.config.network);
            (readers, route)
        } else {
            let topic = self.unstored_writers.topics.get(&writer)?;
            // Another topic with this hash does no harm: the writer ignores the answer.
            let is_on_topic =
                |local: &&EndpointData| !local.is_writer() && short_hash(&local.topic) == *topic;
            let locals = self.locals.iter().map(|local| &**local);
            (ids_of(locals.filter(is_on_topic)), peer.user.clone())
        };
        (!readers.is_empty()).then_some(RefusedWriter { readers, route })
    }

    /// Notes that an endpoint of a discovered participant is not stored, or no longer.
    pub(super) fn note_unstored(&mut self, endpoint: &EndpointData) {
        if endpoint.is_writer() && endpoint.qos.reliability == Reliability::Reliable {
            self.unstored_writers.note(endpoint.guid, &endpoint.topic);
            self.has_refused_writers = true;
        }
    }
}

fn ids_of<'a>(readers: impl Iterator<Item = &'a EndpointData>) -> Vec<EntityId> {
    readers.map(|reader| reader.guid.entity).collect()
}
