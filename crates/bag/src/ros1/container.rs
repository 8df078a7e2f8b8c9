//! Container of ROS 1 bags, format 2.0: records with a header of named fields, and chunks
//! of connections and messages.
//!
//! The bag of a killed recorder has no index. It is read record by record.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::MAGIC;
use crate::error::BagError;
use crate::mcap::{CHUNK_BYTES_MAX, check_growth, growth_limit, read_limited};
use crate::source::{self, Source};

/// Longest header of a record, and longest data other than chunks.
const HEADER_BYTES_MAX: u64 = 1 << 20;
const DATA_BYTES_MAX: u64 = 64 << 20;
/// Index records of the largest bag that is read.
const INDEX_RECORDS_MAX: usize = 4_000_000;

const OP_MESSAGE: u8 = 0x02;
const OP_BAG: u8 = 0x03;
const OP_INDEX: u8 = 0x04;
const OP_CHUNK: u8 = 0x05;
const OP_CHUNK_INFO: u8 = 0x06;
const OP_CONNECTION: u8 = 0x07;

/// Connection of a publisher: topic and type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Connection {
    pub id: u32,
    pub topic: String,
    /// Type name, for example `sensor_msgs/Image`.
    pub type_name: String,
    pub definition: String,
    /// MD5 of the definition, in hexadecimal; empty or `*` if unknown.
    pub md5: String,
    pub is_latching: bool,
}

/// Offset of a chunk, and the times of its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkInfo {
    pub offset: u64,
    pub start: u64,
    pub end: u64,
    /// Message counts by connection.
    pub counts: Vec<(u32, u64)>,
}

/// A message with its time and location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ros1Message {
    pub connection: u32,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// Range of its data in the records.
    pub data: std::ops::Range<usize>,
}

/// An open ROS 1 bag.
pub(crate) struct Container {
    file: Box<dyn Source>,
    path: PathBuf,
    bytes: u64,
}

/// A record at the top level: its fields, and the location of its data.
struct Head {
    fields: Vec<u8>,
    data_at: u64,
    data_bytes: u64,
}

/// Named fields of a record's header.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn value(&self, name: &str) -> Option<&'a [u8]> {
        let mut rest = self.0;
        loop {
            let (length, after) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
            let (field, next) = after.split_at_checked(length)?;
            let equals = field.iter().position(|byte| *byte == b'=')?;
            let (key, value) = field.split_at_checked(equals)?;
            if key == name.as_bytes() {
                return value.get(1..);
            }
            rest = next;
        }
    }

    fn op(&self) -> Option<u8> {
        self.value("op")?.first().copied()
    }

    fn u32(&self, name: &str) -> Result<u32, String> {
        let found = self.value(name).and_then(|value| value.try_into().ok());
        let bytes = found.ok_or_else(|| format!("a record without a valid field {name}"))?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn u64(&self, name: &str) -> Result<u64, String> {
        let found = self.value(name).and_then(|value| value.try_into().ok());
        let bytes = found.ok_or_else(|| format!("a record without a valid field {name}"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Reads seconds and nanoseconds as nanoseconds.
    fn time(&self, name: &str) -> Result<u64, String> {
        let both = self.u64(name)?;
        Ok((both & 0xffff_ffff) * 1_000_000_000 + (both >> 32))
    }

    fn text(&self, name: &str) -> String {
        let value = self.value(name).unwrap_or_default();
        String::from_utf8_lossy(value).into_owned()
    }
}

impl Connection {
    fn parse(header: &[u8], data: &[u8]) -> Result<Self, String> {
        let (fields, more) = (Fields(header), Fields(data));
        Ok(Self {
            id: fields.u32("conn")?,
            topic: fields.text("topic"),
            type_name: more.text("type"),
            definition: more.text("message_definition"),
            md5: more.text("md5sum"),
            is_latching: more.value("latching") == Some(b"1"),
        })
    }
}

/// Connections and chunks, from the index or a scan.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub connections: Vec<Connection>,
    pub chunks: Vec<ChunkInfo>,
    /// Whether the bag has an index.
    pub is_complete: bool,
    pub problems: Vec<String>,
}

impl Contents {
    fn note(&mut self, problem: String) {
        if self.problems.len() < source::PROBLEMS_MAX {
            self.problems.push(problem);
        }
    }
}

impl Container {
    pub(crate) fn new(file: Box<dyn Source>, bytes: u64, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
            bytes,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&mut self, offset: u64, count: u64) -> Result<Vec<u8>, BagError> {
        source::read_at(&mut *self.file, self.bytes, &self.path, offset, count)
    }

    fn damaged(&self, offset: u64, problem: String) -> BagError {
        BagError::Damaged {
            path: self.path.clone(),
            offset,
            problem,
        }
    }

    fn length_at(&mut self, offset: u64) -> Result<u64, BagError> {
        let bytes = self.read_at(offset, 4)?;
        let length = bytes.first_chunk().copied().map(u32::from_le_bytes);
        Ok(u64::from(length.unwrap_or(0)))
    }

    fn head(&mut self, offset: u64) -> Result<Head, BagError> {
        let header_bytes = self.length_at(offset)?;
        if header_bytes > HEADER_BYTES_MAX {
            let problem =
                format!("a header of {header_bytes} bytes; at most {HEADER_BYTES_MAX} are read");
            return Err(self.damaged(offset, problem));
        }
        let fields = self.read_at(offset + 4, header_bytes)?;
        let data_bytes = self.length_at(offset + 4 + header_bytes)?;
        Ok(Head {
            fields,
            data_at: offset + 8 + header_bytes,
            data_bytes,
        })
    }

    fn data(&mut self, head: &Head) -> Result<Vec<u8>, BagError> {
        if head.data_bytes > DATA_BYTES_MAX {
            let problem = format!(
                "a record of {} bytes; at most {DATA_BYTES_MAX} are read",
                head.data_bytes
            );
            return Err(self.damaged(head.data_at, problem));
        }
        self.read_at(head.data_at, head.data_bytes)
    }

    /// Reads the index, or the whole bag where there is none.
    ///
    /// # Errors
    /// The first record is not a bag header.
    pub(crate) fn contents(&mut self) -> Result<Contents, BagError> {
        let start = MAGIC.len() as u64;
        let head = self.head(start)?;
        let fields = Fields(&head.fields);
        if fields.op() != Some(OP_BAG) {
            let problem = "the first record is not the bag's header".to_owned();
            return Err(self.damaged(start, problem));
        }
        let index_at = fields.u64("index_pos").unwrap_or(0);
        let announced = |name: &str| fields.u32(name).ok().and_then(|n| usize::try_from(n).ok());
        let announced = (announced("conn_count"), announced("chunk_count"));
        let first = head.data_at.saturating_add(head.data_bytes);
        if index_at > 0 {
            match self.read_index(index_at, first, announced) {
                Ok(contents) => return Ok(contents),
                Err(error) => {
                    let mut contents = self.scan(first);
                    contents.note(format!("its index is damaged: {error}"));
                    return Ok(contents);
                }
            }
        }
        let mut contents = self.scan(first);
        contents.note("the bag has no index: its recorder was stopped".to_owned());
        Ok(contents)
    }

    /// Reads the index behind the chunks. A complete index has as many connections and
    /// chunks as the bag's header announces. A file truncated before or within it has
    /// fewer.
    fn read_index(
        &mut self,
        mut at: u64,
        first: u64,
        announced: (Option<usize>, Option<usize>),
    ) -> Result<Contents, BagError> {
        let start = at;
        let mut contents = Contents {
            is_complete: true,
            ..Contents::default()
        };
        for _ in 0..INDEX_RECORDS_MAX {
            if at >= self.bytes {
                break;
            }
            let head = self.head(at)?;
            let data = self.data(&head)?;
            let damaged = |problem| BagError::Damaged {
                path: self.path.clone(),
                offset: at,
                problem,
            };
            match Fields(&head.fields).op() {
                Some(OP_CONNECTION) => contents
                    .connections
                    .push(Connection::parse(&head.fields, &data).map_err(damaged)?),
                Some(OP_CHUNK_INFO) => contents
                    .chunks
                    .push(chunk_info(&head.fields, &data).map_err(damaged)?),
                _ => return Err(damaged("a record that belongs into no index".to_owned())),
            }
            at = head.data_at + head.data_bytes;
        }
        let found = (contents.connections.len(), contents.chunks.len());
        let (connections, chunks) = announced;
        let is_short = start > self.bytes
            || (start == self.bytes && first < start)
            || connections.is_some_and(|announced| found.0 < announced)
            || chunks.is_some_and(|announced| found.1 < announced);
        if is_short {
            let problem = format!(
                "the file ends before its index does: it has {} connections and {} chunks",
                found.0, found.1
            );
            return Err(self.damaged(start.min(self.bytes), problem));
        }
        Ok(contents)
    }

    /// Scans the bag up to the first incomplete record.
    fn scan(&mut self, mut at: u64) -> Contents {
        let mut contents = Contents::default();
        // Zeros after a power cut are many records without an op.
        let mut is_in_gap = false;
        while at < self.bytes {
            let head = self.head(at).ok();
            let end = head.as_ref().map(|head| head.data_at + head.data_bytes);
            let is_whole = end.is_some_and(|end| end <= self.bytes);
            let Some(head) = head.as_ref().filter(|_| is_whole) else {
                let op = head.and_then(|head| Fields(&head.fields).op());
                if op == Some(OP_CHUNK) {
                    // Its first messages may be complete.
                    self.scan_chunk(at, &mut contents);
                }
                contents.note(format!("byte {at}: the file ends within a record"));
                break;
            };
            let op = Fields(&head.fields).op();
            let was_in_gap = std::mem::replace(&mut is_in_gap, op.is_none());
            match op {
                Some(OP_CHUNK) => self.scan_chunk(at, &mut contents),
                Some(OP_CONNECTION) => {
                    let parsed = self
                        .data(head)
                        .map_err(|error| error.to_string())
                        .and_then(|data| Connection::parse(&head.fields, &data));
                    match parsed {
                        Ok(connection) => add_connection(&mut contents, connection),
                        Err(problem) => contents.note(format!("byte {at}: {problem}")),
                    }
                }
                Some(OP_INDEX | OP_CHUNK_INFO) => {}
                Some(op) => contents.note(format!("byte {at}: a record with the unknown op {op}")),
                None if was_in_gap => {}
                None => contents.note(format!("byte {at}: no record of a bag")),
            }
            at = head.data_at + head.data_bytes;
        }
        contents
    }

    fn scan_chunk(&mut self, at: u64, contents: &mut Contents) {
        let (records, is_torn) = match self.load(at) {
            Ok(loaded) => loaded,
            Err(error) => return contents.note(error.to_string()),
        };
        let parsed = parse_records(&records);
        if let Some(problem) = parsed.problem.filter(|_| !is_torn) {
            contents.note(format!("chunk at byte {at}: {problem}"));
        }
        for connection in parsed.connections {
            add_connection(contents, connection);
        }
        let mut counts = std::collections::BTreeMap::<u32, u64>::new();
        for message in &parsed.messages {
            *counts.entry(message.connection).or_default() += 1;
        }
        let times = parsed.messages.iter().map(|message| message.time);
        if let (Some(start), Some(end)) = (times.clone().min(), times.max()) {
            contents.chunks.push(ChunkInfo {
                offset: at,
                start,
                end,
                counts: counts.into_iter().collect(),
            });
        }
    }

    /// Reads and decompresses the chunk at an offset. Of a truncated chunk it reads the
    /// available part, and returns true.
    ///
    /// # Errors
    /// The system's, or the chunk is damaged.
    pub(crate) fn load(&mut self, offset: u64) -> Result<(Vec<u8>, bool), BagError> {
        let head = self.head(offset)?;
        let fields = Fields(&head.fields);
        if fields.op() != Some(OP_CHUNK) {
            let problem = "a record that is no chunk where a chunk belongs".to_owned();
            return Err(self.damaged(offset, problem));
        }
        let size = fields.u32("size").map_err(|p| self.damaged(offset, p))?;
        let size = u64::from(size);
        let there = self.bytes.saturating_sub(head.data_at);
        let is_torn = there < head.data_bytes;
        let stored = head.data_bytes.min(there);
        if size > CHUNK_BYTES_MAX || stored > CHUNK_BYTES_MAX {
            let problem =
                format!("a chunk that announces {size} bytes; at most {CHUNK_BYTES_MAX} are read");
            return Err(self.damaged(offset, problem));
        }
        let stored = self.read_at(head.data_at, stored)?;
        let grown = check_growth(stored.len() as u64, size);
        if !is_torn {
            grown.map_err(|problem| self.damaged(offset, problem))?;
        }
        let packed = stored.as_slice();
        let read = |reader: &mut dyn Read| {
            if !is_torn {
                return read_limited(reader, size);
            }
            let mut front = Vec::new();
            // An error means the end, which is handled.
            let _ = reader
                .take(growth_limit(packed.len() as u64).min(size))
                .read_to_end(&mut front);
            Ok(front)
        };
        let records = match fields.value("compression") {
            Some(b"none") => Ok(stored),
            Some(b"bz2") => read(&mut bzip2::read::BzDecoder::new(packed)),
            Some(b"lz4") => read(&mut lz4_flex::frame::FrameDecoder::new(packed)),
            other => Err(format!(
                "a chunk with compression {:?}; Pteros reads none, bz2 and lz4",
                String::from_utf8_lossy(other.unwrap_or_default())
            )),
        };
        let records = records.map_err(|problem| self.damaged(offset, problem))?;
        if records.len() as u64 != size && !is_torn {
            let problem = format!(
                "a chunk that announces {size} bytes and has {}",
                records.len()
            );
            return Err(self.damaged(offset, problem));
        }
        Ok((records, is_torn))
    }
}

fn add_connection(contents: &mut Contents, connection: Connection) {
    let mut known = contents.connections.iter();
    if !known.any(|known| known.id == connection.id) {
        contents.connections.push(connection);
    }
}

fn chunk_info(header: &[u8], data: &[u8]) -> Result<ChunkInfo, String> {
    let fields = Fields(header);
    let pairs = data.as_chunks::<8>().0.iter();
    let counts = pairs.map(|pair| {
        let both = u64::from_le_bytes(*pair);
        // The lower half is the connection number.
        let connection = u32::try_from(both & 0xffff_ffff).unwrap_or(0);
        (connection, both >> 32)
    });
    Ok(ChunkInfo {
        offset: fields.u64("chunk_pos")?,
        start: fields.time("start_time")?,
        end: fields.time("end_time")?,
        counts: counts.collect(),
    })
}

/// Records of a chunk up to the first damaged one.
#[derive(Debug, Default)]
pub(crate) struct ParsedRecords {
    pub connections: Vec<Connection>,
    pub messages: Vec<Ros1Message>,
    pub problem: Option<String>,
}

/// Parses the records of a decompressed chunk up to the first damaged one.
pub(crate) fn parse_records(records: &[u8]) -> ParsedRecords {
    let mut parsed = ParsedRecords::default();
    let mut at = 0;
    while at < records.len() {
        let Some((header, data)) = record_at(records, at) else {
            parsed.problem = Some(format!("a record beyond the chunk, at its byte {at}"));
            break;
        };
        let fields = Fields(records.get(header.clone()).unwrap_or_default());
        let content = records.get(data.clone()).unwrap_or_default();
        at = data.end;
        let taken = match fields.op() {
            Some(OP_MESSAGE) => fields.u32("conn").and_then(|connection| {
                let time = fields.time("time")?;
                parsed.messages.push(Ros1Message {
                    connection,
                    time,
                    data,
                });
                Ok(())
            }),
            Some(OP_CONNECTION) => Connection::parse(fields.0, content)
                .map(|connection| parsed.connections.push(connection)),
            _ => Ok(()),
        };
        if let Err(problem) = taken {
            parsed.problem = Some(problem);
            break;
        }
    }
    parsed
}

/// Ranges of a record's header and data.
fn record_at(
    records: &[u8],
    at: usize,
) -> Option<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    let length = |at: usize| {
        let bytes = records.get(at..at.checked_add(4)?)?;
        usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    let header = at + 4..(at + 4).checked_add(length(at)?)?;
    let start = header.end.checked_add(4)?;
    let data = start..start.checked_add(length(header.end)?)?;
    (data.end <= records.len()).then_some((header, data))
}
