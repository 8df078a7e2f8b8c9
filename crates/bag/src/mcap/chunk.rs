//! MCAP chunks: records of some hundred kilobytes of messages, with their index.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::records::{ChannelRecord, Cursor, RECORD_HEAD_BYTES, SchemaRecord, opcode};

/// Size of a message record's fields before the payload.
const MESSAGE_HEAD_BYTES: usize = 22;

/// Builder of one chunk. A payload is copied once, into it.
#[derive(Debug, Default)]
pub struct ChunkBuilder {
    records: Vec<u8>,
    index: BTreeMap<u16, Vec<(u64, u64)>>,
    transient_local: Vec<TransientLocalMessage>,
    start: u64,
    end: u64,
    messages: u64,
}

/// A message of a transient-local publisher in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransientLocalMessage {
    pub channel: u16,
    /// `None` if unknown.
    pub publisher: Option<u128>,
    pub publish_time: u64,
    /// Range of its payload in [`ChunkBuilder::records`].
    pub payload: Range<usize>,
}

impl ChunkBuilder {
    /// Creates an empty chunk with memory for `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            records: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Appends a message. Times are in nanoseconds since 1970.
    pub fn add(&mut self, channel: u16, log_time: u64, publish_time: u64, payload: &[u8]) {
        let offset = self.records.len() as u64;
        let length = (MESSAGE_HEAD_BYTES + payload.len()) as u64;
        self.records
            .reserve(RECORD_HEAD_BYTES + MESSAGE_HEAD_BYTES + payload.len());
        self.records.push(opcode::MESSAGE);
        self.records.extend(length.to_le_bytes());
        self.records.extend(channel.to_le_bytes());
        // rosbag2 writes sequence number 0 as well.
        self.records.extend(0u32.to_le_bytes());
        self.records.extend(log_time.to_le_bytes());
        self.records.extend(publish_time.to_le_bytes());
        self.records.extend(payload);
        self.index
            .entry(channel)
            .or_default()
            .push((log_time, offset));
        if self.messages == 0 {
            (self.start, self.end) = (log_time, log_time);
        }
        self.start = self.start.min(log_time);
        self.end = self.end.max(log_time);
        self.messages += 1;
    }

    /// Appends a message of a transient-local publisher.
    pub(crate) fn add_transient_local(
        &mut self,
        publisher: Option<u128>,
        channel: u16,
        log_time: u64,
        publish_time: u64,
        payload: &[u8],
    ) {
        self.add(channel, log_time, publish_time, payload);
        let end = self.records.len();
        self.transient_local.push(TransientLocalMessage {
            channel,
            publisher,
            publish_time,
            payload: end - payload.len()..end,
        });
    }

    /// Messages of transient-local publishers, in order.
    pub(crate) fn transient_local(&self) -> &[TransientLocalMessage] {
        &self.transient_local
    }

    /// Size of its records before compression, bytes.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether it has no messages.
    pub fn is_empty(&self) -> bool {
        self.messages == 0
    }

    /// Earliest log time of its messages; 0 without messages.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Latest log time of its messages.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Number of messages by channel.
    pub fn counts(&self) -> impl Iterator<Item = (u16, u64)> {
        let counted = self.index.iter();
        counted.map(|(channel, entries)| (*channel, entries.len() as u64))
    }

    pub(crate) fn records(&self) -> &[u8] {
        &self.records
    }

    pub(crate) fn index(&self) -> &BTreeMap<u16, Vec<(u64, u64)>> {
        &self.index
    }

    /// Record bytes that fit without allocation.
    pub(crate) fn capacity(&self) -> usize {
        self.records.capacity()
    }

    /// Removes all messages and keeps the memory, up to `bytes_max`.
    pub(crate) fn clear(&mut self, bytes_max: usize) {
        self.records.clear();
        self.records.shrink_to(bytes_max);
        self.index.clear();
        self.transient_local.clear();
        self.messages = 0;
    }
}

/// A message in a decompressed chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkMessage {
    pub channel: u16,
    pub log_time: u64,
    pub publish_time: u64,
    pub payload: Range<usize>,
}

/// A schema or channel in a chunk.
#[derive(Debug)]
pub(crate) enum Registration {
    Schema(SchemaRecord),
    Channel(ChannelRecord),
}

/// Records of a chunk up to the first damaged one.
#[derive(Debug, Default)]
pub(crate) struct ParsedChunk {
    /// Each with the number of messages before it.
    pub registrations: Vec<(usize, Registration)>,
    pub messages: Vec<ChunkMessage>,
    /// Why the remaining records could not be read.
    pub problem: Option<String>,
}

/// Ids that have another meaning at a place of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redefined {
    schemas: BTreeSet<u16>,
    channels: BTreeSet<u16>,
}

/// The schemas and channels of a file: the first of each id. The format allows no other one,
/// so that messages behind another one are not those of the topic that is known.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    pub schemas: BTreeMap<u16, SchemaRecord>,
    pub channels: BTreeMap<u16, ChannelRecord>,
}

impl Registry {
    /// Keeps a record whose id is new.
    pub(crate) fn keep(&mut self, record: &Registration) {
        match record {
            Registration::Schema(schema) => {
                let place = self.schemas.entry(schema.id);
                place.or_insert_with(|| schema.clone());
            }
            Registration::Channel(channel) => {
                let place = self.channels.entry(channel.id);
                place.or_insert_with(|| channel.clone());
            }
        }
    }

    /// Updates the ids that have another meaning behind a record.
    pub(crate) fn compare(&self, record: &Registration, redefined: &mut Redefined) {
        let (ids, id, is_other) = match record {
            Registration::Schema(schema) => {
                let known = self.schemas.get(&schema.id);
                let is_other = known.is_some_and(|known| known != schema);
                (&mut redefined.schemas, schema.id, is_other)
            }
            Registration::Channel(channel) => {
                let known = self.channels.get(&channel.id);
                let is_other = known.is_some_and(|known| !known.is_like(channel));
                (&mut redefined.channels, channel.id, is_other)
            }
        };
        if is_other {
            ids.insert(id);
        } else {
            ids.remove(&id);
        }
    }

    /// Removes the messages of redefined channels and schemas, and returns their number.
    /// `redefined` has the ids at the begin of the chunk, and gets those at its end.
    pub(crate) fn retain_known(&self, parsed: &mut ParsedChunk, redefined: &mut Redefined) -> u64 {
        let mut records = parsed.registrations.iter().peekable();
        let (mut at, mut count) = (0, 0);
        parsed.messages.retain(|message| {
            while let Some((_, record)) = records.next_if(|(place, _)| *place <= at) {
                self.compare(record, redefined);
            }
            at += 1;
            let channel = self.channels.get(&message.channel);
            let is_other = redefined.channels.contains(&message.channel)
                || channel.is_some_and(|known| redefined.schemas.contains(&known.schema_id));
            count += u64::from(is_other);
            !is_other
        });
        records.for_each(|(_, record)| self.compare(record, redefined));
        count
    }
}

/// Parses the records of a decompressed chunk up to the first damaged one.
pub(crate) fn parse_chunk(records: &[u8]) -> ParsedChunk {
    let mut parsed = ParsedChunk::default();
    let mut at = 0;
    while at < records.len() {
        match read_record(records, at, &mut parsed) {
            Ok(next) => at = next,
            Err(problem) => {
                parsed.problem = Some(problem);
                break;
            }
        }
    }
    parsed
}

fn read_record(records: &[u8], at: usize, parsed: &mut ParsedChunk) -> Result<usize, String> {
    let mut cursor = Cursor::new(records.get(at..).unwrap_or_default());
    let op = cursor.take(1)?.first().copied().unwrap_or_default();
    let length = cursor.u64()?;
    let content = cursor.take(length)?;
    let end = at + RECORD_HEAD_BYTES + content.len();
    match op {
        opcode::SCHEMA => {
            let schema = SchemaRecord::parse(content)?;
            let place = parsed.messages.len();
            parsed
                .registrations
                .push((place, Registration::Schema(schema)));
        }
        opcode::CHANNEL => {
            let channel = ChannelRecord::parse(content)?;
            let place = parsed.messages.len();
            parsed
                .registrations
                .push((place, Registration::Channel(channel)));
        }
        opcode::MESSAGE => {
            let mut fields = Cursor::new(content);
            let channel = fields.u16()?;
            fields.u32()?;
            parsed.messages.push(ChunkMessage {
                channel,
                log_time: fields.u64()?,
                publish_time: fields.u64()?,
                payload: end - fields.rest().len()..end,
            });
        }
        _ => {}
    }
    Ok(end)
}
