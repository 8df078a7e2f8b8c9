//! Storage formats: a common interface to the files of a bag.
//!
//! A file is a list of topics and a list of blocks. A block is the unit of reading: an
//! MCAP chunk, some pages of a database, or a chunk of a ROS 1 bag. Payloads are always
//! CDR.

mod mcap_file;
pub(crate) mod open;
mod ros1_file;
mod sqlite_file;
mod whole_compression;

pub(crate) use whole_compression::decompress_message;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::BagError;
use crate::topic::BagTopic;

/// A topic of one file.
#[derive(Clone)]
pub(crate) struct StoredTopic {
    /// Number in the file.
    pub channel: u16,
    pub topic: BagTopic,
    pub message_count: u64,
    /// A sentence about the unreadable part of it.
    pub problem: Option<String>,
}

impl StoredTopic {
    /// Appends a sentence about an unreadable part.
    fn note(&mut self, problem: String) {
        self.problem = Some(match self.problem.take() {
            Some(known) => format!("{known}; {problem}"),
            None => problem,
        });
    }
}

/// The unit of reading, with the log times of its messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub start: u64,
    pub end: u64,
    /// Channels of its messages; `None` if the file has no index.
    pub channels: Option<Arc<[u16]>>,
}

/// A message in a loaded block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockMessage {
    pub channel: u16,
    pub log_time: u64,
    pub publish_time: u64,
    /// Range of its payload in [`LoadedBlock::data`].
    pub payload: Range<usize>,
}

/// A block in memory.
#[derive(Debug, Default)]
pub(crate) struct LoadedBlock {
    pub data: Bytes,
    pub messages: Vec<BlockMessage>,
    /// Why the remaining messages could not be read.
    pub problem: Option<String>,
}

/// An open file of a bag.
pub(crate) trait StorageFile: Send {
    fn path(&self) -> &Path;
    /// Size on disk, bytes.
    fn bytes(&self) -> u64;
    fn topics(&self) -> Vec<StoredTopic>;
    /// In the order of the file.
    fn blocks(&self) -> Vec<Block>;
    /// First and last log time; `None` without messages.
    fn span(&self) -> Option<(u64, u64)>;
    fn message_count(&self) -> u64;
    /// Whether the file ends as its writer intended.
    fn is_complete(&self) -> bool;
    /// Custom texts of the file by key, in the record of a name.
    fn texts(&self, name: &str) -> Option<&BTreeMap<String, String>>;
    /// Takes the sentences about unreadable parts.
    fn take_problems(&mut self) -> Vec<String>;
    /// Reads a block by its index.
    ///
    /// # Errors
    /// The system's, or the block is damaged.
    fn load(&mut self, block: usize) -> Result<LoadedBlock, BagError>;
}

/// File format, recognized by the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Mcap,
    Sqlite,
    Ros1,
}

impl Format {
    /// Storage identifier in `metadata.yaml`.
    pub(crate) fn storage_id(self) -> &'static str {
        match self {
            Self::Mcap => "mcap",
            Self::Sqlite => "sqlite3",
            Self::Ros1 => "rosbag1",
        }
    }

    /// Recognizes the format by the first bytes.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        if head.starts_with(&crate::mcap::MAGIC) {
            Some(Self::Mcap)
        } else if head.starts_with(crate::sqlite::MAGIC) {
            Some(Self::Sqlite)
        } else if head.starts_with(crate::ros1::MAGIC) {
            Some(Self::Ros1)
        } else {
            None
        }
    }
}
