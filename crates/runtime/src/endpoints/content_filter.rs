//! The content filter of subscriptions (ContentFilteredTopic, DDS 1.4 §2.2.2.3.3).
//!
//! Creates, changes and applies content filters within the process. For remote
//! endpoints the protocol machines filter, each side for itself. On the
//! intra-process path a message for a filtered subscription is serialized once for
//! all of them and evaluated before it enters a queue.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub use pteros_dcps::filter::{BuildType, ContentFilterError, FilterSpec, MessageType};
use pteros_msg::dynamic::DynamicType;
use pteros_rtps::content_filter::ContentFilter;

use crate::error::EndpointError;
use crate::lock::{Mutex, rank};

/// An endpoint's message type, resolved on first use.
#[derive(Default)]
pub(crate) struct FilterableType {
    from: MessageType,
    resolved: OnceLock<Option<DynamicType>>,
    /// The deepest nesting that a filter may have.
    pub(super) depth_max: usize,
}

impl FilterableType {
    pub(crate) fn new(from: MessageType, depth_max: usize) -> Self {
        Self {
            from,
            depth_max,
            resolved: OnceLock::new(),
        }
    }

    pub(super) fn get(&self) -> Option<&DynamicType> {
        self.resolved.get_or_init(|| self.from.resolve()).as_ref()
    }
}

/// A subscription's filter for the intra-process path.
pub(crate) struct IntraProcessFilter {
    ty: FilterableType,
    /// Checked for each message; the lock is taken only if set.
    is_set: AtomicBool,
    filter: Mutex<Option<Arc<ContentFilter>>, rank::LocalFilter>,
    pub(crate) rejected: AtomicU64,
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
