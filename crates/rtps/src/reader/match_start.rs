//! The start of a match with a writer: the first number that the reader wants, and what
//! an earlier match with the same writer left.

use alloc::collections::BTreeMap;

use super::config::{ReaderConfig, WriterProxyConfig};
use crate::id::{Guid, GuidPrefix, VendorId};
use crate::qos::{Durability, History};
use crate::time::{Duration, Instant};

/// So long after the first HEARTBEAT those to all readers may have waited in the socket
/// since before the match. The writer answers the reader's first ACKNACK sooner.
pub(super) const MATCH_UNNAMED_MAX: Duration = Duration::from_millis(500);

/// The first number that a reliable reader requests after the first heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HistoryStart {
    /// Everything available; the writer sends GAPs for the rest.
    All,
    /// The last samples: a late joiner of limited depth.
    Last(u32),
    /// Later changes only. For a volatile reader of a transient-local writer of
    /// another stack, which may send its history to any reader that requests it
    /// (Cyclone DDS does).
    NewOnly,
}

impl HistoryStart {
    fn of(config: &ReaderConfig, writer: &WriterProxyConfig) -> Self {
        let reader = &config.qos;
        let filtered = config.content_filter.is_some();
        let writer_keeps = writer.qos.durability >= Durability::TransientLocal;
        let reader_wants = reader.durability >= Durability::TransientLocal;
        // Set ends have numbers too: those of the last samples are unknown.
        let keyed = writer.guid.entity.is_keyed() || writer.qos.presentation.coherent;
        match (writer_keeps, reader_wants, reader.history) {
            // The last samples that pass the filter may have any number.
            (true, true, _) if filtered => Self::All,
            (true, true, History::KeepLast(depth)) if !keyed => Self::Last(depth.max(1)),
            (true, false, _) if writer.vendor != VendorId::PTEROS => Self::NewOnly,
            _ => Self::All,
        }
    }
}

/// Where a match with a writer ended that may return.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResumePoint {
    /// The first number that was not announced then.
    pub next: i64,
    /// The match ended because the writer's lease expired. Both sides want what was
    /// published meanwhile to arrive.
    pub is_interrupted: bool,
}

/// Where a match begins.
#[derive(Debug)]
pub(super) struct MatchStart {
    pub start: HistoryStart,
    /// Lower numbers were delivered in an earlier match.
    pub resume_at: i64,
    /// It was matched before, and may not have noticed the end of that match yet.
    pub was_matched_before: bool,
    /// Its last match was interrupted. Numbers from `resume_at` that it no longer
    /// has are lost.
    pub is_interrupted: bool,
    /// As long as it was interrupted: numbers below that are declared irrelevant are
    /// lost as well, because the writer did not match this reader then.
    pub interrupted_below: i64,
    /// Until then a HEARTBEAT to all readers may be older than the match.
    pub unnamed_until: Instant,
}

impl MatchStart {
    /// That of a writer that was not matched before.
    pub fn of(reader: &ReaderConfig, writer: &WriterProxyConfig) -> Self {
        Self {
            start: HistoryStart::of(reader, writer),
            resume_at: 1,
            was_matched_before: false,
            is_interrupted: false,
            interrupted_below: 0,
            unnamed_until: Instant::ZERO,
        }
    }

    /// From which number on missing ones are lost, by a HEARTBEAT after the first one; `from`:
    /// by those before. Those to all readers may have waited in the socket since before the
    /// match (seed 10600023491): what they name is not lost. The first one to this reader
    /// says where it begins.
    pub fn losses_from(
        &mut self,
        now: Instant,
        from: i64,
        (first, last): (i64, i64),
        is_for_us: bool,
    ) -> i64 {
        if now >= self.unnamed_until {
            from
        } else if is_for_us {
            self.unnamed_until = Instant::ZERO;
            from.min(first.max(self.resume_at))
        } else {
            from.max(last.saturating_add(1))
        }
    }
}

/// The resume point of each unmatched writer, for volatile readers. Earlier samples
/// are not delivered again when the match returns; the writer may not have noticed the
/// interruption.
#[derive(Debug, Default)]
pub(super) struct ResumePoints(BTreeMap<Guid, ResumePoint>);

impl ResumePoints {
    /// Writers with a resume point; beyond that all are dropped.
    pub const MAX: usize = 256;

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Notes where the match with a writer ended.
    pub fn insert(&mut self, guid: Guid, next: i64) {
        if self.0.len() >= Self::MAX {
            self.0.clear();
        }
        let point = ResumePoint {
            next,
            is_interrupted: false,
        };
        self.0.insert(guid, point);
    }

    pub fn remove(&mut self, guid: Guid) -> Option<ResumePoint> {
        self.0.remove(&guid)
    }

    /// Forgets those of a participant.
    pub fn forget(&mut self, prefix: GuidPrefix) {
        self.0.retain(|writer, _| writer.prefix != prefix);
    }

    /// Sets whether the matches with a participant's writers were interrupted.
    pub fn set_interrupted(&mut self, prefix: GuidPrefix, is_interrupted: bool) {
        let of_peer = self.0.iter_mut();
        for (_, point) in of_peer.filter(|(writer, _)| writer.prefix == prefix) {
            point.is_interrupted = is_interrupted;
        }
    }
}
