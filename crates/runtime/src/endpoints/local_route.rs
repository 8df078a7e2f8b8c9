//! Intra-process route: how a writer's samples reach one reader of its context.

use std::sync::Arc;

use pteros_dcps::cache::FullQueuePolicy;
use pteros_rtps::qos::{EndpointQos, Liveliness, Reliability};

use crate::endpoints::reader::ReaderEndpoint;

/// A writer's route to one reader of its own context.
#[derive(Clone)]
pub(crate) struct IntraProcessRoute {
    pub(crate) reader: Arc<ReaderEndpoint>,
    /// Both sides are reliable.
    pub(crate) reliable: bool,
    /// Policy for samples when the reader has no space.
    pub(crate) when_full: FullQueuePolicy,
    /// The reader's machine needs samples and liveliness assertions.
    pub(crate) needs_assertions: bool,
    /// The writer is durable: its samples pass the duplicate filter.
    pub(crate) filters_duplicates: bool,
}

impl IntraProcessRoute {
    pub(crate) fn new(
        writer: &EndpointQos,
        reader: &Arc<ReaderEndpoint>,
        filters_duplicates: bool,
    ) -> Self {
        let announced = reader.announced();
        let wanted = &announced.qos;
        let reliable = writer.reliability == Reliability::Reliable
            && wanted.reliability == Reliability::Reliable;
        Self {
            reader: reader.clone(),
            reliable,
            when_full: FullQueuePolicy::for_match(writer, reliable),
            needs_assertions: !wanted.deadline.is_infinite()
                || has_manual_lease(writer)
                || reader.needs_filtering()
                || filters_duplicates,
            filters_duplicates,
        }
    }
}

impl IntraProcessRoute {
    pub(crate) fn is_watched(&self) -> bool {
        self.needs_assertions
    }
}

/// Whether a writer must assert its liveliness.
pub(crate) fn has_manual_lease(writer: &EndpointQos) -> bool {
    writer.liveliness != Liveliness::Automatic && !writer.lease_duration.is_infinite()
}
