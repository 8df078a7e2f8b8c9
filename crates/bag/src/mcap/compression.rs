//! Compression of chunks: none, LZ4 frames or Zstandard, all in Rust.
//!
//! Decompression stops at the size that the chunk announces, and a chunk that
//! announces more than [`CHUNK_BYTES_MAX`] is refused. So a small file cannot fill the
//! memory.

use std::fmt;
use std::io::{Read, Write};
use std::str::FromStr;

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use ruzstd::decoding::StreamingDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// The largest chunk that is read: 512 MiB. Writers use some megabytes, and one message
/// may be larger than a chunk.
pub(crate) const CHUNK_BYTES_MAX: u64 = 512 << 20;
/// What is reserved before the first byte is there.
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

fn read_limited(reader: impl Read, size: u64) -> Result<Vec<u8>, String> {
    let reserved = usize::try_from(size.min(RESERVED_MAX)).unwrap_or(0);
    let mut out = Vec::with_capacity(reserved);
    let read = reader.take(size + 1).read_to_end(&mut out);
    read.map_err(|error| format!("its compressed data: {error}"))?;
    Ok(out)
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
