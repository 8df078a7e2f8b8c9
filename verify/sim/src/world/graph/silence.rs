//! I22, silence: whenever a matched reliable flow makes no progress for 2 s although
//! samples are outstanding, an event has said so.
//!
//! The oracle knows what was written, taken and acknowledged, so it allows for the longest
//! time that a datagram is in flight. Everything that the reader acknowledged is
//! delivered: a KEEP_LAST reader may drop it, and a slow application leaves it in a
//! KEEP_ALL queue (seeds 5537, 7632). The writer reports the reader
//! (`EndpointEvent::ReaderStalled`), and when it goes on. A KEEP_LAST writer may replace
//! everything before it arrives. The reader acknowledges that it will not come, so the
//! writer sees progress, and the reader reports the loss.

use std::sync::atomic::Ordering;

use super::model::matching::is_reliable;
use super::model::records::{ReaderRecord, WriterRecord, is_matched};
use super::world::GraphWorld;
use crate::harness::options::Fault;
use pteros_rtps::qos::History;

const MILLI: u64 = 1_000_000;

/// Pause between two checks.
const CHECK_PERIOD: u64 = 100 * MILLI;

/// How long a flow may make no progress without a word.
const SILENCE_MAX: u64 = 2_000 * MILLI;

/// How much later the writer looks for progress, beside the time in flight: the last
/// sample is acknowledged when a heartbeat asks for it.
const ACK_DELAY: u64 = 500 * MILLI;

impl GraphWorld {
    /// Checks all flows now and then. No event is scheduled for it.
    pub fn check_silence_when_due(&self) {
        let now = self.sim.now();
        // Relaxed: everything runs on one thread.
        if now < self.silence_check_at.load(Ordering::Relaxed) || !self.can_check_silence() {
            return;
        }
        self.silence_check_at
            .store(now + CHECK_PERIOD, Ordering::Relaxed);
        let wrong = self.check_silence(now);
        self.model.lock().fail_all(wrong);
    }

    /// Whether every sample of a reliable writer is meant for every matched reader, and
    /// nobody interferes.
    fn can_check_silence(&self) -> bool {
        let plan = &self.plan;
        let blurs = [
            Fault::Attack,
            Fault::Corrupt,
            Fault::GuidReuse,
            Fault::SpoofedForgery,
            Fault::FaultPoints,
        ];
        let is_plain = !(plan.keyed || plan.filtered || plan.flow_controlled || plan.coherent);
        is_plain && !blurs.iter().any(|fault| plan.has(*fault))
    }

    fn check_silence(&self, now: u64) -> Vec<String> {
        let allowed = SILENCE_MAX + ACK_DELAY + self.plan.in_flight_max();
        let mut model = self.model.lock();
        for writer in model.writers.iter_mut().filter(|writer| !writer.gone) {
            writer.note_acknowledged(now);
        }
        let mut wrong = Vec::new();
        for (w, writer) in model.living_writers() {
            for (r, reader) in model.living_readers() {
                if writer.location.process == reader.location.process {
                    continue;
                }
                let Some(since) = no_progress_since(writer, reader) else {
                    continue;
                };
                let replaces = matches!(writer.endpoint.data.qos.history, History::KeepLast(_));
                let is_told = writer.stalled.contains(&reader.endpoint.data.guid)
                    || replaces && reader.lost_at > since;
                if now > since + allowed && !is_told {
                    wrong.push(format!(
                        "I22 r{r} has had nothing of w{w} for {} ms although samples are outstanding, and no event says so",
                        (now - since) / MILLI
                    ));
                }
            }
        }
        wrong
    }
}

/// Since when a matched reliable reader has taken nothing of a writer although
/// something is outstanding.
fn no_progress_since(writer: &WriterRecord, reader: &ReaderRecord) -> Option<u64> {
    let (own, other) = (&writer.endpoint.data, &reader.endpoint.data);
    let (ours, theirs) = (writer.peers.get(&other.guid)?, reader.peers.get(&own.guid)?);
    if !is_matched(&writer.peers, other.guid)
        || !is_matched(&reader.peers, own.guid)
        || !is_reliable(&own.qos, &other.qos)
        || !own.qos.lifespan.is_infinite()
    {
        return None;
    }
    let taken = reader.numbers_taken_from(own.guid);
    let last = taken.iter().rev().take(32).max().copied().unwrap_or(0);
    let acknowledged = writer.endpoint.first_unacknowledged(other.guid);
    let last = last.max(acknowledged.map_or(0, |first| first.previous().0));
    let last = u64::try_from(last).ok()?.max(ours.since.checked_sub(1)?);
    // Samples written before the reader knew of the writer may be history.
    let mut missing = writer.times.get(usize::try_from(last).ok()?..)?.iter();
    let first_missing = missing.find(|at| **at >= theirs.at)?;
    let progress = reader.progress.get(&own.guid).copied().unwrap_or(0);
    // Only acknowledgements tell the writer of progress (RTPS 2.5 §8.4.7.5): one that a
    // network held up begins its time anew.
    let told = writer.unacknowledged.get(&other.guid);
    let told = told.map_or(0, |(_, at)| *at);
    // It acknowledges again: what is missing follows.
    let resumed = writer.resumed.get(&other.guid).copied().unwrap_or(0);
    Some((*first_missing).max(progress).max(told).max(resumed))
}
