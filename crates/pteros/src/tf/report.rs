//! The frames in words: errors that show the chain, and lists of what is known.

use std::fmt::Write;

use pteros_rmw::rtps::id::Guid;

use super::buffer::{TransformBuffer, nameless};
use super::error::{Link, LookupError};
use super::history::{FrameId, History};
use super::tree::{Authority, DEPTH_MAX, Frame, Miss, Tree, bare};
use crate::clock::Time;
use crate::suggest::close_names;

/// What a buffer knows of one frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameReport {
    /// Its name, its parent, its span and who says so.
    pub link: Link,
    /// Whether it holds at all times.
    pub is_static: bool,
    /// Transforms that are kept.
    pub transforms: usize,
}

impl FrameReport {
    /// Transforms per second over what is kept; `None` for static frames and those
    /// of which only one is kept.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub fn rate(&self) -> Option<f64> {
        let (oldest, newest) = self.link.span?;
        let seconds = newest.since(oldest).as_secs_f64();
        (seconds > 0.0).then(|| (self.transforms.saturating_sub(1)) as f64 / seconds)
    }
}

/// The tree and what gids are called.
pub(super) struct Describe<'t> {
    pub tree: &'t Tree,
    pub name_of: Option<&'t dyn Fn(Guid) -> Option<String>>,
}

impl Describe<'_> {
    pub fn unknown(&self, target: &str, source: &str) -> LookupError {
        if let Some(mistake) = nameless(target, source) {
            return mistake;
        }
        let (target, source) = (bare(target), bare(source));
        let frame = match self.tree.frame(target) {
            None => target,
            Some(_) => source,
        };
        let frames = self.tree.frames();
        LookupError::UnknownFrame {
            target: target.into(),
            source_frame: source.into(),
            frame: frame.into(),
            similar: close_names(frame, frames.iter().map(|frame| &*frame.name)),
            known: frames.len(),
        }
    }

    pub fn miss(&self, target: FrameId, source: FrameId, miss: Miss) -> LookupError {
        let (of_source, of_target) = self.ways(target, source);
        let target_name = self.tree.of(target).name.to_string();
        let source_frame = self.tree.of(source).name.to_string();
        let meet = of_source.last() == of_target.last();
        let links = |way: &[FrameId]| way.iter().map(|id| self.link(*id)).collect::<Vec<_>>();
        let needed = |way: &[FrameId]| links(way.split_last().map_or(&[], |(_, rest)| rest));
        match miss {
            Miss::Gap { frame, time } if meet => LookupError::Extrapolation {
                target: target_name,
                source_frame,
                time: Time::from_nanos(time),
                missing: Box::new(self.link(frame)),
                of_source: needed(&of_source),
                of_target: needed(&of_target),
            },
            Miss::Circle => LookupError::Circle {
                target: target_name,
                source_frame,
                chain: links(&self.circle(if of_source.len() > DEPTH_MAX {
                    source
                } else {
                    target
                })),
            },
            Miss::Apart | Miss::Gap { .. } => LookupError::NotConnected {
                target: target_name,
                source_frame,
                of_source: links(&of_source),
                of_target: links(&of_target),
            },
        }
    }

    /// The ways up from both, each to where they meet or to its root, by the newest
    /// parents.
    fn ways(&self, target: FrameId, source: FrameId) -> (Vec<FrameId>, Vec<FrameId>) {
        let mut of_source = self.ancestors(source);
        let mut of_target = self.ancestors(target);
        let meets = of_source.iter().position(|id| of_target.contains(id));
        if let Some(at) = meets {
            of_source.truncate(at + 1);
            let meeting = of_source.last().copied();
            let end = of_target.iter().position(|id| Some(*id) == meeting);
            of_target.truncate(end.map_or(0, |end| end + 1));
        }
        (of_source, of_target)
    }

    /// A frame and all above it; one more than can be where they go in a circle.
    fn ancestors(&self, frame: FrameId) -> Vec<FrameId> {
        let mut way = vec![frame];
        let mut frame = frame;
        while let Some((_, parent)) = self.tree.of(frame).history.newest() {
            way.push(parent);
            frame = parent;
            if way.len() > DEPTH_MAX {
                break;
            }
        }
        way
    }

    fn circle(&self, from: FrameId) -> Vec<FrameId> {
        let mut way: Vec<FrameId> = Vec::new();
        for frame in self.ancestors(from) {
            if let Some(at) = way.iter().position(|known| *known == frame) {
                way.push(frame);
                return way.split_off(at);
            }
            way.push(frame);
        }
        way
    }

    fn link(&self, id: FrameId) -> Link {
        self.link_of(self.tree.of(id))
    }

    fn link_of(&self, frame: &Frame) -> Link {
        let parent = frame.history.newest().map(|(_, parent)| parent);
        let times = |(a, b)| (Time::from_nanos(a), Time::from_nanos(b));
        let authority = frame.authority.as_ref().filter(|_| parent.is_some());
        Link {
            frame: frame.name.to_string(),
            parent: parent.map(|parent| self.tree.of(parent).name.to_string()),
            span: frame.history.span().map(times),
            authority: authority.map(|authority| self.authority(authority)),
        }
    }

    pub fn authority(&self, authority: &Authority) -> String {
        match authority {
            Authority::Named(name) => name.to_string(),
            Authority::Publisher(gid) => {
                let name = self.name_of.and_then(|name_of| name_of(*gid));
                name.unwrap_or_else(|| format!("publisher {gid}"))
            }
        }
    }

    fn frames(&self) -> Vec<FrameReport> {
        let report = |frame: &Frame| FrameReport {
            link: self.link_of(frame),
            is_static: matches!(frame.history, History::Static(_)),
            transforms: frame.history.len(),
        };
        let mut frames: Vec<_> = self.tree.frames().iter().map(report).collect();
        frames.sort_by(|a, b| a.link.frame.cmp(&b.link.frame));
        frames
    }
}

impl TransformBuffer {
    /// All frames that were ever named, by name; roots have no parent.
    pub fn frames(&self) -> Vec<FrameReport> {
        self.with_tree(|tree| tree.frames())
    }

    /// All frames that have a parent, as tf2's `allFramesAsYAML` writes them.
    pub fn frames_yaml(&self) -> String {
        let mut yaml = String::new();
        for frame in self.frames() {
            let Some(parent) = &frame.link.parent else {
                continue;
            };
            let (oldest, newest) = frame.link.span.unwrap_or_default();
            let length = newest.since(oldest).as_secs_f64();
            // As tf2 counts: static frames come out as 10 kHz.
            #[expect(clippy::cast_precision_loss, reason = "a rate")]
            let rate = frame.transforms as f64 / length.max(1e-4);
            let authority = frame.link.authority.as_deref().unwrap_or_default();
            let name = key(&frame.link.frame);
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

    /// All frames as a graph for Graphviz's `dot`, an arrow from parent to child.
    pub fn frames_dot(&self) -> String {
        let mut dot = String::from("digraph frames {\n");
        for frame in self.frames() {
            let Link {
                frame: name,
                parent,
                authority,
                ..
            } = &frame.link;
            let Some(parent) = parent else {
                let _ = writeln!(dot, "  {name:?};");
                continue;
            };
            let how = match (frame.is_static, frame.rate()) {
                (true, _) => "static".into(),
                (false, Some(rate)) => format!("{rate:.1} Hz"),
                (false, None) => "once".into(),
            };
            let label = format!("{}\n{how}", authority.as_deref().unwrap_or_default());
            let _ = writeln!(dot, "  {parent:?} -> {name:?} [label={label:?}];");
        }
        dot + "}\n"
    }
}

/// A name as a key of YAML: as it is, unless it would read as something else.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    match name.starts_with(begins) && name.chars().all(plain) {
        true => name.into(),
        false => quoted(name),
    }
}

fn quoted(text: &str) -> String {
    match text.chars().any(char::is_control) {
        true => format!("{text:?}"),
        false => format!("'{}'", text.replace('\'', "''")),
    }
}
