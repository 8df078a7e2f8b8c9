//! What a reader has to report besides samples.

use alloc::collections::VecDeque;

use crate::id::Guid;

/// Something the application may want to know. Totals count from the reader's
/// birth, so a dropped event loses no information but its moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReaderEvent {
    /// Samples of `writer` are lost for good.
    SampleLost {
        /// Whose samples.
        writer: Guid,
        /// How many since the last such event.
        count: u64,
        /// How many in all, over all writers.
        total: u64,
    },
    /// A writer's counts begin anew: it is another one with the same GUID, and
    /// its numbers mean other samples. Told once per heartbeat until it is
    /// unmatched.
    WriterBeganAnew {
        /// Which.
        writer: Guid,
    },
    /// The requested deadline passed without a sample.
    DeadlineMissed {
        /// How often in all.
        total: u64,
    },
    /// A writer became alive or not alive, or (un)matched.
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

/// Events not yet polled. Full: the oldest goes.
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

    /// Notes a loss; joins it to the last event when that is of the same kind.
    pub fn lost(&mut self, from: Guid, lost: u64, events_max: usize) {
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

    /// Notes that `writer` changed the counts of living and silent writers.
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
