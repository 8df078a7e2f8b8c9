//! Where the bytes of a file come from: the disk or the memory. Reads are checked
//! against the length of the file.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::BagError;

/// Problems of a file that are kept in words.
pub(crate) const PROBLEMS_MAX: usize = 20;

/// A file on disk or in memory.
pub(crate) trait Source: Read + Seek + Send {}

impl<S: Read + Seek + Send> Source for S {}

/// Reads exactly `count` bytes of a source that has `bytes`. The caller has bounded
/// `count`, and no more memory is taken than the source has bytes.
pub(crate) fn read_at(
    source: &mut dyn Source,
    bytes: u64,
    path: &Path,
    offset: u64,
    count: u64,
) -> Result<Vec<u8>, BagError> {
    let sought = source.seek(SeekFrom::Start(offset));
    sought.map_err(BagError::io("reading", path))?;
    let known = count.min(bytes.saturating_sub(offset));
    let mut out = vec![0; usize::try_from(known).unwrap_or(0)];
    let read = source.read_exact(&mut out);
    read.map_err(BagError::io("reading", path))?;
    if known < count {
        let source = std::io::Error::from(ErrorKind::UnexpectedEof);
        return Err(BagError::io("reading", path)(source));
    }
    Ok(out)
}
