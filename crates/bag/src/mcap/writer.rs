//! Writer of one MCAP file: header, chunks with message indexes, summary, footer.
//!
//! A chunk is one write. Schema and channel records precede the first chunk that uses
//! them, so a truncated file is readable up to its last complete chunk.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunk::ChunkBuilder;
use super::compression::{Compression, CompressionLevel, check_growth};
use super::records::{
    ChannelRecord, ChunkHead, ChunkIndex, MAGIC, MetadataRecord, SchemaRecord, Statistics, opcode,
    put_bytes, put_len, record,
};
use crate::error::BagError;
use crate::file_store::{BagFile, FileStore};

/// Library name in the header.
const LIBRARY: &str = concat!("pteros ", env!("CARGO_PKG_VERSION"));

/// Size of a message index and of a chunk index without entries.
const INDEX_BYTES: u64 = 16;
const CHUNK_INDEX_BYTES: u64 = 80;
/// Size of the other records at a file's end, and of a chunk's head: 375.
const SUMMARY_BYTES: u64 = 512;
/// Bytes that compression may add to a short chunk.
const SPARE_BYTES: u64 = 64;

/// Writer of a new file.
#[derive(Debug)]
pub(crate) struct McapWriter {
    file: Arc<dyn BagFile>,
    path: PathBuf,
    position: u64,
    compression: Compression,
    level: CompressionLevel,
    has_checksums: bool,
    chunks: Vec<ChunkIndex>,
    metadata: Vec<(u64, u64, String)>,
    schemas: BTreeMap<u16, SchemaRecord>,
    channels: BTreeMap<u16, ChannelRecord>,
    statistics: Statistics,
    /// Size of the schema and channel records.
    channel_bytes: u64,
    buffer: Vec<u8>,
}

impl McapWriter {
    pub(crate) fn create(
        store: &dyn FileStore,
        path: &Path,
        compression: Compression,
        level: CompressionLevel,
        has_checksums: bool,
    ) -> Result<Self, BagError> {
        let file = store.create(path).map_err(|source| {
            if source.kind() == std::io::ErrorKind::AlreadyExists {
                BagError::Exists(path.to_owned())
            } else {
                BagError::io("creating", path)(source)
            }
        })?;
        let mut writer = Self {
            file,
            path: path.to_owned(),
            position: 0,
            compression,
            level,
            has_checksums,
            chunks: Vec::new(),
            metadata: Vec::new(),
            schemas: BTreeMap::new(),
            channels: BTreeMap::new(),
            statistics: Statistics::default(),
            channel_bytes: 0,
            buffer: Vec::new(),
        };
        writer.buffer.extend(MAGIC);
        record(&mut writer.buffer, opcode::HEADER, |out| {
            put_bytes(out, b"ros2");
            put_bytes(out, LIBRARY.as_bytes());
        });
        writer.flush()?;
        Ok(writer)
    }

    /// The file, for the sync thread.
    pub(crate) fn file(&self) -> Arc<dyn BagFile> {
        self.file.clone()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    pub(crate) fn has_channel(&self, id: u16) -> bool {
        self.channels.contains_key(&id)
    }

    pub(crate) fn add_channel(&mut self, schema: &SchemaRecord, channel: &ChannelRecord) {
        let start = self.buffer.len();
        if schema.id != 0 && self.schemas.insert(schema.id, schema.clone()).is_none() {
            schema.write(&mut self.buffer);
        }
        if self.channels.insert(channel.id, channel.clone()).is_none() {
            channel.write(&mut self.buffer);
        }
        self.channel_bytes += (self.buffer.len() - start) as u64;
    }

    /// Upper bound of the file's size after this chunk and the summary. New channels and
    /// metadata are not counted.
    pub(crate) fn size_with(&self, chunk: &ChunkBuilder) -> u64 {
        // Compression may add some bytes.
        let stored = chunk.len() as u64 + chunk.len() as u64 / 128 + SPARE_BYTES;
        let indexes = chunk.counts().map(|(_, count)| INDEX_BYTES + 16 * count);
        let channels = chunk.counts().count() as u64;
        let listed = self
            .chunks
            .iter()
            .map(|index| index.message_indexes.len() as u64);
        let chunk_indexes = |channels: u64| CHUNK_INDEX_BYTES + 10 * channels;
        let summary = self.channel_bytes
            + listed.map(chunk_indexes).sum::<u64>()
            + chunk_indexes(channels)
            + 10 * (self.statistics.by_channel.len() as u64 + channels)
            + SUMMARY_BYTES;
        self.position + self.buffer.len() as u64 + stored + indexes.sum::<u64>() + summary
    }

    /// Bytes that a channel adds to the file: in the data and in the summary.
    pub(crate) fn channel_bytes(&self, schema: &SchemaRecord, channel: &ChannelRecord) -> u64 {
        let mut records = Vec::new();
        if !self.schemas.contains_key(&schema.id) {
            schema.write(&mut records);
        }
        channel.write(&mut records);
        2 * records.len() as u64
    }

    pub(crate) fn write_chunk(&mut self, chunk: &ChunkBuilder) -> Result<(), BagError> {
        if chunk.is_empty() {
            return self.flush();
        }
        let packed = match self.compression {
            Compression::None => None,
            kind => Some(
                kind.compress(chunk.records(), self.level)
                    .map_err(|problem| {
                        let path = self.path.display();
                        BagError::Invalid(format!("{path}: compressing a chunk: {problem}"))
                    })?,
            ),
        };
        // A reader would refuse a far smaller chunk as a decompression bomb.
        let size = chunk.len() as u64;
        let packed = packed.filter(|packed| check_growth(packed.len() as u64, size).is_ok());
        let (stored, compression) = match &packed {
            Some(packed) => (packed.as_slice(), self.compression),
            None => (chunk.records(), Compression::None),
        };
        let head = ChunkHead {
            start: chunk.start(),
            end: chunk.end(),
            uncompressed: chunk.len() as u64,
            // 0 means no checksum.
            crc: if self.has_checksums {
                crc32fast::hash(chunk.records())
            } else {
                0
            },
            compression: compression.name().to_owned(),
            stored: stored.len() as u64,
            bytes: 0,
        };
        let offset = self.position + self.buffer.len() as u64;
        self.buffer.push(opcode::CHUNK);
        let length = 28 + 4 + head.compression.len() as u64 + 8 + head.stored;
        self.buffer.extend(length.to_le_bytes());
        head.write(&mut self.buffer);
        self.flush()?;
        self.put(stored)?;
        let mut index = ChunkIndex {
            start: head.start,
            end: head.end,
            offset,
            length: 9 + length,
            compression: head.compression,
            compressed: head.stored,
            uncompressed: head.uncompressed,
            ..ChunkIndex::default()
        };
        for (channel, entries) in chunk.index() {
            let at = self.position + self.buffer.len() as u64;
            index.message_indexes.push((*channel, at));
            record(&mut self.buffer, opcode::MESSAGE_INDEX, |out| {
                out.extend(channel.to_le_bytes());
                put_len(out, entries.len() * 16);
                for (time, offset) in entries {
                    out.extend(time.to_le_bytes());
                    out.extend(offset.to_le_bytes());
                }
            });
            *self.statistics.by_channel.entry(*channel).or_default() += entries.len() as u64;
            self.statistics.message_count += entries.len() as u64;
        }
        index.message_index_bytes = self.buffer.len() as u64;
        self.flush()?;
        let is_first = self.chunks.is_empty();
        let statistics = &mut self.statistics;
        statistics.start = if is_first {
            index.start
        } else {
            statistics.start.min(index.start)
        };
        statistics.end = statistics.end.max(index.end);
        self.chunks.push(index);
        Ok(())
    }

    pub(crate) fn write_metadata(
        &mut self,
        name: &str,
        values: BTreeMap<String, String>,
    ) -> Result<(), BagError> {
        let offset = self.position + self.buffer.len() as u64;
        let name = name.to_owned();
        let entry = MetadataRecord { name, values };
        entry.write(&mut self.buffer);
        let end = self.position + self.buffer.len() as u64;
        self.metadata.push((offset, end - offset, entry.name));
        self.flush()
    }

    /// Writes the summary and syncs the file to disk.
    pub(crate) fn finish(mut self) -> Result<(), BagError> {
        record(&mut self.buffer, opcode::DATA_END, |out| out.extend([0; 4]));
        self.flush()?;
        let summary_start = self.position;
        let mut summary = Vec::new();
        let mut groups: Vec<(u8, u64, u64)> = Vec::new();
        let mut group = |summary: &mut Vec<u8>, op: u8, write: &mut dyn FnMut(&mut Vec<u8>)| {
            let from = summary.len() as u64;
            write(summary);
            let length = summary.len() as u64 - from;
            if length > 0 {
                groups.push((op, summary_start + from, length));
            }
        };
        group(&mut summary, opcode::SCHEMA, &mut |out| {
            self.schemas.values().for_each(|schema| schema.write(out));
        });
        group(&mut summary, opcode::CHANNEL, &mut |out| {
            self.channels
                .values()
                .for_each(|channel| channel.write(out));
        });
        self.statistics.schema_count = u16::try_from(self.schemas.len()).unwrap_or(u16::MAX);
        self.statistics.channel_count = u32::try_from(self.channels.len()).unwrap_or(u32::MAX);
        self.statistics.chunk_count = u32::try_from(self.chunks.len()).unwrap_or(u32::MAX);
        self.statistics.metadata_count = u32::try_from(self.metadata.len()).unwrap_or(u32::MAX);
        group(&mut summary, opcode::STATISTICS, &mut |out| {
            self.statistics.write(out);
        });
        group(&mut summary, opcode::CHUNK_INDEX, &mut |out| {
            self.chunks.iter().for_each(|chunk| chunk.write(out));
        });
        group(&mut summary, opcode::METADATA_INDEX, &mut |out| {
            for (offset, length, name) in &self.metadata {
                record(out, opcode::METADATA_INDEX, |out| {
                    out.extend(offset.to_le_bytes());
                    out.extend(length.to_le_bytes());
                    put_bytes(out, name.as_bytes());
                });
            }
        });
        let offsets_start = summary_start + summary.len() as u64;
        for (op, start, length) in groups {
            record(&mut summary, opcode::SUMMARY_OFFSET, |out| {
                out.push(op);
                out.extend(start.to_le_bytes());
                out.extend(length.to_le_bytes());
            });
        }
        summary.push(opcode::FOOTER);
        summary.extend(20u64.to_le_bytes());
        summary.extend(summary_start.to_le_bytes());
        summary.extend(offsets_start.to_le_bytes());
        let crc = crc32fast::hash(&summary);
        summary.extend(crc.to_le_bytes());
        summary.extend(MAGIC);
        self.put(&summary)?;
        let synced = self.file.sync();
        synced.map_err(BagError::io("writing", &self.path))
    }

    fn flush(&mut self) -> Result<(), BagError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer)?;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BagError> {
        let written = self.file.append(bytes);
        written.map_err(BagError::io("writing", &self.path))?;
        self.position += bytes.len() as u64;
        Ok(())
    }
}
