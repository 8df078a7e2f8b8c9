//! What a library's file says of its components, read without loading it.

use std::fs::File;
use std::path::Path;

use pteros::component::{FINGERPRINT, MAGIC, SECTION, SYMBOL};

use crate::elf::Elf;
use crate::error::LibraryError;

/// The library that programs and components share.
pub(crate) const SHARED_LIBRARY: &str = "libpteros_dylib.so";

/// What one crate in a library registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryRecord {
    /// The build of Pteros it was compiled with.
    pub fingerprint: String,
    /// The symbol of its table of constructors.
    pub symbol: String,
    /// The crate's package.
    pub package: String,
    /// Its classes, `package::Class`.
    pub classes: Vec<String>,
}

impl LibraryRecord {
    /// Reads one record and what follows it.
    fn read(text: &str) -> Option<(Self, &str)> {
        let (record, rest) = text.strip_prefix(MAGIC)?.split_once("\n\n")?;
        let mut lines = record.lines().map(String::from);
        let (fingerprint, symbol, package) = (lines.next()?, lines.next()?, lines.next()?);
        let record = Self {
            fingerprint,
            symbol,
            package,
            classes: lines.collect(),
        };
        let is_sound = record.symbol.starts_with(SYMBOL) && !record.classes.is_empty();
        is_sound.then_some((record, rest))
    }
}

/// What the components of a library's file are, whether or not this program can
/// load them. Reads the file, loads nothing.
///
/// # Errors
/// [`LibraryError::Read`], [`LibraryError::NotALibrary`],
/// [`LibraryError::NoComponents`].
pub fn inspect(library: &Path) -> Result<Vec<LibraryRecord>, LibraryError> {
    Ok(Inspected::of(library)?.records)
}

/// A library's records and how it was linked.
pub(crate) struct Inspected {
    pub(crate) records: Vec<LibraryRecord>,
    shares_pteros: bool,
}

impl Inspected {
    pub(crate) fn of(library: &Path) -> Result<Self, LibraryError> {
        let file = File::open(library).map_err(|source| LibraryError::Read {
            library: library.into(),
            source,
        })?;
        let elf = Elf::read(&file).ok_or_else(|| LibraryError::NotALibrary(library.into()))?;
        let section = elf.section(SECTION).unwrap_or_default();
        // Records of several crates may be apart by alignment.
        let text = String::from_utf8_lossy(&section).replace('\0', "");
        let mut records = Vec::new();
        let mut rest = text.as_str();
        while let Some((record, after)) = LibraryRecord::read(rest) {
            records.push(record);
            rest = after;
        }
        if records.is_empty() || !rest.is_empty() {
            return Err(LibraryError::NoComponents(library.into()));
        }
        Ok(Self {
            records,
            shares_pteros: elf.needs(SHARED_LIBRARY),
        })
    }

    /// Whether this program may load it.
    pub(crate) fn check(&self, library: &Path) -> Result<(), LibraryError> {
        let other = self.records.iter().find(|r| r.fingerprint != FINGERPRINT);
        if let Some(record) = other {
            return Err(LibraryError::OtherBuild {
                library: library.into(),
                built_with: record.fingerprint.clone(),
                program: FINGERPRINT.into(),
            });
        }
        match self.shares_pteros {
            true => Ok(()),
            false => Err(LibraryError::OwnCopy(library.into())),
        }
    }
}
