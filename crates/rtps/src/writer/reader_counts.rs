//! Counts of a writer's matched readers by kind. They decide what the writer must
//! keep, filter and ask for, without a look at each reader.

/// The numbers of matched readers.
#[derive(Debug, Default)]
pub(super) struct ReaderCounts {
    pub reliable: usize,
    /// Readers with a content filter.
    pub filtered: usize,
    /// Readers reached by a shared-memory connection.
    pub shared_memory: usize,
    /// All reliable readers are reached by shared memory and have sent an ACKNACK.
    pub only_shared_memory: bool,
    /// A connection refused a message since everything was last acknowledged.
    pub send_refused: bool,
}
