//! Compression of chunks: none, LZ4 frames or Zstandard, all in Rust.
//!
//! Decompression stops at the size that the chunk announces, and a chunk that
//! announces more than [`CHUNK_BYTES_MAX`] is refused. So a small file cannot fill the
//! memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::str::FromStr;

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, FrameCompressor, compress_to_vec};

/// The largest chunk that is read: 512 MiB. Writers use some megabytes, and one message
/// may be larger than a chunk.
pub(crate) const CHUNK_BYTES_MAX: u64 = 512 << 20;
/// Bytes that are reserved before the first byte is there.
const RESERVED_MAX: u64 = 8 << 20;

/// How the chunks of a bag are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As they are; the fastest.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard, at its fastest level.
    Zstd,
}

impl Compression {
    /// The name in a file: empty, `lz4` or `zstd`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub(crate) fn of_name(name: &str) -> Result<Self, String> {
        match name {
            "" | "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            other => Err(format!(
                "a chunk with compression {other:?}; Pteros reads none, lz4 and zstd"
            )),
        }
    }

    pub(crate) fn compress(self, data: &[u8]) -> Result<Vec<u8>, String> {
        match self {
            Self::None => Ok(data.to_vec()),
            Self::Lz4 => {
                let mut encoder = FrameEncoder::new(Vec::with_capacity(data.len() / 2));
                let written = encoder.write_all(data).map_err(|error| error.to_string());
                written.and_then(|()| encoder.finish().map_err(|error| error.to_string()))
            }
            Self::Zstd => Ok(compress_to_vec(data, CompressionLevel::Fastest)),
        }
    }

    /// Decompresses to exactly `size` bytes.
    pub(crate) fn decompress(self, data: Vec<u8>, size: u64) -> Result<Vec<u8>, String> {
        if size > CHUNK_BYTES_MAX {
            return Err(format!(
                "a chunk that announces {size} bytes; at most {CHUNK_BYTES_MAX} are read"
            ));
        }
        let out = match self {
            Self::None => data,
            Self::Lz4 => read_limited(FrameDecoder::new(data.as_slice()), size)?,
            Self::Zstd => {
                let decoder = StreamingDecoder::new(data.as_slice());
                read_limited(decoder.map_err(|error| format!("zstd: {error}"))?, size)?
            }
        };
        if out.len() as u64 == size {
            return Ok(out);
        }
        let length = out.len();
        Err(format!(
            "a chunk that announces {size} bytes and has {}",
            if length as u64 > size {
                "more".to_owned()
            } else {
                length.to_string()
            }
        ))
    }
}

/// Reads at most one byte more than `size`.
pub(crate) fn read_limited(reader: impl Read, size: u64) -> Result<Vec<u8>, String> {
    let reserved = usize::try_from(size.min(RESERVED_MAX)).unwrap_or(0);
    let mut out = Vec::with_capacity(reserved);
    let read = reader.take(size.saturating_add(1)).read_to_end(&mut out);
    read.map_err(|error| format!("its compressed data: {error}"))?;
    Ok(out)
}

/// Compresses a file into one Zstandard frame, which says how many bytes it holds:
/// rosbag2 asks for them. Blocks in the file system.
///
/// # Errors
/// The system's.
pub(crate) fn compress_stream(source: File, output: File) -> io::Result<File> {
    let bytes = source.metadata()?.len();
    let mut compressor = FrameCompressor::new(CompressionLevel::Fastest);
    compressor.set_source(NotedSource {
        source,
        error: None,
    });
    compressor.set_drain(SizedFrame {
        output,
        bytes,
        has_head: false,
        error: None,
    });
    compressor.compress();
    let failed = compressor.take_source().and_then(|source| source.error);
    let Some(drain) = compressor.take_drain() else {
        return Err(io::Error::other("the compressor kept its output"));
    };
    match failed.or(drain.error) {
        Some(error) => Err(error),
        None => Ok(drain.output),
    }
}

/// Ends at the first error and keeps it: the compressor has no words for one.
struct NotedSource {
    source: File,
    error: Option<io::Error>,
}

impl Read for NotedSource {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.source.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    return Ok(0);
                }
                read => return read,
            }
        }
    }
}

/// Adds the size of the content to the frame's head, and keeps the first error.
struct SizedFrame {
    output: File,
    bytes: u64,
    has_head: bool,
    error: Option<io::Error>,
}

/// Mark, descriptor and window of a frame.
const FRAME_HEAD_BYTES: usize = 6;
/// Where the descriptor is, and its bits for a size of eight bytes.
const DESCRIPTOR_AT: usize = 4;
const SIZE_IN_EIGHT_BYTES: u8 = 0b1100_0000;

impl SizedFrame {
    fn put(&mut self, piece: &[u8]) -> io::Result<()> {
        if self.has_head {
            return self.output.write_all(piece);
        }
        self.has_head = true;
        let Some((head, rest)) = piece.split_at_checked(FRAME_HEAD_BYTES) else {
            return Err(io::Error::other(
                "the compressor began with less than a head",
            ));
        };
        let mut head = head.to_vec();
        if let Some(descriptor) = head.get_mut(DESCRIPTOR_AT) {
            *descriptor |= SIZE_IN_EIGHT_BYTES;
        }
        head.extend(self.bytes.to_le_bytes());
        self.output.write_all(&head)?;
        self.output.write_all(rest)
    }
}

impl Write for SizedFrame {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.error.is_none()
            && let Err(error) = self.put(piece)
        {
            self.error = Some(error);
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FromStr for Compression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            other => Err(format!(
                "compression {other:?} is unknown; use none, lz4 or zstd"
            )),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::None {
            "none"
        } else {
            self.name()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_compression_returns_what_it_got() {
        let mut data: Vec<u8> = (0..200_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        data.extend((0..9_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8));
        for kind in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let packed = kind.compress(&data).unwrap();
            let unpacked = kind.decompress(packed, data.len() as u64).unwrap();
            assert!(unpacked == data, "{kind}");
        }
    }

    #[test]
    fn a_compressed_file_says_its_size_and_holds_the_same() {
        let folder = std::env::temp_dir();
        let name = |what: &str| folder.join(format!("pteros-{what}-{}", std::process::id()));
        let (from, to) = (name("plain"), name("packed"));
        let data: Vec<u8> = (0..500_000u32)
            .flat_map(|n| (n / 9).to_le_bytes())
            .collect();
        std::fs::write(&from, &data).unwrap();
        let output = File::create(&to).unwrap();
        compress_stream(File::open(&from).unwrap(), output).unwrap();
        let packed = std::fs::read(&to).unwrap();
        assert_eq!(packed[4] >> 6, 3);
        assert_eq!(packed[6..14], (data.len() as u64).to_le_bytes());
        let size = data.len() as u64;
        assert!(Compression::Zstd.decompress(packed, size).unwrap() == data);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let error = compress_stream(File::open(&from).unwrap(), full.unwrap());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        std::fs::remove_file(&from).unwrap();
        std::fs::remove_file(&to).unwrap();
    }

    #[test]
    fn a_bomb_stops_at_the_announced_size() {
        let zeros = vec![0; 64 << 20];
        for kind in [Compression::Lz4, Compression::Zstd] {
            let packed = kind.compress(&zeros).unwrap();
            assert!(packed.len() < 1 << 20, "{kind}");
            let error = kind.decompress(packed.clone(), 1000).unwrap_err();
            assert!(
                error.contains("announces 1000 bytes and has more"),
                "{error}"
            );
            let error = kind.decompress(packed, u64::MAX).unwrap_err();
            assert!(error.contains("at most"), "{error}");
        }
    }
}
