//! Bags: recorded messages of ROS 2 topics in MCAP files, as rosbag2 writes and reads
//! them.
//!
//! - [`BagWriter`] writes a folder of MCAP files with `metadata.yaml`.
//! - [`BagReader`] reads such folders and single files, also truncated and damaged ones,
//!   rosbag2's sqlite3 storage, and bags of ROS 1.
//! - [`Recorder`] records topics of the graph and accounts for every message
//!   ([`accounting`]).
//! - [`Player`] publishes the messages of a bag with their recorded spacing.
//!
//! The command `pteros bag` is a thin layer over them. Every error names the thing,
//! the value and the way out ([`BagError`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod accounting;
pub mod definitions;
pub mod mcap;
pub mod metadata;
pub mod topic_filter;
mod topic_remap;

mod bag_files;
mod byte_queue;
mod compression_queue;
mod conversion;
mod copy;
mod error;
mod file_compression;
mod file_store;
mod latest;
mod loss_report;
mod message_cache;
mod messages;
mod player;
mod qos_text;
mod reader;
mod recorder;
mod recorder_services;
mod ros1;
mod saturating_instant;
mod source;
mod sqlite;
mod storage;
mod storage_options;
mod sync_queue;
mod topic;
mod topic_table;
mod transient_local;
mod unpublished_events;
mod writer;

pub use compression_queue::FileCompression;
pub use conversion::{ConversionOutput, read_conversion};
pub use copy::{copy, copy_and_report};
pub use error::BagError;
pub use file_store::{BagFile, FileStore, FileSystem};
pub use messages::Messages;
pub use player::{
    ClockOptions, LastKnown, PlaybackProgress, PlaybackSummary, PlayedPart, Player, PlayerOptions,
    RequestSource, StepOptions,
};
pub use qos_text::read_overrides;
pub use reader::{BagMessage, BagReader, MessageFilter, MessageOrder};
pub use recorder::{
    RECORDER_LATENCY_BUDGET, Recorder, RecorderOptions, RecordingSummary, WriterThread,
};
pub use storage_options::{StoragePreset, read_storage_config};
pub use topic::{BagTopic, ForeignSchema, RecordedTopic};
pub use topic_filter::TopicFilter;
pub use topic_remap::TopicRemap;
pub use writer::{BagOptions, BagWriter, CHUNK_BYTES, Split};
