//! Reads bags: a folder with `metadata.yaml`, a folder of files, or one file. Files are
//! MCAP, databases of rosbag2's sqlite3 storage, or bags of ROS 1.
//!
//! Messages come in the order of their log times, or of their publish times. Torn and damaged files are read as
//! far as they go, and [`BagReader::problems`] says what is missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pteros::msg::library::InterfaceLibrary;

use crate::accounting::{LOSS_RECORD, TopicAccount, from_texts};
use crate::bag_files::find_files;
use crate::error::BagError;
use crate::metadata::{BagMetadata, FileMetadata, TopicMetadata};
use crate::storage::open::{OpenFile, open_bytes, open_file};
use crate::storage::{Block, BlockMessage, Format, StorageFile, decompress_message};
use crate::topic::BagTopic;
use crate::writer::write_metadata;

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
    /// Index in [`BagReader::files`].
    pub file: usize,
    /// When it was received, in nanoseconds since 1970.
    pub log_time: u64,
    /// When it was published.
    pub publish_time: u64,
    /// CDR with its encapsulation header: a view into the chunk.
    pub payload: Bytes,
}

impl BagMessage {
    /// The time by which the message is ordered. A publish time of 0 is unknown.
    pub fn time(&self, order: MessageOrder) -> u64 {
        time_of(order, self.log_time, self.publish_time)
    }
}

fn time_of(order: MessageOrder, log_time: u64, publish_time: u64) -> u64 {
    match order {
        MessageOrder::Sent if publish_time > 0 => publish_time,
        MessageOrder::Received | MessageOrder::Sent => log_time,
    }
}

/// By which time messages are ordered and chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageOrder {
    /// When the recorder received them.
    #[default]
    Received,
    /// When they were published. The whole bag is read once more, to find the times.
    Sent,
}

/// Which messages are read. All by default.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// Indexes of topics; `None` for all.
    pub topics: Option<Vec<usize>>,
    /// The first time.
    pub from: Option<u64>,
    /// The time after the last.
    pub until: Option<u64>,
    /// The time that orders messages.
    pub order: MessageOrder,
}

/// Reads a bag.
pub struct BagReader {
    path: PathBuf,
    files: Vec<Box<dyn StorageFile>>,
    /// Per file: the index of each channel's topic.
    channels: Vec<BTreeMap<u16, usize>>,
    topics: Vec<RecordedTopic>,
    metadata: Option<BagMetadata>,
    /// Blocks by publish times, once they were asked for.
    sent: Option<Vec<Vec<Block>>>,
    format: Option<Format>,
    /// Per file: whether each message is compressed.
    are_compressed: Vec<bool>,
    problems: Vec<String>,
}

impl BagReader {
    /// Opens a folder or a file. Reads summaries; a torn file is read to its end.
    ///
    /// # Errors
    /// There is no bag, or the system refuses. Damage is no error, see
    /// [`problems`](Self::problems).
    pub fn open(path: &Path) -> Result<Self, BagError> {
        Self::open_with(path, pteros::interfaces::library())
    }

    /// As [`open`](Self::open), with the definitions of the types that messages of a
    /// ROS 1 bag become.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: &Path, library: &InterfaceLibrary) -> Result<Self, BagError> {
        let mut reader = Self::empty();
        reader.path = path.to_owned();
        let (metadata, paths) = find_files(path, &mut reader.problems)?;
        reader.metadata = metadata;
        let count = paths.len();
        for file in paths {
            match open_file(&file, library) {
                Ok(open) => reader.add_file(open)?,
                // A bag of several files is read without those that are missing.
                Err(error) if count > 1 => reader.problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(reader)
    }

    /// Reads one file that lies in memory, of any format.
    ///
    /// # Errors
    /// It is no bag. Damage is no error, see [`problems`](Self::problems).
    pub fn from_bytes(content: Vec<u8>) -> Result<Self, BagError> {
        let mut reader = Self::empty();
        reader.path = PathBuf::from("(memory)");
        let library = pteros::interfaces::library();
        reader.add_file(open_bytes(content, &reader.path, library)?)?;
        Ok(reader)
    }

    /// Opens several bags as one, whose messages are merged by time.
    ///
    /// # Errors
    /// As [`open_with`](Self::open_with), of the first that fails.
    pub fn open_all(paths: &[PathBuf], library: &InterfaceLibrary) -> Result<Self, BagError> {
        let mut merged = Self::empty();
        for path in paths {
            let one = Self::open_with(path, library)?;
            merged.path = one.path;
            merged.metadata = merged.metadata.or(one.metadata);
            merged.format = merged.format.or(one.format);
            merged.problems.extend(one.problems);
            for (file, is_compressed) in one.files.into_iter().zip(one.are_compressed) {
                merged.add_topics(&*file);
                merged.files.push(file);
                merged.are_compressed.push(is_compressed);
            }
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
            sent: None,
            format: None,
            are_compressed: Vec::new(),
            problems: Vec::new(),
        }
    }

    fn add_file(&mut self, open: OpenFile) -> Result<(), BagError> {
        let OpenFile { mut file, format } = open;
        let shown = file.path().display().to_string();
        let prefixed = |problem: String| {
            // An error of the system or of a record names the file itself.
            if problem.contains(&shown) {
                problem
            } else {
                format!("{shown}: {problem}")
            }
        };
        self.problems
            .extend(file.take_problems().into_iter().map(prefixed));
        let is_compressed = self.messages_are_compressed(&*file)?;
        self.format = self.format.or(Some(format));
        self.add_topics(&*file);
        self.files.push(file);
        self.are_compressed.push(is_compressed);
        Ok(())
    }

    /// Whether each message is compressed, as `metadata.yaml` or the file itself says.
    fn messages_are_compressed(&self, file: &dyn StorageFile) -> Result<bool, BagError> {
        let embedded = embedded_metadata(file);
        let known = self.metadata.as_ref().or(embedded.as_ref());
        let Some(known) = known.filter(|known| !known.compression_format.is_empty()) else {
            return Ok(false);
        };
        if known.compression_format != "zstd" {
            return Err(BagError::NotABag {
                path: file.path().to_owned(),
                problem: format!(
                    "its compression_format is {:?}; Pteros reads zstd: convert it with ros2 bag convert",
                    known.compression_format
                ),
            });
        }
        Ok(known.compression_mode.eq_ignore_ascii_case("message"))
    }

    fn add_topics(&mut self, file: &dyn StorageFile) {
        let mut channels = BTreeMap::new();
        for stored in file.topics() {
            if let Some(problem) = stored.problem {
                self.problems
                    .push(format!("{}: {problem}", file.path().display()));
            }
            let known = self.topics.iter().position(|known| {
                known.topic.name == stored.topic.name
                    && known.topic.type_name == stored.topic.type_name
            });
            let index = known.unwrap_or_else(|| {
                self.topics.push(RecordedTopic {
                    topic: stored.topic,
                    message_count: 0,
                });
                self.topics.len() - 1
            });
            if let Some(topic) = self.topics.get_mut(index) {
                topic.message_count += stored.message_count;
            }
            channels.insert(stored.channel, index);
        }
        self.channels.push(channels);
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
        let spans = self.files.iter().filter_map(|file| file.span());
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// The first and the last time by an order; `None` without messages. Publish times
    /// are found by reading the whole bag.
    pub fn span_by(&mut self, order: MessageOrder) -> Option<(u64, u64)> {
        match order {
            MessageOrder::Received => self.span(),
            MessageOrder::Sent => {
                let blocks = self.sent_blocks().iter().flatten();
                let spans = blocks.map(|block| (block.start, block.end));
                spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            }
        }
    }

    fn sent_blocks(&mut self) -> &[Vec<Block>] {
        let known = self.sent.take().unwrap_or_else(|| {
            let files = self.files.iter_mut();
            files.map(|file| sent_blocks(&mut **file)).collect()
        });
        self.sent.insert(known)
    }

    /// Messages in all files.
    pub fn message_count(&self) -> u64 {
        self.files.iter().map(|file| file.message_count()).sum()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes()).sum()
    }

    /// Paths of the files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path())
    }

    /// Whether every file ends as its writer meant it to.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.is_complete())
    }

    /// `metadata.yaml`, if there is one.
    pub fn metadata(&self) -> Option<&BagMetadata> {
        self.metadata.as_ref()
    }

    /// Sentences about the parts that could not be read so far.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The recorder's accounts by topic; empty if another recorder wrote the bag.
    pub fn accounts(&self) -> BTreeMap<String, TopicAccount> {
        let records = self.files.iter().rev();
        let mut found = records.filter_map(|file| file.texts(LOSS_RECORD));
        found.next().map(from_texts).unwrap_or_default()
    }

    /// Reads the messages in the order of their log times. Damaged chunks are left
    /// out and noted.
    pub fn messages(&mut self, filter: MessageFilter) -> Messages<'_> {
        let blocks = match filter.order {
            MessageOrder::Received => self.files.iter().map(|file| file.blocks()).collect(),
            MessageOrder::Sent => self.sent_blocks().to_vec(),
        };
        let mut waiting = Vec::new();
        for (file, blocks) in blocks.into_iter().enumerate() {
            for (at, block) in blocks.into_iter().enumerate() {
                let is_late = filter.until.is_some_and(|until| block.start >= until);
                if !is_late && filter.from.is_none_or(|from| block.end >= from) {
                    waiting.push(WaitingBlock {
                        start: block.start,
                        file,
                        at,
                    });
                }
            }
        }
        // Taken from the back.
        waiting.sort_by_key(|block| std::cmp::Reverse((block.start, block.file, block.at)));
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
        let files = self.files.iter().rev();
        let embedded = files.clone().find_map(|file| embedded_metadata(&**file));
        let distro = files
            .clone()
            .find_map(|file| file.texts("rosbag2")?.get("ROS_DISTRO").cloned());
        let topics = self.topics.iter().map(|recorded| TopicMetadata {
            name: recorded.topic.name.clone(),
            type_name: recorded.topic.type_name.clone(),
            serialization_format: recorded.topic.serialization_format.clone(),
            offered_qos: recorded.topic.offered_qos.clone(),
            type_hash: recorded.topic.type_hash.clone(),
            message_count: recorded.message_count,
        });
        let files = self.files.iter().map(|file| {
            let (start, end) = file.span().unwrap_or((0, 0));
            let name = file.path().file_name().unwrap_or_default();
            FileMetadata {
                path: name.to_string_lossy().into_owned(),
                start,
                duration: end.saturating_sub(start),
                message_count: file.message_count(),
            }
        });
        let is_compressed = self.files().any(|file| {
            let ending = file.extension();
            ending.is_some_and(|ending| ending == "zstd")
        });
        let known = self.metadata.clone().or(embedded).unwrap_or_default();
        BagMetadata {
            storage: self.format.unwrap_or(Format::Mcap).storage_id().into(),
            start,
            duration: end.saturating_sub(start),
            message_count: self.message_count(),
            topics: topics.collect(),
            files: files.collect(),
            custom_data: known.custom_data,
            ros_distro: match known.ros_distro {
                known if known.is_empty() => distro.unwrap_or_default(),
                known => known,
            },
            compression_format: if is_compressed {
                "zstd".into()
            } else {
                known.compression_format
            },
            compression_mode: if is_compressed {
                "FILE".into()
            } else {
                known.compression_mode
            },
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

/// The metadata in a file of MCAP or sqlite3.
fn embedded_metadata(file: &dyn StorageFile) -> Option<BagMetadata> {
    let text = file.texts("rosbag2")?.get("serialized_metadata")?;
    BagMetadata::read(text).ok()
}

/// The blocks of a file by publish times. A block that cannot be read keeps its log
/// times: reading its messages notes the reason.
fn sent_blocks(file: &mut dyn StorageFile) -> Vec<Block> {
    let known = file.blocks();
    let blocks = known.into_iter().enumerate().map(|(at, block)| {
        let messages = file.load(at).map(|loaded| loaded.messages);
        let messages = messages.unwrap_or_default();
        let times = messages
            .iter()
            .map(|message| time_of(MessageOrder::Sent, message.log_time, message.publish_time));
        match (times.clone().min(), times.max()) {
            (Some(start), Some(end)) => Block { start, end },
            _ => block,
        }
    });
    blocks.collect()
}

/// A block that is not loaded yet.
struct WaitingBlock {
    start: u64,
    file: usize,
    at: usize,
}

struct OpenBlock {
    file: usize,
    data: Bytes,
    /// Sorted backwards: the next one is the last.
    messages: Vec<BlockMessage>,
}

/// The messages of a bag, see [`BagReader::messages`].
pub struct Messages<'a> {
    reader: &'a mut BagReader,
    filter: MessageFilter,
    waiting: Vec<WaitingBlock>,
    loaded: Vec<OpenBlock>,
}

impl Messages<'_> {
    fn time(&self, message: &BlockMessage) -> u64 {
        time_of(self.filter.order, message.log_time, message.publish_time)
    }

    /// The loaded block with the earliest message.
    fn earliest(&self) -> Option<(usize, u64)> {
        let firsts = self.loaded.iter().enumerate();
        firsts
            .filter_map(|(at, block)| Some((at, self.time(block.messages.last()?))))
            .min_by_key(|(_, time)| *time)
    }

    fn load_next(&mut self) {
        let Some(WaitingBlock { file, at, .. }) = self.waiting.pop() else {
            return;
        };
        let Some(open) = self.reader.files.get_mut(file) else {
            return;
        };
        let loaded = match open.load(at) {
            Ok(loaded) => loaded,
            Err(error) => {
                let problem = format!("{error}; its messages are left out");
                self.reader.problems.push(problem);
                return;
            }
        };
        self.reader.problems.extend(loaded.problem);
        let mut messages = loaded.messages;
        let channels = self.reader.channels.get(file);
        messages.retain(|message| {
            let topic = channels.and_then(|channels| channels.get(&message.channel));
            let wanted = topic.is_some_and(|topic| {
                self.filter
                    .topics
                    .as_ref()
                    .is_none_or(|topics| topics.contains(topic))
            });
            let time = self.time(message);
            wanted
                && self.filter.from.is_none_or(|from| time >= from)
                && self.filter.until.is_none_or(|until| time < until)
        });
        // Stable: equal times keep the order of the file.
        messages.sort_by_key(|message| self.time(message));
        messages.reverse();
        self.loaded.push(OpenBlock {
            file,
            data: loaded.data,
            messages,
        });
    }

    /// The payload of a message, decompressed where each message is compressed.
    fn payload(&mut self, file: usize, stored: Bytes) -> Option<Bytes> {
        if !self
            .reader
            .are_compressed
            .get(file)
            .copied()
            .unwrap_or(false)
        {
            return Some(stored);
        }
        match decompress_message(&stored) {
            Ok(payload) => Some(payload.into()),
            Err(problem) => {
                let path = self.reader.files.get(file).map(|file| file.path());
                let shown = path.unwrap_or(Path::new("")).display();
                self.reader
                    .problems
                    .push(format!("{shown}: a compressed message: {problem}"));
                None
            }
        }
    }
}

impl Iterator for Messages<'_> {
    type Item = BagMessage;

    fn next(&mut self) -> Option<BagMessage> {
        loop {
            self.loaded.retain(|block| !block.messages.is_empty());
            let earliest = self.earliest();
            let loaded: usize = self.loaded.iter().map(|block| block.data.len()).sum();
            let is_due = self.waiting.last().is_some_and(|block| {
                earliest.is_none_or(|(_, time)| block.start <= time && loaded < LOADED_BYTES_MAX)
            });
            if is_due {
                self.load_next();
                continue;
            }
            let (at, _) = earliest?;
            let block = self.loaded.get_mut(at)?;
            let message = block.messages.pop()?;
            let file = block.file;
            let stored = block.data.slice(message.payload);
            let topic = self.reader.channels.get(file)?.get(&message.channel)?;
            let topic = *topic;
            let Some(payload) = self.payload(file, stored) else {
                continue;
            };
            return Some(BagMessage {
                topic,
                file,
                log_time: message.log_time,
                publish_time: message.publish_time,
                payload,
            });
        }
    }
}
