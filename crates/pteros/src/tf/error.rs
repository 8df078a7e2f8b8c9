//! Why there is no transform, with the chain of frames and the way out.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::clock::Time;
use pteros_rmw::error::PublishError;

/// One frame on the way, as it is known at the moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// The frame.
    pub frame: String,
    /// Its parent; `None` where its tree ends.
    pub parent: Option<String>,
    /// The oldest and the newest transform to the parent; `None` where it holds at
    /// all times, or there is no parent.
    pub span: Option<(Time, Time)>,
    /// Who says so: a node, or its gid while the graph has no name for it.
    pub authority: Option<String>,
}

impl fmt::Display for Link {
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

/// Why a transform cannot be told.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum LookupError {
    /// A frame without a name.
    #[error("a frame without a name: give the {0} frame's, as base_link")]
    NoName(&'static str),
    /// Nobody has said anything of a frame.
    #[error("no transform from \"{source_frame}\" to \"{target}\": there is no frame \"{frame}\"{}", near(similar, *known))]
    UnknownFrame {
        /// Where to.
        target: String,
        /// Where from.
        source_frame: String,
        /// The one that is not known.
        frame: String,
        /// Frames that are called nearly so.
        similar: Vec<String>,
        /// How many frames are known.
        known: usize,
    },
    /// The frames are in different trees.
    #[error(
        "no transform from \"{source_frame}\" to \"{target}\": they are not connected. {}. Somebody must say where \"{}\" is in the other tree, or \"{}\"",
        chains(of_source, of_target),
        end(of_source, source_frame),
        end(of_target, target)
    )]
    NotConnected {
        /// Where to.
        target: String,
        /// Where from.
        source_frame: String,
        /// From the source up to the root of its tree.
        of_source: Vec<Link>,
        /// From the target up to the root of its tree.
        of_target: Vec<Link>,
    },
    /// A frame between the two is not known at that time.
    #[error("no transform from \"{source_frame}\" to \"{target}\" at {time}: {}. {}. {}", outside(missing, *time), chains(of_source, of_target), way_out(missing, *time))]
    Extrapolation {
        /// Where to.
        target: String,
        /// Where from.
        source_frame: String,
        /// The time that was asked for.
        time: Time,
        /// The frame that is not known then.
        missing: Box<Link>,
        /// From the source upwards, as far as is needed.
        of_source: Vec<Link>,
        /// From the target upwards, as far as is needed.
        of_target: Vec<Link>,
    },
    /// Frames are their own ancestors.
    #[error(
        "no transform from \"{source_frame}\" to \"{target}\": the frames go round in a circle, {}; one of these transforms must not be sent",
        circle(chain)
    )]
    Circle {
        /// Where to.
        target: String,
        /// Where from.
        source_frame: String,
        /// The circle.
        chain: Vec<Link>,
    },
    /// It did not come in time.
    #[error("after {} s: {reason}", waited.as_secs_f64())]
    TimedOut {
        /// How long was waited, ROS time.
        waited: Duration,
        /// Why there is none yet.
        reason: Box<LookupError>,
    },
    /// The context was shut down, or ROS time went back, while it was waited for.
    #[error("waiting ended before its time ({why}): {reason}")]
    Interrupted {
        /// What happened.
        why: &'static str,
        /// Why there is none yet.
        reason: Box<LookupError>,
    },
}

fn near(similar: &[String], known: usize) -> String {
    match (similar, known) {
        ([], 0) => {
            "; no transform has come at all: is anybody publishing on /tf or /tf_static?".into()
        }
        ([], known) => format!(" among the {known} that are known; `pteros tf tree` lists them"),
        (similar, _) => format!("; did you mean {}?", similar.join(" or ")),
    }
}

fn chain(links: &[Link]) -> String {
    let links: Vec<String> = links.iter().map(Link::to_string).collect();
    links.join(", ")
}

fn chains(of_source: &[Link], of_target: &[Link]) -> String {
    match (of_source, of_target) {
        (one, []) | ([], one) => format!("The chain: {}", chain(one)),
        _ => format!(
            "Up from the source: {}; up from the target: {}",
            chain(of_source),
            chain(of_target)
        ),
    }
}

fn end<'a>(links: &'a [Link], or: &'a str) -> &'a str {
    links.last().map_or(or, |link| &link.frame)
}

fn outside(link: &Link, time: Time) -> String {
    let Link { frame, span, .. } = link;
    let parent = link.parent.as_deref().unwrap_or("its parent");
    match span {
        Some((oldest, _)) if time < *oldest => format!(
            "\"{frame}\" in \"{parent}\" is known from {oldest} on, which is {:.3} s later",
            oldest.since(time).as_secs_f64()
        ),
        Some((_, newest)) => format!(
            "\"{frame}\" in \"{parent}\" is known up to {newest}, which is {:.3} s earlier",
            time.since(*newest).as_secs_f64()
        ),
        None => format!("\"{frame}\" in \"{parent}\" is not known then"),
    }
}

fn way_out(link: &Link, time: Time) -> &'static str {
    match link.span {
        Some((oldest, _)) if time < oldest => "Ask for a later time, or keep transforms for longer",
        _ => "Wait for it (lookup_within), or ask for the latest (LATEST)",
    }
}

fn circle(links: &[Link]) -> String {
    let names: Vec<&str> = links.iter().map(|link| link.frame.as_str()).collect();
    names.join(" in ")
}

/// Why a transform is not taken.
#[derive(Clone, PartialEq, Debug, Error)]
#[non_exhaustive]
pub enum TransformRefused {
    /// A frame in itself.
    #[error("frame \"{0}\" in itself: parent and child must differ")]
    Itself(String),
    /// A frame without a name.
    #[error("a transform from \"{child}\" to \"{parent}\": both frames must have a name")]
    NoName {
        /// `child_frame_id`.
        child: String,
        /// `header.frame_id`.
        parent: String,
    },
    /// A name that no frame should have.
    #[error("a frame's name of {0} bytes: at most {NAME_BYTES_MAX}")]
    LongName(usize),
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
    /// A quaternion that is no rotation.
    #[error(
        "frame \"{child}\" in \"{parent}\": the rotation is a quaternion of length {length:.6}; normalise it to 1 (no rotation is x 0, y 0, z 0, w 1)"
    )]
    NotNormalized {
        /// `child_frame_id`.
        child: String,
        /// `header.frame_id`.
        parent: String,
        /// Its length.
        length: f64,
    },
    /// Older than what is kept.
    #[error(
        "frame \"{child}\" at {time} is older than what is kept: its newest transform is of {newest}. A clock that differs, or simulated time beside real time?"
    )]
    Old {
        /// `child_frame_id`.
        child: String,
        /// Its stamp.
        time: Time,
        /// The newest one of that frame.
        newest: Time,
    },
    /// There is no room for a new frame.
    #[error("frame \"{child}\": there is no room for it; {limit}")]
    Full {
        /// `child_frame_id`.
        child: String,
        /// Which limit.
        limit: String,
    },
}

/// The longest name of a frame that is taken.
pub(super) const NAME_BYTES_MAX: usize = 1024;

/// Why transforms are not sent.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BroadcastError {
    /// Readers would refuse it.
    #[error(transparent)]
    Refused(#[from] TransformRefused),
    /// It could not be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
}
