//! Byte source of a file: disk or memory. Reads are checked against the file's length.

use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::BagError;

/// Problems of a file that are described.
pub(crate) const PROBLEMS_MAX: usize = 20;

/// A file on disk or in memory.
pub(crate) trait Source: Read + Seek + Send {}

impl<S: Read + Seek + Send> Source for S {}

/// Reads exactly `count` bytes of a source of `bytes`. The caller has bounded `count`.
/// Allocates no more than the source has.
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
