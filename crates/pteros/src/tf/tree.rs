//! The frames and how they hang together: finding the way from one to another.
//!
//! Plain data, behind its buffer's lock. Nothing here allocates on a look-up but the
//! list of the source's ancestors.

use std::collections::HashMap;
use std::sync::Arc;

use pteros_interfaces::geometry_msgs::msg::TransformStamped;
use pteros_rmw::rtps::id::Guid;

use super::TransformBufferOptions;
use super::error::{NAME_BYTES_MAX, TransformRefused};
use super::history::{Entry, FrameId, Gap, History};
use super::isometry::{Isometry, length_squared};
use crate::clock::Time;

/// Who told a transform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Authority {
    Named(Arc<str>),
    Publisher(Guid),
}

#[derive(Debug)]
pub(super) struct Frame {
    pub name: Arc<str>,
    pub history: History,
    pub authority: Option<Authority>,
}

#[derive(Debug, Default)]
pub(super) struct Tree {
    ids: HashMap<Arc<str>, FrameId>,
    frames: Vec<Frame>,
    /// Transforms of all frames.
    held: usize,
}

/// Why there is no transform; told in words by [`super::report`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Miss {
    Apart,
    Circle,
    /// Nothing is known of a frame at that time.
    Gap {
        frame: FrameId,
        time: i64,
    },
}

/// Ancestors of a frame; more are a circle (tf2's limit).
pub(super) const DEPTH_MAX: usize = 1_000;

/// How far the length of a quaternion, squared, may be from 1 (tf2's limit).
const LENGTH_TOLERANCE: f64 = 0.01;

/// A frame's name as tf2 has it: without tf1's leading slash.
pub(super) fn bare(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// Refuses what no reader takes.
pub(super) fn check(transform: &TransformStamped) -> Result<(), TransformRefused> {
    let (child, parent) = names(transform);
    let told = || (child.to_string(), parent.to_string());
    if child.is_empty() || parent.is_empty() {
        let (child, parent) = told();
        return Err(TransformRefused::NoName { child, parent });
    }
    if child == parent {
        return Err(TransformRefused::Itself(child.into()));
    }
    let longest = child.len().max(parent.len());
    if longest > NAME_BYTES_MAX {
        return Err(TransformRefused::LongName(longest));
    }
    let isometry = Isometry::from(&transform.transform);
    let not_finite = |part| {
        let (child, parent) = told();
        Err(TransformRefused::NotFinite {
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
        let (child, parent) = told();
        return Err(TransformRefused::NotNormalized {
            child,
            parent,
            length: squared.sqrt(),
        });
    }
    Ok(())
}

fn names(transform: &TransformStamped) -> (&str, &str) {
    let child = bare(&transform.child_frame_id);
    (child, bare(&transform.header.frame_id))
}

impl Tree {
    pub fn frame(&self, name: &str) -> Option<FrameId> {
        self.ids.get(bare(name)).copied()
    }

    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// A frame by the number that it was given here.
    pub fn of(&self, id: FrameId) -> &Frame {
        &self.frames[id as usize]
    }

    /// Takes a transform. A frame that was static and moves now, or the other way
    /// round, begins anew.
    pub fn insert(
        &mut self,
        transform: &TransformStamped,
        authority: &Authority,
        is_static: bool,
        options: &TransformBufferOptions,
    ) -> Result<(), TransformRefused> {
        check(transform)?;
        let (child, parent) = names(transform);
        let new = [child, parent].map(|name| !self.ids.contains_key(name));
        let frames = self.frames.len() + new.iter().filter(|new| **new).count();
        if frames > options.frames_max {
            return Err(TransformRefused::Full {
                child: child.into(),
                limit: format!("{} frames are known (frames_max)", options.frames_max),
            });
        }
        let (child, parent) = (self.intern(child), self.intern(parent));
        let entry = Entry {
            stamp: Time::from(&transform.header.stamp).as_nanos(),
            parent,
            isometry: Isometry::from(&transform.transform).normalized(),
        };
        self.put(child, entry, is_static, options)?;
        let frame = &mut self.frames[child as usize];
        if frame.authority.as_ref() != Some(authority) {
            frame.authority = Some(authority.clone());
        }
        Ok(())
    }

    fn put(
        &mut self,
        child: FrameId,
        entry: Entry,
        is_static: bool,
        options: &TransformBufferOptions,
    ) -> Result<(), TransformRefused> {
        let frame = &mut self.frames[child as usize];
        let is_full = self.held >= options.transforms_max;
        let no_room = || TransformRefused::Full {
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
            frame.history = History::Static(entry);
            self.held = self.held + 1 - before;
            return Ok(());
        }
        let keep = i64::try_from(options.keep.as_nanos()).unwrap_or(i64::MAX);
        if let Some((_, newest)) = frame.history.span() {
            if entry.stamp < newest.saturating_sub(keep) {
                return Err(TransformRefused::Old {
                    child: frame.name.to_string(),
                    time: Time::from_nanos(entry.stamp),
                    newest: Time::from_nanos(newest),
                });
            }
        } else {
            // Static, or empty.
            self.held -= frame.history.len();
            frame.history = History::Empty;
        }
        if is_full && frame.history.len() == 0 {
            return Err(no_room());
        }
        self.held += usize::from(frame.history.insert(entry));
        let newest = frame
            .history
            .span()
            .map_or(entry.stamp, |(_, newest)| newest);
        self.held -= frame.history.prune(newest.saturating_sub(keep));
        if self.held > options.transforms_max && frame.history.drop_oldest() {
            self.held -= 1;
        }
        Ok(())
    }

    fn intern(&mut self, name: &str) -> FrameId {
        if let Some(known) = self.ids.get(name) {
            return *known;
        }
        // Frames have a limit far below.
        let id = FrameId::try_from(self.frames.len()).unwrap_or(FrameId::MAX);
        let name: Arc<str> = name.into();
        self.ids.insert(name.clone(), id);
        self.frames.push(Frame {
            name,
            history: History::default(),
            authority: None,
        });
        id
    }

    /// Forgets all that moves.
    pub fn clear(&mut self) {
        for frame in &mut self.frames {
            if let History::Moving(entries) = &frame.history {
                self.held -= entries.len();
                frame.history = History::Empty;
            }
        }
    }

    /// Transforms kept.
    pub fn held(&self) -> usize {
        self.held
    }

    /// The latest time for which every frame between the two is known; `None` if
    /// they all are at any time.
    pub fn latest_common_time(
        &self,
        target: FrameId,
        source: FrameId,
    ) -> Result<Option<i64>, Miss> {
        let earlier = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (one, other) => one.or(other),
        };
        let newest = |frame: FrameId| self.of(frame).history.newest();
        if target == source {
            return Ok(newest(source).and_then(|(stamp, _)| stamp));
        }
        // The source's ancestors, each with the time up to which all is known.
        let mut ancestors = vec![(source, None)];
        let (mut frame, mut common) = (source, None);
        while let Some((stamp, parent)) = newest(frame) {
            (frame, common) = (parent, earlier(common, stamp));
            if frame == target {
                return Ok(common);
            }
            ancestors.push((frame, common));
            if ancestors.len() > DEPTH_MAX {
                return Err(Miss::Circle);
            }
        }
        let (mut frame, mut common) = (target, None);
        for _ in 0..DEPTH_MAX {
            if let Some((_, of_source)) = ancestors.iter().find(|(known, _)| *known == frame) {
                return Ok(earlier(common, *of_source));
            }
            let Some((stamp, parent)) = newest(frame) else {
                return Err(Miss::Apart);
            };
            (frame, common) = (parent, earlier(common, stamp));
        }
        Err(Miss::Circle)
    }

    /// Where the source is in the target at that time.
    pub fn isometry(&self, target: FrameId, source: FrameId, time: i64) -> Result<Isometry, Miss> {
        if target == source {
            return Ok(Isometry::IDENTITY);
        }
        // The source in itself, in its parent, in that one's …
        let mut ancestors = Vec::with_capacity(16);
        let (mut frame, mut isometry) = (source, Isometry::IDENTITY);
        let end_of_source = loop {
            if frame == target {
                return Ok(isometry);
            }
            ancestors.push((frame, isometry));
            if ancestors.len() > DEPTH_MAX {
                return Err(Miss::Circle);
            }
            match self.of(frame).history.at(time) {
                Ok(entry) => (frame, isometry) = (entry.parent, entry.isometry * isometry),
                Err(gap) => break (frame, gap),
            }
        };
        let (mut frame, mut isometry) = (target, Isometry::IDENTITY);
        for _ in 0..DEPTH_MAX {
            if let Some((_, of_source)) = ancestors.iter().find(|(known, _)| *known == frame) {
                return Ok(isometry.inverse() * *of_source);
            }
            match self.of(frame).history.at(time) {
                Ok(entry) => (frame, isometry) = (entry.parent, entry.isometry * isometry),
                Err(gap) => return Err(miss(time, [end_of_source, (frame, gap)])),
            }
        }
        Err(Miss::Circle)
    }
}

/// Neither way up has met the other: because one of them ends at a frame that is
/// not known then, or since both end at a root.
fn miss(time: i64, ends: [(FrameId, Gap); 2]) -> Miss {
    let gap = ends.iter().find(|(_, gap)| *gap != Gap::NoParent);
    gap.map_or(Miss::Apart, |(frame, _)| Miss::Gap {
        frame: *frame,
        time,
    })
}
