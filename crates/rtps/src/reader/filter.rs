//! Content filter on the reader side (DDS 1.4 §2.2.2.3.3): applied to each received
//! sample, unless the writer reports that it applied the same filter.
//!
//! A rejected sample is irrelevant, as if a GAP had declared it. It is
//! acknowledged, takes no space and is not lost. It does not renew the reader's
//! DEADLINE, which concerns the samples of the filtered topic. It renews its
//! writer's liveliness.

use alloc::sync::Arc;

use super::{Reader, ReaderConfig};
use crate::change::ChangeKind;
use crate::coherent_mark::CoherentMarkKind;
use crate::content_filter::ContentFilter;
use crate::defrag::SampleHead;
use crate::id::Guid;
use crate::memory_budget::SampleCharge;
use crate::stats::Tally;
use crate::wire::{InlineQos, StatusInfo};
use bytes::Bytes;

impl Reader {
    /// The content filter; `None` accepts everything.
    pub fn content_filter(&self) -> Option<&Arc<ContentFilter>> {
        self.config.content_filter.as_ref()
    }

    /// Sets the content filter; `None` accepts everything. Samples received before
    /// stay.
    pub fn set_content_filter(&mut self, filter: Option<Arc<ContentFilter>>) {
        self.config.content_filter = filter;
        self.writers
            .values_mut()
            .for_each(|proxy| proxy.habits.filters_silently = false);
    }

    /// Notes the writer's result for this reader's filter, if it applied it.
    pub(super) fn note_filter_result(
        &mut self,
        writer: Guid,
        head: &mut SampleHead,
        inline_qos: &InlineQos<'_>,
    ) {
        let Some(filter) = &self.config.content_filter else {
            return;
        };
        head.filter_result = inline_qos.filter_result(filter.signature());
        if head.filter_result.is_some()
            && let Some(proxy) = self.writers.get_mut(&writer)
        {
            proxy.habits.note_writer_filters();
        }
    }

    /// Drops a rejected sample.
    pub(super) fn drop_filtered(&mut self, writer: Guid, mut head: SampleHead) {
        self.stats.filtered.tally();
        if self.config.qos.presentation.holds_samples() {
            // Coherent sets and group order need its number.
            head.coherent_mark.get_or_insert_default().kind = CoherentMarkKind::Filtered;
            self.accept_sample(writer, head, Bytes::new(), SampleCharge::default());
            return;
        }
        let Some(proxy) = self.writers.get_mut(&writer) else {
            return;
        };
        let number = head.sequence;
        if proxy.reliable {
            proxy.mark_irrelevant(number.0, number.0, &mut self.ready);
            return;
        }
        match proxy.receive_best_effort(number) {
            Some(lost) => {
                self.events
                    .note_lost(writer, lost, &mut self.stats, self.config.limits.events_max)
            }
            None => self.stats.duplicates.tally(),
        }
    }
}

impl ReaderConfig {
    /// Whether a change without payload stands for a sample that the writer's
    /// filter rejected.
    pub(super) fn is_filtered_by_writer(&self, inline_qos: &InlineQos<'_>) -> bool {
        let status = inline_qos.status_info().unwrap_or_default();
        self.content_filter.is_some() && status.0 & StatusInfo::FILTERED.0 != 0
    }

    /// Whether a complete sample passes. Dispose, unregister and set ends pass
    /// every filter.
    pub(super) fn passes(&self, head: &SampleHead, payload: &[u8]) -> bool {
        let Some(filter) = &self.content_filter else {
            return true;
        };
        let coherent_mark = head.coherent_mark.as_ref();
        let is_sample = head.kind == ChangeKind::Alive
            && coherent_mark
                .is_none_or(|coherent_mark| coherent_mark.kind == CoherentMarkKind::CacheChange);
        !is_sample || head.filter_result.unwrap_or_else(|| filter.passes(payload))
    }
}
