//! Outcome of one file, and the reason for it.

use std::fmt;
use std::path::PathBuf;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// A launch file in XML, YAML or Python.
    Launch,
    /// A YAML file with `ros__parameters`.
    Parameters,
    /// A `.msg`, `.srv`, `.action` or `.idl` file of a package.
    Definition,
}

impl FileKind {
    /// All kinds, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Launch, Self::Parameters, Self::Definition];

    /// The plural, for headings.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Launch => "launch files",
            Self::Parameters => "parameter files",
            Self::Definition => "interface definitions",
        }
    }
}

/// The result of reading a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is read without a fault.
    Accepted,
    /// Its only faults name things that are not in the folders: packages, files that a
    /// build makes, arguments without a default.
    NeedsMore(Reason),
    /// ROS 2 refuses it as well, for this reason.
    RefusedByRos2(Reason),
    /// It is a file of ROS 1.
    Ros1,
    /// It is not read: a Python launch file, or a definition outside of a package.
    LeftOut(Reason),
    /// It is refused, and no rule of ROS 2 that is known here refuses it.
    Refused(Reason),
}

impl Outcome {
    /// The reason, if the outcome has one.
    pub const fn reason(&self) -> Option<Reason> {
        match self {
            Self::Accepted | Self::Ros1 => None,
            Self::NeedsMore(reason)
            | Self::RefusedByRos2(reason)
            | Self::LeftOut(reason)
            | Self::Refused(reason) => Some(*reason),
        }
    }

    /// One word for JSON.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::NeedsMore(_) => "needs_more",
            Self::RefusedByRos2(_) => "refused_by_ros2",
            Self::Ros1 => "ros1",
            Self::LeftOut(_) => "left_out",
            Self::Refused(_) => "refused",
        }
    }
}

/// A class of reasons. Its text completes "because …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason(pub &'static str);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// One file and its outcome.
#[derive(Clone, Debug)]
pub struct CheckedFile {
    /// Index of its repository.
    pub repository: usize,
    /// What it is.
    pub kind: FileKind,
    /// Its path within the repository.
    pub path: PathBuf,
    pub outcome: Outcome,
    /// All faults, in words; empty if there is none.
    pub faults: Vec<String>,
}
