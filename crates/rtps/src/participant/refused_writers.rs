//! Refused writers: remote writers whose stack may take a local reader for matched,
//! although this participant refused the match (RTPS 2.5 §8.4.7, StatefulWriter).
//!
//! A reliable writer waits for the acknowledgements of its matched readers, with all
//! its other readers. So the reader acknowledges what it refuses
//! ([`Reader::acknowledge_refused`](crate::reader::Reader::acknowledge_refused)): the
//! samples are dropped, and nothing counts as a match. There are two causes: a rule that
//! other stacks do not apply
//! ([`MatchOutcome::is_rule_of_ours`](crate::matching::MatchOutcome::is_rule_of_ours)),
//! and a record that discovery did not store because a table or the receive memory was
//! full.
//!
//! Writers of participants that are not discovered are not answered.

use alloc::vec::Vec;

use crate::discovery::data::EndpointData;
use crate::id::{EntityId, Guid};
use crate::locator::NetworkScope;
use crate::matching::is_unseen_refusal;
use crate::qos::{Durability, Reliability};
use crate::time::Instant;

use super::Participant;
use super::endpoints::Endpoints;
use super::peer::Peer;
use super::refused_writer_table::RefusedWriter;
use super::remote_endpoints::short_hash;

impl Participant {
    /// A remote writer that local readers refused, although its stack may take them for
    /// matched, and that is answered now. `None` for any other writer, and for one that
    /// was answered less than 5 ms ago. Allocates only for a refused one.
    pub fn refused_writer(&mut self, now: Instant, writer: Guid) -> Option<RefusedWriter> {
        if self
            .local
            .endpoints
            .refused_writers
            .is_just_answered(now, writer)
        {
            return None;
        }
        let peer = self.remote.peers.find(writer.prefix)?;
        let network = &self.local.config.network;
        let refused = self
            .local
            .endpoints
            .find_refused_writer(writer, peer, network)?;
        self.local
            .endpoints
            .refused_writers
            .note_answered(now, writer);
        Some(refused)
    }
}

impl Endpoints {
    fn find_refused_writer(
        &self,
        writer: Guid,
        peer: &Peer,
        network: &NetworkScope,
    ) -> Option<RefusedWriter> {
        let (readers, route) = if let Some(known) = self.remotes.find(writer) {
            let on_topic = self.locals.on_topic(known.topic(), false);
            let data = known.data();
            let refuses = |reader: &EndpointData| {
                let outcome = self.matches.find(reader.guid, writer);
                outcome.is_some_and(|outcome| is_unseen_refusal(reader, &data, outcome))
            };
            let readers = ids_of(on_topic.map(|reader| &**reader).filter(|r| refuses(r)));
            let route = peer.route_to(&data, network);
            (readers, route)
        } else {
            let topic = self.refused_writers.unstored.get(&writer)?;
            // Another topic with this hash does no harm: the writer ignores the answer.
            let is_on_topic =
                |local: &&EndpointData| !local.is_writer() && short_hash(&local.topic) == *topic;
            let locals = self.locals.iter().map(|local| &**local);
            let route = peer.shared_memory.as_ref().unwrap_or(&peer.user);
            (ids_of(locals.filter(is_on_topic)), route.clone())
        };
        (!readers.is_empty()).then_some(RefusedWriter { readers, route })
    }

    /// Notes that an endpoint of a discovered participant is not stored, or no longer.
    /// Durable writers are not answered: what is acknowledged would be lost if they are
    /// stored and matched later.
    pub(super) fn note_unstored(&mut self, endpoint: &EndpointData) {
        let qos = &endpoint.qos;
        if endpoint.is_writer()
            && qos.reliability == Reliability::Reliable
            && qos.durability == Durability::Volatile
        {
            self.refused_writers
                .note_unstored(endpoint.guid, &endpoint.topic);
            self.has_refused_writers = true;
        }
    }
}

fn ids_of<'a>(readers: impl Iterator<Item = &'a EndpointData>) -> Vec<EntityId> {
    readers.map(|reader| reader.guid.entity).collect()
}
