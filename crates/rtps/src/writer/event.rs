//! What a writer has to report.

use alloc::collections::VecDeque;

use crate::id::Guid;

/// Something the application may want to know. Totals count from the writer's
/// birth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriterEvent {
    /// The offered deadline passed without a write.
    DeadlineMissed {
        /// How often in all.
        total: u64,
    },
    /// The application did not prove itself alive within the lease.
    LivelinessLost {
        /// How often in all.
        total: u64,
    },
    /// Every reliable reader has everything that was written.
    AllAcknowledged,
    /// A write that was refused with
    /// [`WriteError::WouldBlock`](super::WriteError::WouldBlock) may now be
    /// tried again.
    SpaceFreed,
    /// A reader has lost what it had acknowledged, and counts from the start:
    /// it is another one with the same GUID. Only of writers that look for it
    /// ([`WriterConfig::doubts_readers`](super::WriterConfig::doubts_readers)).
    ReaderBeganAnew {
        /// The reader.
        reader: Guid,
    },
}

/// Events kept when nobody polls. Full: the oldest goes.
const EVENTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<WriterEvent>);

impl Events {
    pub fn pop(&mut self) -> Option<WriterEvent> {
        self.0.pop_front()
    }

    /// Adds an event; a repeat of the last one adds nothing.
    pub fn push_or_drop_oldest(&mut self, event: WriterEvent) {
        if self.0.back() == Some(&event) {
            return;
        }
        if self.0.len() >= EVENTS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(event);
    }
}
