//! Changeable QoS policies of existing endpoints (DDS 1.4 §2.2.3, column
//! "changeable").
//!
//! A change is validated first. The endpoint and its protocol machine then apply
//! it. Each match is then evaluated again: with local endpoints here, with remote
//! ones by discovery, which announces the endpoint again under its GUID (SEDP).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, Ordering};

use pteros_rtps::discovery::data::EndpointData;

use crate::endpoints::local_route::has_manual_lease;
use crate::lock::{Mutex, rank};
use crate::qos::DataLifecycle;

/// The changeable policies of a writer that publishing reads.
pub(crate) struct ChangeableWriterQos {
    pub(super) announced: Mutex<Arc<EndpointData>, rank::AnnouncedData>,
    pub(super) lifespan: AtomicI64,
    pub(super) code_point: AtomicU8,
    pub(super) transport_priority: AtomicI32,
    always_needs_clock: bool,
    pub(super) has_deadline_or_lease: AtomicBool,
    pub(super) needs_clock: AtomicBool,
    pub(super) autodisposes: AtomicBool,
}

// Relaxed throughout: the values are independent, and a change takes effect at some
// sample published meanwhile.
impl ChangeableWriterQos {
    /// `is_timed`: the writer needs the clock, whatever its policies are.
    pub(crate) fn new(
        data: &Arc<EndpointData>,
        lifecycle: DataLifecycle,
        always_needs_clock: bool,
    ) -> Self {
        let this = Self {
            announced: Mutex::new(data.clone()),
            lifespan: AtomicI64::new(0),
            code_point: AtomicU8::new(0),
            transport_priority: AtomicI32::new(0),
            always_needs_clock,
            has_deadline_or_lease: AtomicBool::new(false),
            needs_clock: AtomicBool::new(always_needs_clock),
            autodisposes: AtomicBool::new(false),
        };
        this.store(data.clone(), lifecycle);
        this
    }

    /// Replaces the announced data by one with the same policies.
    pub(crate) fn set_announced(&self, data: Arc<EndpointData>) {
        *self.announced.lock() = data;
    }

    pub(crate) fn store(&self, data: Arc<EndpointData>, lifecycle: DataLifecycle) {
        let qos = &data.qos;
        self.lifespan
            .store(qos.lifespan.as_nanos(), Ordering::Relaxed);
        // Other values are only announced: each network maps them differently.
        let code_point = u8::try_from(qos.transport_priority).unwrap_or(0);
        let code_point = if code_point > 63 { 0 } else { code_point };
        self.code_point.store(code_point, Ordering::Relaxed);
        self.transport_priority
            .store(qos.transport_priority, Ordering::Relaxed);
        let is_watched = !qos.deadline.is_infinite() || has_manual_lease(qos);
        self.has_deadline_or_lease
            .store(is_watched, Ordering::Relaxed);
        let minds_time = self.always_needs_clock || is_watched || !qos.lifespan.is_infinite();
        self.needs_clock.store(minds_time, Ordering::Relaxed);
        let autodisposes = lifecycle.autodispose_unregistered_instances;
        self.autodisposes.store(autodisposes, Ordering::Relaxed);
        *self.announced.lock() = data;
    }
}
