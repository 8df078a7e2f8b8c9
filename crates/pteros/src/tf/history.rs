//! Where one frame was: its transforms to its parents, in the order of their time.

use std::collections::VecDeque;

use super::isometry::Isometry;

/// A frame's number within its buffer.
pub(super) type FrameId = u32;

/// Where the frame was at one time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Entry {
    /// Nanoseconds.
    pub stamp: i64,
    pub parent: FrameId,
    /// The frame in its parent.
    pub isometry: Isometry,
}

/// What is known of a frame.
#[derive(Debug, Default)]
pub(super) enum History {
    /// It is named as a parent only.
    #[default]
    Empty,
    /// Holds at all times.
    Static(Entry),
    /// At least one, oldest first.
    Moving(VecDeque<Entry>),
}

/// Why there is nothing for a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// The frame has no parent.
    NoParent,
    /// All that is known is later.
    Before { oldest: i64 },
    /// All that is known is earlier.
    After { newest: i64 },
}

impl History {
    /// The newest stamp and parent; `None` for a frame without parent. What holds at
    /// all times has no stamp.
    pub fn newest(&self) -> Option<(Option<i64>, FrameId)> {
        match self {
            Self::Empty => None,
            Self::Static(entry) => Some((None, entry.parent)),
            Self::Moving(entries) => {
                let last = entries.back()?;
                Some((Some(last.stamp), last.parent))
            }
        }
    }

    /// The oldest and newest stamp of a frame that moves.
    pub fn span(&self) -> Option<(i64, i64)> {
        match self {
            Self::Moving(entries) => Some((entries.front()?.stamp, entries.back()?.stamp)),
            Self::Empty | Self::Static(_) => None,
        }
    }

    /// How many transforms are kept.
    pub fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Static(_) => 1,
            Self::Moving(entries) => entries.len(),
        }
    }

    /// Where the frame was then. Between two transforms it is interpolated, if they
    /// have the same parent; else the earlier one holds until the later one.
    pub fn at(&self, time: i64) -> Result<Entry, Gap> {
        let entries = match self {
            Self::Empty => return Err(Gap::NoParent),
            Self::Static(entry) => return Ok(*entry),
            Self::Moving(entries) => entries,
        };
        let after = entries.partition_point(|entry| entry.stamp <= time);
        let next = entries.get(after);
        let before = after.checked_sub(1).and_then(|at| entries.get(at));
        match (before, next) {
            (Some(before), _) if before.stamp == time => Ok(*before),
            (Some(before), Some(next)) => Ok(between(before, next, time)),
            (Some(before), None) => Err(Gap::After {
                newest: before.stamp,
            }),
            (None, Some(next)) => Err(Gap::Before { oldest: next.stamp }),
            (None, None) => Err(Gap::NoParent),
        }
    }

    /// Puts a transform in its place; one of the same time is replaced. Returns
    /// whether there is one more.
    pub fn insert(&mut self, entry: Entry) -> bool {
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

    /// Drops what is older than `oldest`; returns how much that was.
    pub fn prune(&mut self, oldest: i64) -> usize {
        let Self::Moving(entries) = self else {
            return 0;
        };
        let before = entries.len();
        while entries.len() > 1 && entries.front().is_some_and(|entry| entry.stamp < oldest) {
            entries.pop_front();
        }
        before - entries.len()
    }

    /// Drops the oldest of several.
    pub fn drop_oldest(&mut self) -> bool {
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
fn between(before: &Entry, next: &Entry, time: i64) -> Entry {
    if before.parent != next.parent {
        return Entry {
            stamp: time,
            ..*before
        };
    }
    let passed = time.abs_diff(before.stamp) as f64;
    let fraction = passed / next.stamp.abs_diff(before.stamp) as f64;
    Entry {
        stamp: time,
        parent: before.parent,
        isometry: before.isometry.interpolate(&next.isometry, fraction),
    }
}
