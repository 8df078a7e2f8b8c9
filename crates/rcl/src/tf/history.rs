//! Transform history of one frame: its transforms to its parents, in order of time,
//! and tf interpolation between two of them.

use std::collections::VecDeque;

use super::isometry::Isometry;

/// A frame's index within its buffer.
pub type FrameId = u32;

/// A frame's pose in its parent at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct TransformEntry {
    /// Nanoseconds.
    pub stamp: i64,
    pub parent: FrameId,
    /// The frame in its parent.
    pub isometry: Isometry,
}

/// The transforms of a frame.
#[derive(Debug, Default)]
pub(super) enum TransformHistory {
    /// The frame is only named as a parent.
    #[default]
    Empty,
    /// A static transform.
    Static(TransformEntry),
    /// At least one, oldest first.
    Moving(VecDeque<TransformEntry>),
}

/// Why there is no transform for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HistoryMiss {
    /// The frame has no parent.
    NoParent,
    /// All transforms are later.
    Before { oldest: i64 },
    /// All transforms are earlier.
    After { newest: i64 },
}

impl TransformHistory {
    /// The newest stamp and parent; `None` for a frame without parent.
    ///
    /// A static transform has no stamp.
    pub(super) fn newest(&self) -> Option<(Option<i64>, FrameId)> {
        match self {
            Self::Empty => None,
            Self::Static(entry) => Some((None, entry.parent)),
            Self::Moving(entries) => {
                let last = entries.back()?;
                Some((Some(last.stamp), last.parent))
            }
        }
    }

    /// The oldest and newest stamp of a frame that is not static.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        match self {
            Self::Moving(entries) => Some((entries.front()?.stamp, entries.back()?.stamp)),
            Self::Empty | Self::Static(_) => None,
        }
    }

    /// Number of transforms kept.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Static(_) => 1,
            Self::Moving(entries) => entries.len(),
        }
    }

    /// The pose at a time, interpolated between two transforms of the same parent.
    ///
    /// With different parents, the earlier one holds until the later one.
    pub(super) fn at(&self, time: i64) -> Result<TransformEntry, HistoryMiss> {
        let entries = match self {
            Self::Empty => return Err(HistoryMiss::NoParent),
            Self::Static(entry) => return Ok(*entry),
            Self::Moving(entries) => entries,
        };
        let after = entries.partition_point(|entry| entry.stamp <= time);
        let next = entries.get(after);
        let before = after.checked_sub(1).and_then(|at| entries.get(at));
        match (before, next) {
            (Some(before), _) if before.stamp == time => Ok(*before),
            (Some(before), Some(next)) => Ok(interpolate(before, next, time)),
            (Some(before), None) => Err(HistoryMiss::After {
                newest: before.stamp,
            }),
            (None, Some(next)) => Err(HistoryMiss::Before { oldest: next.stamp }),
            (None, None) => Err(HistoryMiss::NoParent),
        }
    }

    /// Inserts a transform in order; replaces one of the same time. True if the
    /// number grew.
    pub(super) fn insert(&mut self, entry: TransformEntry) -> bool {
        let Self::Moving(entries) = self else {
            *self = Self::Moving(VecDeque::from([entry]));
            return true;
        };
        // The common case is the newest.
        let at = match entries.back() {
            Some(last) if last.stamp < entry.stamp => entries.len(),
            _ => entries.partition_point(|known| known.stamp < entry.stamp),
        };
        match entries.get_mut(at) {
            Some(known) if known.stamp == entry.stamp => {
                *known = entry;
                false
            }
            _ => {
                entries.insert(at, entry);
                true
            }
        }
    }

    /// Drops transforms older than `oldest`; returns their number.
    pub(super) fn prune(&mut self, oldest: i64) -> usize {
        let Self::Moving(entries) = self else {
            return 0;
        };
        let before = entries.len();
        while entries.len() > 1 && entries.front().is_some_and(|entry| entry.stamp < oldest) {
            entries.pop_front();
        }
        before - entries.len()
    }

    /// Drops the oldest transform, unless it is the only one.
    pub(super) fn drop_oldest(&mut self) -> bool {
        match self {
            Self::Moving(entries) if entries.len() > 1 => entries.pop_front().is_some(),
            _ => false,
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a fraction of the time between two transforms"
)]
fn interpolate(before: &TransformEntry, next: &TransformEntry, time: i64) -> TransformEntry {
    if before.parent != next.parent {
        return TransformEntry {
            stamp: time,
            ..*before
        };
    }
    let passed = time.abs_diff(before.stamp) as f64;
    let fraction = passed / next.stamp.abs_diff(before.stamp) as f64;
    TransformEntry {
        stamp: time,
        parent: before.parent,
        isometry: before.isometry.interpolate(&next.isometry, fraction),
    }
}
