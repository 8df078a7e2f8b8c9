//! Names of stores and of their files, and what lies in a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::file::{Contents, io_error, read};

/// How files of stores end.
pub const FILE_EXTENSION: &str = "redb";

/// The longest file name before its ending; of longer ones the rest becomes a
/// hash.
pub const NAME_BYTES_MAX: usize = 200;

/// The name of a publisher's store if it is given none: the same after every
/// restart, another for each domain, node and topic.
pub fn default_name(domain_id: u32, node: &str, topic: &str) -> String {
    format!("{domain_id}{node}:{topic}")
}

/// The file of that name: slashes become `%`, what else is no letter, digit
/// or one of `._-:` becomes `=` and its number.
///
/// # Errors
/// [`StoreError::Name`] for an empty name.
pub fn file_name(name: &str) -> Result<String, StoreError> {
    if name.trim().is_empty() {
        return Err(StoreError::Name {
            name: name.into(),
            reason: "it is empty",
        });
    }
    let mut file = String::new();
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'/' => file.push('%'),
            // No hidden file.
            b'.' if at > 0 => file.push('.'),
            b'_' | b'-' | b':' => file.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => file.push(char::from(byte)),
            _ => file.push_str(&format!("={byte:02x}")),
        }
    }
    if file.len() > NAME_BYTES_MAX {
        let hash = fnv1a(name.as_bytes());
        file.truncate(NAME_BYTES_MAX - 17);
        file.push_str(&format!("~{hash:016x}"));
    }
    Ok(format!("{file}.{FILE_EXTENSION}"))
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// One file of a folder of stores.
#[derive(Debug)]
pub struct Listed {
    /// The file.
    pub path: PathBuf,
    /// Its size, bytes.
    pub file_bytes: u64,
    /// What it holds, or why that cannot be told.
    pub contents: Result<Contents, StoreError>,
}

/// The stores of a folder, by file name. A folder that does not exist has
/// none.
///
/// # Errors
/// [`StoreError::Io`] if the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Listed>, StoreError> {
    let failed = |e| io_error(folder, "list it", e, "check the rights of the folder");
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed)?,
    };
    let mut stores = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        if path.extension().is_some_and(|e| e == FILE_EXTENSION) {
            stores.push(Listed {
                file_bytes: entry.metadata().map_err(failed)?.len(),
                contents: read(&path),
                path,
            });
        }
    }
    stores.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(stores)
}

/// Removes a store, damaged or not.
///
/// # Errors
/// [`StoreError::Locked`] while a publisher has it open, [`StoreError::Io`]
/// if it cannot be removed.
pub fn clear(path: &Path) -> Result<(), StoreError> {
    if let Err(error @ (StoreError::Locked { .. } | StoreError::Io { .. })) = read(path) {
        return Err(error);
    }
    fs::remove_file(path).map_err(|e| io_error(path, "remove it", e, "check the rights"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_files_that_stay_in_their_folder() {
        let name = default_name(42, "/arm/driver", "/arm/state");
        assert_eq!(file_name(&name).unwrap(), "42%arm%driver:%arm%state.redb");
        assert_eq!(file_name("../a b%").unwrap(), "=2e.%a=20b=25.redb");
        assert!(file_name(" ").is_err());
        let long = "x".repeat(300);
        let file = file_name(&long).unwrap();
        assert_eq!(file.len(), NAME_BYTES_MAX + 5);
        assert_ne!(file, file_name(&format!("{long}y")).unwrap());
    }
}
