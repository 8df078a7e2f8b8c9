//! Events of a writer: deadline, liveliness, acknowledgements and freed space.

use alloc::collections::VecDeque;

use crate::id::Guid;

/// An event for the application. Totals count from the writer's creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriterEvent {
    /// The offered deadline passed without a write.
    DeadlineMissed {
        /// The total count.
        total: u64,
    },
    /// The application did not assert liveliness within the lease.
    LivelinessLost {
        /// The total count.
        total: u64,
    },
    /// Every reliable reader has acknowledged everything.
    AllAcknowledged,
    /// A write that failed with
    /// [`WriteError::WouldBlock`](super::WriteError::WouldBlock) may be tried
    /// again.
    SpaceFreed,
    /// A reliable reader acknowledges nothing new for 2 s although samples are
    /// outstanding.
    ReaderStalled {
        /// The remote reader, which stays matched.
        reader: Guid,
    },
    /// It acknowledges again, or is not matched any more.
    StallEnded {
        /// The remote reader that was reported as stalled.
        reader: Guid,
    },
    /// A reader restarted with the same GUID: it requests acknowledged samples and
    /// its counts start again. Only with
    /// [`WriterConfig::detects_reader_reset`](super::WriterConfig::detects_reader_reset).
    ReaderReset {
        /// Its GUID, the same before and after the restart.
        reader: Guid,
    },
}

/// Events kept between two polls. When full, the oldest is dropped.
const EVENTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Events(VecDeque<WriterEvent>);

impl Events {
    pub fn pop(&mut self) -> Option<WriterEvent> {
        self.0.pop_front()
    }

    /// Adds an event, unless it repeats the last one.
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
