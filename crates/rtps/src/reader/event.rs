//! Events of a reader: lost samples, deadline, liveliness and writer resets.

use alloc::collections::VecDeque;

use crate::id::Guid;
use crate::memory_budget::MemoryFill;
use crate::stats::{ReaderStats, Tally};

/// An event for the application. Totals count from the reader's creation, so a
/// dropped event loses no information but its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReaderEvent {
    /// Samples of `writer` are lost and will not come.
    SampleLost {
        /// The writer of the samples.
        writer: Guid,
        /// Samples lost since the last such event.
        count: u64,
        /// Samples lost in total, over all writers.
        total: u64,
    },
    /// A writer restarted with the same GUID: its counts start again, and its
    /// numbers mean other samples. Emitted with every heartbeat until it is
    /// unmatched, by readers of built-in topics only.
    WriterReset {
        /// The remote writer; it is still matched.
        writer: Guid,
    },
    /// The memory for unfinished samples is used up: a sample of this writer was
    /// refused. A reliable writer sends it again later; of best effort it is lost.
    /// Once, until half of the participant's share is free again.
    MemoryFull {
        /// The remote writer of the refused sample.
        writer: Guid,
        /// The size of the refused sample, bytes.
        sample_bytes: usize,
        /// The reserved bytes and their limits.
        fill: MemoryFill,
    },
    /// A writer's message contradicts others received in its name, so its state was
    /// reset. Samples in between may be lost or delivered again.
    Resynchronised {
        /// The remote writer in whose name the messages came.
        writer: Guid,
    },
    /// The requested deadline passed without a sample.
    DeadlineMissed {
        /// The total count.
        total: u64,
    },
    /// A writer became alive or not alive, or was matched or unmatched.
    LivelinessChanged {
        /// Writers now alive.
        alive_count: u32,
        /// Writers now matched but not alive.
        not_alive_count: u32,
        /// Change of `alive_count` by this event.
        alive_change: i32,
        /// Change of `not_alive_count` by this event.
        not_alive_change: i32,
        /// The writer that changed.
        writer: Guid,
    },
}

/// Events not yet polled. When full, the oldest is dropped.
#[derive(Debug, Default)]
pub(super) struct Events {
    queue: VecDeque<ReaderEvent>,
    lost_total: u64,
    alive: u32,
    not_alive: u32,
}

impl Events {
    pub fn pop(&mut self) -> Option<ReaderEvent> {
        self.queue.pop_front()
    }

    pub fn push_or_drop_oldest(&mut self, event: ReaderEvent, events_max: usize) {
        if self.queue.len() >= events_max.max(1) {
            self.queue.pop_front();
        }
        self.queue.push_back(event);
    }

    /// Counts and reports a resynchronisation.
    pub fn resynchronised(&mut self, writer: Guid, stats: &mut ReaderStats, events_max: usize) {
        stats.resynchronised.tally();
        self.push_or_drop_oldest(ReaderEvent::Resynchronised { writer }, events_max);
    }

    /// Counts and reports a loss, if there is one.
    pub fn note_lost(
        &mut self,
        writer: Guid,
        count: u64,
        stats: &mut ReaderStats,
        events_max: usize,
    ) {
        if count > 0 {
            stats.lost = stats.lost.saturating_add(count);
            self.lost(writer, count, events_max);
        }
    }

    /// Adds a loss, merged into the last event if that is a loss of the same
    /// writer.
    fn lost(&mut self, from: Guid, lost: u64, events_max: usize) {
        self.lost_total = self.lost_total.saturating_add(lost);
        if let Some(ReaderEvent::SampleLost {
            writer,
            count,
            total,
        }) = self.queue.back_mut()
            && *writer == from
        {
            *count = count.saturating_add(lost);
            *total = self.lost_total;
            return;
        }
        let event = ReaderEvent::SampleLost {
            writer: from,
            count: lost,
            total: self.lost_total,
        };
        self.push_or_drop_oldest(event, events_max);
    }

    /// Adds a change of the counts of alive and not-alive writers, caused by
    /// `writer`.
    pub fn liveliness(&mut self, writer: Guid, alive: i32, not_alive: i32, events_max: usize) {
        self.alive = self.alive.saturating_add_signed(alive);
        self.not_alive = self.not_alive.saturating_add_signed(not_alive);
        let event = ReaderEvent::LivelinessChanged {
            alive_count: self.alive,
            not_alive_count: self.not_alive,
            alive_change: alive,
            not_alive_change: not_alive,
            writer,
        };
        self.push_or_drop_oldest(event, events_max);
    }
}
