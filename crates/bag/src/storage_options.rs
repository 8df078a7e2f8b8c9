//! rosbag2's options for writing MCAP: presets, and the file of `--storage-config-file`.

use std::fmt;
use std::str::FromStr;

use pteros::msg::yaml::{YamlContent, YamlEntry, YamlNode};

use crate::mcap::{CHUNK_BYTES_MAX, Compression, CompressionLevel};
use crate::qos_text::scalar;
use crate::writer::BagOptions;

/// Chunk size of the preset `zstd_small`.
const LARGE_CHUNK_BYTES: usize = 4 << 20;

/// rosbag2's presets of MCAP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoragePreset {
    /// Keeps the options.
    #[default]
    None,
    /// No checksums. rosbag2 omits chunks as well; Pteros keeps them, because a file
    /// without chunks has no index.
    FastWrite,
    /// Chunks compressed with Zstandard at its fastest level.
    ZstdFast,
    /// Chunks of 4 MiB compressed with Zstandard at its slowest level.
    ZstdSmall,
}

impl StoragePreset {
    /// Applies the preset to options.
    pub fn apply(self, options: &mut BagOptions) {
        match self {
            Self::None => {}
            Self::FastWrite => options.chunk_checksums = false,
            Self::ZstdFast => {
                options.compression = Compression::Zstd;
                options.compression_level = CompressionLevel::Fastest;
            }
            Self::ZstdSmall => {
                options.compression = Compression::Zstd;
                options.compression_level = CompressionLevel::Slowest;
                options.chunk_bytes = LARGE_CHUNK_BYTES;
            }
        }
    }
}

impl FromStr for StoragePreset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" | "" => Ok(Self::None),
            "fastwrite" => Ok(Self::FastWrite),
            "zstd_fast" => Ok(Self::ZstdFast),
            "zstd_small" => Ok(Self::ZstdSmall),
            other => Err(format!(
                "preset {other:?} is unknown; use none, fastwrite, zstd_fast or zstd_small"
            )),
        }
    }
}

impl fmt::Display for StoragePreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::FastWrite => "fastwrite",
            Self::ZstdFast => "zstd_fast",
            Self::ZstdSmall => "zstd_small",
        })
    }
}

/// Applies the text of a `--storage-config-file` to options: `compression`,
/// `compressionLevel`, `chunkSize` and `noChunkCRC`.
///
/// # Errors
/// The text is no YAML, a value is invalid, or a setting would change what Pteros always
/// writes: with its line.
pub fn read_storage_config(text: &str, options: &mut BagOptions) -> Result<(), String> {
    let root = YamlNode::read(text).map_err(|error| error.to_string())?;
    if root.is_null() {
        return Ok(());
    }
    let YamlContent::Mapping(entries) = &root.content else {
        return Err(format!(
            "{} where settings belong, for example compression: Zstd",
            root.found_text()
        ));
    };
    entries.iter().try_for_each(|entry| apply(entry, options))
}

fn apply(entry: &YamlEntry, options: &mut BagOptions) -> Result<(), String> {
    let (key, line) = (entry.key.as_str(), entry.place.line);
    let text = scalar(&entry.value).unwrap_or_default();
    let wrong = |words: &str| format!("line {line}: {key} is {text:?}; use {words}");
    let flag = || match text {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        _ => Err(wrong("true or false")),
    };
    match key {
        "compression" => {
            options.compression = match text {
                "None" => Compression::None,
                "Lz4" => Compression::Lz4,
                "Zstd" => Compression::Zstd,
                _ => return Err(wrong("None, Lz4 or Zstd")),
            }
        }
        "chunkSize" => {
            let bytes = text.parse::<usize>().ok();
            let limit = usize::try_from(CHUNK_BYTES_MAX).unwrap_or(usize::MAX);
            let bytes = bytes.filter(|bytes| (1..=limit).contains(bytes));
            options.chunk_bytes = bytes.ok_or_else(|| wrong("bytes from 1 to 536870912"))?;
        }
        "noChunkCRC" => options.chunk_checksums = !flag()?,
        // Pteros writes these in any case.
        "noSummaryCRC" | "noChunking" | "noMessageIndex" | "noSummary" | "noRepeatedSchemas"
        | "noRepeatedChannels" | "noStatistics" | "noChunkIndex" | "noMetadataIndex"
        | "noSummaryOffsets" | "noAttachmentIndex" | "noAttachmentCRC" | "enableDataCRC"
        | "forceCompression" => {
            if flag()? {
                return Err(wrong("false: Pteros always writes the default"));
            }
        }
        "compressionLevel" => {
            options.compression_level = match text {
                "Fastest" => CompressionLevel::Fastest,
                "Fast" => CompressionLevel::Fast,
                "Default" => CompressionLevel::Default,
                "Slow" => CompressionLevel::Slow,
                "Slowest" => CompressionLevel::Slowest,
                _ => return Err(wrong("Fastest, Fast, Default, Slow or Slowest")),
            }
        }
        _ => {
            return Err(format!(
                "line {line}: the setting {key:?} is unknown; use compression, compressionLevel, chunkSize or noChunkCRC"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_change_options_and_wrong_ones_name_line_and_words() {
        let mut options = BagOptions::default();
        let text = "compression: Lz4\nchunkSize: 1048576\nnoChunkCRC: true\nnoChunking: false\n";
        read_storage_config(text, &mut options).unwrap();
        assert_eq!(options.compression, Compression::Lz4);
        assert_eq!(
            (options.chunk_bytes, options.chunk_checksums),
            (1 << 20, false)
        );
        let error = |text: &str| read_storage_config(text, &mut BagOptions::default()).unwrap_err();
        assert_eq!(
            error("\ncompression: gzip"),
            "line 2: compression is \"gzip\"; use None, Lz4 or Zstd"
        );
        read_storage_config("compressionLevel: Slow", &mut options).unwrap();
        assert_eq!(options.compression_level, CompressionLevel::Slow);
        assert!(error("compressionLevel: 7").contains("Fastest, Fast, Default"));
        assert!(error("noChunking: true").contains("always writes the default"));
        assert!(error("chunkSize: 0").contains("bytes from 1"));
        assert!(error("chunks: 1").contains("\"chunks\" is unknown"));
    }
}
