//! The content filter of subscriptions (ContentFilteredTopic, DDS 1.4 §2.2.2.3.3).
//!
//! Creates, changes and applies content filters within the process. For remote
//! endpoints the protocol machines filter, each side for itself. On the
//! intra-process path a message for a filtered subscription is serialized once for
//! all of them and evaluated before it enters a queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
pub use pteros_dcps::filter::{ContentFilterError, FilterSpec, MessageType};
use pteros_msg::dynamic::DynamicType;
use pteros_rtps::coherent_mark::CoherentMarkKind;
use pteros_rtps::content_filter::ContentFilter;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::time::Instant;
use pteros_rtps::writer::Writer;

use crate::core::Core;
use crate::error::EndpointError;
use crate::intra_process::IntraProcessRoute;
use crate::lock::{Mutex, rank};
use crate::reader::ReaderEndpoint;
use crate::sample::{QueuedSample, SampleBody};
use crate::writer::{OutboundMessage, WriterEndpoint};

/// An endpoint's message type, resolved on first use.
#[derive(Default)]
pub(crate) struct FilterableType {
    from: MessageType,
    resolved: OnceLock<Option<DynamicType>>,
    /// The deepest nesting that a filter may have.
    depth_max: usize,
}

impl FilterableType {
    pub(crate) fn new(from: MessageType, depth_max: usize) -> Self {
        Self {
            from,
            depth_max,
            resolved: OnceLock::new(),
        }
    }

    fn get(&self) -> Option<&DynamicType> {
        self.resolved.get_or_init(|| self.from.resolve()).as_ref()
    }
}

/// A subscription's filter for the intra-process path.
pub(crate) struct IntraProcessFilter {
    ty: FilterableType,
    /// Checked for each message; the lock is taken only if set.
    is_set: AtomicBool,
    filter: Mutex<Option<Arc<ContentFilter>>, rank::LocalFilter>,
    rejected: AtomicU64,
}

impl IntraProcessFilter {
    pub(crate) fn new(ty: MessageType, depth_max: usize) -> Self {
        Self {
            ty: FilterableType::new(ty, depth_max),
            is_set: AtomicBool::new(false),
            filter: Mutex::default(),
            rejected: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self) -> Option<Arc<ContentFilter>> {
        if self.is_set.load(Ordering::Acquire) {
            self.filter.lock().clone()
        } else {
            None
        }
    }

    pub(crate) fn set(&self, filter: Option<Arc<ContentFilter>>) {
        let mut place = self.filter.lock();
        self.is_set.store(filter.is_some(), Ordering::Release);
        *place = filter;
    }

    /// Messages of this process that did not pass.
    pub(crate) fn rejected_count(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Builds a filter for this subscription. A blank expression means no filter.
    pub(crate) fn build(
        &self,
        topic: &str,
        spec: &FilterSpec,
    ) -> Result<Option<Arc<ContentFilter>>, EndpointError> {
        Ok(spec.build(topic, || self.ty.get(), self.ty.depth_max)?)
    }
}

impl ReaderEndpoint {
    /// Whether its filter accepts a message of this process.
    pub(crate) fn accepts(&self, message: &mut dyn OutboundMessage) -> bool {
        let filter = self.filter.get();
        let filter = filter.filter(|_| message.kind() == ChangeKind::Alive);
        filter.is_none_or(|filter| filter.passes(&message.serialized()))
    }

    /// The filter in force.
    pub fn content_filter(&self) -> Option<FilterSpec> {
        let filter = self.filter.get()?;
        Some(filter.property().into())
    }
}

impl Core {
    /// Replaces the content filter of a subscription; a blank expression removes
    /// it.
    ///
    /// Queued samples stay. Samples that remote publishers held back before they
    /// learned of the change are not sent afterwards.
    ///
    /// # Errors
    /// The expression or a parameter is invalid, or the type is unknown. The
    /// previous filter stays in force.
    pub fn set_content_filter(
        &self,
        reader: &ReaderEndpoint,
        spec: &FilterSpec,
    ) -> Result<(), EndpointError> {
        let filter = reader.filter.build(&reader.data.topic, spec)?;
        let now = self.platform.now();
        let order = self.match_order.lock();
        let mut machine = reader.machine.lock();
        machine.set_content_filter(filter.clone());
        reader.filter.set(filter.clone());
        drop(machine);
        let announced = Arc::new(EndpointData {
            content_filter: filter.map(|filter| filter.property().clone()),
            ..(*reader.announced()).clone()
        });
        reader.set_announced(announced.clone());
        self.graph.change_own_endpoint(&announced);
        self.participant.lock().add_reader(now, announced);
        drop(order);
        self.serve_participant(now);
        Ok(())
    }

    /// Counts a local sample that the filter rejected. It still counts as received
    /// from its publisher.
    pub(crate) fn reject_local_sample(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &IntraProcessRoute,
        mut item: QueuedSample,
    ) {
        let reader = &route.reader;
        reader.filter.rejected.fetch_add(1, Ordering::Relaxed);
        if reader.holds_samples() {
            // Coherent sets and the publisher's order count it.
            item.body = SampleBody::Serialized(Bytes::new());
            item.mark.get_or_insert_default().kind = CoherentMarkKind::Filtered;
            self.deliver_to_route(now, writer, route, item);
        } else if route.is_watched() {
            self.note_local_assertion(now, writer, route);
        }
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

    /// A remote reader's filter as applied here; `None` if it has none, or none
    /// that can be applied.
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
