//! Bags: recorded messages of ROS 2 topics in MCAP files, as rosbag2 writes and reads
//! them.
//!
//! - [`BagWriter`] writes a folder of MCAP files with `metadata.yaml`.
//! - [`BagReader`] reads such folders and single files, torn and damaged ones too.
//! - [`Recorder`] records topics of the graph and accounts for every message
//!   ([`accounting`]).
//! - [`Player`] publishes the messages of a bag with their spacing in time.
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

mod byte_queue;
mod copy;
mod error;
mod intake;
mod player;
mod qos_text;
mod reader;
mod recorder;
mod writer;

pub use copy::copy;
pub use error::BagError;
pub use player::{PlaybackSummary, Player, PlayerOptions};
pub use qos_text::read_overrides;
pub use reader::{BagMessage, BagReader, MessageFilter, Messages, RecordedTopic};
pub use recorder::{Recorder, RecorderOptions, RecordingSummary};
pub use topic_filter::TopicFilter;
pub use writer::{BagOptions, BagTopic, BagWriter, CHUNK_BYTES, Split};
