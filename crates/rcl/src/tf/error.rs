//! tf errors: why a look-up fails, with the chain of frames and what to do.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::time::Time;

/// An edge of the frame tree: a frame, its parent and the times known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameEdge {
    /// The child frame of the edge.
    pub frame: String,
    /// Its parent; `None` at the root of its tree.
    pub parent: Option<String>,
    /// The times of the oldest and the newest transform to the parent.
    ///
    /// `None` for a static transform, or without parent.
    pub span: Option<(Time, Time)>,
    /// The broadcaster: a node, or its gid while the graph does not name it.
    pub authority: Option<String>,
}

impl fmt::Display for FrameEdge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.frame)?;
        let Some(parent) = &self.parent else {
            return Ok(());
        };
        write!(f, " in {parent}")?;
        match self.span {
            None => f.write_str(" (static")?,
            Some((oldest, newest)) if oldest == newest => write!(f, " (at {oldest}")?,
            Some((oldest, newest)) => write!(f, " (from {oldest} to {newest}")?,
        }
        match &self.authority {
            Some(authority) => write!(f, ", by {authority})"),
            None => f.write_str(")"),
        }
    }
}

/// Why a look-up found no transform.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum LookupError {
    #[error("empty frame id: name the {0} frame, for example base_link")]
    EmptyFrameId(&'static str),
    /// No transform names the frame (tf2: LookupException).
    #[error("no transform from \"{source_frame}\" to \"{target}\": there is no frame \"{frame}\"{}", similar_names_text(similar, *known))]
    UnknownFrame {
        /// The target frame.
        target: String,
        source_frame: String,
        /// The unknown frame.
        frame: String,
        /// Frames with a similar name.
        similar: Vec<String>,
        /// The number of known frames.
        known: usize,
    },
    /// The frames are in different trees (tf2: ConnectivityException).
    #[error(
        "no transform from \"{source_frame}\" to \"{target}\": they are not connected. {}. Publish a transform that connects \"{}\" to the other tree, or \"{}\"",
        chains_text(source_chain, target_chain),
        chain_end(source_chain, source_frame),
        chain_end(target_chain, target)
    )]
    NotConnected {
        /// The target frame.
        target: String,
        source_frame: String,
        /// From the source up to the root of its tree.
        source_chain: Vec<FrameEdge>,
        /// From the target up to the root of its tree.
        target_chain: Vec<FrameEdge>,
    },
    /// A frame between the two, or above them in different trees, is unknown at that time
    /// (tf2: ExtrapolationException).
    #[error("no transform from \"{source_frame}\" to \"{target}\" at {time}: {}. {}. {}", time_gap_text(missing, *time), chains_text(source_chain, target_chain), hint(missing, *time, source_chain))]
    Extrapolation {
        /// The target frame.
        target: String,
        source_frame: String,
        /// The requested time.
        time: Time,
        /// The frame that is unknown at that time.
        missing: Box<FrameEdge>,
        /// From the source upwards, as far as needed.
        source_chain: Vec<FrameEdge>,
        /// From the target upwards, as far as needed.
        target_chain: Vec<FrameEdge>,
    },
    /// The frame tree has a cycle.
    #[error(
        "no transform from \"{source_frame}\" to \"{target}\": the frames form a cycle, {}; one of these transforms must not be published",
        cycle_text(chain)
    )]
    Cycle {
        /// The target frame.
        target: String,
        source_frame: String,
        /// The frames of the cycle.
        chain: Vec<FrameEdge>,
    },
    /// The transform did not arrive in time.
    #[error("after {} s: {reason}", waited.as_secs_f64())]
    TimedOut {
        /// How long the look-up waited, in ROS time.
        waited: Duration,
        /// Why the transform is not available.
        reason: Box<LookupError>,
    },
    /// The context was shut down, or ROS time jumped back, during the wait.
    #[error("the wait ended early ({reason_text}): {reason}")]
    Interrupted {
        reason_text: &'static str,
        /// Why the transform is not available.
        reason: Box<LookupError>,
    },
}

pteros_msg::debug_as_display!(LookupError);

impl LookupError {
    /// tf2's exception for this failure, and its text: what programs of ROS 2 know.
    #[doc(hidden)]
    pub fn as_tf2(&self) -> (&'static str, String) {
        match self {
            Self::EmptyFrameId(which) => (
                "InvalidArgumentException",
                format!(
                    "Invalid argument \"\" passed to lookupTransform argument {which}_frame - \
                     in tf2 frame_ids cannot be empty"
                ),
            ),
            Self::UnknownFrame {
                target,
                source_frame,
                frame,
                ..
            } => {
                let which = match frame {
                    frame if frame == target => "target",
                    frame if frame == source_frame => "source",
                    _ => "fixed",
                };
                let text = format!(
                    "\"{frame}\" passed to lookupTransform argument {which}_frame does not exist. "
                );
                ("LookupException", text)
            }
            Self::NotConnected {
                target,
                source_frame,
                ..
            } => (
                "ConnectivityException",
                format!(
                    "Could not find a connection between '{target}' and '{source_frame}' because \
                     they are not part of the same tree.Tf has two or more unconnected trees."
                ),
            ),
            Self::Extrapolation {
                target,
                source_frame,
                time,
                missing,
                ..
            } => (
                "ExtrapolationException",
                format!(
                    "{}, when looking up transform from frame [{source_frame}] to frame [{target}]",
                    tf2_gap_text(missing, *time)
                ),
            ),
            Self::Cycle { .. } => (
                "LookupException",
                "The tf tree is invalid because it contains a loop.".into(),
            ),
            Self::TimedOut { reason, .. } | Self::Interrupted { reason, .. } => reason.as_tf2(),
        }
    }
}

fn tf2_gap_text(missing: &FrameEdge, time: Time) -> String {
    let seconds = |time: Time| {
        let micros = time.as_nanos().div_euclid(1_000);
        let (whole, part) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        format!("{whole}.{part:06}")
    };
    let (oldest, newest) = missing.span.unwrap_or_default();
    let requested = seconds(time);
    if oldest == newest {
        format!(
            "Lookup would require extrapolation at time {requested}, but only time {} is in the \
             buffer",
            seconds(oldest)
        )
    } else if time > newest {
        format!(
            "Lookup would require extrapolation into the future.  Requested time {requested} but \
             the latest data is at time {}",
            seconds(newest)
        )
    } else {
        format!(
            "Lookup would require extrapolation into the past.  Requested time {requested} but \
             the earliest data is at time {}",
            seconds(oldest)
        )
    }
}

fn similar_names_text(similar: &[String], known: usize) -> String {
    match (similar, known) {
        ([], 0) => {
            "; no transform has been received: is any node publishing on /tf or /tf_static?".into()
        }
        ([], known) => format!(" among the {known} known frames; `pteros tf tree` lists them"),
        (similar, _) => format!("; did you mean {}?", similar.join(" or ")),
    }
}

fn chain_text(edges: &[FrameEdge]) -> String {
    let edges: Vec<String> = edges.iter().map(FrameEdge::to_string).collect();
    edges.join(", ")
}

fn chains_text(source_chain: &[FrameEdge], target_chain: &[FrameEdge]) -> String {
    match (source_chain, target_chain) {
        (one, []) | ([], one) => format!("The chain: {}", chain_text(one)),
        _ => format!(
            "Up from the source: {}; up from the target: {}",
            chain_text(source_chain),
            chain_text(target_chain)
        ),
    }
}

fn chain_end<'a>(edges: &'a [FrameEdge], or: &'a str) -> &'a str {
    edges.last().map_or(or, |edge| &edge.frame)
}

fn time_gap_text(edge: &FrameEdge, time: Time) -> String {
    let FrameEdge { frame, span, .. } = edge;
    let parent = edge.parent.as_deref().unwrap_or("its parent");
    match span {
        Some((oldest, _)) if time < *oldest => format!(
            "\"{frame}\" in \"{parent}\" is known from {oldest} on, which is {:.3} s later",
            oldest.since(time).as_secs_f64()
        ),
        Some((_, newest)) => format!(
            "\"{frame}\" in \"{parent}\" is known up to {newest}, which is {:.3} s earlier",
            time.since(*newest).as_secs_f64()
        ),
        None => format!("\"{frame}\" in \"{parent}\" is unknown at that time"),
    }
}

fn hint(edge: &FrameEdge, time: Time, source_chain: &[FrameEdge]) -> &'static str {
    let ends_at_root = source_chain
        .last()
        .is_some_and(|edge| edge.parent.is_none());
    match edge.span {
        _ if ends_at_root => "The frames are in different trees, too: connect them by a transform",
        Some((oldest, _)) if time < oldest => "Request a later time, or increase the cache time",
        _ => "Wait for it (lookup_transform_within), or request the latest (LATEST)",
    }
}

fn cycle_text(edges: &[FrameEdge]) -> String {
    let names: Vec<&str> = edges.iter().map(|edge| edge.frame.as_str()).collect();
    names.join(" in ")
}

/// Why a transform is rejected.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum InvalidTransform {
    /// A frame that is its own parent.
    #[error("frame \"{0}\" in itself: parent and child must differ")]
    SelfParent(String),
    /// The frame ids must not be empty.
    #[error("a transform from \"{child}\" to \"{parent}\": both frame ids must be set")]
    EmptyFrameId {
        /// `child_frame_id`.
        child: String,
        /// `header.frame_id`.
        parent: String,
    },
    /// A frame id that is too long.
    #[error("a frame id of {0} bytes: at most {FRAME_ID_BYTES_MAX}")]
    FrameIdTooLong(usize),
    /// Not a number, or infinite.
    #[error("frame \"{child}\" in \"{parent}\": {part} is not a finite number")]
    NotFinite {
        /// `child_frame_id`.
        child: String,
        /// `header.frame_id`.
        parent: String,
        /// Translation or rotation.
        part: &'static str,
    },
    /// The quaternion is not normalized.
    #[error(
        "frame \"{child}\" in \"{parent}\": the rotation is a quaternion of length {length:.6}; normalise it to 1 (no rotation is x 0, y 0, z 0, w 1)"
    )]
    NotNormalized {
        /// `child_frame_id`.
        child: String,
        /// `header.frame_id`.
        parent: String,
        /// Of the quaternion; 1 is required.
        length: f64,
    },
    /// Older than the cache time (tf2: TF_OLD_DATA).
    #[error(
        "frame \"{child}\" at {time} is older than the cache time: its newest transform is of {newest}; check for different clocks, or simulated time beside real time"
    )]
    TooOld {
        /// `child_frame_id`.
        child: String,
        /// Its stamp.
        time: Time,
        /// The newest one of that frame.
        newest: Time,
    },
    /// The buffer is full.
    #[error("frame \"{child}\": the buffer is full; {limit}")]
    Full {
        /// `child_frame_id`.
        child: String,
        /// Which limit.
        limit: String,
    },
}

pteros_msg::debug_as_display!(InvalidTransform);

/// The longest frame id that is accepted.
pub const FRAME_ID_BYTES_MAX: usize = 1024;
