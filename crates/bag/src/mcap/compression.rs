//! Chunk compression: none, LZ4 frames or Zstandard.
//!
//! Decompression stops at the size that the chunk announces. A chunk that announces more
//! than [`CHUNK_BYTES_MAX`] is refused. So a small file cannot exhaust the memory.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::str::FromStr;

use lz4_flex::frame::{FrameDecoder, FrameEncoder};
use zstd::stream::{read::Decoder, write::Encoder};

/// Largest chunk that is read: 512 MiB. Writers use some megabytes, and a single message
/// may exceed the chunk size.
pub(crate) const CHUNK_BYTES_MAX: u64 = 512 << 20;
/// Limit of the compression ratio, beside [`SPARE_BYTES`]. A single black image has a far
/// higher ratio. Data above the limit is refused as a decompression bomb.
const GROWTH_MAX: u64 = 500;
const SPARE_BYTES: u64 = 64 << 20;
/// Bytes reserved before decompression starts.
const RESERVED_MAX: u64 = 8 << 20;

/// Compression of a bag's chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// No compression; the fastest.
    #[default]
    None,
    /// LZ4 frames.
    Lz4,
    /// Zstandard, at a [`CompressionLevel`].
    Zstd,
}

/// Compression effort of Zstandard, in the words of the C++ MCAP library. LZ4 has one
/// level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompressionLevel {
    /// Zstandard level -5.
    Fastest,
    /// Zstandard level -3.
    Fast,
    /// Zstandard level 1.
    #[default]
    Default,
    /// Zstandard level 3.
    Slow,
    /// Zstandard level 19: a few megabytes per second.
    Slowest,
}

impl CompressionLevel {
    fn of_zstd(self) -> i32 {
        match self {
            Self::Fastest => -5,
            Self::Fast => -3,
            Self::Default => 1,
            Self::Slow => 3,
            Self::Slowest => 19,
        }
    }
}

impl Compression {
    /// Name in the file: empty, `lz4` or `zstd`.
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

    /// Compresses a chunk. LZ4 ignores the level.
    pub(crate) fn compress(self, data: &[u8], level: CompressionLevel) -> Result<Vec<u8>, String> {
        match self {
            Self::None => Ok(data.to_vec()),
            Self::Lz4 => {
                let mut encoder = FrameEncoder::new(Vec::with_capacity(data.len() / 2));
                let written = encoder.write_all(data).map_err(|error| error.to_string());
                written.and_then(|()| encoder.finish().map_err(|error| error.to_string()))
            }
            Self::Zstd => zstd::bulk::compress(data, level.of_zstd())
                .map_err(|error| format!("zstd: {error}")),
        }
    }

    /// Decompresses to exactly `size` bytes.
    pub(crate) fn decompress(self, data: Vec<u8>, size: u64) -> Result<Vec<u8>, String> {
        if size > CHUNK_BYTES_MAX {
            return Err(format!(
                "a chunk that announces {size} bytes; at most {CHUNK_BYTES_MAX} are read"
            ));
        }
        check_growth(data.len() as u64, size)?;
        let out = match self {
            Self::None => data,
            Self::Lz4 => read_limited(FrameDecoder::new(data.as_slice()), size)?,
            Self::Zstd => {
                let decoder = Decoder::with_buffer(data.as_slice());
                let decoder = decoder.map_err(|error| format!("zstd: {error}"))?;
                read_limited(decoder, size).map_err(|problem| format!("zstd: {problem}"))?
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

/// Largest decompressed size of `stored` compressed bytes.
pub(crate) fn growth_limit(stored: u64) -> u64 {
    stored
        .saturating_mul(GROWTH_MAX)
        .saturating_add(SPARE_BYTES)
}

/// Refuses data whose decompressed size exceeds [`growth_limit`].
pub(crate) fn check_growth(stored: u64, size: u64) -> Result<(), String> {
    let limit = growth_limit(stored);
    if size <= limit {
        return Ok(());
    }
    Err(format!(
        "{stored} bytes that announce {size} decompressed; at most {limit} are read, {GROWTH_MAX} times as many and {SPARE_BYTES}"
    ))
}

/// Reads up to one byte more than `size`.
pub(crate) fn read_limited(reader: impl Read, size: u64) -> Result<Vec<u8>, String> {
    let reserved = usize::try_from(size.min(RESERVED_MAX)).unwrap_or(0);
    let mut out = Vec::with_capacity(reserved);
    let read = reader.take(size.saturating_add(1)).read_to_end(&mut out);
    read.map_err(|error| format!("its compressed data: {error}"))?;
    Ok(out)
}

/// Compresses a file into one Zstandard frame with a checksum and the content size, which
/// rosbag2 needs. Blocks in the file system.
///
/// # Errors
/// The system's.
pub(crate) fn compress_stream(mut source: File, output: File) -> io::Result<File> {
    let mut encoder = Encoder::new(output, CompressionLevel::Default.of_zstd())?;
    encoder.set_pledged_src_size(Some(source.metadata()?.len()))?;
    encoder.include_checksum(true)?;
    io::copy(&mut source, &mut encoder)?;
    encoder.finish()
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
    use pteros_test_support::folder::Folder;

    #[test]
    fn every_compression_returns_what_it_got() {
        let mut data: Vec<u8> = (0..200_000u32)
            .flat_map(|n| (n / 7).to_le_bytes())
            .collect();
        data.extend((0..9_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8));
        for kind in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let packed = kind.compress(&data, CompressionLevel::Default).unwrap();
            let unpacked = kind.decompress(packed, data.len() as u64).unwrap();
            assert!(unpacked == data, "{kind}");
        }
    }

    #[test]
    fn a_slower_level_of_zstd_makes_a_smaller_chunk() {
        let data: Vec<u8> = (0..100_000u32)
            .flat_map(|n| (n.wrapping_mul(n) % 1009).to_le_bytes())
            .collect();
        let levels = [
            CompressionLevel::Fastest,
            CompressionLevel::Default,
            CompressionLevel::Slowest,
        ];
        let sizes = levels.map(|level| Compression::Zstd.compress(&data, level).unwrap().len());
        assert!(sizes.is_sorted_by(|more, less| more > less), "{sizes:?}");
    }

    #[test]
    fn a_compressed_file_says_its_size_and_holds_the_same() {
        let folder = Folder::new("compression");
        let data: Vec<u8> = (0..500_000u32)
            .flat_map(|n| (n / 9).to_le_bytes())
            .collect();
        let (from, to) = (folder.write("plain", &data), folder.join("packed"));
        let output = File::create(&to).unwrap();
        compress_stream(File::open(&from).unwrap(), output).unwrap();
        let packed = std::fs::read(&to).unwrap();
        // RFC 8878 §3.1.1.1: a size of four bytes, after the descriptor and the window.
        assert_eq!((packed[4] >> 6, packed[4] >> 5 & 1), (2, 0));
        assert_eq!(packed[6..10], (data.len() as u32).to_le_bytes());
        let size = data.len() as u64;
        assert!(Compression::Zstd.decompress(packed, size).unwrap() == data);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let error = compress_stream(File::open(&from).unwrap(), full.unwrap());
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn a_bomb_stops_at_the_announced_size() {
        let zeros = vec![0; 64 << 20];
        for kind in [Compression::Lz4, Compression::Zstd] {
            let packed = kind.compress(&zeros, CompressionLevel::Default).unwrap();
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
