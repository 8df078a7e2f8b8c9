//! Acknowledgements: they come shortly after healing (I6), and they are true (I23).
//!
//! I23, true acknowledgements: a writer never believes that a reader has what the
//! reader lacks, whatever is acknowledged in the reader's name.
//!
//! An acknowledgement only grows and is sent after the samples came. So the writer's
//! knowledge is never ahead of the reader's own, at any instant. The check follows each
//! single claim of [`super::forgery`], before the samples in flight arrive.

use pteros_rtps::qos::History;

use super::forgery::flows;
use super::model::Model;
use super::model::records::{ReaderRecord, WriterRecord, matched};
use super::world::GraphWorld;

/// What the probes of a writer without credit carry in a second and a half: 16 KiB each,
/// after pauses of 2 to 200 ms.
const PROBED_BYTES: usize = 14 * (16 << 10);

/// How fast a backlog of large samples is repaired at least, in bytes a second: a writer
/// without credit probes first, and its credit grows with what arrives (seeds 10600004922,
/// 10700027083).
const REPAIR_RATE: u64 = 4 << 20;

const SECOND: u64 = 1_000_000_000;

impl GraphWorld {
    /// I6: shortly after healing, readers whose match never ended have every sample. What
    /// they lack then comes at [`REPAIR_RATE`] or faster.
    pub fn check_repaired(&self) -> Vec<String> {
        let left = self.unrepaired_writers();
        let most = left.iter().map(|(_, bytes)| *bytes).max();
        if let Some(bytes) = most {
            let nanos = u64::try_from(bytes).map_or(0, |bytes| bytes * (SECOND / REPAIR_RATE));
            self.sim.run_until(self.sim.now() + nanos);
        }
        let late = self.unrepaired_writers().into_iter();
        let late = late.filter(|(w, _)| left.iter().any(|(before, _)| before == w));
        late.map(|(w, bytes)| {
            format!("I6 w{w} lacks acknowledgements of {bytes} B after healing, though no match was lost")
        })
        .collect()
    }

    /// The writers that are not acknowledged although all their readers live, and the bytes
    /// that the slowest of these lacks.
    fn unrepaired_writers(&self) -> Vec<(usize, usize)> {
        let model = self.model.lock();
        if model.guid_reused {
            return Vec::new();
        }
        let writers = model.living_writers().filter(|(_, writer)| {
            // A flow controller delays retransmissions.
            !writer.flow_controlled
                && !writer.endpoint.is_acknowledged()
                && writer.has_only_live_readers(&model)
                && !writer.awaits_only_small_readers(&model)
        });
        writers
            .map(|(w, writer)| (w, writer.unacknowledged_bytes()))
            .collect()
    }

    /// Checks the reliable flows between two processes.
    pub fn check_acknowledgements(&self, from: usize, to: usize) {
        let model = self.model.lock();
        let mut wrong = Vec::new();
        for (writer, reader) in flows(&model, from, to) {
            let guid = writer.endpoint.guid();
            let mut readers = model.living_readers();
            let record = readers.find(|(_, r)| r.endpoint.data.guid == reader);
            let Some((r, record)) = record else { continue };
            let believed = writer.endpoint.first_unacknowledged(reader);
            let Some((believed, missing)) = believed.zip(record.endpoint.first_missing(guid))
            else {
                continue;
            };
            if believed > missing {
                wrong.push(format!(
                    "I23 {guid} believes that r{r} has all below {}, and it lacks {}",
                    believed.0, missing.0
                ));
            }
        }
        drop(model);
        self.sim.report(wrong);
    }
}

impl WriterRecord {
    /// Whether all its matched readers live and are matched with it as well.
    fn has_only_live_readers(&self, model: &Model) -> bool {
        let mut readers = matched(&self.peers).map(|(peer, peer_match)| {
            let known = !peer_match.late && !model.is_attacker(*peer);
            let index = model.by_guid.get(peer).filter(|_| known);
            index.and_then(|index| model.readers.get(*index))
        });
        let guid = self.endpoint.guid();
        readers.all(|reader| {
            let peer_match = reader.filter(|r| !r.gone).and_then(|r| r.peers.get(&guid));
            peer_match.is_some_and(|peer_match| peer_match.matched && !peer_match.late)
        })
    }

    /// What the slowest of its readers has not acknowledged, in bytes.
    fn unacknowledged_bytes(&self) -> usize {
        let first = matched(&self.peers)
            .filter_map(|(peer, _)| self.endpoint.first_unacknowledged(*peer))
            .min();
        let first = first.map_or(0, |first| u64::try_from(first.0).unwrap_or(0));
        let left = (self.written + 1).saturating_sub(first);
        usize::try_from(left).map_or(usize::MAX, |left| left.saturating_mul(self.bytes))
    }

    /// Whether each reader that lacks something holds fewer samples than it lacks. It drops
    /// all others that arrive before the first one, which costs the credit for
    /// retransmissions. Probes alone carry less than it lacks (seed 10100007348).
    fn awaits_only_small_readers(&self, model: &Model) -> bool {
        let lacking = matched(&self.peers).filter_map(|(peer, _)| {
            let first = self.endpoint.first_unacknowledged(*peer)?;
            let left = (self.written + 1).saturating_sub(u64::try_from(first.0).ok()?);
            let reader = model.by_guid.get(peer).map(|index| &model.readers[*index]);
            (left > 0).then_some((reader?, left))
        });
        let mut lacking = lacking.peekable();
        lacking.peek().is_some()
            && lacking.all(|(reader, left)| reader.drops_some_of(left, self.bytes))
    }
}

impl ReaderRecord {
    /// Whether it holds fewer samples than the `left` that it lacks, of so many `bytes`.
    fn drops_some_of(&self, left: u64, bytes: usize) -> bool {
        let qos = &self.endpoint.data.qos;
        let held = qos.resource_limits.max_samples.map(u64::from);
        let left_bytes =
            usize::try_from(left).map_or(usize::MAX, |left| left.saturating_mul(bytes));
        qos.history == History::KeepAll
            && held.is_some_and(|held| held < left)
            && left_bytes > PROBED_BYTES
    }
}
