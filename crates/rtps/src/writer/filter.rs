//! Readers' content filters, applied here so that what a reader does not want
//! is not sent (RTPS 2.5 §8.4.2.2.5, §8.7.3; DDS 1.4 §2.2.2.5.3).
//!
//! A filter judges a change when it is written, and what is kept when its reader
//! comes late; a filter that changes later judges what is written from then on.
//! To a reliable reader an unwanted change is irrelevant: a GAP covers it, it
//! holds nobody up and is never sent again. Judged are samples that stand for
//! themselves: the end of an instance concerns every reader, and a member of a
//! coherent set goes with its set.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Writer;
use super::config::NewChange;
use super::proxy::ReaderProxy;
use crate::content_filter::{ContentFilter, Filtering, Results};
use crate::history::{Change, ChangeKind};
use crate::id::Guid;
use crate::seq::SequenceNumber;
use crate::stats::Tally;

impl Writer {
    /// A matched reader announced another filter, or none.
    pub fn set_content_filter(&mut self, reader: Guid, filter: Option<Arc<ContentFilter>>) {
        let shared = self.last_shared;
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
        let unwanted_by = filtering.map_or(&[][..], |f| f.unwanted_by.as_slice());
        for reader in &mut self.readers {
            if reader.filter.is_some() && !unwanted_by.contains(&reader.guid) {
                reader.last_directed = sequence.0;
            }
        }
    }

    /// Judges what is kept for a late joiner, newest first, until `depth`
    /// samples pass. The first and the last number for it, if any.
    pub(super) fn judge_history(
        &mut self,
        reader: Guid,
        filter: &ContentFilter,
        depth: usize,
    ) -> Option<(i64, i64)> {
        let mut wanted = None;
        let mut samples = 0;
        for change in self.history.iter_mut().rev() {
            if samples >= depth {
                break;
            }
            if change.only_for.is_some() {
                continue;
            }
            let is_judged = change.kind == ChangeKind::Alive && change.mark.is_none();
            if is_judged && !filter.passes(&change.payload) {
                self.stats.filtered.tally();
                change.keep_from(reader);
                continue;
            }
            samples.tally_by(usize::from(!change.is_end()));
            let (_, last) = wanted.unwrap_or((0, change.sequence.0));
            wanted = Some((change.sequence.0, last));
        }
        wanted
    }

    /// A reader is gone: nothing is kept from it any more.
    pub(super) fn forget_filter_of(&mut self, guid: Guid) {
        for change in self.history.iter_mut() {
            if let Some(filtering) = &mut change.filtering {
                filtering.unwanted_by.retain(|reader| *reader != guid);
            }
        }
        self.count_filters();
    }
}

impl Change {
    /// Whether this reader's filter lets it pass, as far as that was asked.
    pub(super) fn passes_for(&self, reader: Guid) -> bool {
        let filtering = self.filtering.as_deref();
        !filtering.is_some_and(|filtering| filtering.unwanted_by.contains(&reader))
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
        filtering.unwanted_by.push(reader);
    }
}
