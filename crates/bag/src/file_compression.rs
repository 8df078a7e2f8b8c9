//! Compression of a complete file. After a crash, exactly one copy is read.
//!
//! The compressed file has a temporary name until it is on disk. Then it is renamed, and
//! the uncompressed file is removed. Between both steps two complete copies exist, and a
//! reader uses the uncompressed one.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::error::BagError;
use crate::file_store::unless_missing;
use crate::mcap::compress_stream;

/// Extension of compressed files.
pub(crate) const COMPRESSED_ENDING: &str = "zstd";
/// Extension of an incomplete compressed file, which is never part of a bag.
const PARTIAL_ENDING: &str = "zstd.part";

/// Replaces a complete file by its compressed form, and returns the new path. Blocks in
/// the file system.
///
/// # Errors
/// The system's. The original file remains, and the partial one is removed.
pub(crate) fn compress_file(path: &Path) -> Result<PathBuf, BagError> {
    let (new, partial) = (
        with_ending(path, COMPRESSED_ENDING),
        with_ending(path, PARTIAL_ENDING),
    );
    if let Err(error) = compress_into(path, &partial) {
        // The first error is the one to report.
        let _ = std::fs::remove_file(&partial);
        return Err(error);
    }
    std::fs::rename(&partial, &new).map_err(BagError::io("renaming", &partial))?;
    std::fs::remove_file(path).map_err(BagError::io("removing", path))?;
    Ok(new)
}

fn compress_into(path: &Path, partial: &Path) -> Result<(), BagError> {
    let source = File::open(path).map_err(BagError::io("opening", path))?;
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(partial);
    let output = opened.map_err(BagError::io("creating", partial))?;
    let output = compress_stream(source, output).map_err(BagError::io("compressing", path))?;
    let synced = unless_missing(output.sync_data());
    synced.map_err(BagError::io("writing", partial))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;

    #[test]
    fn a_compression_that_fails_leaves_the_file_alone() {
        let folder = Folder::new("compression");
        let file = folder.join("a.mcap");
        // A folder opens like a file, and reading it fails.
        std::fs::create_dir(&file).unwrap();
        compress_file(&file).unwrap_err();
        let names = || {
            let entries = std::fs::read_dir(&folder).unwrap();
            let names = entries.map(|entry| entry.unwrap().file_name());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(), ["a.mcap"]);
        std::fs::remove_dir(&file).unwrap();
        std::fs::write(&file, [7; 5000]).unwrap();
        assert_eq!(compress_file(&file).unwrap(), folder.join("a.mcap.zstd"));
        assert_eq!(names(), ["a.mcap.zstd"]);
    }
}
