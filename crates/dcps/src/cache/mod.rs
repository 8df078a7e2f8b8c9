//! The reader history cache (RTPS 2.5 §8.2.9, DDS 1.4 §2.2.2.5).

mod blocked_writes;
mod reader_cache;
mod sample_queue;

pub use blocked_writes::{BlockedWrites, FullQueuePolicy};
pub use reader_cache::ReaderCache;
pub use sample_queue::SampleQueue;
