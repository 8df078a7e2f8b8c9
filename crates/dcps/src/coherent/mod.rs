//! PRESENTATION: coherent sets and ordered access, on both sides.
//!
//! A coherent set is delivered as a whole or not at all, and the samples of a
//! publisher in its order (DDS 1.4 §2.2.3.6; RTPS 2.5 §8.7.5, §8.7.6). This is the
//! same for all transports: changes arrive in the order of each writer.
//!
//! A publisher marks its samples (`publisher_sets`). At a subscription,
//! `writer_stream` collects the sets of one writer. `group_merge` merges those of a
//! publisher's writers where the access scope is GROUP. `assembly` holds both for
//! all matches. Ready sets wait in `ready_sets` until they are taken. A set larger
//! than its reader may keep is dropped and counted, as one with a gap is. When newer
//! sets need space, the oldest is dropped as a whole.

mod assembly;
pub(crate) mod batch;
mod group_merge;
mod publisher_sets;
mod ready_sets;
pub(crate) mod sets;
#[cfg(test)]
mod tests;
mod writer_stream;

pub use assembly::WriterArrival;
pub use batch::{GroupDialect, MatchKey, ReaderLosses, ReadyBatch, SOLE_READER};
pub use publisher_sets::{GroupError, NESTING_MAX, PublisherSets, writer_set_digest};
pub use ready_sets::ReadySets;
pub use sets::{CoherentSetTotals, CoherentSets};
