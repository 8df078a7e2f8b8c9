//! Records of the MCAP format: opcode, length and content, little-endian.
//!
//! [`Cursor`] is the checked view: every length is compared with the remaining bytes, so
//! a wrong one is an error text and no panic.

use std::collections::BTreeMap;

/// First and last bytes of an MCAP file.
pub(crate) const MAGIC: [u8; 8] = [0x89, b'M', b'C', b'A', b'P', b'0', b'\r', b'\n'];
/// Size of opcode and length before the content.
pub(crate) const RECORD_HEAD_BYTES: usize = 9;
/// Size of the footer's content.
pub(crate) const FOOTER_BYTES: usize = 20;

/// Opcodes of the records.
pub(crate) mod opcode {
    pub const HEADER: u8 = 0x01;
    pub const FOOTER: u8 = 0x02;
    pub const SCHEMA: u8 = 0x03;
    pub const CHANNEL: u8 = 0x04;
    pub const MESSAGE: u8 = 0x05;
    pub const CHUNK: u8 = 0x06;
    pub const MESSAGE_INDEX: u8 = 0x07;
    pub const CHUNK_INDEX: u8 = 0x08;
    pub const STATISTICS: u8 = 0x0b;
    pub const METADATA: u8 = 0x0c;
    pub const METADATA_INDEX: u8 = 0x0d;
    pub const SUMMARY_OFFSET: u8 = 0x0e;
    pub const DATA_END: u8 = 0x0f;
}

/// A schema: the definition of a message type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaRecord {
    /// Number in the file, from 1; 0 means none.
    pub id: u16,
    /// Type name, for example `std_msgs/msg/String`.
    pub name: String,
    /// `ros2msg`, `ros2idl`, or empty if the definition is unknown.
    pub encoding: String,
    /// Definition with those of all nested types.
    pub data: Vec<u8>,
}

/// A channel: a topic with its type and serialization format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelRecord {
    /// Number in the file.
    pub id: u16,
    /// Number of its schema.
    pub schema_id: u16,
    /// Topic name.
    pub topic: String,
    /// `cdr` for ROS 2.
    pub message_encoding: String,
    /// Texts by key: `offered_qos_profiles` and `topic_type_hash`.
    pub metadata: BTreeMap<String, String>,
}

impl ChannelRecord {
    /// Whether messages of the other channel are decoded alike.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.schema_id == other.schema_id
            && self.topic == other.topic
            && self.message_encoding == other.message_encoding
    }
}

/// Reader of a record's fields. Errors are texts without position.
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(content: &'a [u8]) -> Self {
        Self { rest: content }
    }

    pub(crate) fn take(&mut self, count: u64) -> Result<&'a [u8], String> {
        let split = usize::try_from(count)
            .ok()
            .and_then(|count| self.rest.split_at_checked(count));
        let Some((taken, rest)) = split else {
            return Err(format!(
                "a field of {count} bytes in a record that has {} left",
                self.rest.len()
            ));
        };
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let bytes = self.take(N as u64)?;
        bytes.try_into().map_err(|_| "a short field".to_owned())
    }

    pub(crate) fn u16(&mut self) -> Result<u16, String> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads bytes after a length of four bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], String> {
        let count = self.u32()?;
        self.take(u64::from(count))
    }

    /// Reads a text. Invalid UTF-8 is replaced.
    pub(crate) fn text(&mut self) -> Result<String, String> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn text_map(&mut self) -> Result<BTreeMap<String, String>, String> {
        let mut inner = Cursor::new(self.bytes()?);
        let mut map = BTreeMap::new();
        while !inner.is_empty() {
            map.insert(inner.text()?, inner.text()?);
        }
        Ok(map)
    }
}

impl SchemaRecord {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(content);
        Ok(Self {
            id: cursor.u16()?,
            name: cursor.text()?,
            encoding: cursor.text()?,
            data: cursor.bytes()?.to_vec(),
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        record(out, opcode::SCHEMA, |out| {
            out.extend(self.id.to_le_bytes());
            put_bytes(out, self.name.as_bytes());
            put_bytes(out, self.encoding.as_bytes());
            put_bytes(out, &self.data);
        });
    }
}

impl ChannelRecord {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(content);
        Ok(Self {
            id: cursor.u16()?,
            schema_id: cursor.u16()?,
            topic: cursor.text()?,
            message_encoding: cursor.text()?,
            metadata: cursor.text_map()?,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        record(out, opcode::CHANNEL, |out| {
            out.extend(self.id.to_le_bytes());
            out.extend(self.schema_id.to_le_bytes());
            put_bytes(out, self.topic.as_bytes());
            put_bytes(out, self.message_encoding.as_bytes());
            put_map(out, &self.metadata);
        });
    }
}

/// A metadata record: a name and texts by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MetadataRecord {
    pub name: String,
    pub values: BTreeMap<String, String>,
}

impl MetadataRecord {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(content);
        Ok(Self {
            name: cursor.text()?,
            values: cursor.text_map()?,
        })
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        record(out, opcode::METADATA, |out| {
            put_bytes(out, self.name.as_bytes());
            put_map(out, &self.values);
        });
    }
}

/// The statistics of a summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Statistics {
    pub message_count: u64,
    pub schema_count: u16,
    pub channel_count: u32,
    pub attachment_count: u32,
    pub metadata_count: u32,
    pub chunk_count: u32,
    pub start: u64,
    pub end: u64,
    pub by_channel: BTreeMap<u16, u64>,
}

impl Statistics {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(content);
        let mut parsed = Self {
            message_count: cursor.u64()?,
            schema_count: cursor.u16()?,
            channel_count: cursor.u32()?,
            attachment_count: cursor.u32()?,
            metadata_count: cursor.u32()?,
            chunk_count: cursor.u32()?,
            start: cursor.u64()?,
            end: cursor.u64()?,
            by_channel: BTreeMap::new(),
        };
        let mut inner = Cursor::new(cursor.bytes()?);
        while !inner.is_empty() {
            parsed.by_channel.insert(inner.u16()?, inner.u64()?);
        }
        Ok(parsed)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        record(out, opcode::STATISTICS, |out| {
            out.extend(self.message_count.to_le_bytes());
            out.extend(self.schema_count.to_le_bytes());
            out.extend(self.channel_count.to_le_bytes());
            out.extend(self.attachment_count.to_le_bytes());
            out.extend(self.metadata_count.to_le_bytes());
            out.extend(self.chunk_count.to_le_bytes());
            out.extend(self.start.to_le_bytes());
            out.extend(self.end.to_le_bytes());
            put_len(out, self.by_channel.len() * 10);
            for (channel, count) in &self.by_channel {
                out.extend(channel.to_le_bytes());
                out.extend(count.to_le_bytes());
            }
        });
    }
}

/// Location, times and sizes of a chunk, from the summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkIndex {
    pub start: u64,
    pub end: u64,
    /// File offset of the chunk record.
    pub offset: u64,
    /// Size of the chunk record.
    pub length: u64,
    pub message_indexes: Vec<(u16, u64)>,
    pub message_index_bytes: u64,
    pub compression: String,
    pub compressed: u64,
    pub uncompressed: u64,
}

impl ChunkIndex {
    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(content);
        let mut parsed = Self {
            start: cursor.u64()?,
            end: cursor.u64()?,
            offset: cursor.u64()?,
            length: cursor.u64()?,
            ..Self::default()
        };
        let mut inner = Cursor::new(cursor.bytes()?);
        while !inner.is_empty() {
            parsed.message_indexes.push((inner.u16()?, inner.u64()?));
        }
        parsed.message_index_bytes = cursor.u64()?;
        parsed.compression = cursor.text()?;
        parsed.compressed = cursor.u64()?;
        parsed.uncompressed = cursor.u64()?;
        Ok(parsed)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        record(out, opcode::CHUNK_INDEX, |out| {
            out.extend(self.start.to_le_bytes());
            out.extend(self.end.to_le_bytes());
            out.extend(self.offset.to_le_bytes());
            out.extend(self.length.to_le_bytes());
            put_len(out, self.message_indexes.len() * 10);
            for (channel, offset) in &self.message_indexes {
                out.extend(channel.to_le_bytes());
                out.extend(offset.to_le_bytes());
            }
            out.extend(self.message_index_bytes.to_le_bytes());
            put_bytes(out, self.compression.as_bytes());
            out.extend(self.compressed.to_le_bytes());
            out.extend(self.uncompressed.to_le_bytes());
        });
    }
}

/// The fields of a chunk before its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkHead {
    pub start: u64,
    pub end: u64,
    pub uncompressed: u64,
    pub crc: u32,
    pub compression: String,
    pub stored: u64,
    /// Size of these fields.
    pub bytes: u64,
}

impl ChunkHead {
    /// Longest head: the compression name is limited to 16 bytes here.
    pub(crate) const BYTES_MAX: usize = 28 + 4 + 16 + 8;

    pub(crate) fn parse(content: &[u8]) -> Result<Self, String> {
        let mut cursor = Cursor::new(content);
        let mut parsed = Self {
            start: cursor.u64()?,
            end: cursor.u64()?,
            uncompressed: cursor.u64()?,
            crc: cursor.u32()?,
            compression: cursor.text()?,
            stored: cursor.u64()?,
            bytes: 0,
        };
        parsed.bytes = 28 + 4 + parsed.compression.len() as u64 + 8;
        Ok(parsed)
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.start.to_le_bytes());
        out.extend(self.end.to_le_bytes());
        out.extend(self.uncompressed.to_le_bytes());
        out.extend(self.crc.to_le_bytes());
        put_bytes(out, self.compression.as_bytes());
        out.extend(self.stored.to_le_bytes());
    }
}

/// Appends a record. `content` appends its content.
pub(crate) fn record(out: &mut Vec<u8>, opcode: u8, content: impl FnOnce(&mut Vec<u8>)) {
    out.push(opcode);
    let length_at = out.len();
    out.extend([0; 8]);
    content(out);
    let length = (out.len() - length_at - 8) as u64;
    if let Some(slot) = out.get_mut(length_at..length_at + 8) {
        slot.copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends a length. Our lengths are far below its limit of 4 GiB, because the limits are
/// checked where values enter.
pub(crate) fn put_len(out: &mut Vec<u8>, count: usize) {
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

/// Appends bytes after their length.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_len(out, bytes.len());
    out.extend(bytes);
}

fn put_map(out: &mut Vec<u8>, map: &BTreeMap<String, String>) {
    put_len(out, map.iter().map(|(k, v)| 8 + k.len() + v.len()).sum());
    for (key, value) in map {
        put_bytes(out, key.as_bytes());
        put_bytes(out, value.as_bytes());
    }
}
