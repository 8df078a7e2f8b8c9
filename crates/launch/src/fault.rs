//! What is wrong with a launch file, and where.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A place in a file; lines and columns are counted from 1, columns in
/// characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file, as it was named.
    pub file: Arc<Path>,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column } = self;
        write!(f, "{}:{line}:{column}", file.display())
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One thing that is wrong: the place, the value, and what is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where; none where no file is to blame.
    pub place: Option<Place>,
    /// What, and the way out.
    pub message: String,
}

impl Fault {
    /// A fault at a place.
    pub fn at(place: &Place, message: impl Into<String>) -> Self {
        Self {
            place: Some(place.clone()),
            message: message.into(),
        }
    }

    /// A fault that no file is to blame for.
    pub fn nowhere(message: impl Into<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Fault {}

/// How many faults are told of; a file that is wrong throughout tells of its
/// beginning.
pub const FAULTS_MAX: usize = 50;

/// Everything that is wrong, in the order it was met; at most [`FAULTS_MAX`], the
/// rest is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    list: Vec<Fault>,
    more: usize,
}

impl Faults {
    /// Adds one; a repetition is left out.
    pub fn push(&mut self, fault: Fault) {
        if self.list.contains(&fault) {
            return;
        }
        match self.list.len() < FAULTS_MAX {
            true => self.list.push(fault),
            false => self.more += 1,
        }
    }

    /// Keeps a success, remembers a failure.
    pub fn keep<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.push(fault)).ok()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The faults.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        self.list.iter()
    }

    /// Puts them in the order of files and lines; those without place come last.
    pub fn sort(&mut self) {
        let place = |fault: &Fault| (fault.place.is_none(), fault.place.clone());
        self.list.sort_by_key(place);
    }

    /// How many there were beyond the limit.
    pub fn more(&self) -> usize {
        self.more
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self {
            list: vec![fault],
            more: 0,
        }
    }
}

impl fmt::Display for Faults {
    /// A line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{fault}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for Faults {}
