//! Set assembly: holds samples back until they may be taken.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use pteros_rtps::coherent_mark::{CoherentMark, CoherentMarkKind};
use pteros_rtps::id::{Guid, GuidPrefix};
use pteros_rtps::qos::Presentation;
use pteros_rtps::time::Instant;

use super::batch::{DroppedByReader, GroupDialect, MatchKey, ReadyBatch};
use super::group_merge::GroupMerge;
use super::writer_stream::{ReceivedChange, StreamOutput, WriterStream};
use crate::sample::queued_sample::QueuedSample;

/// Publishers without matched writers whose order is remembered: a further writer
/// continues it. Beyond that the one without writers for the longest time is forgotten.
const IDLE_PUBLISHERS_MAX: usize = 64;

/// A match between a writer and a reader, as announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CoherentMatch {
    /// The reader's index in the subscriber.
    pub reader: usize,
    pub writer: Guid,
    /// The publisher it belongs to; the writer itself if it has none.
    pub publisher: Guid,
    /// How the writer speaks of its publisher.
    pub dialect: GroupDialect,
}

/// Holds samples back until they may be taken.
pub(crate) struct SetAssembly {
    presentation: Presentation,
    /// The most samples of one set, by reader. Zero where there is none.
    depths: Vec<usize>,
    streams: BTreeMap<MatchKey, (Guid, WriterStream)>,
    publishers: BTreeMap<Guid, GroupMerge>,
    /// Whether sets of several writers may be released.
    is_open: bool,
    /// When a reader last had many samples to take, see [`GroupMerge::advance`].
    pub busy_at: Instant,
    pub dropped: DroppedByReader,
}

impl SetAssembly {
    pub fn new(presentation: Presentation) -> Self {
        Self {
            presentation,
            depths: Vec::new(),
            streams: BTreeMap::new(),
            publishers: BTreeMap::new(),
            is_open: true,
            busy_at: Instant::ZERO,
            dropped: DroppedByReader::default(),
        }
    }

    /// Holds back sets of several writers, as far as the limits allow, until
    /// [`SetAssembly::release_group_sets`].
    pub fn hold_group_sets(&mut self) {
        self.is_open = false;
    }

    /// Releases what became ready meanwhile, and everything afterwards.
    pub fn release_group_sets(&mut self, now: Instant, mut out: impl FnMut(ReadyBatch)) {
        self.is_open = true;
        for merge in self.publishers.values_mut() {
            merge.is_open = true;
            merge.advance((now, self.busy_at), &mut self.dropped, &mut out);
        }
    }

    /// Adds a reader that can keep `depth` samples of a set, at a free index.
    pub fn put_reader(&mut self, reader: usize, depth: usize) {
        if self.depths.len() <= reader {
            self.depths.resize(reader + 1, 0);
        }
        if let Some(of_reader) = self.depths.get_mut(reader) {
            *of_reader = depth.max(1);
        }
    }

    /// Removes a reader; sets no longer wait for its part.
    pub fn remove_reader(&mut self, now: Instant, reader: usize, mut out: impl FnMut(ReadyBatch)) {
        self.streams.retain(|key, _| key.reader != reader);
        for merge in self.publishers.values_mut() {
            merge.remove_reader(now, reader);
            merge.advance((now, self.busy_at), &mut self.dropped, &mut out);
        }
        if let Some(depth) = self.depths.get_mut(reader) {
            *depth = 0;
        }
        if self.depths.iter().all(|depth| *depth == 0) {
            // Nobody has received anything that the next reader's samples could follow.
            self.publishers.clear();
        }
        self.forget_idle_publishers();
        self.dropped.take(reader);
    }

    /// Forgets publishers without writers whose order nothing will continue, and the
    /// oldest ones beyond the limit.
    fn forget_idle_publishers(&mut self) {
        self.publishers.retain(|_, merge| merge.may_be_continued());
        loop {
            let all = self.publishers.iter();
            let idle = all.filter_map(|(of, merge)| Some((merge.idle_since()?, *of)));
            if idle.clone().count() <= IDLE_PUBLISHERS_MAX {
                return;
            }
            if let Some((_, oldest)) = idle.min() {
                self.publishers.remove(&oldest);
            }
        }
    }

    /// Whether the sets of several writers are merged.
    fn has_group_access(&self) -> bool {
        self.presentation.is_of_group()
    }

    /// Adds a matched writer.
    pub fn add_writer(&mut self, new: CoherentMatch) {
        let depth = self.depths.get(new.reader).copied().unwrap_or(1);
        let of_group = self.has_group_access();
        let key = MatchKey {
            reader: new.reader,
            writer: new.writer,
        };
        self.streams
            .entry(key)
            .or_insert_with(|| (new.publisher, WriterStream::new(of_group, depth)));
        if of_group {
            let (ordered, is_open) = (self.presentation.ordered, self.is_open);
            let merge = self.publishers.entry(new.publisher);
            let has_group = new.publisher != new.writer;
            let merge = merge.or_insert_with(|| GroupMerge::new(ordered, is_open, has_group));
            merge.add_writer(key, new.dialect);
        }
    }

    /// Removes a writer after all its changes were received.
    pub fn remove_writer(
        &mut self,
        now: Instant,
        reader: usize,
        writer: Guid,
        mut out: impl FnMut(ReadyBatch),
    ) {
        let key = MatchKey { reader, writer };
        let Some((publisher, mut stream)) = self.streams.remove(&key) else {
            return;
        };
        let open = stream.abandon();
        let Some(merge) = self.publishers.get_mut(&publisher) else {
            if let Some(part) = open {
                self.dropped.add_set(reader, part.received);
            }
            return;
        };
        if let Some(part) = open {
            merge.add_output(now, key, StreamOutput::Part(part), &mut self.dropped);
        }
        merge.remove_writer(now, key);
        merge.advance((now, self.busy_at), &mut self.dropped, &mut out);
        self.forget_idle_publishers();
    }

    /// Forgets the order of the publishers of a participant whose writers are all gone.
    /// The next participant with its GUID begins anew.
    pub fn forget_participant(&mut self, prefix: GuidPrefix) {
        self.publishers
            .retain(|publisher, merge| publisher.prefix != prefix || !merge.has_no_writers());
    }

    /// Everything up to a sequence number is settled, and the publisher is at
    /// `group_sequence`.
    pub fn note_settled(
        &mut self,
        now: Instant,
        key: MatchKey,
        sequence: i64,
        group_sequence: i64,
        mut out: impl FnMut(ReadyBatch),
    ) {
        let Some((publisher, stream)) = self.streams.get_mut(&key) else {
            return;
        };
        stream.note_settled(sequence, group_sequence);
        if let Some(merge) = self.publishers.get_mut(publisher) {
            merge.note_writer_passed(key, group_sequence);
            merge.advance((now, self.busy_at), &mut self.dropped, &mut out);
        }
    }

    /// Discovery shows these writers of a publisher.
    pub fn set_discovered_digest(
        &mut self,
        now: Instant,
        publisher: Guid,
        known: [u8; 4],
        mut out: impl FnMut(ReadyBatch),
    ) {
        if let Some(merge) = self.publishers.get_mut(&publisher) {
            merge.note_discovered(known);
            merge.advance((now, self.busy_at), &mut self.dropped, &mut out);
        }
    }

    /// Inserts a writer's next change.
    pub fn offer(
        &mut self,
        now: Instant,
        reader: usize,
        arrival: WriterArrival,
        mut out: impl FnMut(ReadyBatch),
    ) {
        let key = MatchKey {
            reader,
            writer: arrival.writer,
        };
        let Some((publisher, stream)) = self.streams.get_mut(&key) else {
            // Not matched: seen in the moment between two locks.
            return;
        };
        let mut mark = arrival.mark.as_deref().copied().unwrap_or_default();
        if !self.presentation.coherent {
            mark.coherent_set = None;
        }
        let group_sequence = mark.group_sequence;
        let is_filtered = mark.kind == CoherentMarkKind::Filtered;
        let change = ReceivedChange {
            sequence: arrival.sequence,
            mark,
            items: arrival.items,
        };
        let dropped = &mut self.dropped;
        match self.publishers.get_mut(publisher) {
            None => stream.add_change(change, |piece| match piece {
                StreamOutput::Single(_, item) => out(ReadyBatch {
                    is_set: false,
                    ready_at: now,
                    items: [(reader, item)].into(),
                }),
                StreamOutput::Part(part) if part.is_whole => out(ReadyBatch {
                    is_set: true,
                    ready_at: now,
                    items: part.items.into_iter().map(|(_, i)| (reader, i)).collect(),
                }),
                StreamOutput::Part(part) => dropped.add_set(reader, part.received),
            }),
            Some(merge) => {
                if let Some(group_sequence) = group_sequence.filter(|_| arrival.in_order) {
                    merge.note_complete_through(group_sequence.previous().0);
                }
                stream.add_change(change, |piece| merge.add_output(now, key, piece, dropped));
                if let Some(group_sequence) = group_sequence.filter(|_| is_filtered) {
                    merge.note_writer_position(key, group_sequence.0);
                }
                merge.advance((now, self.busy_at), dropped, &mut out);
            }
        }
    }

    /// The publishers that have matched writers.
    pub fn matched_publishers(&self) -> Vec<Guid> {
        let all = self.publishers.iter();
        let matched = all.filter(|(_, merge)| !merge.has_no_writers());
        matched.map(|(publisher, _)| *publisher).collect()
    }

    /// When [`SetAssembly::handle_timeout`] has work, if ever.
    pub fn wakes_at(&self) -> Option<Instant> {
        let publishers = self.publishers.values();
        publishers.filter_map(GroupMerge::wakes_at).min()
    }

    /// The first limit that is exceeded for a reader: what, how much it holds, the
    /// limit.
    pub fn exceeded_limit(&self, reader: usize) -> Option<(&'static str, usize, usize)> {
        let ways = self.streams.iter().filter(|(key, _)| key.reader == reader);
        let of_streams = ways.flat_map(|(_, (_, stream))| stream.held());
        let of_merges = self.publishers.values().flat_map(GroupMerge::held);
        let mut all = of_streams.chain(of_merges);
        all.find(|(_, held, max)| held > max)
    }

    /// Releases units whose waiting time has ended.
    pub fn handle_timeout(&mut self, now: Instant, mut out: impl FnMut(ReadyBatch)) {
        for merge in self.publishers.values_mut() {
            merge.advance((now, self.busy_at), &mut self.dropped, &mut out);
        }
    }
}

/// A writer's next change.
pub struct WriterArrival {
    /// GUID of the remote writer that made the change.
    pub writer: Guid,
    /// The sequence number of the change.
    pub sequence: i64,
    /// Its coherent-set mark and group sequence number.
    pub mark: Option<Box<CoherentMark>>,
    /// The sample, the end of an instance, both or nothing.
    pub items: Vec<QueuedSample>,
    /// Whether all earlier changes of its publisher were inserted, because no network
    /// lies between.
    pub in_order: bool,
}
