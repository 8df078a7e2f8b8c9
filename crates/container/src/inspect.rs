//! Inspection of component libraries: reads the component records of a file without
//! loading it.

use std::fs::File;
use std::path::Path;

use pteros::component::{FINGERPRINT, MAGIC, SECTION, SYMBOL_PREFIX};

use crate::elf::{Elf, ElfMachine};
use crate::error::LibraryError;

/// The shared library that programs and components both link.
pub(crate) const SHARED_LIBRARY: &str = "libpteros_dylib.so";

/// The component record of one crate in a library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryRecord {
    /// Fingerprint of the Pteros build that it was compiled with.
    pub fingerprint: String,
    /// Symbol of its constructor table.
    pub symbol: String,
    /// The crate's package.
    pub package: String,
    /// Its classes, `package::Class`.
    pub classes: Vec<String>,
}

impl LibraryRecord {
    /// Reads one record. Returns it and the rest of the text.
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
        let is_sound = record.symbol.starts_with(SYMBOL_PREFIX) && !record.classes.is_empty();
        is_sound.then_some((record, rest))
    }
}

/// The component records of a library file, whether or not this program can load
/// it. Reads the file without loading it.
///
/// # Errors
/// [`LibraryError::Read`], [`LibraryError::NotALibrary`],
/// [`LibraryError::NoComponents`].
pub fn inspect(library: &Path) -> Result<Vec<LibraryRecord>, LibraryError> {
    Ok(LibraryInspection::read(library)?.records)
}

/// The records of a library, and whether it shares Pteros.
pub(crate) struct LibraryInspection {
    pub(crate) records: Vec<LibraryRecord>,
    shares_pteros: bool,
    machine: ElfMachine,
}

impl LibraryInspection {
    pub(crate) fn read(library: &Path) -> Result<Self, LibraryError> {
        let file = File::open(library).map_err(|source| LibraryError::Read {
            library: library.into(),
            source,
        })?;
        let elf = Elf::read(&file).ok_or_else(|| LibraryError::NotALibrary(library.into()))?;
        let section = elf.section(SECTION).unwrap_or_default();
        // Alignment may separate the records of several crates.
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
            machine: elf.machine(),
        })
    }

    /// Whether this program can load the library.
    pub(crate) fn check(&self, library: &Path) -> Result<(), LibraryError> {
        if let Some(own) = ElfMachine::own()
            && own != self.machine
        {
            return Err(LibraryError::OtherMachine {
                library: library.into(),
                built_for: self.machine.to_string(),
                program: own.to_string(),
            });
        }
        let other = self.records.iter().find(|r| r.fingerprint != FINGERPRINT);
        if let Some(record) = other {
            return Err(LibraryError::BuildMismatch {
                library: library.into(),
                built_with: record.fingerprint.clone(),
                program: FINGERPRINT.into(),
            });
        }
        if self.shares_pteros {
            Ok(())
        } else {
            Err(LibraryError::StaticPteros(library.into()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_another_machine_is_named_before_its_build() {
        let own = std::env::current_exe().expect("the test's own program");
        let mut bytes = std::fs::read(own).expect("its bytes");
        let machine = |bytes: &Vec<u8>| Elf::read(bytes).expect("ELF").machine();
        let inspection = |bytes: &Vec<u8>| LibraryInspection {
            records: Vec::new(),
            shares_pteros: true,
            machine: machine(bytes),
        };
        let path = Path::new("libparts.so");
        inspection(&bytes).check(path).expect("loadable");
        let other: u16 = if cfg!(target_arch = "aarch64") {
            62
        } else {
            183
        };
        bytes[18..20].copy_from_slice(&other.to_ne_bytes());
        let error = inspection(&bytes).check(path).expect_err("another machine");
        let text = error.to_string();
        assert!(text.starts_with("libparts.so is for "), "{text}");
        assert!(text.contains(std::env::consts::ARCH), "{text}");
    }
}
