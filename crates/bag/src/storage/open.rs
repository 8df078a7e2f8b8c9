//! Opens a file of a bag in the format of its first bytes.

use std::fs::File;
use std::io::{Cursor as Memory, Read, Seek};
use std::path::Path;

use pteros::msg::library::InterfaceLibrary;
use pteros::msg::regular_file;

use super::mcap_file::McapStorage;
use super::ros1_file::Ros1File;
use super::sqlite_file::SqliteFile;
use super::whole_compression::{ZSTD_MAGIC, decompress_file};
use super::{Format, StorageFile};
use crate::error::BagError;
use crate::mcap::McapFile;
use crate::source::Source;

/// Size of the longest magic number, SQLite's.
const HEAD_BYTES: u64 = 16;

/// An open file and its format.
pub(crate) struct OpenFile {
    pub file: Box<dyn StorageFile>,
    pub format: Format,
}

/// Opens a file. A compressed one is decompressed into a temporary file.
///
/// # Errors
/// The system's, or the file is no bag. Damage is no error if something can be read.
pub(crate) fn open_file(path: &Path, library: &InterfaceLibrary) -> Result<OpenFile, BagError> {
    let mut file = regular_file::open(path).map_err(BagError::io("opening", path))?;
    let mut bytes = length(&file, path)?;
    let mut head = read_head(&mut file, path)?;
    let mut is_on_disk = true;
    if head.starts_with(&ZSTD_MAGIC) {
        file = decompress_file(file, bytes, path)?;
        bytes = length(&file, path)?;
        head = read_head(&mut file, path)?;
        is_on_disk = false;
    }
    open_source(Box::new(file), bytes, path, &head, is_on_disk, library)
}

/// Opens the content of a file in memory. `path` names it in errors.
///
/// # Errors
/// As [`open_file`].
pub(crate) fn open_bytes(
    content: Vec<u8>,
    path: &Path,
    library: &InterfaceLibrary,
) -> Result<OpenFile, BagError> {
    let bytes = content.len() as u64;
    let head = content.iter().take(16).copied().collect::<Vec<u8>>();
    let source = Box::new(Memory::new(content));
    open_source(source, bytes, path, &head, false, library)
}

fn open_source(
    file: Box<dyn Source>,
    bytes: u64,
    path: &Path,
    head: &[u8],
    is_on_disk: bool,
    library: &InterfaceLibrary,
) -> Result<OpenFile, BagError> {
    let Some(format) = Format::of(head) else {
        let problem = if head.starts_with(b"#ROSBAG V1") {
            "is a bag of ROS 1 in format 1; bring it to format 2 with: rosbag fix"
        } else {
            "is no bag: its first bytes are neither those of MCAP nor of SQLite nor of a bag of ROS 1"
        };
        return Err(BagError::NotABag {
            path: path.to_owned(),
            problem: problem.to_owned(),
        });
    };
    let file: Box<dyn StorageFile> = match format {
        Format::Mcap => {
            let file = McapFile::open(file, bytes, path)?;
            Box::new(McapStorage::new(file, library))
        }
        Format::Sqlite => Box::new(SqliteFile::open(file, bytes, path, is_on_disk)?),
        Format::Ros1 => Box::new(Ros1File::open(file, bytes, path, library)?),
    };
    Ok(OpenFile { file, format })
}

fn length(file: &File, path: &Path) -> Result<u64, BagError> {
    let metadata = file.metadata().map_err(BagError::io("reading", path))?;
    Ok(metadata.len())
}

/// The first bytes of a file.
fn read_head(file: &mut File, path: &Path) -> Result<Vec<u8>, BagError> {
    let mut head = Vec::new();
    let read = file.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
    read.map_err(BagError::io("reading", path))?;
    file.rewind().map_err(BagError::io("reading", path))?;
    Ok(head)
}
