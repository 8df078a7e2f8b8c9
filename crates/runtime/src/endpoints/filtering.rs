//! Applies content filters: to messages of this process at the reader, and to remote
//! readers at the writer.

use std::sync::Arc;

use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::writer::Writer;

use crate::endpoints::content_filter::{FilterSpec, IntraProcessFilter};
use crate::endpoints::reader::ReaderEndpoint;
use crate::endpoints::writer::WriterEndpoint;
use crate::outbound::OutboundMessage;
use crate::sample::QueuedSample;

impl IntraProcessFilter {
    /// Whether it accepts a message of this process.
    pub(crate) fn accepts(&self, message: &mut dyn OutboundMessage) -> bool {
        let filter = self.get();
        let filter = filter.filter(|_| message.kind() == ChangeKind::Alive);
        filter.is_none_or(|filter| filter.passes(&message.serialized()))
    }
}

impl ReaderEndpoint {
    /// The present filter.
    pub fn content_filter(&self) -> Option<FilterSpec> {
        let filter = self.filter.get()?;
        Some(filter.property().into())
    }
}

impl WriterEndpoint {
    /// Whether a local late joiner's filter accepts a kept sample.
    pub(crate) fn passes_filter(
        &self,
        machine: &Writer,
        item: &QueuedSample,
        filter: Option<&ContentFilter>,
    ) -> bool {
        match filter.filter(|_| item.is_data()) {
            Some(filter) => filter.passes(&self.kept_payload(machine, item)),
            None => true,
        }
    }

    /// A remote reader's filter as applied here; `None` if it has none, or one that
    /// cannot be applied.
    pub(crate) fn filter_of(&self, reader: &EndpointData) -> Option<Arc<ContentFilter>> {
        let property = reader.content_filter.as_ref()?;
        ContentFilter::from_peer(
            property,
            &self.data.topic,
            self.ty.get()?,
            self.ty.depth_max,
        )
    }
}
