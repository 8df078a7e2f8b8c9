//! Reads bags: a folder with `metadata.yaml`, a folder of MCAP files, or one file.
//!
//! Messages come in the order of their log times. Torn and damaged files are read as
//! far as they go, and [`BagReader::problems`] says what is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::accounting::{LOSS_RECORD, TopicAccount, from_texts};
use crate::error::BagError;
use crate::mcap::{ChunkLocation, ChunkMessage, McapFile, parse_chunk};
use crate::metadata::{BagMetadata, FileMetadata, METADATA_FILE, TopicMetadata};
use crate::qos_text::parse_profiles;
use crate::writer::{BagTopic, write_metadata};

/// Overlapping chunks are held together up to this size; beyond it the order of
/// messages is that of the chunks.
const LOADED_BYTES_MAX: usize = 1 << 30;

/// A topic of a bag that is read, with its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedTopic {
    /// Name, type, definition and QoS.
    pub topic: BagTopic,
    /// Its messages in all files.
    pub message_count: u64,
}

/// A message of a bag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BagMessage {
    /// Index in [`BagReader::topics`].
    pub topic: usize,
    /// When it was received, in nanoseconds since 1970.
    pub log_time: u64,
    /// When it was published.
    pub publish_time: u64,
    /// CDR with its encapsulation header: a view into the chunk.
    pub payload: Bytes,
}

/// Which messages are read. All by default.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// Indexes of topics; `None` for all.
    pub topics: Option<Vec<usize>>,
    /// The first log time.
    pub from: Option<u64>,
    /// The log time after the last.
    pub until: Option<u64>,
}

/// Reads a bag.
pub struct BagReader {
    path: PathBuf,
    files: Vec<McapFile>,
    /// Per file: the index of each channel's topic.
    channels: Vec<BTreeMap<u16, usize>>,
    topics: Vec<RecordedTopic>,
    metadata: Option<BagMetadata>,
    problems: Vec<String>,
}

impl BagReader {
    /// Opens a folder or a file. Reads summaries; a torn file is read to its end.
    ///
    /// # Errors
    /// There is no bag, or the system refuses. Damage is no error, see
    /// [`problems`](Self::problems).
    pub fn open(path: &Path) -> Result<Self, BagError> {
        let mut problems = Vec::new();
        let (metadata, paths) = find_files(path, &mut problems)?;
        let mut reader = Self {
            path: path.to_owned(),
            files: Vec::new(),
            channels: Vec::new(),
            topics: Vec::new(),
            metadata,
            problems,
        };
        let count = paths.len();
        for file in paths {
            match McapFile::open(&file) {
                Ok(open) => reader.add_file(open),
                // A bag of several files is read without those that are missing.
                Err(error) if count > 1 => reader.problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(reader)
    }

    /// Reads one MCAP file that lies in memory.
    ///
    /// # Errors
    /// It is no MCAP file. Damage is no error, see [`problems`](Self::problems).
    pub fn from_bytes(content: Vec<u8>) -> Result<Self, BagError> {
        let mut reader = Self::empty();
        reader.path = PathBuf::from("(memory)");
        let file = McapFile::from_bytes(content, &reader.path)?;
        reader.add_file(file);
        Ok(reader)
    }

    /// Opens several bags as one, whose messages are merged by time.
    ///
    /// # Errors
    /// As [`open`](Self::open), of the first that fails.
    pub fn open_all(paths: &[PathBuf]) -> Result<Self, BagError> {
        let mut merged = Self::empty();
        for path in paths {
            let one = Self::open(path)?;
            merged.path = one.path;
            merged.metadata = merged.metadata.or(one.metadata);
            merged.problems.extend(one.problems);
            one.files.into_iter().for_each(|file| merged.add_file(file));
        }
        Ok(merged)
    }

    /// A bag without files.
    pub(crate) fn empty() -> Self {
        Self {
            path: PathBuf::new(),
            files: Vec::new(),
            channels: Vec::new(),
            topics: Vec::new(),
            metadata: None,
            problems: Vec::new(),
        }
    }

    fn add_file(&mut self, mut file: McapFile) {
        let shown = file.path().display().to_string();
        for problem in file.problems.drain(..) {
            self.problems.push(format!("{shown}: {problem}"));
        }
        let mut channels = BTreeMap::new();
        for (id, channel) in &file.channels {
            let schema = file.schemas.get(&channel.schema_id);
            let type_name = schema.map(|schema| schema.name.clone()).unwrap_or_default();
            let known = self.topics.iter().position(|known| {
                known.topic.name == channel.topic && known.topic.type_name == type_name
            });
            let index = known.unwrap_or_else(|| {
                let value = |key: &str| channel.metadata.get(key).cloned().unwrap_or_default();
                let qos = parse_profiles(&value("offered_qos_profiles"));
                let offered_qos = qos.unwrap_or_else(|problem| {
                    self.problems.push(format!(
                        "{shown}: topic {}: its QoS profiles: {problem}",
                        channel.topic
                    ));
                    Vec::new()
                });
                let definition = schema.filter(|schema| schema.encoding == "ros2msg");
                let definition = definition.map(|schema| {
                    let text = String::from_utf8_lossy(&schema.data).into_owned();
                    // That of an empty message.
                    if text.is_empty() { "\n".into() } else { text }
                });
                self.topics.push(RecordedTopic {
                    topic: BagTopic {
                        name: channel.topic.clone(),
                        type_name,
                        definition: definition.unwrap_or_default(),
                        serialization_format: channel.message_encoding.clone(),
                        offered_qos,
                        type_hash: value("topic_type_hash"),
                    },
                    message_count: 0,
                });
                self.topics.len() - 1
            });
            if let Some(topic) = self.topics.get_mut(index) {
                topic.message_count += file.counts.get(id).copied().unwrap_or(0);
            }
            channels.insert(*id, index);
        }
        self.channels.push(channels);
        self.files.push(file);
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The topics, in the order of their channels.
    pub fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    /// Log times of the first and the last message; `None` without messages.
    pub fn span(&self) -> Option<(u64, u64)> {
        let spans = self.files.iter().filter_map(|file| file.span);
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Messages in all files.
    pub fn message_count(&self) -> u64 {
        self.files.iter().map(McapFile::message_count).sum()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(McapFile::bytes).sum()
    }

    /// Paths of the files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(McapFile::path)
    }

    /// Whether every file ends as its writer meant it to.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.is_complete)
    }

    /// `metadata.yaml`, if there is one.
    pub fn metadata(&self) -> Option<&BagMetadata> {
        self.metadata.as_ref()
    }

    /// What could not be read so far, in words.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The recorder's accounts by topic; empty if another recorder wrote the bag.
    pub fn accounts(&self) -> BTreeMap<String, TopicAccount> {
        let records = self.files.iter().rev();
        let mut found = records.filter_map(|file| file.metadata.get(LOSS_RECORD));
        found.next().map(from_texts).unwrap_or_default()
    }

    /// Reads the messages in the order of their log times. Damaged chunks are left
    /// out and noted.
    pub fn messages(&mut self, filter: MessageFilter) -> Messages<'_> {
        let mut waiting = Vec::new();
        for (file, open) in self.files.iter().enumerate() {
            for chunk in &open.chunks {
                let is_late = filter.until.is_some_and(|until| chunk.start >= until);
                if !is_late && filter.from.is_none_or(|from| chunk.end >= from) {
                    waiting.push((file, chunk.clone()));
                }
            }
        }
        // Taken from the back.
        waiting.sort_by_key(|(file, chunk)| std::cmp::Reverse((chunk.start, *file, chunk.offset)));
        Messages {
            reader: self,
            filter,
            waiting,
            loaded: Vec::new(),
        }
    }

    /// Describes the bag as `metadata.yaml` does, from its files.
    pub fn describe(&self) -> BagMetadata {
        let (start, end) = self.span().unwrap_or((0, 0));
        let embedded = self.files.iter().rev().find_map(|file| {
            let text = file.metadata.get("rosbag2")?.get("serialized_metadata")?;
            BagMetadata::read(text).ok()
        });
        let topics = self.topics.iter().map(|recorded| TopicMetadata {
            name: recorded.topic.name.clone(),
            type_name: recorded.topic.type_name.clone(),
            serialization_format: recorded.topic.serialization_format.clone(),
            offered_qos: recorded.topic.offered_qos.clone(),
            type_hash: recorded.topic.type_hash.clone(),
            message_count: recorded.message_count,
        });
        let files = self.files.iter().map(|file| {
            let (start, end) = file.span.unwrap_or((0, 0));
            let name = file.path().file_name().unwrap_or_default();
            FileMetadata {
                path: name.to_string_lossy().into_owned(),
                start,
                duration: end.saturating_sub(start),
                message_count: file.message_count(),
            }
        });
        let known = self.metadata.clone().or(embedded).unwrap_or_default();
        BagMetadata {
            storage: "mcap".into(),
            start,
            duration: end.saturating_sub(start),
            message_count: self.message_count(),
            topics: topics.collect(),
            files: files.collect(),
            custom_data: known.custom_data,
            ros_distro: known.ros_distro,
            ..BagMetadata::default()
        }
    }

    /// Writes `metadata.yaml` from the files of the folder.
    ///
    /// # Errors
    /// The path is a file, or there is such a file already.
    pub fn reindex(&self) -> Result<BagMetadata, BagError> {
        if !self.path.is_dir() {
            return Err(BagError::NotABag {
                path: self.path.clone(),
                problem: "reindex writes metadata.yaml into a bag's folder, and this is a file; name the folder".into(),
            });
        }
        let metadata = self.describe();
        write_metadata(&self.path, &metadata)?;
        Ok(metadata)
    }
}

/// The files of a bag, and its metadata.
fn find_files(
    path: &Path,
    problems: &mut Vec<String>,
) -> Result<(Option<BagMetadata>, Vec<PathBuf>), BagError> {
    let not_a_bag = |problem: &str| BagError::NotABag {
        path: path.to_owned(),
        problem: problem.to_owned(),
    };
    if path.is_file() {
        return Ok((None, vec![path.to_owned()]));
    }
    if !path.is_dir() {
        return Err(not_a_bag(
            "no such bag; name a folder that pteros bag record made, or an .mcap file",
        ));
    }
    let yaml = path.join(METADATA_FILE);
    let metadata = match std::fs::read_to_string(&yaml) {
        Ok(text) => match BagMetadata::read(&text) {
            Ok(metadata) => Some(metadata),
            // The files themselves say as much.
            Err(problem) => {
                problems.push(format!("{}: {problem}", yaml.display()));
                None
            }
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            problems.push(format!(
                "{}: missing, its recorder was stopped; write it with: pteros bag reindex {}",
                yaml.display(),
                path.display()
            ));
            None
        }
        Err(error) => return Err(BagError::io("reading", &yaml)(error)),
    };
    if let Some(known) = &metadata {
        if known.storage == "sqlite3" {
            return Err(not_a_bag(
                "a bag in sqlite3 storage; Pteros reads MCAP: convert it with ros2 bag convert",
            ));
        }
        if !known.compression_format.is_empty() {
            return Err(not_a_bag(
                "its files or messages are compressed as a whole; Pteros reads compressed chunks: convert it with ros2 bag convert",
            ));
        }
        let named: Vec<PathBuf> = known
            .files
            .iter()
            .map(|file| path.join(&file.path))
            .collect();
        if !named.is_empty() {
            return Ok((metadata, named));
        }
    }
    let listed = std::fs::read_dir(path).map_err(BagError::io("reading", path))?;
    let mut found: Vec<PathBuf> = listed
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|file| file.extension().is_some_and(|end| end == "mcap"))
        .collect();
    if found.is_empty() {
        return Err(not_a_bag("a folder without .mcap files is no bag"));
    }
    // bag_10 comes after bag_9.
    found.sort_by_key(|file| {
        let stem = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let number = stem
            .rsplit('_')
            .next()
            .and_then(|end| end.parse::<u64>().ok());
        (number, stem)
    });
    Ok((metadata, found))
}

struct LoadedChunk {
    file: usize,
    records: Bytes,
    /// Sorted backwards: the next one is the last.
    messages: Vec<ChunkMessage>,
}

/// The messages of a bag, see [`BagReader::messages`].
pub struct Messages<'a> {
    reader: &'a mut BagReader,
    filter: MessageFilter,
    waiting: Vec<(usize, ChunkLocation)>,
    loaded: Vec<LoadedChunk>,
}

impl Messages<'_> {
    /// The loaded chunk with the earliest message.
    fn earliest(&self) -> Option<(usize, u64)> {
        let firsts = self.loaded.iter().enumerate();
        firsts
            .filter_map(|(at, chunk)| Some((at, chunk.messages.last()?.log_time)))
            .min_by_key(|(_, time)| *time)
    }

    fn load_next(&mut self) {
        let Some((file, location)) = self.waiting.pop() else {
            return;
        };
        let Some(open) = self.reader.files.get_mut(file) else {
            return;
        };
        let location = open.with_checksum(&location);
        let records = match open.load(&location) {
            Ok(records) => records,
            Err(error) => {
                self.reader
                    .problems
                    .push(format!("{error}; its messages are left out"));
                return;
            }
        };
        let parsed = parse_chunk(&records);
        // A torn file has said so when it was opened.
        if let Some(problem) = parsed.problem
            && open.is_complete
        {
            let path = open.path().display();
            let problem = format!("{path}, chunk at byte {}: {problem}", location.offset);
            self.reader.problems.push(problem);
        }
        let mut messages = parsed.messages;
        let channels = self.reader.channels.get(file);
        messages.retain(|message| {
            let topic = channels.and_then(|channels| channels.get(&message.channel));
            let wanted = topic.is_some_and(|topic| {
                self.filter
                    .topics
                    .as_ref()
                    .is_none_or(|topics| topics.contains(topic))
            });
            wanted
                && self.filter.from.is_none_or(|from| message.log_time >= from)
                && self
                    .filter
                    .until
                    .is_none_or(|until| message.log_time < until)
        });
        // Stable: equal times keep the order of the file.
        messages.sort_by_key(|message| message.log_time);
        messages.reverse();
        self.loaded.push(LoadedChunk {
            file,
            records: records.into(),
            messages,
        });
    }
}

impl Iterator for Messages<'_> {
    type Item = BagMessage;

    fn next(&mut self) -> Option<BagMessage> {
        loop {
            self.loaded.retain(|chunk| !chunk.messages.is_empty());
            let earliest = self.earliest();
            let loaded: usize = self.loaded.iter().map(|chunk| chunk.records.len()).sum();
            let is_due = self.waiting.last().is_some_and(|(_, chunk)| {
                earliest.is_none_or(|(_, time)| chunk.start <= time && loaded < LOADED_BYTES_MAX)
            });
            if is_due {
                self.load_next();
                continue;
            }
            let (at, _) = earliest?;
            let chunk = self.loaded.get_mut(at)?;
            let message = chunk.messages.pop()?;
            let topic = self
                .reader
                .channels
                .get(chunk.file)?
                .get(&message.channel)?;
            return Some(BagMessage {
                topic: *topic,
                log_time: message.log_time,
                publish_time: message.publish_time,
                payload: chunk.records.slice(message.payload),
            });
        }
    }
}
