//! Content filter on the writer side: samples that a reader's filter rejects are
//! not sent (RTPS 2.5 §8.4.2.2.5, §8.7.3; DDS 1.4 §2.2.2.5.3).
//!
//! The filters are applied to each new sample, and to the history for a late
//! joiner. A changed filter applies to later samples. To a reliable reader a
//! rejected sample is irrelevant: a GAP covers it, it blocks no write and is never
//! retransmitted. Dispose and unregister changes pass every filter, and a member of
//! a coherent set stays with its set.
//!
//! Filters run in the publisher's thread and peers choose them, so the cost is
//! bounded. Equal filters are evaluated once. At most [`FILTERS_MAX`] different
//! filters of [`FILTERED_READERS_MAX`] readers are applied, with one budget for
//! patterns. Readers beyond these limits get everything and filter by themselves,
//! as all Pteros readers do anyway. Their filter is applied at its next
//! announcement, if others left.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::config::NewChange;
use super::matched_readers::MatchedReaders;
use super::proxy::ReaderProxy;
use crate::change::{ChangeKind, WriterChange};
use crate::content_filter::{ContentFilter, FILTERS_MAX, FilterOutcome, FilterResults};
use crate::history::HistoryCache;
use crate::id::Guid;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use pteros_msg::filter::LIKE_STEPS_MAX;

/// Readers whose filters are applied here; each change lists the readers that
/// reject it.
const FILTERED_READERS_MAX: usize = 256;

impl MatchedReaders {
    /// The filter of a reader, if this writer applies it.
    pub(super) fn accept_filter(
        &self,
        reader: Guid,
        filter: Option<Arc<ContentFilter>>,
    ) -> Option<Arc<ContentFilter>> {
        let filter = filter?;
        let others = self.proxies.iter().filter(|other| other.guid != reader);
        let applied: Vec<_> = others.filter_map(|other| other.filter.as_ref()).collect();
        if applied.len() >= FILTERED_READERS_MAX {
            return None;
        }
        if let Some(same) = applied.iter().find(|applied| ***applied == filter) {
            return Some((*same).clone());
        }
        let mut signatures: Vec<_> = applied.iter().map(|f| f.signature()).collect();
        signatures.sort_unstable();
        signatures.dedup();
        (signatures.len() < FILTERS_MAX).then_some(filter)
    }

    /// Sets the filter that a matched reader announced, or removes it.
    pub(super) fn set_content_filter(&mut self, reader: Guid, filter: Option<Arc<ContentFilter>>) {
        let shared = self.last_undirected;
        let filter = self.accept_filter(reader, filter);
        let Some(reader) = self.proxies.find_mut(reader) else {
            return;
        };
        if reader.filter.is_none() && shared >= reader.start {
            // Undirected changes so far were relevant to it, too.
            reader.last_directed = reader.last_directed.max(shared);
        }
        reader.filter = filter;
        self.count_filters();
    }

    pub(super) fn count_filters(&mut self) {
        let filtered = self.proxies.iter().filter(|reader| reader.filter.is_some());
        self.counts.filtered = filtered.count();
    }

    /// Applies the readers' filters to a change; `None` without filters.
    pub(super) fn apply_filters(&self, change: &NewChange) -> Option<Box<FilterOutcome>> {
        let is_filterable = self.counts.filtered > 0
            && change.kind == ChangeKind::Alive
            && change.directed_to.is_none()
            && change.coherent_mark.is_none();
        if !is_filterable {
            return None;
        }
        let mut results = FilterResults::default();
        let mut rejected_by = Vec::new();
        for reader in self.proxies.iter() {
            // A reader of coherent sets takes a missing number for a loss.
            if let Some(filter) = &reader.filter
                && !reader.wants_set_ends
                && !results.evaluate(filter, &change.payload)
            {
                rejected_by.push(reader.guid);
            }
        }
        rejected_by.sort_unstable();
        Some(Box::new(FilterOutcome {
            results: results.to_bytes(),
            rejected_by,
        }))
    }

    /// Notes which readers with a filter an undirected change is relevant to.
    pub(super) fn note_relevant_readers(
        &mut self,
        sequence: SequenceNumber,
        filter_outcome: Option<&FilterOutcome>,
    ) {
        if self.counts.filtered == 0 {
            return;
        }
        for reader in self.proxies.iter_mut() {
            let passes = || {
                filter_outcome
                    .is_none_or(|filter_outcome| filter_outcome.passes_filter_of(reader.guid))
            };
            if reader.filter.is_some() && passes() {
                reader.last_directed = sequence.0;
            }
        }
    }
}

impl HistoryCache {
    /// Applies a late joiner's filter to the history, newest first, until `depth`
    /// samples pass.
    ///
    /// A sample that cannot be evaluated within the pattern budget passes. Returns
    /// the first and the last number that passes, if any. Counts the `filtered` ones.
    pub(super) fn filter_for_late_joiner(
        &mut self,
        reader: Guid,
        filter: &ContentFilter,
        depth: usize,
        filtered: &mut u64,
    ) -> Option<(i64, i64)> {
        let mut passing = None;
        let mut samples = 0;
        let mut steps_left = LIKE_STEPS_MAX;
        for change in self.iter_mut().rev() {
            if samples >= depth {
                break;
            }
            if change.directed_to.is_some() {
                continue;
            }
            let evaluated = if change.kind == ChangeKind::Alive && !change.is_set_end() {
                filter.evaluate(&change.payload, &mut steps_left)
            } else {
                Some(true)
            };
            if evaluated == Some(false) && change.coherent_mark.is_none() {
                filtered.tally();
                change.mark_filtered_for(reader);
                continue;
            }
            // A rejected member of a set passes and does not count.
            samples.tally_by(usize::from(evaluated == Some(true) && !change.is_set_end()));
            let (_, last) = passing.unwrap_or((0, change.sequence.0));
            passing = Some((change.sequence.0, last));
        }
        passing
    }

    /// Removes an unmatched reader from the filter outcomes.
    pub(super) fn forget_filter_of(&mut self, guid: Guid) {
        for change in self.iter_mut() {
            if let Some(filter_outcome) = &mut change.filter_outcome
                && let Ok(at) = filter_outcome.rejected_by.binary_search(&guid)
            {
                filter_outcome.rejected_by.remove(at);
            }
        }
    }
}

impl FilterOutcome {
    fn passes_filter_of(&self, reader: Guid) -> bool {
        self.rejected_by.binary_search(&reader).is_err()
    }
}

impl WriterChange {
    /// Whether this reader's filter lets it pass, if it was applied.
    pub(super) fn passes_filter_of(&self, reader: Guid) -> bool {
        let filter_outcome = self.filter_outcome.as_deref();
        filter_outcome.is_none_or(|filter_outcome| filter_outcome.passes_filter_of(reader))
    }

    /// Whether it is relevant to some reader of this destination.
    pub(super) fn is_relevant_at(&self, readers: &[ReaderProxy], destination: usize) -> bool {
        let Some(filter_outcome) = &self.filter_outcome else {
            return true;
        };
        let mut here = readers
            .iter()
            .filter(|reader| reader.destination == destination);
        filter_outcome.rejected_by.is_empty()
            || here.any(|reader| self.passes_filter_of(reader.guid))
    }

    fn mark_filtered_for(&mut self, reader: Guid) {
        let filter_outcome = self.filter_outcome.get_or_insert_with(|| {
            Box::new(FilterOutcome {
                results: FilterResults::default().to_bytes(),
                rejected_by: Vec::new(),
            })
        });
        if let Err(at) = filter_outcome.rejected_by.binary_search(&reader) {
            filter_outcome.rejected_by.insert(at, reader);
        }
    }
}
