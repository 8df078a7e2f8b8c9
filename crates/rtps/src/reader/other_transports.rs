//! Samples that reach a reader by another transport than RTPS, whole. The runtime passes
//! them here.

use super::Reader;
use crate::change::CacheChange;
use crate::defrag::SampleHead;
use crate::id::Guid;
use crate::memory_budget::SampleCharge;
use crate::qos::Ownership;
use crate::stats::Tally;
use crate::time::Instant;

impl Reader {
    /// Notes a sample of a matched writer that the application received by another
    /// path of the runtime. With `is_sample` false, only the liveliness of the
    /// writer was asserted there.
    ///
    /// It counts for deadline and liveliness as a submessage does.
    pub fn note_delivered_elsewhere(&mut self, now: Instant, writer: Guid, is_sample: bool) {
        let counts = self.begin_submessage(now, writer, true) && is_sample;
        if counts && self.config.qos.ownership == Ownership::Shared {
            self.renew_deadline(now);
        }
    }

    /// Takes a sample that another transport has received whole, from a matched best-effort
    /// writer. Content filter, queue limit and DEADLINE apply as to any other.
    ///
    /// Numbers must not run back; a lower one is a duplicate, unless lower ones go on
    /// ([`LateSamples`](crate::late_samples::LateSamples)): then a higher one was forged.
    /// Requests and replies have no order. Missing numbers are not counted as lost, because a
    /// directed write leaves some out: the transport reports its losses by
    /// [`Reader::note_samples_lost`]. `expires_at` is computed here.
    pub fn handle_whole_sample(&mut self, now: Instant, sample: CacheChange) {
        let guid = sample.writer;
        if !self.begin_submessage(now, guid, true) {
            return;
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        if proxy.is_known(sample.sequence) {
            // The transport answers each request by itself, and repeats none. A forged number
            // must not hide those that follow.
            if sample.related_sample_identity.is_some() {
                proxy.restart_at(sample.sequence.0, sample.sequence.previous().0);
            } else if !self.follows_late_samples(guid, sample.sequence) {
                self.stats.duplicates.tally();
                return;
            }
        }
        let Some(proxy) = self.writers.get_mut(&guid) else {
            return;
        };
        proxy.skip_to(sample.sequence);
        proxy.note_in_order(now);
        let head = SampleHead {
            sequence: sample.sequence,
            kind: sample.kind,
            source_timestamp: sample.source_timestamp,
            carrier: sample.carrier,
            key_only: sample.key_only,
            key_hash: sample.key_hash,
            related_sample_identity: sample.related_sample_identity,
            coherent_mark: None,
            original_writer_info: sample.original_writer_info,
            filter_result: None,
        };
        if sample.payload.len() > self.config.limits.defrag.sample_bytes_max {
            self.drop_oversized(guid, sample.sequence);
        } else if self.config.passes(&head, &sample.payload) {
            self.accept_sample(guid, head, sample.payload, SampleCharge::default());
        } else {
            self.drop_filtered(guid, head);
        }
    }

    /// Notes where a match ends, in a context with several transports. RTPS may match the same
    /// writer next: then its history begins after the last sample that came. Call it
    /// before [`Reader::unmatch_writer`]. Without any sample it does nothing.
    pub fn set_resume_point(&mut self, writer: Guid) {
        let Some(proxy) = self.writers.get(&writer) else {
            return;
        };
        let next = proxy.next_number().max(proxy.begin.resume_at);
        if next > 1 {
            self.resume_points.insert(writer, next);
        }
    }

    /// Counts samples of a matched writer that another transport has lost.
    pub fn note_samples_lost(&mut self, now: Instant, writer: Guid, count: u64) {
        if self.begin_submessage(now, writer, false) {
            self.events.note_lost(
                writer,
                count,
                &mut self.stats,
                self.config.limits.events_max,
            );
        }
    }
}
