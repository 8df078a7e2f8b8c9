//! Storage formats: how the files of a bag are read, whatever their format.
//!
//! A file is a list of topics and a list of blocks. A block is what is read at once:
//! an MCAP chunk, some pages of a database, a chunk of a ROS 1 bag. Payloads are CDR,
//! whatever the file holds.

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
    /// Its number in the file.
    pub channel: u16,
    pub topic: BagTopic,
    pub message_count: u64,
    /// A sentence about the part of it that could not be read.
    pub problem: Option<String>,
}

impl StoredTopic {
    /// Adds a sentence about the part of it that could not be read.
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
    /// The channels of its messages; `None` if the file does not say.
    pub channels: Option<Arc<[u16]>>,
}

/// A message in a loaded block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockMessage {
    pub channel: u16,
    pub log_time: u64,
    pub publish_time: u64,
    /// Its payload in [`LoadedBlock::data`].
    pub payload: Range<usize>,
}

/// A block in memory.
#[derive(Debug, Default)]
pub(crate) struct LoadedBlock {
    pub data: Bytes,
    pub messages: Vec<BlockMessage>,
    /// Why the rest could not be read.
    pub problem: Option<String>,
}

/// An open file of a bag.
pub(crate) trait StorageFile: Send {
    fn path(&self) -> &Path;
    /// Its size on disk.
    fn bytes(&self) -> u64;
    fn topics(&self) -> Vec<StoredTopic>;
    /// In the order of the file.
    fn blocks(&self) -> Vec<Block>;
    /// First and last log time; `None` without messages.
    fn span(&self) -> Option<(u64, u64)>;
    fn message_count(&self) -> u64;
    /// Whether it ends as its writer meant it to.
    fn is_complete(&self) -> bool;
    /// Texts of the file by key, under the name of a record.
    fn texts(&self, name: &str) -> Option<&BTreeMap<String, String>>;
    /// Sentences about the parts that could not be read. Empties the list.
    fn take_problems(&mut self) -> Vec<String>;
    /// Reads a block by its index.
    ///
    /// # Errors
    /// The system's; or the block is damaged.
    fn load(&mut self, block: usize) -> Result<LoadedBlock, BagError>;
}

/// The format of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Mcap,
    Sqlite,
    Ros1,
}

impl Format {
    /// The word in `metadata.yaml`.
    pub(crate) fn storage_id(self) -> &'static str {
        match self {
            Self::Mcap => "mcap",
            Self::Sqlite => "sqlite3",
            Self::Ros1 => "rosbag1",
        }
    }

    /// The format that begins with these bytes.
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
