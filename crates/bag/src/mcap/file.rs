//! Reader of one MCAP file: reads its summary, or without one every record up to the last
//! complete one.
//!
//! A killed recorder leaves no summary. Its file is read as it is, and
//! [`McapFile::problems`] lists what is missing. Memory is bounded: records other than
//! chunks are read up to [`RECORD_BYTES_MAX`], and chunks one at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::chunk::{Redefined, Registration, Registry, parse_chunk};
use super::compression::{CHUNK_BYTES_MAX, Compression};
use super::records::{
    ChannelRecord, ChunkHead, ChunkIndex, Cursor, FOOTER_BYTES, MAGIC, MetadataRecord,
    RECORD_HEAD_BYTES, SchemaRecord, Statistics, opcode,
};
use crate::error::BagError;
use crate::source::{self, PROBLEMS_MAX, Source};

/// Longest record other than chunks and attachments. A longer one counts as damaged.
const RECORD_BYTES_MAX: u64 = 64 << 20;
/// Longest summary; 64 bytes per chunk are usual.
const SUMMARY_BYTES_MAX: u64 = 512 << 20;
/// Why messages are left out.
pub(crate) const REDEFINED: &str = "of channels that the file describes again, otherwise, are left out: the format has one description for an id";
/// Messages outside chunks are read in runs of this size.
const RUN_BYTES: u64 = 1 << 20;

/// Location of a chunk, or of a run of messages outside chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkLocation {
    pub start: u64,
    pub end: u64,
    /// File offset of its records.
    pub offset: u64,
    pub stored: u64,
    pub uncompressed: u64,
    pub compression: Compression,
    /// 0 is not checked; `None` means that the chunk's own head has it.
    pub crc: Option<u32>,
    /// The channels of its messages; `None` without an index.
    pub channels: Option<Arc<[u16]>>,
    /// The ids that have another meaning at its begin.
    pub redefined: Redefined,
}

/// An open file with its index.
pub(crate) struct McapFile {
    file: Box<dyn Source>,
    path: PathBuf,
    bytes: u64,
    pub known: Registry,
    /// The ids that have another meaning at the place that is scanned.
    redefined: Redefined,
    pub chunks: Vec<ChunkLocation>,
    pub metadata: BTreeMap<String, BTreeMap<String, String>>,
    pub counts: BTreeMap<u16, u64>,
    /// First and last log time; `None` without messages.
    pub span: Option<(u64, u64)>,
    /// Whether the file ends with a summary.
    pub is_complete: bool,
    /// One sentence per part that could not be read.
    pub problems: Vec<String>,
}

impl McapFile {
    /// Opens a file of `bytes`: reads its summary, or the whole file without one. `path`
    /// names it in errors.
    pub(crate) fn open(file: Box<dyn Source>, bytes: u64, path: &Path) -> Result<Self, BagError> {
        let mut open = Self {
            file,
            path: path.to_owned(),
            bytes,
            known: Registry::default(),
            redefined: Redefined::default(),
            chunks: Vec::new(),
            metadata: BTreeMap::new(),
            counts: BTreeMap::new(),
            span: None,
            is_complete: false,
            problems: Vec::new(),
        };
        open.check_magic()?;
        match open.read_summary() {
            Ok(true) => open.is_complete = true,
            Ok(false) => open.scan()?,
            Err(problem) => {
                open.problems
                    .push(format!("its summary is damaged: {problem}"));
                open.forget();
                open.scan()?;
            }
        }
        Ok(open)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn message_count(&self) -> u64 {
        self.counts.values().sum()
    }

    fn forget(&mut self) {
        self.known = Registry::default();
        self.chunks.clear();
        self.metadata.clear();
        self.counts.clear();
        self.span = None;
    }

    fn check_magic(&mut self) -> Result<(), BagError> {
        match self.read_at(0, MAGIC.len() as u64) {
            Ok(found) if found == MAGIC => Ok(()),
            _ => Err(BagError::NotABag {
                path: self.path.clone(),
                problem: "is no MCAP file: its first 8 bytes are not the format's".to_owned(),
            }),
        }
    }

    /// Reads exactly `count` bytes, which the caller has bounded.
    fn read_at(&mut self, offset: u64, count: u64) -> Result<Vec<u8>, BagError> {
        source::read_at(&mut *self.file, self.bytes, &self.path, offset, count)
    }

    /// Reads the summary section. Returns false if it is missing or incomplete.
    fn read_summary(&mut self) -> Result<bool, String> {
        let tail_bytes = (RECORD_HEAD_BYTES + FOOTER_BYTES + MAGIC.len()) as u64;
        let Some(footer_at) = self.bytes.checked_sub(tail_bytes) else {
            return Ok(false);
        };
        let tail = self
            .read_at(footer_at, tail_bytes)
            .map_err(|e| e.to_string())?;
        let Some((footer, ending)) = tail.split_at_checked(tail.len() - MAGIC.len()) else {
            return Ok(false);
        };
        if ending != MAGIC || footer.first() != Some(&opcode::FOOTER) {
            return Ok(false);
        }
        let mut fields = Cursor::new(footer);
        fields.take(RECORD_HEAD_BYTES as u64)?;
        let (start, _, crc) = (fields.u64()?, fields.u64()?, fields.u32()?);
        if start == 0 {
            return Ok(false);
        }
        let length = footer_at
            .checked_sub(start)
            .ok_or_else(|| format!("it begins at byte {start}, behind the footer"))?;
        if length > SUMMARY_BYTES_MAX {
            return Err(format!(
                "it has {length} bytes; at most {SUMMARY_BYTES_MAX} are read"
            ));
        }
        let mut summary = self.read_at(start, length).map_err(|e| e.to_string())?;
        let records_end = summary.len();
        summary.extend(footer.get(..footer.len() - 4).unwrap_or_default());
        if crc != 0 && crc32fast::hash(&summary) != crc {
            return Err("its checksum is wrong".to_owned());
        }
        summary.truncate(records_end);
        self.take_summary(&summary, start)
    }

    fn take_summary(&mut self, summary: &[u8], data_end: u64) -> Result<bool, String> {
        let mut cursor = Cursor::new(summary);
        let mut statistics = None;
        let mut metadata = Vec::new();
        let mut chunks = Vec::new();
        while !cursor.is_empty() {
            let op = cursor.take(1)?.first().copied().unwrap_or_default();
            let length = cursor.u64()?;
            let content = cursor.take(length)?;
            match op {
                opcode::SCHEMA => {
                    self.register(Registration::Schema(SchemaRecord::parse(content)?))
                }
                opcode::CHANNEL => {
                    self.register(Registration::Channel(ChannelRecord::parse(content)?))
                }
                opcode::STATISTICS => statistics = Some(Statistics::parse(content)?),
                opcode::CHUNK_INDEX => chunks.push(ChunkIndex::parse(content)?),
                opcode::METADATA_INDEX => {
                    let mut fields = Cursor::new(content);
                    metadata.push((fields.u64()?, fields.u64()?));
                }
                _ => {}
            }
        }
        let Some(statistics) = statistics else {
            return Ok(false);
        };
        let counted: u64 = statistics.by_channel.values().sum();
        let has_chunks = !chunks.is_empty() && chunks.len() as u64 >= statistics.chunk_count.into();
        let is_indexed = has_chunks || statistics.message_count == 0;
        // A writer may omit the channels, or their schemas.
        let mut counted_channels = statistics.by_channel.keys();
        let has_schema = |channel: &ChannelRecord| {
            channel.schema_id == 0 || self.known.schemas.contains_key(&channel.schema_id)
        };
        let are_known = counted_channels.all(|id| self.known.channels.contains_key(id))
            && self.known.channels.values().all(has_schema);
        if !is_indexed || !are_known || counted != statistics.message_count {
            self.forget();
            return Ok(false);
        }
        for index in chunks {
            self.keep_chunk_index(&index, data_end)?;
        }
        for (offset, length) in metadata {
            self.read_metadata(offset, length, data_end)?;
        }
        if statistics.message_count > 0 {
            self.span = Some((statistics.start, statistics.end));
        }
        self.counts = statistics.by_channel;
        Ok(true)
    }

    fn keep_chunk_index(&mut self, index: &ChunkIndex, data_end: u64) -> Result<(), String> {
        let end = index.offset.checked_add(index.length);
        if end.is_none_or(|end| end > data_end) || index.uncompressed > CHUNK_BYTES_MAX {
            return Err(format!(
                "it lists a chunk at byte {}, outside the data",
                index.offset
            ));
        }
        // An index may be empty, because a writer may omit its entries.
        let indexed = index.message_indexes.iter().map(|(channel, _)| *channel);
        let channels = (!index.message_indexes.is_empty()).then(|| indexed.collect());
        let head_bytes = 28 + 4 + index.compression.len() as u64 + 8;
        let records = RECORD_HEAD_BYTES as u64 + head_bytes;
        if index.length.checked_sub(records) != Some(index.compressed) {
            return Err(format!(
                "the sizes of the chunk at byte {} disagree",
                index.offset
            ));
        }
        self.chunks.push(ChunkLocation {
            start: index.start,
            end: index.end,
            offset: index.offset + records,
            stored: index.compressed,
            uncompressed: index.uncompressed,
            compression: Compression::of_name(&index.compression)?,
            crc: None,
            channels,
            redefined: Redefined::default(),
        });
        Ok(())
    }

    fn read_metadata(&mut self, offset: u64, length: u64, data_end: u64) -> Result<(), String> {
        let end = offset.checked_add(length);
        if length > RECORD_BYTES_MAX || end.is_none_or(|end| end > data_end) {
            return Err(format!(
                "it lists metadata at byte {offset}, outside the data"
            ));
        }
        let record = self.read_at(offset, length).map_err(|e| e.to_string())?;
        let content = record.get(RECORD_HEAD_BYTES..).unwrap_or_default();
        let metadata = MetadataRecord::parse(content)?;
        self.metadata.insert(metadata.name, metadata.values);
        Ok(())
    }

    fn register(&mut self, record: Registration) {
        self.known.compare(&record, &mut self.redefined);
        self.known.keep(&record);
    }

    fn note(&mut self, offset: u64, problem: &str) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(format!("byte {offset}: {problem}"));
        }
    }

    /// Reads the file record by record, up to its end or the first incomplete record.
    fn scan(&mut self) -> Result<(), BagError> {
        let mut at = MAGIC.len() as u64;
        let mut run: Option<ChunkLocation> = None;
        loop {
            if at == self.bytes {
                self.note(
                    at,
                    "the file ends without a summary: its writer was stopped",
                );
                break;
            }
            if at + RECORD_HEAD_BYTES as u64 > self.bytes {
                self.note(at, "the file ends within a record");
                break;
            }
            let head = self.read_at(at, RECORD_HEAD_BYTES as u64)?;
            let op = head.first().copied().unwrap_or_default();
            let length = Cursor::new(head.get(1..).unwrap_or_default())
                .u64()
                .unwrap_or(u64::MAX);
            let content_at = at + RECORD_HEAD_BYTES as u64;
            let end = content_at
                .checked_add(length)
                .filter(|end| *end <= self.bytes);
            if matches!(op, opcode::DATA_END | opcode::FOOTER) {
                let tail_at = self.bytes.saturating_sub(MAGIC.len() as u64);
                if self.read_at(tail_at, MAGIC.len() as u64)? != MAGIC {
                    self.note(
                        at,
                        "the file ends within its summary: its writer was stopped",
                    );
                } else {
                    // The writer has omitted the index.
                    self.is_complete |= self.problems.is_empty();
                }
                break;
            }
            if op == opcode::MESSAGE && end.is_some() {
                let (time, next) = (self.message_time(content_at, length)?, content_at + length);
                let Some(time) = time else {
                    self.note(at, "a message record that is too short");
                    at = next;
                    continue;
                };
                self.extend_run(&mut run, at, next, time);
                at = next;
                continue;
            }
            self.close_run(&mut run);
            if op == opcode::CHUNK {
                self.scan_chunk(content_at, length)?;
            } else if op == 0 {
                self.note(at, "a record with the opcode 0, which no writer uses");
                break;
            } else if let Some(end) = end
                && matches!(op, opcode::SCHEMA | opcode::CHANNEL | opcode::METADATA)
            {
                self.scan_small(op, at, content_at, end - content_at)?;
            }
            match end {
                Some(end) => at = end,
                None => {
                    self.note(at, "the file ends within a record");
                    break;
                }
            }
        }
        self.close_run(&mut run);
        Ok(())
    }

    fn message_time(&mut self, content_at: u64, length: u64) -> Result<Option<u64>, BagError> {
        if length < 22 {
            return Ok(None);
        }
        let fields = self.read_at(content_at, 14)?;
        Ok(Cursor::new(fields.get(6..).unwrap_or_default()).u64().ok())
    }

    fn extend_run(&mut self, run: &mut Option<ChunkLocation>, at: u64, next: u64, time: u64) {
        let bytes = next - at;
        if let Some(current) = run
            && current.stored + bytes <= RUN_BYTES
        {
            current.stored += bytes;
            current.uncompressed = current.stored;
            current.start = current.start.min(time);
            current.end = current.end.max(time);
            return;
        }
        if bytes > CHUNK_BYTES_MAX {
            self.note(
                at,
                "a message that is larger than the largest chunk that is read",
            );
            return;
        }
        let new = ChunkLocation {
            start: time,
            end: time,
            offset: at,
            stored: bytes,
            uncompressed: bytes,
            compression: Compression::None,
            crc: Some(0),
            channels: None,
            redefined: Redefined::default(),
        };
        if let Some(full) = run.replace(new) {
            self.keep_scanned(full);
        }
    }

    fn close_run(&mut self, run: &mut Option<ChunkLocation>) {
        if let Some(location) = run.take() {
            self.keep_scanned(location);
        }
    }

    fn scan_small(
        &mut self,
        op: u8,
        at: u64,
        content_at: u64,
        length: u64,
    ) -> Result<(), BagError> {
        if length > RECORD_BYTES_MAX {
            self.note(at, "a record that is longer than the longest that is read");
            return Ok(());
        }
        let content = self.read_at(content_at, length)?;
        let kept = match op {
            opcode::SCHEMA => SchemaRecord::parse(&content)
                .map(|schema| self.register(Registration::Schema(schema))),
            opcode::CHANNEL => ChannelRecord::parse(&content)
                .map(|channel| self.register(Registration::Channel(channel))),
            _ => MetadataRecord::parse(&content).map(|metadata| {
                self.metadata.insert(metadata.name, metadata.values);
            }),
        };
        if let Err(problem) = kept {
            self.note(at, &problem);
        }
        Ok(())
    }

    fn scan_chunk(&mut self, content_at: u64, length: u64) -> Result<(), BagError> {
        let there = self.bytes - content_at;
        let head_bytes = (ChunkHead::BYTES_MAX as u64).min(there).min(length);
        let head = ChunkHead::parse(&self.read_at(content_at, head_bytes)?);
        let head = match head {
            Ok(head) => head,
            Err(problem) => {
                self.note(content_at, &problem);
                return Ok(());
            }
        };
        let compression = match Compression::of_name(&head.compression) {
            Ok(compression) => compression,
            Err(problem) => {
                self.note(content_at, &problem);
                return Ok(());
            }
        };
        let records = length.checked_sub(head.bytes);
        if records != Some(head.stored) {
            self.note(
                content_at,
                "the length of a chunk and of its records disagree",
            );
            return Ok(());
        }
        let whole = there.saturating_sub(head.bytes) >= head.stored;
        let mut location = ChunkLocation {
            start: head.start,
            end: head.end,
            offset: content_at + head.bytes,
            stored: head.stored,
            uncompressed: head.uncompressed,
            compression,
            crc: Some(head.crc),
            channels: None,
            redefined: Redefined::default(),
        };
        if !whole {
            // The first messages of an uncompressed chunk are complete.
            if compression != Compression::None {
                return Ok(());
            }
            location.stored = there.saturating_sub(head.bytes);
            location.uncompressed = location.stored;
            location.crc = Some(0);
        }
        self.keep_scanned(location);
        Ok(())
    }

    /// Counts the messages of a chunk, and keeps its location if it has any.
    fn keep_scanned(&mut self, mut location: ChunkLocation) {
        let records = match self.load(&location) {
            Ok(records) => records,
            Err(error) => {
                let problem = match error {
                    BagError::Damaged { problem, .. } => problem,
                    other => other.to_string(),
                };
                self.note(location.offset, &problem);
                return;
            }
        };
        let mut parsed = parse_chunk(&records);
        for (_, record) in &parsed.registrations {
            self.known.keep(record);
        }
        location.redefined = self.redefined.clone();
        let count = self.known.retain_known(&mut parsed, &mut self.redefined);
        if count > 0 {
            let problem = format!("{count} messages {REDEFINED}");
            self.note(location.offset, &problem);
        }
        let times = parsed.messages.iter().map(|message| message.log_time);
        let (Some(start), Some(end)) = (times.clone().min(), times.max()) else {
            return;
        };
        (location.start, location.end) = (start, end);
        let (first, last) = self.span.unwrap_or((start, end));
        self.span = Some((first.min(start), last.max(end)));
        let mut channels = BTreeSet::new();
        for message in parsed.messages {
            *self.counts.entry(message.channel).or_default() += 1;
            channels.insert(message.channel);
        }
        location.channels = Some(channels.into_iter().collect());
        self.chunks.push(location);
    }

    /// Reads and decompresses a chunk.
    ///
    /// # Errors
    /// The system's, or the chunk is damaged.
    pub(crate) fn load(&mut self, location: &ChunkLocation) -> Result<Vec<u8>, BagError> {
        let damaged = |path: &Path, problem: String| BagError::Damaged {
            path: path.to_owned(),
            offset: location.offset,
            problem,
        };
        if location.stored > CHUNK_BYTES_MAX {
            let problem = format!(
                "a chunk of {} bytes; at most {CHUNK_BYTES_MAX} are read",
                location.stored
            );
            return Err(damaged(&self.path, problem));
        }
        let stored = self.read_at(location.offset, location.stored)?;
        let records = location
            .compression
            .decompress(stored, location.uncompressed);
        let records = records.map_err(|problem| damaged(&self.path, problem))?;
        let crc = location.crc.filter(|crc| *crc != 0);
        if crc.is_some_and(|crc| crc32fast::hash(&records) != crc) {
            return Err(damaged(
                &self.path,
                "the checksum of a chunk is wrong".to_owned(),
            ));
        }
        Ok(records)
    }

    /// The checksum in a chunk's own head, which the summary lacks.
    pub(crate) fn with_checksum(&mut self, location: &ChunkLocation) -> ChunkLocation {
        let mut found = location.clone();
        let head_bytes = 28 + 4 + location.compression.name().len() as u64 + 8;
        let crc_at = location
            .offset
            .checked_sub(head_bytes)
            .map(|head| head + 24);
        if found.crc.is_none()
            && let Some(crc_at) = crc_at
            && let Ok(bytes) = self.read_at(crc_at, 4)
        {
            found.crc = Cursor::new(&bytes).u32().ok();
        }
        found
    }
}
