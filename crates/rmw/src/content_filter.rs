//! Content-filtered subscriptions (DDS 1.4 §2.2.2.3.3): where filters are made,
//! changed and applied within the process.
//!
//! The protocol machines filter what goes over the network, each end for
//! itself. On the path within a process nobody else does: a message that a
//! filtered subscription may not want is serialized, once for all of them, and
//! judged before it enters a queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use pteros_msg::describe::TypeDescription;
use pteros_msg::dynamic::DynamicType;
use pteros_rtps::content_filter::{ContentFilter, ContentFilterProperty};
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::history::ChangeKind;
use pteros_rtps::mark::MarkKind;
use pteros_rtps::time::Instant;
use pteros_rtps::writer::Writer;

use crate::core::Core;
use crate::error::{EndpointError, FilterProblem};
use crate::local::LocalRoute;
use crate::reader::ReaderEndpoint;
use crate::sample::{Body, Item};
use crate::writer::{Outgoing, WriterEndpoint};

/// What is known of an endpoint's message type; made into a type only where
/// somebody filters.
#[derive(Clone, Debug, Default)]
pub enum MessageType {
    /// Its name alone: nothing can be filtered here.
    #[default]
    Unknown,
    /// A generated type.
    Described {
        /// Its description, built on first use.
        describe: fn() -> &'static TypeDescription,
        /// `Message::TYPE_INFORMATION`.
        announced: &'static [u8],
    },
    /// A type known at run time.
    Dynamic(DynamicType),
}

impl MessageType {
    fn resolve(&self) -> Option<DynamicType> {
        match self {
            Self::Unknown => None,
            Self::Described { describe, .. } => DynamicType::new(describe()).ok(),
            Self::Dynamic(ty) => Some(ty.clone()),
        }
    }
}

/// An endpoint's message type, resolved when first asked for.
#[derive(Default)]
pub(crate) struct FilterableType {
    from: MessageType,
    resolved: OnceLock<Option<DynamicType>>,
    /// How deep filters may go.
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

/// What a subscription wants of its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSpec {
    /// In the SQL of DDS 1.4 Annex B.
    pub expression: String,
    /// The values of `%0`, `%1` …: literals, strings in quotes.
    pub parameters: Vec<String>,
}

/// A subscription's filter, for the path within the process.
pub(crate) struct LocalFilter {
    ty: FilterableType,
    /// Looked at for each message; the lock only if set.
    is_set: AtomicBool,
    filter: Mutex<Option<Arc<ContentFilter>>>,
    kept_out: AtomicU64,
}

impl LocalFilter {
    pub(crate) fn new(ty: MessageType, depth_max: usize) -> Self {
        Self {
            ty: FilterableType::new(ty, depth_max),
            is_set: AtomicBool::new(false),
            filter: Mutex::default(),
            kept_out: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self) -> Option<Arc<ContentFilter>> {
        match self.is_set.load(Ordering::Acquire) {
            true => self.filter.lock().clone(),
            false => None,
        }
    }

    pub(crate) fn set(&self, filter: Option<Arc<ContentFilter>>) {
        let mut place = self.filter.lock();
        self.is_set.store(filter.is_some(), Ordering::Release);
        *place = filter;
    }

    /// Messages of this process that did not pass.
    pub(crate) fn kept_out(&self) -> u64 {
        self.kept_out.load(Ordering::Relaxed)
    }

    /// A filter for this subscription. Nothing is wanted but all of a blank
    /// expression.
    pub(crate) fn make(
        &self,
        topic: &str,
        spec: &FilterSpec,
    ) -> Result<Option<Arc<ContentFilter>>, EndpointError> {
        if spec.expression.trim().is_empty() {
            return Ok(None);
        }
        let Some(ty) = self.ty.get() else {
            return Err(FilterProblem::UnknownType.into());
        };
        let made = ContentFilter::with_nesting_max(
            topic,
            ty,
            &spec.expression,
            &spec.parameters,
            self.ty.depth_max,
        );
        Ok(Some(made.map_err(FilterProblem::Wrong)?))
    }
}

impl ReaderEndpoint {
    /// Whether its filter lets a message of this process pass.
    pub(crate) fn wants(&self, message: &mut dyn Outgoing) -> bool {
        let filter = self.filter.get();
        let filter = filter.filter(|_| message.kind() == ChangeKind::Alive);
        filter.is_none_or(|filter| filter.passes(&message.serialized()))
    }

    /// The filter in force.
    pub fn content_filter(&self) -> Option<FilterSpec> {
        let filter = self.filter.get()?;
        let ContentFilterProperty {
            expression,
            parameters,
            ..
        } = filter.property().clone();
        Some(FilterSpec {
            expression,
            parameters,
        })
    }
}

impl Core {
    /// Filters a subscription otherwise from now on; a blank expression ends
    /// it. What waits to be taken stays; what publishers of other processes
    /// kept back before they heard of it is not sent afterwards.
    ///
    /// # Errors
    /// The expression or a parameter is wrong, or the type is not known; the
    /// filter before stays in force.
    pub fn set_content_filter(
        &self,
        reader: &ReaderEndpoint,
        spec: &FilterSpec,
    ) -> Result<(), EndpointError> {
        let filter = reader.filter.make(&reader.data.topic, spec)?;
        let now = self.env.now();
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

    /// A local subscription does not want this sample: its publisher has been
    /// heard all the same.
    pub(crate) fn keep_out(
        &self,
        now: Instant,
        writer: &WriterEndpoint,
        route: &LocalRoute,
        mut item: Item,
    ) {
        let reader = &route.reader;
        reader.filter.kept_out.fetch_add(1, Ordering::Relaxed);
        if reader.holds_samples() {
            // Coherent sets and the publisher's order count on it.
            item.body = Body::Serialized(Bytes::new());
            item.mark.get_or_insert_default().kind = MarkKind::Filtered;
            self.deliver(now, writer, route, item);
        } else if route.is_watched() {
            self.watch(now, writer, route);
        }
    }
}

impl WriterEndpoint {
    /// Whether a local late joiner wants a sample that is kept.
    pub(crate) fn is_wanted(
        &self,
        machine: &Writer,
        item: &Item,
        filter: Option<&ContentFilter>,
    ) -> bool {
        match filter.filter(|_| item.is_data()) {
            Some(filter) => filter.passes(&self.kept_payload(machine, item)),
            None => true,
        }
    }

    /// A peer's filter as it is applied here; `None` if it has none, or none
    /// that can be applied.
    pub(crate) fn filter_of(&self, reader: &EndpointData) -> Option<Arc<ContentFilter>> {
        let property = reader.content_filter.as_ref()?;
        ContentFilter::of_peer(
            property,
            &self.data.topic,
            self.ty.get()?,
            self.ty.depth_max,
        )
    }
}
