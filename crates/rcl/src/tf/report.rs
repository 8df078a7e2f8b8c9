//! Frame reports: errors that show the chain of frames, and lists of frames as YAML
//! or Graphviz.

use std::fmt::Write;

use pteros_runtime::rtps::id::Guid;

use pteros_msg::suggest::close_names;

use super::buffer::TransformBuffer;
use super::error::{FrameEdge, LookupError};
use super::history::{FrameId, TransformHistory};
use super::tree::{Authority, DEPTH_MAX, Frame, FrameTree, LookupMiss, without_leading_slash};
use crate::time::Time;

/// State of one frame in a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameInfo {
    /// Its name, parent, time span and broadcaster.
    pub edge: FrameEdge,
    /// Whether its transform is static.
    pub is_static: bool,
    /// Number of transforms kept.
    pub transforms: usize,
}

impl FrameInfo {
    /// Transforms per second over the kept time.
    ///
    /// `None` for static frames and for those with a single transform.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn rate(&self) -> Option<f64> {
        let (oldest, newest) = self.edge.span?;
        let seconds = newest.since(oldest).as_secs_f64();
        (seconds > 0.0).then(|| (self.transforms.saturating_sub(1)) as f64 / seconds)
    }
}

/// The frame tree and the names of publishers, for reports.
pub struct TreeReporter<'t> {
    pub tree: &'t FrameTree,
    pub name_of: Option<&'t dyn Fn(Guid) -> Option<String>>,
}

impl TreeReporter<'_> {
    /// The error of the first frame that does not exist: of target, source and fixed frame.
    pub fn unknown_frame(&self, frames: &[&str]) -> LookupError {
        let names = frames.iter().map(|name| without_leading_slash(name));
        let mut named = names.clone().zip(["target", "source", "fixed"]);
        let unknown = named.find(|(name, _)| self.tree.id_of(name).is_none());
        let (frame, which) = unknown.unwrap_or_default();
        if frame.is_empty() {
            return LookupError::EmptyFrameId(which);
        }
        let known = self.tree.frames();
        let mut names = names.map(String::from);
        LookupError::UnknownFrame {
            target: names.next().unwrap_or_default(),
            source_frame: names.next().unwrap_or_default(),
            frame: frame.into(),
            similar: close_names(frame, known.iter().map(|frame| &*frame.name)),
            known: known.len(),
        }
    }

    pub fn lookup_error(&self, target: FrameId, source: FrameId, miss: LookupMiss) -> LookupError {
        let (from_source, from_target) = self.paths_to_common_ancestor(target, source);
        let target_name = self.tree.frame_by_id(target).name.to_string();
        let source_frame = self.tree.frame_by_id(source).name.to_string();
        let connected = from_source.last() == from_target.last();
        let edges = |path: &[FrameId]| {
            path.iter()
                .map(|id| self.edge_by_id(*id))
                .collect::<Vec<_>>()
        };
        let needed = |path: &[FrameId]| match path {
            [below @ .., _] if connected => edges(below),
            path => edges(path),
        };
        match miss {
            LookupMiss::NoTransformAt {
                above_source,
                above_target,
                time,
            } => {
                // Only transforms below the common ancestor are needed.
                let on_path = |end: Option<FrameId>, path: &[FrameId]| {
                    end.filter(|end| {
                        path.split_last()
                            .is_some_and(|(_, below)| below.contains(end))
                    })
                };
                let missing = on_path(above_target, &from_target)
                    .or_else(|| on_path(above_source, &from_source))
                    .or(above_target)
                    .or(above_source);
                LookupError::Extrapolation {
                    target: target_name,
                    source_frame,
                    time: Time::from_nanos(time),
                    missing: Box::new(self.edge_by_id(missing.unwrap_or(source))),
                    source_chain: needed(&from_source),
                    target_chain: needed(&from_target),
                }
            }
            LookupMiss::Cycle => LookupError::Cycle {
                target: target_name,
                source_frame,
                chain: edges(&self.cycle_from(if from_source.len() > DEPTH_MAX {
                    source
                } else {
                    target
                })),
            },
            LookupMiss::NotConnected => LookupError::NotConnected {
                target: target_name,
                source_frame,
                source_chain: edges(&from_source),
                target_chain: edges(&from_target),
            },
        }
    }

    /// The paths up from both frames, each to their common ancestor or its root, by
    /// the newest parents.
    fn paths_to_common_ancestor(
        &self,
        target: FrameId,
        source: FrameId,
    ) -> (Vec<FrameId>, Vec<FrameId>) {
        let mut from_source = self.ancestors(source);
        let mut from_target = self.ancestors(target);
        let meets = from_source.iter().position(|id| from_target.contains(id));
        if let Some(at) = meets {
            from_source.truncate(at + 1);
            let meeting = from_source.last().copied();
            let end = from_target.iter().position(|id| Some(*id) == meeting);
            from_target.truncate(end.map_or(0, |end| end + 1));
        }
        (from_source, from_target)
    }

    /// A frame and its ancestors; one more than the limit if they form a cycle.
    fn ancestors(&self, frame: FrameId) -> Vec<FrameId> {
        let mut path = vec![frame];
        let mut frame = frame;
        while let Some((_, parent)) = self.tree.frame_by_id(frame).history.newest() {
            path.push(parent);
            frame = parent;
            if path.len() > DEPTH_MAX {
                break;
            }
        }
        path
    }

    fn cycle_from(&self, from: FrameId) -> Vec<FrameId> {
        let mut path: Vec<FrameId> = Vec::new();
        for frame in self.ancestors(from) {
            if let Some(at) = path.iter().position(|known| *known == frame) {
                path.push(frame);
                return path.split_off(at);
            }
            path.push(frame);
        }
        path
    }

    fn edge_by_id(&self, id: FrameId) -> FrameEdge {
        self.edge_of(self.tree.frame_by_id(id))
    }

    fn edge_of(&self, frame: &Frame) -> FrameEdge {
        let parent = frame.history.newest().map(|(_, parent)| parent);
        let times = |(a, b)| (Time::from_nanos(a), Time::from_nanos(b));
        let authority = frame.authority.as_ref().filter(|_| parent.is_some());
        FrameEdge {
            frame: frame.name.to_string(),
            parent: parent.map(|parent| self.tree.frame_by_id(parent).name.to_string()),
            span: frame.history.span().map(times),
            authority: authority.map(|authority| self.authority_name(authority)),
        }
    }

    pub fn authority_name(&self, authority: &Authority) -> String {
        match authority {
            Authority::Named(name) => name.to_string(),
            Authority::Publisher(gid) => {
                let name = self.name_of.and_then(|name_of| name_of(*gid));
                name.unwrap_or_else(|| format!("publisher {gid}"))
            }
        }
    }

    fn frames(&self) -> Vec<FrameInfo> {
        let report = |frame: &Frame| FrameInfo {
            edge: self.edge_of(frame),
            is_static: matches!(frame.history, TransformHistory::Static(_)),
            transforms: frame.history.len(),
        };
        let mut frames: Vec<_> = self.tree.frames().iter().map(report).collect();
        frames.sort_by(|a, b| a.edge.frame.cmp(&b.edge.frame));
        frames
    }
}

impl TransformBuffer {
    /// All frames ever named, by name; roots have no parent.
    pub fn frames(&self) -> Vec<FrameInfo> {
        self.with_reporter(|tree| tree.frames())
    }

    /// All frames with a parent, as written by tf2's `allFramesAsYAML`.
    pub fn frames_yaml(&self) -> String {
        let mut yaml = String::new();
        for frame in self.frames() {
            let Some(parent) = &frame.edge.parent else {
                continue;
            };
            let (oldest, newest) = frame.edge.span.unwrap_or_default();
            let length = newest.since(oldest).as_secs_f64();
            // As tf2 counts: static frames come out as 10 kHz.
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let rate = frame.transforms as f64 / length.max(1e-4);
            let authority = frame.edge.authority.as_deref().unwrap_or_default();
            let name = key(&frame.edge.frame);
            // Writing to a string does not fail.
            let _ = writeln!(
                yaml,
                "{name}:\n  parent: {}\n  broadcaster: {}\n  rate: {rate:.3}\n  \
                 most_recent_transform: {:.6}\n  oldest_transform: {:.6}\n  \
                 buffer_length: {length:.3}",
                quoted(parent),
                quoted(authority),
                newest.as_secs_f64(),
                oldest.as_secs_f64(),
            );
        }
        yaml
    }

    /// All frames as a graph for Graphviz's `dot`, with edges from parent to child.
    pub fn frames_dot(&self) -> String {
        let mut dot = String::from("digraph frames {\n");
        for frame in self.frames() {
            let FrameEdge {
                frame: name,
                parent,
                authority,
                ..
            } = &frame.edge;
            let Some(parent) = parent else {
                let _ = writeln!(dot, "  {name:?};");
                continue;
            };
            let frequency = match (frame.is_static, frame.rate()) {
                (true, _) => "static".into(),
                (false, Some(rate)) => format!("{rate:.1} Hz"),
                (false, None) => "once".into(),
            };
            let label = format!("{}\n{frequency}", authority.as_deref().unwrap_or_default());
            let _ = writeln!(dot, "  {parent:?} -> {name:?} [label={label:?}];");
        }
        dot + "}\n"
    }
}

/// A name as a YAML key, quoted if it would otherwise parse as something else.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    if name.starts_with(begins) && name.chars().all(plain) {
        name.into()
    } else {
        quoted(name)
    }
}

fn quoted(text: &str) -> String {
    if text.chars().any(char::is_control) {
        format!("{text:?}")
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}
