//! The reader's content filter (DDS 1.4 §2.2.2.3.3): applied to each sample as it
//! arrives, unless its writer says that it has applied the very same.
//!
//! What does not pass is irrelevant, as if a GAP had said so: it is acknowledged,
//! takes no room, is not lost and does not meet the reader's DEADLINE, which is
//! about the samples that the filtered topic has. Its writer's liveliness it
//! does prove.

use alloc::sync::Arc;

use super::Reader;
use crate::content_filter::ContentFilter;
use crate::defrag::SampleHead;
use crate::history::ChangeKind;
use crate::id::Guid;
use crate::mark::MarkKind;
use crate::stats::Tally;
use crate::wire::{InlineQos, StatusInfo};
use bytes::Bytes;

impl Reader {
    /// What it wants of the topic; `None` is all.
    pub fn content_filter(&self) -> Option<&Arc<ContentFilter>> {
        self.config.content_filter.as_ref()
    }

    /// What it wants of the topic from now on; `None` is all. What it has taken
    /// in already stays.
    pub fn set_content_filter(&mut self, filter: Option<Arc<ContentFilter>>) {
        self.config.content_filter = filter;
        self.writers
            .values_mut()
            .for_each(|proxy| proxy.forget_filters());
    }

    /// Whether a change without payload stands for a sample that a filter at
    /// the writer kept back.
    pub(super) fn is_told_filtered(&self, inline_qos: &InlineQos<'_>) -> bool {
        let status = inline_qos.status_info().unwrap_or_default();
        self.config.content_filter.is_some() && status.0 & StatusInfo::FILTERED.0 != 0
    }

    /// Notes what the writer says of our filter, if it knows it.
    pub(super) fn note_told(
        &mut self,
        writer: Guid,
        head: &mut SampleHead,
        inline_qos: &InlineQos<'_>,
    ) {
        let Some(filter) = &self.config.content_filter else {
            return;
        };
        head.passes = inline_qos.filter_result(filter.signature());
        if head.passes.is_some()
            && let Some(proxy) = self.writers.get_mut(&writer)
        {
            proxy.note_filters();
        }
    }

    /// Whether a whole sample passes. Only samples are asked about: endings of
    /// instances and ends of sets concern every reader.
    pub(super) fn passes(&self, head: &SampleHead, payload: &[u8]) -> bool {
        let Some(filter) = &self.config.content_filter else {
            return true;
        };
        let mark = head.mark.as_ref();
        let is_sample =
            head.kind == ChangeKind::Alive && mark.is_none_or(|mark| mark.kind == MarkKind::Change);
        !is_sample || head.passes.unwrap_or_else(|| filter.passes(payload))
    }

    /// A sample does not pass.
    pub(super) fn keep_out(&mut self, writer: Guid, mut head: SampleHead) {
        self.stats.filtered.tally();
        if self.config.qos.presentation.holds_samples() {
            // Coherent sets and the publisher's order count on it.
            head.mark.get_or_insert_default().kind = MarkKind::Filtered;
            self.take(writer, head, Bytes::new());
            return;
        }
        let Some(proxy) = self.writers.get_mut(&writer) else {
            return;
        };
        let number = head.sequence;
        if proxy.reliable {
            proxy.skip(number.0, number.0, &mut self.ready);
            return;
        }
        match proxy.take_best_effort(number) {
            Some(lost) => self.note_lost(writer, lost),
            None => self.stats.duplicates.tally(),
        }
    }
}
