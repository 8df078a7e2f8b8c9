//! Bag reader: reads a folder with `metadata.yaml`, a folder of files, or one file, in
//! MCAP, rosbag2's sqlite3 storage, or the format of ROS 1.
//!
//! Messages are returned in the order of their log times or publish times. Truncated and
//! damaged files are read as far as possible, and [`BagReader::problems`] lists the
//! missing parts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use pteros::msg::library::InterfaceLibrary;

use crate::accounting::{LOSS_RECORD, TopicAccount, from_texts};
use crate::bag_files::find_files;
use crate::error::BagError;
use crate::file_store::FileSystem;
use crate::messages::Messages;
use crate::metadata::{BagMetadata, FileMetadata, TopicMetadata};
use crate::storage::open::{OpenFile, open_bytes, open_file};
use crate::storage::{Block, Format, LoadedBlock, StorageFile, decompress_message};
use crate::topic::RecordedTopic;
use crate::topic_table::TopicTable;
use crate::writer::write_metadata;

/// A recorded message with its times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BagMessage {
    /// Index in [`BagReader::topics`].
    pub topic: usize,
    /// Index in [`BagReader::files`].
    pub file: usize,
    /// Reception time, nanoseconds since 1970.
    pub log_time: u64,
    /// Publication time, nanoseconds since 1970.
    pub publish_time: u64,
    /// CDR with its encapsulation header; a view into the chunk.
    pub payload: Bytes,
}

impl BagMessage {
    /// The time that orders the message. A publish time of 0 is unknown.
    pub fn time(&self, order: MessageOrder) -> u64 {
        time_of(order, self.log_time, self.publish_time)
    }
}

pub(crate) fn time_of(order: MessageOrder, log_time: u64, publish_time: u64) -> u64 {
    match order {
        MessageOrder::Sent if publish_time > 0 => publish_time,
        MessageOrder::Received | MessageOrder::Sent => log_time,
    }
}

/// The time that orders and selects messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageOrder {
    /// Reception time at the recorder.
    #[default]
    Received,
    /// Publication time. Finding these times reads the whole bag once more.
    Sent,
}

/// Selects messages. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct MessageFilter {
    /// Indexes of topics; `None` for all.
    pub topics: Option<Vec<usize>>,
    /// First selected time, nanoseconds since 1970.
    pub from: Option<u64>,
    /// Time after the last selected one.
    pub until: Option<u64>,
    /// Time that orders and selects messages.
    pub order: MessageOrder,
}

/// An open bag.
pub struct BagReader {
    path: PathBuf,
    files: Vec<Box<dyn StorageFile>>,
    /// Per file: the index of each channel's topic.
    channels: Vec<BTreeMap<u16, usize>>,
    topics: TopicTable,
    metadata: Option<BagMetadata>,
    /// Blocks by publish times, once requested.
    sent: Option<Vec<Vec<Block>>>,
    format: Option<Format>,
    /// Per file: whether each message is compressed.
    are_compressed: Vec<bool>,
    problems: Vec<String>,
    interrupt: Option<Interrupt>,
}

/// Predicate that ends a long read.
type Interrupt = Box<dyn Fn() -> bool + Send>;

impl BagReader {
    /// Opens a folder or a file. Reads the summaries; a truncated file is read
    /// completely.
    ///
    /// # Errors
    /// There is no bag, or the system refuses. Damage is no error, see
    /// [`problems`](Self::problems).
    pub fn open(path: &Path) -> Result<Self, BagError> {
        Self::open_with(path, pteros::interfaces::library())
    }

    /// As [`open`](Self::open). `library` defines the ROS 2 types for the messages of a
    /// ROS 1 bag.
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
                Ok(open) => reader.add_file(open, library)?,
                // Missing files of a bag with several files are noted.
                Err(error) if count > 1 => reader.problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(reader)
    }

    /// Opens the content of one file in memory, in any format.
    ///
    /// # Errors
    /// It is no bag. Damage is no error, see [`problems`](Self::problems).
    pub fn from_bytes(content: Vec<u8>) -> Result<Self, BagError> {
        let mut reader = Self::empty();
        reader.path = PathBuf::from("(memory)");
        let library = pteros::interfaces::library();
        reader.add_file(open_bytes(content, &reader.path, library)?, library)?;
        Ok(reader)
    }

    /// Opens several bags as one, and merges their messages by time.
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
                merged.add_topics(&*file, library);
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
            topics: TopicTable::default(),
            metadata: None,
            sent: None,
            format: None,
            are_compressed: Vec::new(),
            problems: Vec::new(),
            interrupt: None,
        }
    }

    fn add_file(&mut self, open: OpenFile, library: &InterfaceLibrary) -> Result<(), BagError> {
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
        self.add_topics(&*file, library);
        self.files.push(file);
        self.are_compressed.push(is_compressed);
        Ok(())
    }

    /// Whether each message is compressed, according to `metadata.yaml` or the file.
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

    fn add_topics(&mut self, file: &dyn StorageFile, library: &InterfaceLibrary) {
        let mut channels = BTreeMap::new();
        for stored in file.topics() {
            let shown = file.path().display();
            let added = self.topics.add(stored.topic, stored.message_count, library);
            if let Ok(index) = &added {
                channels.insert(stored.channel, *index);
            }
            for problem in stored.problem.into_iter().chain(added.err()) {
                let problem = format!("{shown}: {problem}");
                // A merged bag has reported it when it was opened.
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
        }
        self.channels.push(channels);
    }

    /// The opened path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The topics, in the order of their channels. A topic recorded with several
    /// definitions of its type has one entry per definition, so that each message is
    /// decoded by its own.
    pub fn topics(&self) -> &[RecordedTopic] {
        self.topics.all()
    }

    /// First and last log time; `None` without messages.
    pub fn span(&self) -> Option<(u64, u64)> {
        let spans = self.files.iter().filter_map(|file| file.span());
        spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// First and last time of an order; `None` without messages. Finding publish times
    /// reads the whole bag, once.
    pub fn span_by(&mut self, order: MessageOrder) -> Option<(u64, u64)> {
        match order {
            MessageOrder::Received => self.span(),
            MessageOrder::Sent => {
                let blocks = self.sent_blocks()?.iter().flatten();
                let spans = blocks.map(|block| (block.start, block.end));
                spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
            }
        }
    }

    fn sent_blocks(&mut self) -> Option<&[Vec<Block>]> {
        if self.sent.is_none() {
            let mut found = Vec::new();
            for file in 0..self.files.len() {
                found.push(self.sent_blocks_of(file)?);
            }
            self.sent = Some(found);
        }
        self.sent.as_deref()
    }

    /// Blocks of a file by publish times. An unreadable block keeps its log times;
    /// reading its messages notes the reason.
    fn sent_blocks_of(&mut self, file: usize) -> Option<Vec<Block>> {
        let known = self.files.get(file).map(|file| file.blocks());
        let mut blocks = known.unwrap_or_default();
        for (at, block) in blocks.iter_mut().enumerate() {
            if self.is_interrupted() {
                return None;
            }
            let loaded = self.files.get_mut(file).map(|file| file.load(at));
            let messages = loaded.and_then(Result::ok).unwrap_or_default().messages;
            let times = messages
                .iter()
                .map(|message| time_of(MessageOrder::Sent, message.log_time, message.publish_time));
            if let (Some(start), Some(end)) = (times.clone().min(), times.max()) {
                (block.start, block.end) = (start, end);
            }
        }
        Some(blocks)
    }

    /// Number of messages in all files.
    pub fn message_count(&self) -> u64 {
        self.files.iter().map(|file| file.message_count()).sum()
    }

    /// Size of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes()).sum()
    }

    /// Paths of the files.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path())
    }

    /// Whether every file ends as its writer intended.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.is_complete())
    }

    /// Storage of the first file in rosbag2's words: `mcap`, `sqlite3` or `rosbag1`;
    /// `mcap` for a bag without files.
    pub fn storage_id(&self) -> &'static str {
        self.format.unwrap_or(Format::Mcap).storage_id()
    }

    /// `metadata.yaml`, if there is one.
    pub fn metadata(&self) -> Option<&BagMetadata> {
        self.metadata.as_ref()
    }

    /// One sentence per part that could not be read so far.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The recorder's accounts by topic; empty if another recorder wrote the bag.
    pub fn accounts(&self) -> BTreeMap<String, TopicAccount> {
        let records = self.files.iter().rev();
        let mut found = records.filter_map(|file| file.texts(LOSS_RECORD));
        found.next().map(from_texts).unwrap_or_default()
    }

    /// Reads messages in the order of the filter. Damaged chunks are skipped and noted.
    /// Chunks whose index lists no selected topic are not read.
    pub fn messages(&mut self, filter: MessageFilter) -> Messages<'_> {
        Messages::new(self, filter)
    }

    /// Ends long reads early: `is_over` is called before each chunk. Once it returns
    /// true, no more messages follow, and the [span](Self::span_by) of publish times is
    /// unknown. Replaces the previous predicate.
    pub fn interrupt_when(&mut self, is_over: impl Fn() -> bool + Send + 'static) {
        self.interrupt = Some(Box::new(is_over));
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupt.as_ref().is_some_and(|is_over| is_over())
    }

    /// Blocks of each file by an order; `None` if the read was interrupted.
    pub(crate) fn blocks_by(&mut self, order: MessageOrder) -> Option<Vec<Vec<Block>>> {
        match order {
            MessageOrder::Received => Some(self.files.iter().map(|file| file.blocks()).collect()),
            MessageOrder::Sent => self.sent_blocks().map(<[_]>::to_vec),
        }
    }

    /// Whether a block may have messages of topics. Without an index it may.
    pub(crate) fn may_have(
        &self,
        file: usize,
        block: &Block,
        is_wanted: &dyn Fn(usize) -> bool,
    ) -> bool {
        block.channels.as_ref().is_none_or(|channels| {
            let topics = channels.iter().filter_map(|id| self.topic_of(file, *id));
            topics.into_iter().any(is_wanted)
        })
    }

    /// The topic of a file's channel.
    pub(crate) fn topic_of(&self, file: usize, channel: u16) -> Option<usize> {
        self.channels.get(file)?.get(&channel).copied()
    }

    /// Loads a block and notes its damage.
    pub(crate) fn load_block(&mut self, file: usize, at: usize) -> LoadedBlock {
        let loaded = match self.files.get_mut(file).map(|open| open.load(at)) {
            Some(Ok(loaded)) => loaded,
            Some(Err(error)) => LoadedBlock {
                problem: Some(format!("{error}; its messages are left out")),
                ..LoadedBlock::default()
            },
            None => LoadedBlock::default(),
        };
        self.problems.extend(loaded.problem.clone());
        loaded
    }

    /// Payload of a message, decompressed if messages are compressed; `None` if it is
    /// damaged, which is noted.
    pub(crate) fn payload(&mut self, file: usize, stored: Bytes) -> Option<Bytes> {
        let is_compressed = self.are_compressed.get(file).copied();
        if !is_compressed.unwrap_or(false) {
            return Some(stored);
        }
        match decompress_message(&stored) {
            Ok(payload) => Some(payload.into()),
            Err(problem) => {
                let path = self.files.get(file).map(|file| file.path());
                let shown = path.unwrap_or(Path::new("")).display();
                self.problems
                    .push(format!("{shown}: a compressed message: {problem}"));
                None
            }
        }
    }

    /// Builds the content of `metadata.yaml` from the files.
    pub fn describe(&self) -> BagMetadata {
        let (start, end) = self.span().unwrap_or((0, 0));
        let files = self.files.iter().rev();
        let embedded = files.clone().find_map(|file| embedded_metadata(&**file));
        let distro = files
            .clone()
            .find_map(|file| file.texts("rosbag2")?.get("ROS_DISTRO").cloned());
        let topics = self.topics().iter().map(|recorded| TopicMetadata {
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
            storage: self.storage_id().into(),
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

    /// Writes `metadata.yaml` from the files in the folder.
    ///
    /// # Errors
    /// The path is a file, or `metadata.yaml` exists.
    pub fn reindex(&self) -> Result<BagMetadata, BagError> {
        if !self.path.is_dir() {
            return Err(BagError::NotABag {
                path: self.path.clone(),
                problem: "reindex writes metadata.yaml into a bag's folder, and this is a file; name the folder".into(),
            });
        }
        let metadata = self.describe();
        write_metadata(&FileSystem, &self.path, &metadata)?;
        Ok(metadata)
    }
}

/// Metadata embedded in an MCAP or sqlite3 file.
fn embedded_metadata(file: &dyn StorageFile) -> Option<BagMetadata> {
    let text = file.texts("rosbag2")?.get("serialized_metadata")?;
    BagMetadata::read(text).ok()
}
