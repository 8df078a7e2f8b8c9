//! Readers' content filters, applied here so that what a reader does not want
//! is not sent (RTPS 2.5 §8.4.2.2.5, §8.7.3; DDS 1.4 §2.2.2.5.3).
//!
//! A filter judges a change when it is written, and what is kept when its reader
//! comes late; a filter that changes later judges what is written from then on.
//! To a reliable reader an unwanted change is irrelevant: a GAP covers it, it
//! holds nobody up and is never sent again. Judged are samples that stand for
//! themselves: the end of an instance concerns every reader, and a member of a
//! coherent set goes with its set.
//!
//! It happens in the publisher's thread and is asked for by peers, so it is
//! bounded: equal filters are judged once, [`FILTERS_MAX`] different ones of
//! [`FILTERED_READERS_MAX`] readers at most, within one budget for patterns.
//! Whoever is beyond gets everything and filters for itself, as all readers of
//! this stack do anyway; if others go, its filter is applied when it is announced
//! the next time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Writer;
use super::config::NewChange;
use super::proxy::ReaderProxy;
use crate::content_filter::{ContentFilter, FILTERS_MAX, Filtering, Results};
use crate::history::{Change, ChangeKind};
use crate::id::Guid;
use crate::seq::SequenceNumber;
use crate::stats::Tally;
use pteros_msg::filter::LIKE_STEPS_MAX;

/// Readers whose filters are applied here: who does not want a change is listed
/// with it.
const FILTERED_READERS_MAX: usize = 256;

impl Writer {
    /// The filter of a reader as far as it is applied here.
    pub(super) fn admit_filter(
        &self,
        reader: Guid,
        filter: Option<Arc<ContentFilter>>,
    ) -> Option<Arc<ContentFilter>> {
        let filter = filter?;
        let others = self.readers.iter().filter(|other| other.guid != reader);
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

    /// A matched reader announced another filter, or none.
    pub fn set_content_filter(&mut self, reader: Guid, filter: Option<Arc<ContentFilter>>) {
        let shared = self.last_shared;
        let filter = self.admit_filter(reader, filter);
        let Some(reader) = self.reader_mut(reader) else {
            return;
        };
        if reader.filter.is_none() && shared >= reader.start {
            // What was for everybody was for it, too.
            reader.last_directed = reader.last_directed.max(shared);
        }
        reader.filter = filter;
        self.count_filters();
    }

    pub(super) fn count_filters(&mut self) {
        let filtered = self.readers.iter().filter(|reader| reader.filter.is_some());
        self.filtered_readers = filtered.count();
    }

    /// What the readers' filters say of a change; `None` where nobody filters.
    pub(super) fn judge(&mut self, change: &NewChange) -> Option<Box<Filtering>> {
        let is_judged = self.filtered_readers > 0
            && change.kind == ChangeKind::Alive
            && change.only_for.is_none()
            && change.mark.is_none();
        if !is_judged {
            return None;
        }
        let mut results = Results::default();
        let mut unwanted_by = Vec::new();
        for reader in &self.readers {
            // Whoever holds sets together sees a hole where a number is missing.
            if let Some(filter) = &reader.filter
                && !reader.hears_ends
                && !results.judge(filter, &change.payload)
            {
                unwanted_by.push(reader.guid);
            }
        }
        self.stats.filtered.tally_by(unwanted_by.len() as u64);
        unwanted_by.sort_unstable();
        Some(Box::new(Filtering {
            results: results.to_bytes(),
            unwanted_by,
        }))
    }

    /// Whether the change need not be kept nor sent: no reader wants it, and
    /// none can come for it later.
    pub(super) fn is_for_nobody(&self, filtering: Option<&Filtering>) -> bool {
        filtering.is_some_and(|f| f.unwanted_by.len() == self.readers.len())
            && !self.keeps_for_late_joiners()
    }

    /// Notes whom a change for everybody is for, among those that filter.
    pub(super) fn note_wanted(&mut self, sequence: SequenceNumber, filtering: Option<&Filtering>) {
        if self.filtered_readers == 0 {
            return;
        }
        for reader in &mut self.readers {
            let passes = || filtering.is_none_or(|filtering| filtering.passes_for(reader.guid));
            if reader.filter.is_some() && passes() {
                reader.last_directed = sequence.0;
            }
        }
    }

    /// Judges what is kept for a late joiner, newest first, until `depth`
    /// samples pass; what cannot be judged, or not within what patterns may cost
    /// together, goes along. The first and the last number for it, if any.
    pub(super) fn judge_history(
        &mut self,
        reader: Guid,
        filter: &ContentFilter,
        depth: usize,
    ) -> Option<(i64, i64)> {
        let mut wanted = None;
        let mut samples = 0;
        let mut steps_left = LIKE_STEPS_MAX;
        for change in self.history.iter_mut().rev() {
            if samples >= depth {
                break;
            }
            if change.only_for.is_some() {
                continue;
            }
            let judged = match change.kind == ChangeKind::Alive && !change.is_end() {
                true => filter.judge(&change.payload, &mut steps_left),
                false => Some(true),
            };
            if judged == Some(false) && change.mark.is_none() {
                self.stats.filtered.tally();
                change.keep_from(reader);
                continue;
            }
            // A member of a set that does not pass goes along and does not count.
            samples.tally_by(usize::from(judged == Some(true) && !change.is_end()));
            let (_, last) = wanted.unwrap_or((0, change.sequence.0));
            wanted = Some((change.sequence.0, last));
        }
        wanted
    }

    /// A reader is gone: nothing is kept from it any more.
    pub(super) fn forget_filter_of(&mut self, guid: Guid) {
        for change in self.history.iter_mut() {
            if let Some(filtering) = &mut change.filtering
                && let Ok(at) = filtering.unwanted_by.binary_search(&guid)
            {
                filtering.unwanted_by.remove(at);
            }
        }
        self.count_filters();
    }
}

impl Filtering {
    fn passes_for(&self, reader: Guid) -> bool {
        self.unwanted_by.binary_search(&reader).is_err()
    }
}

impl Change {
    /// Whether this reader's filter lets it pass, as far as that was asked.
    pub(super) fn passes_for(&self, reader: Guid) -> bool {
        let filtering = self.filtering.as_deref();
        filtering.is_none_or(|filtering| filtering.passes_for(reader))
    }

    /// Whether some reader of this group wants it.
    pub(super) fn is_wanted(&self, readers: &[ReaderProxy], group: usize) -> bool {
        let Some(filtering) = &self.filtering else {
            return true;
        };
        let mut here = readers.iter().filter(|reader| reader.group == group);
        filtering.unwanted_by.is_empty() || here.any(|reader| self.passes_for(reader.guid))
    }

    fn keep_from(&mut self, reader: Guid) {
        let filtering = self.filtering.get_or_insert_with(|| {
            Box::new(Filtering {
                results: Results::default().to_bytes(),
                unwanted_by: Vec::new(),
            })
        });
        if let Err(at) = filtering.unwanted_by.binary_search(&reader) {
            filtering.unwanted_by.insert(at, reader);
        }
    }
}
