//! Compression of whole files and of single messages, compatible with rosbag2's
//! compression plug-in `zstd`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use zstd::stream::read::Decoder;

use crate::error::BagError;
use crate::mcap::{CHUNK_BYTES_MAX, growth_limit, read_limited};

/// First bytes of a Zstandard frame.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BUFFER_BYTES: usize = 1 << 20;

/// Decompresses a file of a bag into an unlinked temporary file, which the system removes
/// with the last handle. Blocks in the file system.
///
/// # Errors
/// The system's, or the content is no Zstandard, or too large.
pub(super) fn decompress_file(file: File, bytes: u64, path: &Path) -> Result<File, BagError> {
    let damaged = |problem: String| BagError::Damaged {
        path: path.to_owned(),
        offset: 0,
        problem,
    };
    let mut output = unnamed_file()?;
    let mut decoder = Decoder::new(file).map_err(|error| damaged(format!("zstd: {error}")))?;
    let limit = growth_limit(bytes);
    let mut written = 0;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = decoder
            .read(&mut buffer)
            .map_err(|error| damaged(format!("its compressed data: {error}")))?;
        if count == 0 {
            break;
        }
        written += count as u64;
        if written > limit {
            return Err(damaged(format!(
                "it would have more than {limit} bytes decompressed, and has {bytes} compressed"
            )));
        }
        let piece = buffer.get(..count).unwrap_or_default();
        let stored = output.write_all(piece);
        stored.map_err(BagError::io("decompressing", path))?;
    }
    let rewound = output.rewind();
    rewound.map_err(BagError::io("decompressing", path))?;
    Ok(output)
}

/// Creates an unlinked file in the folder for temporary files.
fn unnamed_file() -> Result<File, BagError> {
    let folder = std::env::temp_dir();
    for attempt in 0..1000u32 {
        let path: PathBuf = folder.join(format!("pteros-bag-{}-{attempt}", std::process::id()));
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        match opened {
            Ok(file) => {
                let removed = std::fs::remove_file(&path);
                removed.map_err(BagError::io("removing", &path))?;
                return Ok(file);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(BagError::io("creating", &path)(error)),
        }
    }
    Err(BagError::Invalid(format!(
        "{}: no free name for a temporary file; remove old pteros-bag files",
        folder.display()
    )))
}

/// Decompresses one message.
///
/// # Errors
/// The bytes are no Zstandard, or the message is too large.
pub(crate) fn decompress_message(payload: &[u8]) -> Result<Vec<u8>, String> {
    let decoder = Decoder::with_buffer(payload).map_err(|error| format!("zstd: {error}"))?;
    let limit = growth_limit(payload.len() as u64).min(CHUNK_BYTES_MAX);
    let message = read_limited(decoder, limit).map_err(|problem| format!("zstd: {problem}"))?;
    if message.len() as u64 > limit {
        return Err(format!("more than {limit} bytes"));
    }
    Ok(message)
}
