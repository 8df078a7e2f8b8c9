//! MCAP container format: records, chunks, and files that may be truncated anywhere.
//!
//! Not from a library, for three reasons. Truncated files are read as far as possible. A
//! decompressed chunk never exceeds a limit. A received payload is copied once, into the
//! chunk.

mod chunk;
mod compression;
mod file;
mod records;
mod writer;

pub use chunk::ChunkBuilder;
pub(crate) use chunk::parse_chunk;
pub(crate) use compression::{
    CHUNK_BYTES_MAX, check_growth, compress_stream, growth_limit, read_limited,
};
pub use compression::{Compression, CompressionLevel};
pub(crate) use file::{McapFile, REDEFINED};
pub(crate) use records::MAGIC;
pub use records::{ChannelRecord, SchemaRecord};
pub(crate) use writer::McapWriter;
