//! Reception: arrivals that wait, losses, and the events of samples, requests and replies.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use pteros_rtps::history::CacheChange;
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::seq::{SampleIdentity, SequenceNumber};
use pteros_rtps::time::{Instant, Timestamp};
use pteros_runtime::transport::{TransportEvent, TransportSample};

use super::early::EarlyData;
use super::held::HeldData;
use crate::inbox::Arrival;
use crate::peers::Peers;
use crate::position::Position;

/// Data of remote endpoints.
#[derive(Default)]
pub struct Reception {
    /// Early or held arrivals that are due before the inbox.
    pub ready: VecDeque<Arrival>,
    pub early: EarlyData,
    pub held: HeldData,
    /// Per match of remote writer and local reader: the last sequence number.
    pub(super) last: BTreeMap<(Guid, Guid), Position>,
    /// Last number of each server's writer of replies.
    replies: BTreeMap<Guid, i64>,
    /// Losses of ending matches, reported before the match ends.
    losses: Vec<TransportEvent>,
    unannounced: u64,
}

impl Reception {
    /// Whether events or arrivals wait.
    pub fn is_due(&self) -> bool {
        !self.losses.is_empty() || !self.ready.is_empty()
    }

    pub fn take_losses(&mut self, events: &mut Vec<TransportEvent>) {
        events.append(&mut self.losses);
    }

    /// Data whose sender no token announces.
    pub fn unannounced_count(&self) -> u64 {
        self.unannounced
    }

    pub fn note_match(&mut self, writer: Guid, reader: Guid) {
        self.last.insert((writer, reader), Position::default());
    }

    pub fn note_unmatch(&mut self, writer: Guid, reader: Guid) {
        self.last.remove(&(writer, reader));
    }

    pub fn remove_remote(&mut self, endpoint: Guid) {
        self.replies.remove(&endpoint);
    }

    /// See [`HeldData::hold`].
    pub fn hold(&mut self, writer: Guid, holds: bool) {
        if let Some(released) = self.held.hold(writer, holds) {
            let (waiting, token) = released.into_parts();
            self.ready.extend(waiting);
            self.ready.extend(token);
        }
    }

    /// Delivers a sample of a discovered writer. Returns whether the last event is it.
    pub fn deliver(
        &mut self,
        now: Instant,
        peers: &Peers,
        writer: Guid,
        arrival: Arrival,
        events: &mut Vec<TransportEvent>,
    ) -> bool {
        let Some(Arrival::Sample {
            reader,
            attachment,
            payload,
        }) = self.held.keep(writer, arrival)
        else {
            return false;
        };
        // hiroz numbers samples from 0, RTPS from 1.
        let first = i64::from(peers.is_of_hiroz(attachment.gid));
        let sequence = attachment.sequence.saturating_add(first);
        if let Some(position) = self.last.get_mut(&(writer, reader)) {
            let count = position.take(now, sequence);
            if count > 0 {
                events.push(lost(writer, reader, count));
            }
        }
        let change = received(writer, sequence, attachment.source_timestamp, payload);
        events.push(sample(change, vec![reader]));
        true
    }

    /// Delivers a reply.
    pub fn deliver_reply(
        &mut self,
        peers: &Peers,
        arrival: Arrival,
        events: &mut Vec<TransportEvent>,
    ) -> bool {
        let Arrival::Reply {
            client,
            sequence,
            replier,
            service,
            source_timestamp,
            payload,
        } = arrival
        else {
            return false;
        };
        let Some(server) = peers.replier(replier, &service) else {
            return self.refuse();
        };
        // A server numbers its replies per client, while the reader needs one sequence.
        let number = self.replies.entry(server).or_default();
        *number += 1;
        let change = CacheChange {
            related_sample_identity: Some(SampleIdentity {
                writer: client,
                sequence: SequenceNumber(sequence),
            }),
            ..received(server, *number, source_timestamp, payload)
        };
        events.push(sample(change, Vec::new()));
        true
    }

    /// Counts data without a sender. Returns false: it is no event.
    pub fn refuse(&mut self) -> bool {
        self.unannounced += 1;
        false
    }

    /// Drops early data above the limits, and counts it.
    pub fn drop_early_above_limits(&mut self) {
        self.unannounced += self.early.drop_above_limits();
    }

    /// Drops early data whose wait has ended, and counts it.
    pub fn drop_expired(&mut self, now: Instant) {
        self.unannounced += self.early.drop_expired(now);
    }

    /// Drops the waiting samples of a participant and counts them as lost.
    pub fn lose_waiting(&mut self, peers: &Peers, prefix: GuidPrefix) {
        let mut waiting = Vec::new();
        for (writer, held) in self.held.remove_participant(prefix) {
            let (arrivals, token) = held.into_parts();
            waiting.extend(arrivals.into_iter().map(|arrival| (writer, arrival)));
            self.ready.extend(token);
        }
        for arrival in std::mem::take(&mut self.ready) {
            let sender = arrival.sender().and_then(|gid| peers.remote(gid));
            match sender {
                Some(remote) if remote.main.prefix == prefix => {
                    waiting.push((remote.main, arrival))
                }
                _ => self.ready.push_back(arrival),
            }
        }
        let mut counts: BTreeMap<(Guid, Guid), u64> = BTreeMap::new();
        for (writer, arrival) in waiting {
            if let Arrival::Sample { reader, .. } = arrival {
                *counts.entry((writer, reader)).or_default() += 1;
            }
        }
        let losses = counts.into_iter();
        self.losses
            .extend(losses.map(|((writer, reader), count)| lost(writer, reader, count)));
    }
}

fn lost(writer: Guid, reader: Guid, count: u64) -> TransportEvent {
    TransportEvent::SamplesLost {
        writer,
        reader: Some(reader),
        count,
    }
}

/// A received change.
pub fn received(writer: Guid, sequence: i64, stamp: i64, payload: Bytes) -> CacheChange {
    CacheChange {
        source_timestamp: (stamp > 0).then(|| Timestamp::from_nanos(stamp)),
        ..CacheChange::new(writer, SequenceNumber(sequence), payload)
    }
}

/// The event of a received change.
pub fn sample(change: CacheChange, readers: Vec<Guid>) -> TransportEvent {
    TransportEvent::Sample(Box::new(TransportSample { change, readers }))
}
