//! Frame tree: finds the path between two frames and composes the transforms.
//!
//! Plain data, behind its buffer's lock. A look-up allocates only the list of the
//! source's ancestors.

use std::collections::HashMap;
use std::sync::Arc;

use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_runtime::rtps::id::Guid;

use super::TransformBufferOptions;
use super::error::{FRAME_ID_BYTES_MAX, InvalidTransform};
use super::history::{FrameId, HistoryMiss, TransformEntry, TransformHistory};
use super::isometry::{Isometry, length_squared};
use crate::time::Time;

/// The broadcaster of a transform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Authority {
    /// A name that the caller gave.
    Named(Arc<str>),
    /// The publisher of the message; its node is looked up for reports.
    Publisher(Guid),
}

#[derive(Debug)]
pub struct Frame {
    pub name: Arc<str>,
    pub history: TransformHistory,
    pub authority: Option<Authority>,
}

#[derive(Debug, Default)]
pub struct FrameTree {
    ids: HashMap<Arc<str>, FrameId>,
    frames: Vec<Frame>,
    /// Number of transforms of all frames.
    transform_count: usize,
}

/// Why there is no transform; [`super::report`] turns it into an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupMiss {
    NotConnected,
    Cycle,
    /// No transform at that time, where the path up from the source ends, the one up
    /// from the target, or both.
    NoTransformAt {
        above_source: Option<FrameId>,
        above_target: Option<FrameId>,
        time: i64,
    },
}

/// The most ancestors of a frame; more form a cycle (tf2's limit).
pub const DEPTH_MAX: usize = 1_000;

/// Tolerance of a quaternion's squared length (tf2's limit).
const LENGTH_TOLERANCE: f64 = 0.01;

/// A frame's name as in tf2: without tf1's leading slash.
pub fn without_leading_slash(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// Rejects transforms that no reader accepts.
pub fn check(transform: &TransformStamped) -> Result<(), InvalidTransform> {
    let (child, parent) = frame_ids(transform);
    let owned_names = || (child.to_string(), parent.to_string());
    if child.is_empty() || parent.is_empty() {
        let (child, parent) = owned_names();
        return Err(InvalidTransform::EmptyFrameId { child, parent });
    }
    if child == parent {
        return Err(InvalidTransform::SelfParent(child.into()));
    }
    let longest = child.len().max(parent.len());
    if longest > FRAME_ID_BYTES_MAX {
        return Err(InvalidTransform::FrameIdTooLong(longest));
    }
    let isometry = Isometry::from(&transform.transform);
    let not_finite = |part| {
        let (child, parent) = owned_names();
        Err(InvalidTransform::NotFinite {
            child,
            parent,
            part,
        })
    };
    if !isometry.translation.iter().all(|part| part.is_finite()) {
        return not_finite("the translation");
    }
    if !isometry.rotation.iter().all(|part| part.is_finite()) {
        return not_finite("the rotation");
    }
    let squared = length_squared(isometry.rotation);
    if (squared - 1.0).abs() > LENGTH_TOLERANCE {
        let (child, parent) = owned_names();
        return Err(InvalidTransform::NotNormalized {
            child,
            parent,
            length: squared.sqrt(),
        });
    }
    Ok(())
}

fn frame_ids(transform: &TransformStamped) -> (&str, &str) {
    let child = without_leading_slash(&transform.child_frame_id);
    (child, without_leading_slash(&transform.header.frame_id))
}

impl FrameTree {
    pub fn id_of(&self, name: &str) -> Option<FrameId> {
        self.ids.get(without_leading_slash(name)).copied()
    }

    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// A frame by its index.
    pub fn frame_by_id(&self, id: FrameId) -> &Frame {
        &self.frames[id as usize]
    }

    /// Inserts a transform. If a static frame becomes dynamic, or the other way
    /// round, its history starts again.
    pub fn insert(
        &mut self,
        transform: &TransformStamped,
        authority: &Authority,
        is_static: bool,
        options: &TransformBufferOptions,
    ) -> Result<(), InvalidTransform> {
        check(transform)?;
        let (child, parent) = frame_ids(transform);
        let new = [child, parent].map(|name| !self.ids.contains_key(name));
        let frames = self.frames.len() + new.iter().filter(|new| **new).count();
        if frames > options.frames_max {
            return Err(InvalidTransform::Full {
                child: child.into(),
                limit: format!("{} frames are known (frames_max)", options.frames_max),
            });
        }
        let (child, parent) = (self.intern(child), self.intern(parent));
        let entry = TransformEntry {
            stamp: Time::from(&transform.header.stamp).as_nanos(),
            parent,
            // As in tf2: within the tolerance, as it came.
            isometry: Isometry::from(&transform.transform),
        };
        self.store(child, entry, is_static, options)?;
        let frame = &mut self.frames[child as usize];
        if frame.authority.as_ref() != Some(authority) {
            frame.authority = Some(authority.clone());
        }
        Ok(())
    }

    fn store(
        &mut self,
        child: FrameId,
        entry: TransformEntry,
        is_static: bool,
        options: &TransformBufferOptions,
    ) -> Result<(), InvalidTransform> {
        let frame = &mut self.frames[child as usize];
        let is_full = self.transform_count >= options.transforms_max;
        let no_room = || InvalidTransform::Full {
            child: frame.name.to_string(),
            limit: format!(
                "{} transforms are kept (transforms_max)",
                options.transforms_max
            ),
        };
        if is_static {
            let before = frame.history.len();
            if before == 0 && is_full {
                return Err(no_room());
            }
            frame.history = TransformHistory::Static(entry);
            self.transform_count = self.transform_count + 1 - before;
            return Ok(());
        }
        let keep = i64::try_from(options.cache_time.as_nanos()).unwrap_or(i64::MAX);
        if let Some((_, newest)) = frame.history.span() {
            if entry.stamp < newest.saturating_sub(keep) {
                return Err(InvalidTransform::TooOld {
                    child: frame.name.to_string(),
                    time: Time::from_nanos(entry.stamp),
                    newest: Time::from_nanos(newest),
                });
            }
        } else {
            // Static, or empty.
            self.transform_count -= frame.history.len();
            frame.history = TransformHistory::Empty;
        }
        if is_full && frame.history.len() == 0 {
            return Err(no_room());
        }
        self.transform_count += usize::from(frame.history.insert(entry));
        let newest = frame
            .history
            .span()
            .map_or(entry.stamp, |(_, newest)| newest);
        self.transform_count -= frame.history.prune(newest.saturating_sub(keep));
        if self.transform_count > options.transforms_max && frame.history.drop_oldest() {
            self.transform_count -= 1;
        }
        Ok(())
    }

    fn intern(&mut self, name: &str) -> FrameId {
        if let Some(known) = self.ids.get(name) {
            return *known;
        }
        // The limit of frames is far below.
        let id = FrameId::try_from(self.frames.len()).unwrap_or(FrameId::MAX);
        let name: Arc<str> = name.into();
        self.ids.insert(name.clone(), id);
        self.frames.push(Frame {
            name,
            history: TransformHistory::default(),
            authority: None,
        });
        id
    }

    /// Removes all transforms except static ones.
    pub fn clear_dynamic(&mut self) {
        for frame in &mut self.frames {
            if let TransformHistory::Moving(entries) = &frame.history {
                self.transform_count -= entries.len();
                frame.history = TransformHistory::Empty;
            }
        }
    }

    /// Number of transforms kept.
    pub fn transform_count(&self) -> usize {
        self.transform_count
    }

    /// The latest time at which all frames between the two are known; `None` if all
    /// are static.
    pub fn latest_common_time(
        &self,
        target: FrameId,
        source: FrameId,
    ) -> Result<Option<i64>, LookupMiss> {
        let earlier = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        let newest = |frame: FrameId| self.frame_by_id(frame).history.newest();
        if target == source {
            return Ok(newest(source).and_then(|(stamp, _)| stamp));
        }
        // The source's ancestors, each with the time up to which the path is known.
        let mut ancestors = vec![(source, None)];
        let (mut frame, mut common) = (source, None);
        while let Some((stamp, parent)) = newest(frame) {
            (frame, common) = (parent, earlier(common, stamp));
            if frame == target {
                return Ok(common);
            }
            ancestors.push((frame, common));
            if ancestors.len() > DEPTH_MAX {
                return Err(LookupMiss::Cycle);
            }
        }
        let (mut frame, mut common) = (target, None);
        for _ in 0..DEPTH_MAX {
            if let Some((_, of_source)) = ancestors.iter().find(|(known, _)| *known == frame) {
                return Ok(earlier(common, *of_source));
            }
            let Some((stamp, parent)) = newest(frame) else {
                return Err(LookupMiss::NotConnected);
            };
            (frame, common) = (parent, earlier(common, stamp));
        }
        Err(LookupMiss::Cycle)
    }

    /// The pose of the source in the target at that time.
    pub fn isometry(
        &self,
        target: FrameId,
        source: FrameId,
        time: i64,
    ) -> Result<Isometry, LookupMiss> {
        if target == source {
            return Ok(Isometry::IDENTITY);
        }
        // The source in itself, in its parent, in that one's parent …
        let mut ancestors = Vec::with_capacity(16);
        let (mut frame, mut isometry) = (source, Isometry::IDENTITY);
        let end_of_source = loop {
            if frame == target {
                return Ok(isometry);
            }
            ancestors.push((frame, isometry));
            if ancestors.len() > DEPTH_MAX {
                return Err(LookupMiss::Cycle);
            }
            match self.frame_by_id(frame).history.at(time) {
                Ok(entry) => (frame, isometry) = (entry.parent, entry.isometry * isometry),
                Err(gap) => break (frame, gap),
            }
        };
        let (mut frame, mut isometry) = (target, Isometry::IDENTITY);
        for _ in 0..DEPTH_MAX {
            if let Some((_, of_source)) = ancestors.iter().find(|(known, _)| *known == frame) {
                return Ok(isometry.inverse() * *of_source);
            }
            match self.frame_by_id(frame).history.at(time) {
                Ok(entry) => (frame, isometry) = (entry.parent, entry.isometry * isometry),
                Err(gap) => return Err(lookup_miss(time, end_of_source, (frame, gap))),
            }
        }
        Err(LookupMiss::Cycle)
    }
}

/// The two paths do not meet: one of them ends at a frame without a transform at
/// that time, or both end at a root.
fn lookup_miss(
    time: i64,
    (source_end, source_miss): (FrameId, HistoryMiss),
    (target_end, target_miss): (FrameId, HistoryMiss),
) -> LookupMiss {
    let has_gap = |miss| miss != HistoryMiss::NoParent;
    let above_source = has_gap(source_miss).then_some(source_end);
    let above_target = has_gap(target_miss).then_some(target_end);
    if above_source.or(above_target).is_none() {
        return LookupMiss::NotConnected;
    }
    LookupMiss::NoTransformAt {
        above_source,
        above_target,
        time,
    }
}
