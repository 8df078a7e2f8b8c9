//! Errors of launch files with their source location.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A position in a file. Lines and columns count from 1, columns in characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file, as given by the user.
    pub file: Arc<Path>,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{}:{line}:{column}", file.display())
    }
}

impl fmt::Debug for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The cause of an error, if it lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownCause {
    /// An error that has been recorded.
    RecordedError,
    /// A Python launch file that was left out.
    LeftOutFile(String),
}

/// One error: location, value and accepted values.
#[derive(Clone, PartialEq, Eq)]
pub struct LaunchFileError {
    /// The location; none if no file is at fault.
    pub location: Option<SourceLocation>,
    /// The problem and the way to fix it.
    pub message: String,
    /// The cause, if it lies elsewhere.
    pub(crate) cause: Option<KnownCause>,
}

pteros::msg::debug_as_display!(LaunchFileError);

impl LaunchFileError {
    /// An error at a location.
    pub fn at(location: &SourceLocation, message: impl Into<String>) -> Self {
        Self {
            location: Some(location.clone()),
            message: message.into(),
            cause: None,
        }
    }

    /// An error without a location.
    pub fn without_location(message: impl Into<String>) -> Self {
        Self {
            location: None,
            message: message.into(),
            cause: None,
        }
    }
}

impl fmt::Display for LaunchFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.location {
            Some(location) => write!(f, "{location}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for LaunchFileError {}

/// Largest number of errors that are kept. A file with more reports its first ones.
pub const ERRORS_MAX: usize = 50;

/// All errors in the order of their detection, at most [`ERRORS_MAX`]. The rest is
/// counted.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct LaunchFileErrors {
    list: Vec<LaunchFileError>,
    more: usize,
    /// Python launch files that were left out, and the parts that need a value of
    /// theirs. They are no errors.
    pub(crate) left_out: Vec<String>,
}

pteros::msg::debug_as_display!(LaunchFileErrors);

impl LaunchFileErrors {
    /// Adds an error, unless it is a duplicate or the consequence of something that
    /// has been reported already.
    pub fn push(&mut self, error: LaunchFileError) {
        if let Some(KnownCause::LeftOutFile(file)) = &error.cause {
            let note = format!("{error}; {file}, which was left out, might set that");
            if !self.left_out.contains(&note) {
                self.left_out.push(note);
            }
            return;
        }
        if error.cause.is_some() || self.list.contains(&error) {
            return;
        }
        if self.list.len() < ERRORS_MAX {
            self.list.push(error)
        } else {
            self.more += 1
        }
    }

    /// Returns a success, or records the error.
    pub fn ok_or_record<T>(&mut self, result: Result<T, LaunchFileError>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Whether there is no error.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The errors.
    pub fn iter(&self) -> impl Iterator<Item = &LaunchFileError> {
        self.list.iter()
    }

    /// Sorts by file and line. Errors without a location come last.
    pub fn sort(&mut self) {
        let location = |error: &LaunchFileError| (error.location.is_none(), error.location.clone());
        self.list.sort_by_key(location);
    }

    /// Number of errors beyond the limit.
    pub fn more(&self) -> usize {
        self.more
    }
}

impl From<LaunchFileError> for LaunchFileErrors {
    fn from(error: LaunchFileError) -> Self {
        Self {
            list: vec![error],
            ..Self::default()
        }
    }
}

impl fmt::Display for LaunchFileErrors {
    /// Writes one line per error.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.list.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{error}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for LaunchFileErrors {}
